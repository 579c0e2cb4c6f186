"""Which kernel computes, and where numba keeps what it compiles."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fleetd import NotFound
from planner.arena import compiled
from planner.arena.compiled import cache_home, choose_kernel
from planner.brain.weights import DEFAULT

ROOT = Path(__file__).parents[3]
needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="the extra `fast` is not installed")
PLAY = json.dumps({"id": 0, "player": {"weights": dict(DEFAULT)}, "seed": 7, "seconds": 30}).encode()


def census(*arguments, **environ):
    command = [sys.executable, "-m", "planner.treadcore", "census", *arguments]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=ROOT, env=os.environ | environ, **pipes)


def answer(process):
    out, err = process.communicate(PLAY, timeout=110)
    assert process.returncode == 0, err
    return json.loads(out), err.decode()


@pytest.fixture
def unwritable(tmp_path):
    """Where not even root can make a directory."""
    (tmp_path / "file").touch()
    return tmp_path / "file"


def without_numba(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)


def test_without_numba_it_is_numpy_and_that_is_told(monkeypatch):
    without_numba(monkeypatch)
    kernel = choose_kernel(None, {})
    assert (kernel.name, kernel.trouble) == ("numpy", False)
    assert "there is no numba" in kernel.why


def test_numba_that_is_asked_for_and_not_there_is_an_error(monkeypatch):
    without_numba(monkeypatch)
    with pytest.raises(NotFound, match="extra `fast`"):
        choose_kernel("numba", {})


@needs_numba
def test_numba_that_may_compile_nothing_counts_as_none(monkeypatch):
    monkeypatch.setattr("numba.config.DISABLE_JIT", 1)
    assert choose_kernel(None, {}).why.endswith("NUMBA_DISABLE_JIT is set: it would compile nothing")
    with pytest.raises(NotFound, match="NUMBA_DISABLE_JIT is set"):
        choose_kernel("numba", {})


@needs_numba
def test_numba_is_taken_where_its_cache_can_be_written(tmp_path):
    assert choose_kernel(None, {"XDG_CACHE_HOME": str(tmp_path)}).name == "numba"
    assert choose_kernel("numpy", {"XDG_CACHE_HOME": str(tmp_path)}).name == "numpy"
    assert [p.name.partition("-")[0] for p in tmp_path.iterdir()] == ["treadcore"]


@needs_numba
def test_numpy_is_taken_where_no_cache_can_be_written(unwritable):
    kernel = choose_kernel(None, {"XDG_CACHE_HOME": str(unwritable)})
    assert kernel.name == "numpy"
    assert str(unwritable) in kernel.why
    asked = choose_kernel("numba", {"XDG_CACHE_HOME": str(unwritable)})
    assert (asked.name, asked.trouble) == ("numba", True)


@needs_numba
def test_what_is_compiled_from_another_source_is_kept_elsewhere(monkeypatch, tmp_path):
    before = compiled.cache_name()
    assert compiled.cache_name() == before
    for path in ("arena/kernel.py", "brain/kernel.py", "brain/scripted.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes((ROOT / "planner" / path).read_bytes() + b"\n")
    monkeypatch.setattr(compiled, "_PLANNER", tmp_path)
    assert compiled.cache_name() != before


@pytest.mark.parametrize(
    ("environ", "home"),
    [
        ({"HOME": "/h"}, "/h/.cache"),
        ({"HOME": "/h", "XDG_CACHE_HOME": "/x"}, "/x"),
        ({"HOME": "/h", "XDG_CACHE_HOME": "/x", "NUMBA_CACHE_DIR": "/n"}, "/n"),
    ],
)
def test_the_cache_is_the_user_s(environ, home):
    assert cache_home(environ) == Path(home)


@needs_numba
@pytest.mark.slow
def test_two_that_compile_at_once_both_answer_and_leave_a_cache_for_the_third(tmp_path):
    both = [census("--kernel", "numba", XDG_CACHE_HOME=str(tmp_path)) for _ in range(2)]
    answers = [answer(process) for process in both]
    kept = {path: path.read_bytes() for path in tmp_path.rglob("*.nbc")}
    assert answers[0] == answers[1] == answer(census("--kernel", "numpy"))
    assert answer(census(XDG_CACHE_HOME=str(tmp_path))) == answers[0]
    assert kept
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.nbc")} == kept


@needs_numba
@pytest.mark.slow
def test_an_unwritable_cache_is_said_once_and_no_hindrance(unwritable):
    got, said = answer(census("--kernel", "numba", XDG_CACHE_HOME=str(unwritable)))
    assert got == answer(census("--kernel", "numpy"))[0]
    assert said.count(str(unwritable)) == 1
    assert said.count("\n") == 1


def test_v_says_which_kernel_it_is():
    assert "kernel numpy, as asked" in answer(census("-v", "--kernel", "numpy"))[1]
