"""`fleet` beside a real daemon: what it shows of jobs that run and have ended, and what it does to them."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent


@pytest.fixture
def fleet(fleet):
    """What the command says when it ends with `code`."""

    def run(*arguments, code=0):
        done = fleet(*arguments)
        assert done.returncode == code, done.stderr
        return done.stdout

    return run


@pytest.fixture
def spool(fleet, tmp_path):
    fleet("init", "-q")
    (tmp_path / "spool" / "fleet.toml").write_text("spool = 1\npoll_s = 0.2\ngrace_s = 1.0\n")
    return tmp_path / "spool"


@pytest.fixture
def daemon(spool, environ, wait_for):
    with subprocess.Popen([BIN / "fleetd", "-q", "--lanes", "2"], env=environ) as process:
        wait_for((spool / "hosts" / "calber.json").exists)
        yield process
        (spool / "STOP_NOW").touch()
        process.send_signal(signal.SIGINT)
        process.wait(20)


@pytest.fixture
def submit(fleet):
    return lambda *words: fleet("submit", "-q", *words).strip()


@pytest.fixture
def states(fleet):
    """The state of each job that waits or runs, by id."""

    def look():
        jobs = [json.loads(line) for line in fleet("ls", "--json").splitlines()]
        return {job["job"]: job["state"] for job in jobs}

    return look


@pytest.fixture
def shown(fleet):
    return lambda job: json.loads(fleet("show", "--json", job))


def ended(shown, job):
    return lambda: shown(job)["state"] not in ("queued", "running")


def test_a_failure_is_shown_with_code_lines_result_and_what_to_do(fleet, daemon, submit, shown, wait_for):
    script = 'printf "a\\377b\\033[1m\\n"; echo "{\\"x\\": 1}" > "$FLEET_RESULT"; exit 3'
    job = submit("--", "sh", "-c", script)
    wait_for(ended(shown, job))
    text = fleet("show", job)
    assert "failed, exit 3 on calber" in text
    assert "a\N{REPLACEMENT CHARACTER}b\\x1b[1m" in text
    assert "result   x 1" in text
    assert f"fleet retry {job}" in text
    assert fleet("status").startswith("0 queued, 0 running, 0 done, 1 failed")


def test_log_shows_other_bytes_with_replacement_and_keeps_them(fleet, daemon, submit, shown, wait_for):
    job = submit("--", "printf", "a\\377b\\n")
    wait_for(ended(shown, job))
    assert fleet("log", job) == "a\N{REPLACEMENT CHARACTER}b\n"
    assert Path(shown(job)["log"]).read_bytes() == b"a\xffb\n"


def test_log_follows_from_the_queue_to_the_end(fleet, spool, daemon, submit):
    gate = spool / "gate"
    job = submit("--", "sh", "-c", f"echo one; until test -e {gate}; do sleep 0.02; done; echo two")
    environ = os.environ | {"FLEET_SPOOL": str(spool)}
    with subprocess.Popen([BIN / "fleet", "log", "-f", job], stdout=subprocess.PIPE, text=True, env=environ) as log:
        assert log.stdout.readline() == "one\n"
        gate.touch()
        assert log.stdout.read() == "two\n"
    assert log.returncode == 0


def test_results_follow_brings_each_row_once(fleet, spool, daemon, submit):
    first = submit("--", "true")
    environ = os.environ | {"FLEET_SPOOL": str(spool)}
    command = [BIN / "fleet", "results", "-f", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as results:
        assert json.loads(results.stdout.readline())["job"] == first
        second = submit("--", "true")
        assert json.loads(results.stdout.readline())["job"] == second
        results.send_signal(signal.SIGINT)
        assert (results.stdout.read(), results.wait(10)) == ("", 130)


def test_each_waiting_job_has_its_own_reason(fleet, daemon, submit, states, wait_for):
    running = [submit("--", "sleep", "60") for _ in range(2)]
    wait_for(lambda: [states().get(job) for job in running] == ["running"] * 2)
    submit("--", "true")
    submit("--after", running[0], "--", "true")
    submit("--needs", "gpu", "--", "true")
    submit("--cores", "64", "--", "true")
    submit("--not-before", "2999-01-01T00:00:00Z", "--", "true")
    jobs = [json.loads(line) for line in fleet("ls", "--json").splitlines()]
    why = [job["why"] for job in jobs if job["state"] == "queued"]
    assert why[0] == "for a free lane"
    assert why[1] == f"waits for {running[0]}"
    assert "gpu" in why[2]
    assert "64 lanes" in why[3]
    assert "2999" in why[4]


def test_cancel_takes_a_waiting_job_out_and_ends_a_running_one(fleet, spool, submit, shown, wait_for, request):
    waiting = submit("--", "true")
    assert json.loads(fleet("cancel", "--json", waiting))["was"] == "queued"
    assert shown(waiting)["state"] == "cancelled"
    request.getfixturevalue("daemon")
    running = submit("--", "sleep", "60")
    wait_for(lambda: shown(running)["state"] == "running")
    assert json.loads(fleet("cancel", "--json", running))["was"] == "running"
    wait_for(ended(shown, running))
    assert shown(running)["state"] == "cancelled"
    fleet("cancel", running, code=66)


def test_retry_queues_the_next_attempt_of_what_failed(fleet, spool, daemon, submit, shown, wait_for):
    gate = spool / "gate"
    job = submit("--", "test", "-e", str(gate))
    wait_for(ended(shown, job))
    gate.touch()
    assert [json.loads(x)["attempt"] for x in fleet("retry", "--failed", "--json").splitlines()] == [2]
    wait_for(lambda: shown(job)["state"] == "ok")
    assert [row["attempt"] for row in shown(job)["rows"]] == [1, 2]
    fleet("retry", job, code=65)
    assert fleet("status").startswith("0 queued, 0 running, 1 done, 0 failed")


def test_what_runs_is_not_queued_again(fleet, daemon, submit, shown, environ, wait_for):
    job = submit("--", "sleep", "60")
    wait_for(lambda: shown(job)["state"] == "running")
    done = subprocess.run([BIN / "fleet", "retry", job], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 65
    assert f"{job}: is running" in done.stderr


def test_hosts_names_the_daemon_s_pid_while_it_lives(fleet, daemon):
    def pid():
        header, line = fleet("hosts").splitlines()
        return line[header.index("PID") :].split()[0]

    assert pid() == str(daemon.pid)
    daemon.kill()
    daemon.wait()
    assert pid() == "-"


def test_stop_now_waits_until_nothing_runs_and_resume_goes_on(fleet, spool, daemon, submit, shown, wait_for):
    kept = submit("--rerun-safe", "--", "sh", "-c", "test $FLEET_ATTEMPT = 2 || sleep 60")
    gone = submit("--", "sleep", "60")
    wait_for(lambda: [shown(job)["state"] for job in (kept, gone)] == ["running"] * 2)
    fleet("stop", "now", "--wait")
    assert [shown(job)["state"] for job in (kept, gone)] == ["queued", "stopped"]
    assert json.loads(fleet("resume", "--json"))["lifted"] == ["STOP_NOW"]
    wait_for(lambda: shown(kept)["state"] == "ok")
    assert fleet("status").splitlines()[0].endswith("1 stopped")


def test_stop_adding_waits_until_the_queue_is_dry(fleet, daemon, submit, states):
    jobs = [submit("--", "true") for _ in range(5)]
    fleet("stop", "adding", "--wait")
    assert states() == {}
    assert {json.loads(line)["job"] for line in fleet("results", "--json").splitlines()} == set(jobs)


def test_a_drained_host_claims_nothing_until_it_may(fleet, daemon, submit, shown, wait_for):
    fleet("hosts", "drain", "calber")
    job = submit("--", "true")
    wait_for(lambda: json.loads(fleet("hosts", "--json"))["heartbeat"]["claims"])
    assert "drain" in shown(job)["why"]
    fleet("hosts", "undrain", "calber")
    wait_for(lambda: shown(job)["state"] == "ok")


def test_a_breaker_is_named_and_reset(fleet, daemon, submit, shown, wait_for):
    for _ in range(5):
        submit("--", "false")
    wait_for(lambda: json.loads(fleet("hosts", "--json"))["heartbeat"]["breaker"]["open"])
    wait_for(lambda: "STOP_ADDING" in fleet("status"))
    assert json.loads(fleet("resume", "--json"))["breakers_open"] == ["calber"]
    fleet("hosts", "reset", "calber")
    job = submit("--", "true")
    wait_for(lambda: shown(job)["state"] == "ok")


def test_a_dead_daemon_is_not_shown_as_alive(fleet, daemon, submit, wait_for):
    assert json.loads(fleet("hosts", "--json"))["live"]
    daemon.kill()
    daemon.wait()
    assert not json.loads(fleet("hosts", "--json"))["live"]
    assert "no daemon" in fleet("status")
