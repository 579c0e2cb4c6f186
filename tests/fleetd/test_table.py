"""The process table, from /proc and from ps(1): both say the same, and what ps doesn't tell is unknown."""

import os
import subprocess
from pathlib import Path

import pytest

from fleetd import table
from fleetd.table import bearers, bearers_by_ps, bears, by_ps, has_ended, processes


@pytest.fixture
def started():
    """`started(*argv, **environ)`: a process that is gone after the test."""
    made = []

    def start(*argv, **environ):
        made.append(subprocess.Popen(argv, env=os.environ | environ, start_new_session=True))
        return made[-1]

    yield start
    for process in made:
        process.kill()
        process.wait()


@pytest.fixture
def without_proc(monkeypatch):
    monkeypatch.setattr(table, "HAS_PROC", False)


def shown(found, *pids):
    return {(p.pid, p.parent, p.group, p.zombie) for p in found if p.pid in pids}


def test_ps_and_proc_say_the_same(started, wait_for):
    child, dead = started("sleep", "100"), started("true")
    wait_for(lambda: has_ended(dead.pid))
    pids = child.pid, dead.pid, os.getpid(), 1
    assert shown(by_ps(), *pids) == shown(processes(), *pids)
    assert len(shown(by_ps(), *pids)) == 4


def test_the_ps_that_asks_is_nobody(monkeypatch):
    mine = {p.pid for p in processes() if p.parent == os.getpid()}
    monkeypatch.setattr(table, "HAS_PROC", False)
    assert {p.pid for p in processes() if p.parent == os.getpid() and not p.zombie} <= mine


def test_since_when_a_process_lives_does_not_depend_on_who_asks(started, monkeypatch):
    child = started("sleep", "100")
    said = [process.born for process in by_ps(child.pid)]
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert [process.born for process in by_ps(child.pid)] == said


@pytest.mark.parametrize("ask", [bearers, lambda mark, _: bearers_by_ps(mark)], ids=["proc", "ps"])
def test_a_mark_is_found_in_the_environment_alone_and_whole(started, wait_for, ask):
    mark = f"{os.getpid():08x}feed"
    marked = started("sleep", "100", FLEET_CLAIM=mark)
    longer = started("sleep", "100", FLEET_CLAIM=mark + "0")
    spoken = started("sh", "-c", "sleep 100; :", f"FLEET_CLAIM={mark}")
    wait_for(lambda: bears(marked.pid, mark) and bears(longer.pid, mark + "0"))
    assert ask(mark, processes()) == {marked.pid}
    assert not bears(spoken.pid, mark)


def test_a_mark_that_is_an_argument_as_well_is_found(started, wait_for):
    mark = f"{os.getpid():08x}beef"
    both = started("sh", "-c", "sleep 100; :", f"FLEET_CLAIM={mark}", FLEET_CLAIM=mark)
    wait_for(lambda: bears(both.pid, mark))
    assert both.pid in bearers_by_ps(mark)


def test_nobody_bears_an_empty_mark(started, wait_for):
    empty = started("sleep", "100", FLEET_CLAIM="")
    wait_for(lambda: bears(empty.pid, ""))
    assert bearers("", processes()) == set()


@pytest.mark.parametrize("script", ["exit 3", "kill -9 $$"])
def test_without_waitid_a_child_s_end_is_known_and_it_is_not_reaped(wait_for, monkeypatch, script):
    monkeypatch.delattr(os, "waitid")
    child = subprocess.Popen(["sh", "-c", f"sleep 0.2; {script}"])
    assert not has_ended(child.pid)
    wait_for(lambda: has_ended(child.pid))
    assert child.wait() in (3, -9)


def test_without_waitid_a_stopped_child_has_not_ended(started, wait_for, monkeypatch):
    child = started("sh", "-c", "kill -STOP $$")
    wait_for(lambda: "State:\tT" in Path(f"/proc/{child.pid}/status").read_text())
    assert not has_ended(child.pid)
    monkeypatch.delattr(os, "waitid")
    assert not has_ended(child.pid)


@pytest.mark.parametrize("ps", [None, "exit 1", "exit 0", "kill -9 $$"])
def test_what_ps_does_not_tell_is_unknown(started, monkeypatch, tmp_path, without_proc, ps):
    if ps:
        (tmp_path / "ps").write_text(f"#!{os.path.realpath('/bin/sh')}\n{ps}\n")
        (tmp_path / "ps").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(table, "_STANDARD_PATH", "")
    with pytest.raises(OSError, match=r"ps"):
        processes()
    with pytest.raises(OSError, match=r"ps"):
        by_ps(os.getpid())
    monkeypatch.delattr(os, "waitid")
    assert not has_ended(os.getpid())
