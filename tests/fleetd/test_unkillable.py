"""What SIGKILL does not end: a tracer holds a process at its exit. It is said, its lane is held, its row comes when it goes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TRACER = """
import ctypes, sys
ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.argtypes = ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p
SEIZE, TRACE_EXIT = 0x4206, 0x40
sys.exit("ptrace is not allowed") if ptrace(SEIZE, int(sys.argv[1]), None, TRACE_EXIT) else print("held", flush=True)
sys.stdin.read()
"""
WAITS = "until test -e $FLEET_SPOOL/go; do sleep 0.02; done"


@pytest.fixture
def hold():
    """`hold(pid)` keeps that process from ending until what it gives is called."""
    made = []

    def held(pid):
        command = [sys.executable, "-S", "-c", TRACER, str(pid)]
        tracer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        made.append(tracer)
        if tracer.stdout.readline() != b"held\n":
            pytest.skip("ptrace is not allowed here")
        return tracer.stdin.close

    yield held
    for tracer in made:
        tracer.stdin.close()
        tracer.stdout.close()
        tracer.wait()


@pytest.fixture
def quick(rig):
    rig.settings(poll_s=0.2, grace_s=0.3)
    return rig


def stuck(rig, wait_for):
    """What the heartbeat says of it, once it does."""
    return wait_for(lambda: rig.beat().get("unkillable"), 12)


def ticks(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_it_is_said_once_its_lane_is_held_and_its_row_comes_at_last(quick, hold, wait_for, fleet):
    daemon = quick.start()
    quick.shell("held", "sleep 100", timeout_s=1.0)
    pid = quick.pid("held")
    release = hold(pid["pid"])
    assert stuck(quick, wait_for) == {"held": [pid["pid"]]}
    used = [ticks(process) for process in (pid["parent"], daemon.pid)]
    told = fleet("--spool", str(quick.root), "status").stdout
    assert f"held cannot be ended on calber: process {pid['pid']} outlived SIGKILL" in told
    for n in range(10):
        quick.ended(quick.shell(f"other-{n}", "sleep 0.1"))
    wait_for(lambda: quick.beat()["busy"] == ["held"])
    assert (quick.results("held"), quick.beat()["claims"]) == ([], None)
    assert quick.said().count("held cannot be ended") == 1
    now = [ticks(process) for process in (pid["parent"], daemon.pid)]
    assert now[0] - used[0] < 20  # of a hundred a second
    release()
    row = quick.ended("held", 5)
    assert (row["outcome"], row["signal"], row["leftovers"]) == ("timeout", 9, 0)
    wait_for(lambda: quick.beat()["unkillable"] == {})


def test_a_leftover_that_cannot_be_ended_holds_back_the_row_and_is_counted(quick, hold, wait_for):
    quick.start()
    quick.shell("leaves", f"setsid sleep 100 & echo $! > $FLEET_OUT/child; {WAITS}; exit 0")
    quick.pid("leaves")
    child = quick.attempt("leaves") / "out" / "child"
    pid = int(wait_for(lambda: child.exists() and child.read_text()))
    release = hold(pid)
    (quick.root / "go").touch()
    assert stuck(quick, wait_for) == {"leaves": [pid]}
    assert quick.results("leaves") == []
    release()
    row = quick.ended("leaves", 5)
    assert (row["outcome"], row["exit"], row["leftovers"]) == ("ok", 0, 1)
    assert not quick.jobs()


def test_the_stop_row_names_what_could_not_be_ended(quick, hold, wait_for, fleet):
    quick.start(lanes=1)
    quick.shell("held", "sleep 100")
    release = hold(quick.pid("held")["pid"])
    done = fleet("--spool", str(quick.root), "stop", "now", "--wait")
    assert done.returncode == 1
    assert "held cannot be ended" in done.stderr
    (row,) = wait_for(lambda: quick.rows("stop"))
    assert (row["ended"], row["left"], row["unkillable"]) == (["held"], 1, ["held"])
    (quick.root / "STOP_NOW").unlink()
    quick.drop("waits", "true")
    wait_for(lambda: "no lane is left" in (quick.beat()["claims"] or ""))
    assert quick.spool.waiting() == ["waits"]
    release()
    assert quick.ended("held", 5)["outcome"] == "stopped"
    assert quick.ended("waits", 5)["outcome"] == "ok"


def test_the_daemon_says_it_where_the_parent_was_killed(quick, hold, wait_for):
    daemon = quick.start()
    quick.shell("orphan", "sleep 100")
    pid = quick.pid("orphan")
    release = hold(pid["pid"])
    os.kill(pid["parent"], signal.SIGKILL)
    (quick.attempt("orphan") / "cancel").touch()
    assert stuck(quick, wait_for) == {"orphan": [pid["pid"]]}
    used = ticks(daemon.pid)
    quick.ended(quick.shell("other", "sleep 1"))
    assert ticks(daemon.pid) - used < 30
    release()
    assert quick.ended("orphan", 5)["outcome"] == "cancelled"


def test_a_daemon_that_is_interrupted_twice_does_not_wait_for_it(quick, hold, wait_for):
    daemon = quick.start()
    quick.shell("held", "sleep 100")
    release = hold(quick.pid("held")["pid"])
    daemon.send_signal(signal.SIGINT)
    wait_for(lambda: "draining" in quick.said())
    daemon.send_signal(signal.SIGINT)
    assert daemon.wait(12) == 130
    assert "held cannot be ended" in quick.said()
    release()
    quick.start()
    assert quick.ended("held")["outcome"] == "stopped"


def test_a_new_daemon_knows_of_it_at_once(quick, hold, wait_for):
    quick.start()
    quick.shell("held", "sleep 100", timeout_s=0.5)
    pid = quick.pid("held")
    release = hold(pid["pid"])
    stuck(quick, wait_for)
    quick.kill()
    quick.start()
    wait_for(lambda: quick.beat()["unkillable"] == {"held": [pid["pid"]]}, 2)
    release()
    assert quick.ended("held", 5)["outcome"] == "timeout"


def test_what_belongs_to_another_user_is_signalled_in_vain_and_told(root_only, tmp_path):
    other = subprocess.Popen(["sleep", "100"], start_new_session=True)
    script = (
        "import json, os; from fleetd.tree import Ending\n"
        "os.setresuid(65534, 65534, 65534)\n"
        "told = []\n"
        f"ending = Ending(lambda: {{{other.pid}}}, 0.1, lambda pids: told.append(sorted(pids)))\n"
        "print(json.dumps([[ending.step(now) for now in (0.0, 0.2, 4.0, 5.3, 6.4)], told]))"
    )
    try:
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert json.loads(done.stdout or "null") == [[False] * 5, [[other.pid]]], done.stderr
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
