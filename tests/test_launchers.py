"""bin/: from a bare checkout to a running command, with the real pip. Minutes, so only with bin/test --all."""

import os
import shutil
import signal
import subprocess
import time

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
PARTS = ("bin", "fleetd", "planner", "pyproject.toml", "README.md", "LICENSE", "spool")


@pytest.fixture
def copy(checkout, tmp_path):
    """A checkout without .venv, as a clone is, in a directory with a space in its name."""
    root = tmp_path / "a checkout"
    root.mkdir()
    for part in PARTS:
        source, ignore = checkout / part, shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, root / part, ignore=ignore) if source.is_dir() else shutil.copy(source, root / part)
    return root


def start(program, *arguments):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([program, *arguments], cwd="/", start_new_session=True, **pipes)


def finish(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out, err


def test_two_at_once_on_a_bare_checkout_make_one_environment(copy):
    both = [start(copy / "bin" / "fleet", "--version") for _ in range(2)]
    said = [finish(process) for process in both]
    assert all(out.startswith("fleet 0.") for out, _ in said)
    assert sum("making the virtual environment" in err for _, err in said) == 1
    assert sum("waiting for another command that makes" in err for _, err in said) == 1
    began = time.monotonic()
    _, err = finish(start(copy / "bin" / "treadcore", "--help"))
    assert (err, time.monotonic() - began < 5) == ("", True)


def test_one_that_was_killed_half_way_is_made_anew(copy, wait_for):
    process = start(copy / "bin" / "fleet", "--version")
    wait_for((copy / ".venv" / "bin" / "pip").exists, 120)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    out, err = finish(start(copy / "bin" / "fleet", "--version"))
    assert out.startswith("fleet 0.")
    assert "making the virtual environment" in err


def test_a_changed_project_is_installed_again_and_a_link_will_do(copy, tmp_path):
    link = tmp_path / "f"
    link.symlink_to(copy / "bin" / "fleet")
    finish(start(link, "--version"))
    with (copy / "pyproject.toml").open("a") as project:
        project.write("\n# changed\n")
    assert "installing" in finish(start(link, "--version"))[1]
    assert finish(start(link, "--version"))[1] == ""


def test_a_checkout_that_was_moved_is_made_anew(copy):
    finish(start(copy / "bin" / "fleet", "--version"))
    moved = copy.rename(copy.parent / "elsewhere")
    out, err = finish(start(moved / "bin" / "fleet", "--version"))
    assert out.startswith("fleet 0.")
    assert "making the virtual environment" in err


def test_the_spool_is_the_checkout_s_unless_another_is_named(copy, tmp_path):
    out, err = finish(start(copy / "bin" / "fleet", "init"))
    assert out == f"{copy}/spool\n"
    assert f"{copy}/bin/fleet up does it all" in err
    assert finish(start(copy / "bin" / "fleet", "init", "--spool", str(tmp_path / "s")))[0] == f"{tmp_path}/s\n"


def test_hints_name_what_the_shell_finds(copy):
    line = "PATH=$PWD/bin:$PATH; fleet init -q; fleet; cd bin; ./fleet"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    _, err = finish(subprocess.Popen(["sh", "-c", line], cwd=copy, start_new_session=True, **pipes))
    hints = [line for line in err.splitlines() if line.startswith("hint: no daemon")]
    assert [hint.rpartition("; ")[2] for hint in hints] == ["fleet up starts all of it", "./fleet up starts all of it"]


def test_where_numba_cannot_be_had_it_goes_on_without(copy, tmp_path, monkeypatch):
    (tmp_path / "none").write_text("numba==0.0.0\n")
    monkeypatch.setenv("PIP_CONSTRAINT", str(tmp_path / "none"))
    out, err = finish(start(copy / "bin" / "fleet", "--version"))
    assert out.startswith("fleet 0.")
    assert "trying without numba" in err
    python = copy / ".venv" / "bin" / "python"
    assert subprocess.run([python, "-c", "import numba"], capture_output=True, check=False).returncode == 1


def test_a_job_finds_its_user_s_python_and_the_checkout_s_commands(copy, tmp_path, monkeypatch):
    mine = tmp_path / "python3"
    mine.symlink_to(shutil.which("python3", path="/usr/bin:/usr/local/bin:" + os.environ["PATH"]))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("FLEET_SPOOL", str(tmp_path / "spool"))
    finish(start(copy / "bin" / "fleet", "init", "-q"))
    script = "command -v python3; command -v treadcore; fleet-plan --version >/dev/null && echo plans"
    finish(start(copy / "bin" / "fleet", "submit", "-q", "--", "sh", "-c", script))
    finish(start(copy / "bin" / "fleetd", "--once"))
    (log,) = (tmp_path / "spool").glob("ended/*/*/log")
    assert log.read_text().splitlines() == [str(mine), str(copy / "bin" / "treadcore"), "plans"]
