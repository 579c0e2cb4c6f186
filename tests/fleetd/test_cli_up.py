"""`fleet up` with the real daemon and the real planner, on a plan of short plays."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent


@pytest.fixture
def spool(tmp_path, environ):
    """A spool whose trials take a second or two."""
    root = tmp_path / "spool"
    for command in ("fleet", "fleet-plan"):
        subprocess.run([BIN / command, "init"], env=environ, check=True, capture_output=True)
    plan = (
        (root / "plan.toml").read_text().replace("seeds = 55 ", "seeds = 3 ").replace("seconds = 900", "seconds = 30")
    )
    (root / "plan.toml").write_text(plan)
    return root


@pytest.fixture
def up(environ):
    """Starts `fleet up` with its talk in a pipe; ends it hard if the test has not."""
    started = []

    def run(*arguments):
        command = [BIN / "fleet", "up", *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen(command, env=environ, **pipes))
        return started[-1]

    yield run
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


@pytest.fixture
def status(fleet):
    return lambda: json.loads(fleet("--json").stdout)


def daemon_pid(spool):
    return json.loads((spool / "hosts" / "calber.json").read_text())["pid"]


def is_alive(pid):
    return (
        Path(f"/proc/{pid}/stat").exists()
        and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    )


def planners(spool):
    """The pids of `fleet-plan fill --watch` on this spool."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            ours = f"FLEET_SPOOL={spool}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if ours and b"--watch" in words:
            found.append(int(pid))
    return found


def test_seconds_end_it_with_trials_in_the_ledger_and_nothing_left(spool, up, status):
    process = up("--seconds", "4")
    out, err = process.communicate(timeout=90)
    assert process.returncode == 0, err
    state = status()
    assert state["done"] > 0
    assert (state["running"], state["failed"], state["hosts"][0]["live"]) == (0, 0, False)
    assert "fleet-plan suggest" in out
    assert "go on: fleet up    look: fleet results" in err
    assert not is_alive(daemon_pid(spool))
    assert sum(path.read_bytes().count(b"\n") for path in (spool / "ledger.d").glob("*.jsonl")) == (
        (spool / "ledger.jsonl").read_bytes().count(b"\n")
    )


def test_json_comes_every_ten_seconds_also_beside_a_terminal(spool, environ):
    terminal, theirs = os.openpty()
    command = [BIN / "fleet", "up", "--json", "--seconds", "3"]
    done = subprocess.run(command, env=environ, stdout=subprocess.PIPE, stderr=theirs, timeout=60, check=False)
    for fd in (terminal, theirs):
        os.close(fd)
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, len(said)) == (0, 2)
    assert said[-1]["elapsed_s"] > said[0]["elapsed_s"]


def test_interrupt_lets_what_runs_finish_and_the_next_up_goes_on(spool, up, status, wait_for):
    first = up()
    wait_for(lambda: (spool / "ledger.d" / "calber.jsonl").exists() and status()["running"], 60)
    first.send_signal(signal.SIGINT)
    _, err = first.communicate(timeout=60)
    before = status()
    assert (first.returncode, before["running"], before["stopped"]) == (0, 0, 0), err
    second = up("--seconds", "2")
    second.communicate(timeout=60)
    assert (second.returncode, status()["done"] > before["done"]) == (0, True)


def test_a_daemon_that_runs_already_is_used_and_stays(spool, environ, up, status, wait_for):
    with subprocess.Popen([BIN / "fleetd", "-q"], env=environ) as daemon:
        wait_for((spool / "hosts" / "calber.json").exists)
        process = up("--seconds", "2")
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert "runs on calber already" in err
        assert daemon.poll() is None
        assert daemon_pid(spool) == daemon.pid
        daemon.send_signal(signal.SIGINT)


def test_a_daemon_that_dies_is_said_with_its_last_lines(spool, up, status, wait_for):
    process = up()
    wait_for(lambda: (spool / "hosts" / "calber.json").exists() and status()["running"], 60)
    os.kill(daemon_pid(spool), signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 69
    assert "fleetd ended with exit 137; what runs goes on, and the next fleetd or fleet up adopts it" in err
    assert "lanes" in err.split("its last lines:")[1]


def test_a_plan_that_is_wrong_ends_it_with_the_planner_s_words(spool, up):
    (spool / "plan.toml").write_text('name = "x"\nsorts = 3\n')
    process = up()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 78
    assert "plan.toml:2" in err
    assert not is_alive(daemon_pid(spool))


def test_a_stop_that_stands_is_75_and_starts_nothing(spool, up):
    (spool / "STOP_NOW").touch()
    process = up()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 75
    assert "fleet resume" in err
    assert list((spool / "hosts").iterdir()) == []


def test_stop_now_is_carried_through_meanwhile_and_rm_goes_on(spool, up, status, wait_for):
    process = up("-v")
    wait_for(lambda: (spool / "hosts" / "calber.json").exists() and status()["running"], 60)
    (spool / "STOP_NOW").touch()
    wait_for(lambda: "STOP_NOW" in status()["hosts"][0]["heartbeat"]["stops"], 2)
    wait_for(lambda: status()["running"] == 0)
    (spool / "STOP_NOW").unlink()
    done = status()["done"]
    wait_for(lambda: status()["done"] > done, 60)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_a_second_interrupt_ends_what_runs(spool, up, status, wait_for):
    plan = (spool / "plan.toml").read_text().replace("seeds = 3 ", "seeds = 3000 ")
    (spool / "plan.toml").write_text(plan.replace("seconds = 30", "seconds = 900"))
    process = up()
    wait_for(lambda: (spool / "hosts" / "calber.json").exists() and status()["running"], 60)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    wait_for(lambda: json.loads((spool / "hosts" / "calber.json").read_text())["claims"], 20)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, status()["running"]) == (0, 0)
    assert time.monotonic() - began < 45
    assert re.search(r"^ending [1-9]\d* jobs?, up to 10 s$", err, re.MULTILINE)
    assert re.search(r"^[1-9]\d* stopped jobs? may run twice and waits? in the queue again$", err, re.MULTILINE)


def test_a_killed_up_takes_its_planner_along_and_the_next_names_the_daemon(spool, up, environ, status, wait_for):
    first = up()
    wait_for(lambda: (spool / "hosts" / "calber.json").exists() and status()["running"], 60)
    (fill,) = planners(spool)
    os.kill(first.pid, signal.SIGKILL)
    wait_for(lambda: not is_alive(fill), 20)
    pid = daemon_pid(spool)
    assert is_alive(pid)
    _, err = up("--seconds", "1").communicate(timeout=60)
    assert f"a daemon (PID {pid}) runs on calber already" in err
    os.kill(pid, signal.SIGINT)
    wait_for(lambda: not is_alive(pid), 30)
