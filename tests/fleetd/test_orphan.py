"""An attempt whose parent was killed: the daemon keeps its log's cap, and ends what is left of it and nothing else."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from fleetd.lease import born
from fleetd.tree import Strays

CUT = re.compile(rb"\n\[(about )?(\d+) bytes cut\]\n")
BURST, BURSTS = 200_000, 30
BURSTING = f"for i in $(seq {BURSTS}); do head -c {BURST} /dev/zero | tr '\\0' x; sleep 0.1; done"
LINES = 250_000
COUNT = f"i=0; while [ $i -lt {LINES} ]; do printf '%09d\\n' $i; i=$((i+1)); done"
LAST_PID = Path("/proc/sys/kernel/ns_last_pid")


def kept_by_the_daemon(rig, wait_for, script, *, first=lambda: True):
    """The log of a job whose parent was killed once `first()` is so, and the most that the disk held of it afterwards."""
    rig.settings(log_max_mb=0.125)
    rig.start()
    rig.shell("prints", script)
    pid, log, most = rig.pid("prints"), rig.attempt("prints") / "log", 0
    wait_for(first)
    os.kill(pid["parent"], signal.SIGKILL)
    while born(pid["pid"]):
        most = max(most, log.stat().st_blocks * 512)
        time.sleep(0.05)
    row = rig.ended("prints", 30)
    assert (row["outcome"], row["exit"]) == ("lost", None)
    return rig.log(row), most


def test_the_log_stays_within_its_cap_and_the_cut_is_counted(rig, wait_for):
    data, most = kept_by_the_daemon(rig, wait_for, BURSTING)
    cut = CUT.search(data)
    assert len(data) <= 0.125 * (1 << 20) + 100
    assert len(data) - len(cut[0]) + int(cut[2]) == BURST * BURSTS
    assert not cut[1]
    assert most < BURST * BURSTS * 2 / 3


def test_where_holes_cannot_be_punched_the_daemon_goes_on_where_the_parent_was_killed(
    rig, small_disk, wait_for, tmp_path
):
    other = type(rig)(small_disk(kind="ramfs") / "spool", wait_for, tmp_path / "said")
    try:
        data, _ = kept_by_the_daemon(other, wait_for, COUNT, first=(other.attempt("prints") / "log.tail").exists)
    finally:
        other.close()
    cut = CUT.search(data)
    assert len(data) <= 0.125 * (1 << 20) + 100
    assert cut[1]
    assert data.startswith(b"000000000\n")
    assert data.endswith(b"%09d\n" % (LINES - 1))
    assert abs(len(data) - len(cut[0]) + int(cut[2]) - 10 * LINES) < LINES


@pytest.mark.parametrize("kind", ["fifo", "link", "directory", "locked", "nothing"])
def test_what_stands_in_the_place_of_its_log_is_not_followed(rig, wait_for, tmp_path, kind):
    (tmp_path / "precious").write_bytes(b"x" * 300_000)
    rig.settings(log_max_mb=0.125, poll_s=0.2)
    rig.start()
    rig.shell("odd", "until test -e $FLEET_SPOOL/go; do sleep 0.02; done")
    pid, log = rig.pid("odd"), rig.attempt("odd") / "log"
    log.unlink()
    made = {
        "fifo": lambda: os.mkfifo(log),
        "link": lambda: log.symlink_to(tmp_path / "precious"),
        "directory": log.mkdir,
        "locked": lambda: log.touch(mode=0),
    }
    made.get(kind, lambda: None)()
    os.kill(pid["parent"], signal.SIGKILL)
    rig.ended(rig.shell("meanwhile", "sleep 1.2"))
    (rig.root / "go").touch()
    assert rig.ended("odd")["outcome"] == "lost"
    assert (tmp_path / "precious").read_bytes() == b"x" * 300_000


@pytest.fixture
def group():
    """`group(script)`: the leader of a new session that runs it; all of them are gone after the test."""
    made = []

    def start(script, **environ):
        made.append(subprocess.Popen(["sh", "-c", script], env=os.environ | environ, start_new_session=True))
        return made[-1]

    yield start
    for leader in made:
        leader.kill()
        leader.wait()


def in_group(leader):
    table = subprocess.run(["ps", "-A", "-o", "pgid=,pid="], capture_output=True, text=True, check=True).stdout
    return {int(pid) for group, pid in map(str.split, table.splitlines()) if int(group) == leader}


def test_a_group_is_trusted_while_one_that_was_seen_in_it_lives(group, wait_for):
    leader = group("env -i sleep 100 & exec env -i sleep 100")
    began = born(leader.pid)
    wait_for(lambda: len(in_group(leader.pid)) == 2)
    strays = Strays(leader=leader.pid, born=began, mark="0")
    assert strays.find() == in_group(leader.pid)
    leader.kill()
    leader.wait()
    (left,) = strays.find()
    assert strays.find() == {left}
    os.kill(left, signal.SIGKILL)
    wait_for(lambda: strays.find() == set())


def test_a_group_whose_leader_began_at_another_time_is_nobody_s(group, wait_for):
    leader = group("sleep 100; :")
    wait_for(lambda: len(in_group(leader.pid)) == 2)
    assert Strays(leader=leader.pid, born="1", mark="0").find() == set()


def with_pid(pid, *argv):
    """A process of that very number, at the head of a session of its own; skips where numbers cannot be had."""
    for _ in range(300):
        try:
            LAST_PID.write_text(str(pid - 1))
        except OSError:
            pytest.skip("ns_last_pid cannot be written here")
        process = subprocess.Popen(argv, start_new_session=True)
        if process.pid == pid:
            return process
        process.kill()
        process.wait()
    pytest.skip("others were always quicker to have that number")


def test_a_recycled_group_is_not_signalled_while_its_old_one_is_being_ended(rig, root_only, wait_for):
    """The leader ends of TERM; its number goes to a stranger while a deaf process of the job holds up the end."""
    rig.settings(grace_s=2.0)
    rig.start()
    rig.shell("old", "setsid sh -c \"trap '' TERM; while :; do sleep 0.1; done\" & sleep 0.3; echo up; exec sleep 100")
    pid = rig.pid("old")
    wait_for(lambda: (rig.attempt("old") / "log").read_bytes() == b"up\n")
    os.kill(pid["parent"], signal.SIGKILL)
    (rig.root / "STOP_NOW").touch()
    wait_for(lambda: born(pid["pid"]) is None and not in_group(pid["pid"]))
    stranger = with_pid(pid["pid"], "sleep", "100")
    try:
        assert rig.ended("old", 10)["outcome"] == "stopped"
        assert stranger.poll() is None
        assert not rig.jobs()
    finally:
        stranger.kill()
        stranger.wait()
