"""The daemon as the first process of a container: orphans come to it, and none of them stays a zombie."""

import os
import signal
import subprocess

import pytest

from fleetd.table import processes
from fleetd.tree import below

CONTAINER = "unshare", "--pid", "--fork", "--mount-proc", "--kill-child"
ORPHANS = "for i in 1 2 3; do (setsid sh -c 'sleep 0.1 & exec sleep 0.3' &); done"


@pytest.fixture
def container(rig, wait_for):
    """`container()`: a daemon that is PID 1, its pid as seen from here."""
    if subprocess.run([*CONTAINER, "true"], capture_output=True, check=False).returncode:
        pytest.skip("unshare --pid is not allowed here")

    def start():
        around = rig.start(ready=False, wrap=CONTAINER)
        wait_for(lambda: rig.beat().get("pid") == 1)
        (init,) = [process.pid for process in processes() if process.parent == around.pid]
        return init

    return start


def zombies(init):
    table = processes()
    under = below([init], table)
    return [process for process in table if process.zombie and process.pid in under]


def parents_of_lanes(init):
    return [process.pid for process in processes() if process.parent == init and not process.zombie]


def test_orphans_that_come_to_a_daemon_that_is_init_are_reaped(rig, container, wait_for):
    init = container()
    rig.shell("orphans", f"{ORPHANS}; sleep 100")
    rig.pid("orphans")
    (parent,) = parents_of_lanes(init)
    os.kill(parent, signal.SIGKILL)
    wait_for(lambda: len(parents_of_lanes(init)) > 2)  # they are the daemon's children now
    wait_for(lambda: rig.jobs() and all("100" in command for command in rig.jobs().values()))
    wait_for(lambda: not zombies(init), 2)


def test_a_daemon_that_is_init_steals_no_exit_code(rig, container, wait_for):
    container()
    names = [rig.shell(f"j{n}", f"{ORPHANS}; exit {n}") for n in range(6)]
    assert [rig.ended(name)["exit"] for name in names] == [0, 1, 2, 3, 4, 5]


def test_a_lane_s_parent_that_dies_below_init_is_replaced(rig, container, wait_for):
    init = container()
    for n in range(3):
        assert rig.ended(rig.drop(f"j{n}", "true"))["outcome"] == "ok"
        for parent in parents_of_lanes(init):
            os.kill(parent, signal.SIGKILL)
        wait_for(lambda: not parents_of_lanes(init))
    assert rig.ended(rig.drop("last", "true"))["outcome"] == "ok"
    wait_for(lambda: not zombies(init), 2)
