"""Nothing of a job outlives it: time limits and stops against shells, sessions, the deaf, and the left behind."""

import os
import signal
import subprocess
import time

import pytest

from fleetd.lease import born
from fleetd.table import bears, processes
from fleetd.tree import Ending, below, members

NESTED = "sh -c 'sh -c \"sleep 100; :\"; :'; :"
DAEMONIZED = "setsid sleep 100 & setsid sh -c 'sleep 100 & sleep 100' & sleep 100"
DEAF = "trap '' TERM INT HUP; sleep 100 & while :; do sleep 0.1; done"
STOPPED = "sleep 100 & kill -STOP $!; kill -STOP $$"


def nothing_of(rig, wait_for):
    wait_for(lambda: not rig.jobs(), 5)


@pytest.mark.parametrize("script", [NESTED, DAEMONIZED, DEAF, STOPPED], ids=["nested", "daemonized", "deaf", "stopped"])
def test_a_time_limit_leaves_nothing_alive_within_the_grace(rig, wait_for, script):
    rig.settings(grace_s=0.5)
    rig.start()
    began = time.monotonic()
    row = rig.ended(rig.shell("tree", script, timeout_s=0.4))
    assert row["outcome"] == "timeout"
    assert time.monotonic() - began < 0.4 + 0.5 + 3.0
    nothing_of(rig, wait_for)


def test_stop_now_leaves_nothing_alive_of_any_of_them(rig, wait_for):
    rig.settings(grace_s=0.5)
    rig.start(lanes=4)
    for name, script in {"nested": NESTED, "daemonized": DAEMONIZED, "deaf": DEAF, "stopped": STOPPED}.items():
        rig.shell(name, script)
        rig.pid(name)
    (rig.root / "STOP_NOW").touch()
    wait_for(lambda: rig.rows("stop"), 6)
    assert not rig.jobs()
    assert {row["outcome"] for row in rig.rows()} == {"stopped"}
    assert len(rig.rows()) == 4


def test_what_the_leader_leaves_is_ended_and_counted_before_the_row(rig):
    rig.start()
    row = rig.ended(rig.shell("leaves", "setsid sleep 100 & sleep 100 & (sleep 100 &) ; exit 0"))
    assert (row["outcome"], row["exit"], row["leftovers"]) == ("ok", 0, 3)
    assert not rig.jobs()


def test_a_child_that_holds_the_output_open_does_not_hold_up_the_end(rig):
    rig.start()
    began = time.monotonic()
    row = rig.ended(rig.shell("holds", "sleep 100 & echo said; exit 3"))
    assert (row["outcome"], row["exit"], row["leftovers"]) == ("failed", 3, 1)
    assert time.monotonic() - began < 3.0
    assert rig.log(row) == b"said\n"


def test_deaf_leftovers_are_killed_after_the_grace(rig):
    rig.settings(grace_s=0.5)
    rig.start()
    row = rig.ended(rig.shell("deaf", "(trap '' TERM; while :; do sleep 0.1; done) & sleep 0.2; exit 0"))
    assert row["outcome"] == "ok"
    assert row["leftovers"] >= 1
    assert not rig.jobs()


def test_the_lane_goes_on_after_all_that(rig):
    rig.settings(grace_s=0.3)
    rig.start(lanes=1)
    rig.ended(rig.shell("00-deaf", DEAF, timeout_s=0.2))
    before = rig.parents()
    assert rig.ended(rig.drop("10-next", "true"))["outcome"] == "ok"
    assert rig.parents() == before


def test_zombies_do_not_pile_up_at_a_lane_s_parent(rig):
    rig.start(lanes=1)
    for n in range(5):
        rig.ended(rig.shell(f"orphans-{n}", "for i in 1 2 3; do (sleep 0.01 &) ; done; sleep 0.05"))
    under = below(rig.parents(), processes())
    assert not [process for process in processes() if process.zombie and process.pid in under]


def test_zombies_do_not_pile_up_at_the_daemon(rig, wait_for):
    daemon = rig.start(lanes=1)
    for n in range(4):
        rig.ended(rig.drop(f"j{n}", "true"))
        for parent in rig.parents():
            os.kill(parent, signal.SIGKILL)
        wait_for(lambda: not rig.parents())
    rig.ended(rig.drop("last", "true"))
    under = below([daemon.pid], processes())
    assert not [process for process in processes() if process.zombie and process.pid in under]


def test_members_are_the_group_the_descendants_and_the_marked(wait_for):
    mark = f"test-{os.getpid()}"
    env = os.environ | {"FLEET_CLAIM": mark}
    group = subprocess.Popen(["sh", "-c", "sleep 100 & wait"], start_new_session=True)
    marked = subprocess.Popen(["sleep", "100"], env=env, start_new_session=True)
    try:
        wait_for(lambda: bears(marked.pid, mark))
        nobody = 4194300
        wait_for(lambda: len(members(root=nobody, group=group.pid, mark="")) == 2)
        assert members(root=nobody, group=None, mark=mark) == {marked.pid}
        assert members(root=os.getpid(), group=None, mark="") >= {group.pid, marked.pid}
    finally:
        os.killpg(group.pid, signal.SIGKILL)
        marked.kill()
        group.wait()
        marked.wait()


def test_a_mark_is_known_whole_not_by_its_beginning(wait_for):
    process = subprocess.Popen(["sleep", "100"], env=os.environ | {"FLEET_CLAIM": "abcdef"})
    try:
        wait_for(lambda: bears(process.pid, "abcdef"))
        assert not bears(process.pid, "abc")
    finally:
        process.kill()
        process.wait()


def test_an_ending_is_over_only_when_nothing_is_left(wait_for):
    deaf = subprocess.Popen(["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"], start_new_session=True)
    wait_for(lambda: below([deaf.pid], processes()))
    ending = Ending(lambda: {deaf.pid} if born(deaf.pid) else set(), 10.0, print)
    assert not ending.step(0.0)
    assert not ending.step(9.9)
    assert ending.left == 1
    assert not ending.step(10.0)
    deaf.wait(5)
    assert ending.step(10.1)
    assert ending.left == 0
