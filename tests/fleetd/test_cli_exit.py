"""Every command of this project has the same options and the same ways out: real processes, real streams."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fleetd import IOFailed, TryLater, way_out

BIN = Path(sys.executable).parent
COMMANDS = [["fleet", "results"], ["fleet-plan", "best"], ["treadcore", "weights"]]


@pytest.fixture(scope="module")
def spool(tmp_path_factory):
    """A spool with treadcore's plan in it."""
    root = tmp_path_factory.mktemp("common") / "spool"
    for program in ("fleet", "fleet-plan"):
        command = [BIN / program, "init", "-q", "--spool", root]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=30)
    return root


@pytest.fixture
def shell(spool):
    """Runs a command line in which {} stands for the command, as a shell does."""

    def run(line, words):
        environ = os.environ | {"FLEET_SPOOL": str(spool), "PATH": f"{BIN}:{os.environ['PATH']}"}
        line = line.format(" ".join(words))
        return subprocess.run(["sh", "-c", line], env=environ, capture_output=True, text=True, timeout=60, check=False)

    return run


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_closed_stdout_is_74_and_no_bug(shell, words):
    done = shell("{} >&-", words)
    assert (done.returncode, done.stderr.count("\n")) == (74, 1)
    assert done.stderr.startswith(f"{words[0]}: no standard output")


@pytest.mark.parametrize("words", COMMANDS[1:], ids=lambda words: words[0])
def test_a_full_disk_behind_stdout_is_74_and_said_once(shell, words):
    done = shell("{} >/dev/full", words)
    assert done.returncode == 74
    assert done.stderr.count("No space left on device") == 1


@pytest.mark.parametrize("words", COMMANDS[1:], ids=lambda words: words[0])
def test_a_reader_that_went_away_is_no_failure(shell, words):
    done = shell("(sleep 0.2; {} -q; echo $? >&2) | true", words)
    assert done.stderr == "0\n"


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_closed_stderr_leaves_the_data_alone(shell, words):
    done = shell("{} 2>&-", words)
    assert (done.returncode, done.stdout) == (0, shell("{}", words).stdout)


@pytest.mark.parametrize("words", [*COMMANDS, ["fleetd", "--check-config"]], ids=lambda words: words[0])
def test_the_common_options_stand_before_and_after(shell, words):
    program, *rest = words
    for line in ([program, "-q", "-v", "--color", "always", *rest], [program, *rest, "-q", "-v", "--color", "never"]):
        assert shell("{}", line).returncode == 0


def raising(error):
    def call():
        raise error

    return call


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (TryLater("a stop stands"), 75, "x: a stop stands\n"),
        (IOFailed("torn"), 74, "x: torn\n"),
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(), 0, ""),
        (PermissionError(13, "Permission denied", "/p"), 77, "x: /p: Permission denied\n"),
        (FileNotFoundError(2, "No such file", "/p"), 74, "x: /p: No such file\n"),
        (ValueError("seven"), 70, "x: a bug: ValueError: seven; -v shows where\n"),
    ],
)
def test_each_way_out_has_its_code_and_its_line(error, code, said, capsys):
    assert way_out("x", raising(error), verbose=False) == code
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(("verbose", "debug"), [(True, ""), (False, "1"), (False, "yes")])
def test_a_bug_shows_where_when_asked(verbose, debug, capsys, monkeypatch):
    monkeypatch.setenv("FLEET_DEBUG", debug)
    assert way_out("x", raising(ValueError("seven")), verbose=verbose) == 70
    assert "Traceback" in capsys.readouterr().err


def test_a_journal_gets_its_levels():
    heard = []
    way_out("x", raising(TryLater("later")), verbose=False, say=lambda line, level: heard.append((line, level)))
    way_out("x", raising(ValueError("seven")), verbose=False, say=lambda line, level: heard.append((line, level)))
    assert heard == [("later", 3), ("a bug: ValueError: seven; -v shows where", 2)]


@pytest.mark.parametrize(
    "words",
    [
        ["fleet", "submit", "--priority", "x", "--", "true"],
        ["fleet", "submit", "--priority", "100", "--", "true"],
        ["fleetd", "--lanes", "x"],
        ["fleet-plan", "fill", "--depth", "0"],
        ["treadcore", "replay", "x"],
    ],
    ids=" ".join,
)
def test_a_number_that_is_none_is_one_plain_sentence(shell, words):
    done = shell("{}", words)
    assert done.returncode == 2
    assert "expected a whole number from " in done.stderr.splitlines()[-1]
    assert "invalid" not in done.stderr
