"""`fleet wait`: until jobs have ended for good, or nobody is there who could bring them to an end."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

FLEET = Path(sys.executable).with_name("fleet")


@pytest.fixture
def waiting(environ, rig):
    """Starts `fleet wait` and gives the process."""
    started = []

    def run(*arguments):
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen([FLEET, "wait", *arguments], env=environ, **pipes))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


def test_all_ok_is_0_and_says_nothing_on_stdout(rig, fleet):
    for name in "abc":
        rig.shell(name, "sleep 0.2")
    rig.start()
    done = fleet("wait")
    assert (done.returncode, done.stdout) == (0, "")
    assert {row["job"] for row in rig.rows()} == {"a", "b", "c"}


def test_one_that_failed_is_1_and_named(rig, fleet):
    rig.shell("good", "sleep 0.2")
    rig.shell("bad", "exit 3")
    rig.start()
    done = fleet("wait", "bad", "good")
    assert (done.returncode, done.stdout) == (1, "bad failed, exit 3 on calber\n")


def test_json_has_a_line_for_each_job(rig, fleet):
    rig.shell("good", "true")
    rig.shell("bad", "exit 3")
    rig.start()
    lines = [json.loads(line) for line in fleet("wait", "--json", "good", "bad").stdout.splitlines()]
    assert {(line["job"], line["outcome"], line["exit"]) for line in lines} == {("good", "ok", 0), ("bad", "failed", 3)}


def test_only_the_named_jobs_are_waited_for(rig, fleet):
    rig.shell("long", "sleep 60")
    rig.shell("short", "true")
    rig.start()
    assert fleet("wait", "short").returncode == 0
    assert rig.attempt("long").exists()


def test_a_retry_is_waited_for_to_its_end(rig, fleet, tmp_path):
    rig.shell("again", f"sleep 0.2; test $FLEET_ATTEMPT = 3 && touch {tmp_path}/third", retries=2)
    rig.start()
    assert fleet("wait", "again").returncode == 0
    assert (tmp_path / "third").exists()


def test_a_job_sent_out_again_by_hand_is_waited_for_once_more(rig, fleet, waiting):
    rig.shell("x", "test $FLEET_ATTEMPT = 2")
    rig.start()
    assert fleet("wait", "x").returncode == 1
    fleet("hosts", "drain", "calber")
    assert fleet("retry", "x").returncode == 0
    process = waiting("x")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    fleet("hosts", "undrain", "calber")
    assert process.wait(10) == 0


def test_a_rejected_file_is_a_job_that_did_not_end_ok(rig, fleet):
    rig.drop_bytes("bad", b'{"argv": []}')
    rig.start()
    done = fleet("wait", "bad")
    assert done.returncode == 1
    assert "bad rejected" in done.stdout


def test_no_daemon_is_69_after_a_grace(rig, fleet):
    rig.shell("x", "true")
    done = fleet("wait")
    assert done.returncode == 69
    assert "no daemon is alive: 1 job (x) left" in done.stderr


def test_a_daemon_that_could_not_run_them_does_not_count(rig, fleet):
    rig.shell("x", "true", needs=["gpu"])
    rig.start()
    done = fleet("wait")
    assert done.returncode == 69
    assert "no daemon that could run them is alive" in done.stderr


def test_a_daemon_that_comes_within_the_grace_is_waited_for(rig, waiting):
    rig.shell("x", "true")
    process = waiting()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2)
    rig.start()
    assert process.wait(10) == 0


def test_a_job_that_was_removed_by_hand_is_gone(rig, fleet, waiting):
    rig.start()
    fleet("hosts", "drain", "calber")
    rig.shell("x", "true")
    process = waiting("x")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    (rig.spool.queue / "x.json").unlink()
    out, _ = process.communicate(timeout=10)
    assert (process.returncode, out.startswith("x is gone")) == (1, True)


def test_timeout_is_75_and_names_what_is_left(rig, fleet):
    rig.shell("x", "sleep 60")
    rig.start()
    done = fleet("wait", "--timeout", "0.5")
    assert done.returncode == 75
    assert "not ended within 0.5 s: 1 job (x)" in done.stderr


def test_an_unknown_job_is_66(rig, fleet):
    assert fleet("wait", "nobody").returncode == 66


def test_nothing_to_wait_for_is_0(rig, fleet):
    done = fleet("wait")
    assert (done.returncode, done.stderr) == (0, "nothing waits and nothing runs\n")


def test_ctrl_c_is_130_and_harms_nothing(rig, waiting):
    rig.shell("x", "sleep 60")
    rig.start()
    process = waiting()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    process.send_signal(signal.SIGINT)
    assert process.wait(5) == 130
    assert rig.attempt("x").exists()
