"""`fleet completion`: what bash, zsh and fish offer is what the parser takes."""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fleetd.cli import build_parser

FLEET = Path(sys.executable).with_name("fleet")


@pytest.fixture
def script(fleet, tmp_path):
    """The script of a shell, as a file."""

    def write(shell):
        done = fleet("completion", shell)
        assert (done.returncode, done.stderr) == (0, "")
        file = tmp_path / f"fleet.{shell}"
        file.write_text(done.stdout)
        return file

    return write


@pytest.fixture
def bash(script, environ, tmp_path):
    """`bash(*words)`: what is offered in place of the last word, as bash calls its function."""
    file = script("bash")

    def offered(*words):
        call = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _fleet; printf "%s\\n" "${COMPREPLY[@]}"'
        command = ["bash", "-c", call, file, FLEET, *words]
        done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return done.stdout.split()

    return offered


@pytest.fixture
def commands():
    below = next(a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction))
    return below.choices


def flags(parser):
    return sorted(o for a in parser._actions if a.help != argparse.SUPPRESS for o in a.option_strings)


def test_bash_knows_whom_to_ask(script):
    done = subprocess.run(
        ["bash", "-c", 'source "$0"; complete -p fleet', script("bash")], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("complete -F _fleet fleet\n", "")


def test_bash_offers_every_command_and_what_begins_so(bash, commands):
    assert bash("") == list(commands)
    assert bash("re") == ["results", "retry", "resume"]
    assert bash("--json", "--spool", "x", "st") == ["status", "stop"]


def test_bash_offers_every_option_of_every_command(bash, commands):
    for name, parser in commands.items():
        assert sorted(bash(name, "-")) == flags(parser), name


def test_bash_offers_the_values_of_an_option_and_of_a_place(bash, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.jsonl").touch()
    assert bash("ls", "--color", "") == ["auto", "always", "never"]
    assert bash("stop", "") == ["adding", "now"]
    assert sorted(bash("submit", "--from", "fo")) == ["folder", "folder.jsonl"]
    assert bash("submit", "--cwd", "fo") == ["folder"]
    assert bash("submit", "--priority", "") == []
    assert "printf" in bash("submit", "--", "print")


def test_bash_offers_jobs_and_hosts(rig, fleet, bash):
    rig.start()
    rig.shell("film-1", "sleep 60", payload={"job": "no"})
    rig.shell("film-2", "true", after=["film-1"])
    rig.shell("other", "true", needs=["gpu"])
    rig.pid("film-1")
    assert bash("wait", "fi") == bash("submit", "--after", "fi") == ["film-1", "film-2"]
    assert bash("hosts", "drain", "cal") == ["calber"]


@pytest.mark.parametrize(("shell", "check"), [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")])
def test_the_shell_itself_finds_no_error(script, shell, check):
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    done = subprocess.run([shell, check, script(shell)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_fish_offers_commands_options_and_values(script, environ, commands):
    if shutil.which("fish") is None:
        pytest.skip("no fish here")

    def offered(line):
        command = ["fish", "--no-config", "-c", f'source {script("fish")}; complete -C "{line}"']
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return {line.partition("\t")[0] for line in done.stdout.splitlines()}

    assert offered("fleet ") == set(commands)
    assert offered("fleet stop ") == {"adding", "now"}
    assert offered("fleet ls --color ") == {"auto", "always", "never"}
    assert offered("fleet submit --") >= {o for o in flags(commands["submit"]) if o.startswith("--")}


def test_zsh_takes_it_for_fleet(script, environ, tmp_path):
    if shutil.which("zsh") is None:
        pytest.skip("no zsh here")
    call = 'autoload -U compinit; compinit -u -d "$1"; source "$0"; print $_comps[fleet]'
    command = ["zsh", "-f", "-c", call, script("zsh"), tmp_path / "dump"]
    assert subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout == "_fleet\n"


def test_json_has_the_script(fleet):
    told = json.loads(fleet("completion", "--json", "bash").stdout)
    assert (told["shell"], told["script"]) == ("bash", fleet("completion", "bash").stdout)


def test_an_unknown_shell_is_2(fleet):
    assert fleet("completion", "tcsh").returncode == 2
