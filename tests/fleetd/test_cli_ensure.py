"""`fleet ensure`: this host's daemon lives afterwards, and there is one."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

FLEET = Path(sys.executable).with_name("fleet")


@pytest.fixture
def log(environ, tmp_path):
    """Where the words of a daemon that was started go; the state directory is the test's own."""
    environ["XDG_STATE_HOME"] = str(tmp_path / "state")
    return tmp_path / "state" / "fleet" / "calber.log"


@pytest.fixture
def daemons(rig, environ, log, wait_for):
    """The pids of the daemons on this spool; they are ended afterwards, for they are nobody's children."""
    environ["RIG"] = str(rig.root)

    def look():
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if rig.mark in environment and any(word.endswith(b"/fleetd") for word in words):
                found.append(int(pid))
        return found

    yield look
    for pid in look():
        os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not look())


def test_it_starts_a_daemon_that_does_the_work(rig, fleet, daemons, log):
    done = fleet("ensure")
    assert (done.returncode, done.stdout) == (0, "")
    assert daemons() == [rig.beat()["pid"]]
    assert f"calber: started (PID {daemons()[0]}); its words go to {log}" in done.stderr
    assert os.getsid(daemons()[0]) == daemons()[0]
    rig.shell("x", "true")
    assert rig.ended("x")["outcome"] == "ok"
    assert "lanes" in log.read_text()


def test_one_that_lives_is_left_alone(rig, fleet, daemons):
    first = json.loads(fleet("ensure", "--json").stdout)
    again = json.loads(fleet("ensure", "--json").stdout)
    assert (first["started"], again["started"], again["pid"]) == (True, False, first["pid"])
    assert len(daemons()) == 1


def test_one_that_was_killed_is_started_again(rig, fleet, daemons, wait_for):
    old = json.loads(fleet("ensure", "--json").stdout)["pid"]
    os.kill(old, signal.SIGKILL)
    wait_for(lambda: not daemons())
    new = json.loads(fleet("ensure", "--json").stdout)
    assert (new["started"], [new["pid"]]) == (True, daemons())


def test_three_at_once_start_one(rig, environ, daemons):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([FLEET, "ensure", "--json"], env=environ, **pipes) for _ in range(3)]
    told = [json.loads(process.communicate(timeout=60)[0]) for process in processes]
    assert sorted(one["started"] for one in told) == [False, False, True]
    assert {one["pid"] for one in told} == {*daemons()}
    assert len(daemons()) == 1


def test_start_of_fleet_toml_is_run_by_a_shell(rig, fleet, daemons, tmp_path):
    command = f'echo "$FLEET_HOST" >{tmp_path}/who; fleetd --lanes 3 --tags own & exit 0'
    with rig.spool.settings.open("a") as file:
        file.write(f"[host.calber]\nstart = {json.dumps(command)}\n")
    assert fleet("ensure").returncode == 0
    assert (rig.beat()["lanes"], rig.beat()["tags"]) == (3, ["own"])
    assert (tmp_path / "who").read_text() == "calber\n"


def test_what_cannot_be_started_is_69_with_its_last_lines(rig, fleet, daemons, log):
    with rig.spool.settings.open("a") as file:
        file.write('[host.calber]\nstart = "echo no such unit >&2; exit 5"\n')
    for _ in range(2):
        done = fleet("ensure")
        assert done.returncode == 69
        assert "ended with exit 5; its last lines:\n    no such unit\n" in done.stderr
    assert log.read_text() == "no such unit\n" * 2


def test_a_wrong_fleet_toml_is_78(rig, fleet, daemons, log):
    with rig.spool.settings.open("a") as file:
        file.write("lames = 2\n")
    assert fleet("ensure").returncode == 78
    assert not log.exists()


def test_a_log_that_cannot_be_written_is_73(rig, fleet, daemons, tmp_path):
    (tmp_path / "state").write_text("no directory")
    assert fleet("ensure").returncode == 73
    assert daemons() == []


def test_hosts_over_ssh_are_named(rig, fleet, daemons):
    with rig.spool.settings.open("a") as file:
        file.write('[host.ada]\nssh = "ada"\n[host.calber]\nssh = "calber"\n')
    assert "nothing over ssh: run fleet ensure on ada as well" in fleet("ensure").stderr


def test_the_units_have_no_errors(checkout, tmp_path):
    """systemd itself reads them, with a `fleet` where it looks for programs."""
    for unit in sorted((checkout / "systemd").glob("fleet-keeper.*")):
        (tmp_path / unit.name).write_text(unit.read_text().replace("%h/.local/bin/", f"{Path(FLEET).parent}/"))
    try:
        command = ["systemd-analyze", "verify", "fleet-keeper.timer", "fleet-keeper.service"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("no systemd-analyze here")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
