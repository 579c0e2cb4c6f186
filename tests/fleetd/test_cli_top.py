"""`fleet top`: on a terminal it draws until q and gives the terminal back; with -b it prints lines."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fleetd.cli_top import Eye, view

FLEET = Path(sys.executable).with_name("fleet")


@pytest.fixture
def drawn(environ):
    """`fleet top` on a terminal of its own: the process, and `screen(text)` that waits until the text was drawn."""
    ours, theirs = pty.openpty()
    command = [FLEET, "top"]
    env = environ | {"TERM": "xterm", "LINES": "24", "COLUMNS": "100"}
    process = subprocess.Popen(command, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    seen = b""

    def screen(text, limit_s=10.0):
        nonlocal seen
        end = time.monotonic() + limit_s
        while text.encode() not in seen:
            assert time.monotonic() < end, seen
            if select.select([ours], [], [], 0.1)[0]:
                seen += os.read(ours, 65536)
        return seen

    yield process, screen, ours
    process.kill()
    process.wait()
    os.close(ours)


@pytest.fixture
def running(rig):
    rig.start()
    rig.shell("bad", "exit 3")
    rig.ended("bad")
    rig.shell("long", "sleep 60")
    rig.pid("long")
    rig.shell("later", "true", needs=["gpu"])
    return rig


def test_batch_prints_what_runs_waits_and_has_ended(running, fleet):
    lines = fleet("top", "-b", "-n", "1").stdout.splitlines()
    assert lines[0].startswith("lanes [||||||||||          ] 1/2   1 waiting  1 running  0 done  1 failed")
    assert [line.split()[:2] for line in lines if line.startswith("calber")] == [["calber", "1/2"]]
    assert any(line.startswith("long") and line.endswith("sh -c 'sleep 60'") for line in lines)
    assert any(line.startswith("bad") and line.endswith("failed, exit 3  sh -c 'exit 3'") for line in lines)


def test_a_title_stands_in_the_command_s_place(rig, fleet):
    rig.start()
    rig.shell("done", "true", payload={"title": "a short rest"})
    rig.ended("done")
    rig.shell("long", "sleep 60", payload={"title": "a long rest"})
    rig.pid("long")
    text = fleet("top", "-b", "-n", "1").stdout
    assert [line.rpartition("  ")[2].strip() for line in text.splitlines() if "rest" in line] == [
        "a long rest",
        "a short rest",
    ]


@pytest.mark.parametrize("width", [70, 79, 99, 120])
def test_the_first_line_fits_whole(running, width):
    picture = Eye(running.spool, "calber").look(time.time())
    head = next(view(picture, width)).text
    assert head.startswith("lanes ")
    assert ("no rate yet" in head, len(head) <= width) == (True, True)


def test_without_a_daemon_no_lanes_are_counted(running, fleet):
    running.kill()
    beat = running.spool.hosts / "calber.json"
    beat.write_text(json.dumps(json.loads(beat.read_bytes()) | {"ended": "2026-11-30T16:52:00.000000Z"}))
    lines = fleet("top", "-b", "-n", "1").stdout.splitlines()
    assert lines[0].startswith("no daemon   1 waiting")
    assert [line.split()[1] for line in lines if line.startswith("calber")] == ["-/2"]
    assert fleet("hosts").stdout.splitlines()[1].split()[4] == fleet().stdout.splitlines()[1].split()[2] == "-/2"


def test_batch_prints_as_many_pictures_as_asked(running, fleet):
    done = fleet("top", "--json", "-n", "2")
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert first["schema"] == second["schema"] == "fleet.top/1"
    assert second["running"][0]["for_s"] >= first["running"][0]["for_s"] + 1
    assert (second["waiting"], second["ended"], second["last"][0]["job"]) == (1, {"failed": 1}, "bad")


def test_a_job_queued_again_is_not_counted_as_ended(running, fleet):
    fleet("hosts", "drain", "calber")
    fleet("retry", "bad")
    assert json.loads(fleet("top", "--json", "-n", "1").stdout)["ended"] == {}


def test_a_stop_is_told(running, fleet):
    fleet("stop", "adding")
    assert "STOP_ADDING stands" in fleet("top", "-b", "-n", "1").stdout


def test_without_a_terminal_it_is_2(running, fleet):
    done = fleet("top")
    assert (done.returncode, done.stdout) == (2, "")
    assert "fleet top -b" in done.stderr


def test_q_ends_it_and_the_terminal_is_given_back(running, drawn):
    process, screen, ours = drawn
    screen("sh -c 'sleep 60'")
    os.write(ours, b"q")
    assert process.wait(10) == 0
    assert screen("\033[?1049l").count(b"\033[?1049h") == 1


def test_it_draws_again_by_itself(running, drawn):
    _, screen, _ = drawn
    screen("1 waiting")
    running.shell("more", "true", needs=["gpu"])
    screen("2")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_gives_the_terminal_back_too(running, drawn, number, code):
    process, screen, _ = drawn
    screen("sh -c 'sleep 60'")
    process.send_signal(number)
    screen("\033[?1049l")
    assert process.wait(10) == code


def test_a_terminal_that_cannot_be_drawn_on_is_2(rig, environ):
    ours, theirs = pty.openpty()
    env = environ | {"TERM": "nonesuch"}
    done = subprocess.run([FLEET, "top"], env=env, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, check=False)
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 2
    assert b"TERM=nonesuch cannot be drawn on" in done.stderr
