"""What a user can name is in docs/reference: commands, options, settings, job keys, row fields, exit codes."""

import argparse
import dataclasses
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from fleetd import errors, job, ledger, settings

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
PROGRAMS = {
    "fleet": "fleetd.cli",
    "fleetd": "fleetd.cli_daemon",
    "fleet-plan": "planner.cli",
    "treadcore": "planner.treadcore",
}
LINK = re.compile(r"\[[^\]]*\]\(([^)#:\s]+)(?:#[^)]*)?\)")


def page(name: str) -> str:
    return (REFERENCE / f"{name}.md").read_text()


def words(parser: argparse.ArgumentParser, name: str) -> Iterator[str]:
    """Each command and each option of the parser and of those below it."""
    yield name
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command, below in action.choices.items():
                yield from words(below, f"{name} {command}")
        elif action.help != argparse.SUPPRESS:
            yield from (o for o in action.option_strings if o.startswith("--") and o != "--help")


def is_in(word: str, text: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_command_and_option_is_in_its_page(program):
    parser = import_module(PROGRAMS[program]).build_parser()
    assert [word for word in words(parser, program) if not is_in(word, page(program))] == []


def test_every_setting_is_documented():
    names = [f.name for record in (settings.Settings, settings.Host) for f in dataclasses.fields(record)]
    assert [n for n in names if n != "hosts" and not is_in(f"`{n}`", page("fleet.toml"))] == []


def test_every_job_key_is_documented():
    keys = json.loads(job.encode_job(job.Job(id="x", argv=("true",))))
    assert [k for k in keys if not is_in(f"`{k}`", page("job"))] == []


def test_every_row_field_is_documented(tmp_path):
    spool = tmp_path / "spool"
    environ = os.environ | {"FLEET_SPOOL": str(spool)}
    for program, *arguments in (["fleet", "init"], ["fleet", "submit", "--", "true"], ["fleetd", "--once"]):
        command = [Path(sys.executable).parent / program, *arguments]
        subprocess.run(command, env=environ, check=True, capture_output=True, timeout=60)
    rows = [row.body for row in ledger.Ledger(spool / "ledger.d").rows()]
    assert [row["outcome"] for row in rows if row["event"] == "result"] == ["ok"]
    assert [k for row in rows for k in row if not is_in(f"`{k}`", page("ledger"))] == []


def test_every_outcome_is_documented():
    assert [o for o in job.Outcome if not is_in(f"`{o}`", page("ledger"))] == []


def test_every_schema_is_documented():
    schema = re.compile(r'"((?:fleet|treadcore)\.[\w-]+/\d+)"')
    written = {name for package in ("fleetd", "planner") for path in (ROOT / package).rglob("*.py")
               for name in schema.findall(path.read_text())}  # fmt: skip
    told = {name for path in REFERENCE.glob("*.md") for name in schema.findall(path.read_text())}
    assert {"fleet.job/1", "fleet.row/1", "treadcore.weights/1"} <= written
    assert written - told == set()


def test_every_exit_code_is_documented():
    leaves = errors.FleetError.__subclasses__()
    lines = page("exit-codes").splitlines()
    assert [e.__name__ for e in leaves if not any(f"| {e.exit_code} |" in x and e.__name__ in x for x in lines)] == []


@pytest.mark.parametrize("path", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]), ids=lambda p: p.name)
def test_links_lead_somewhere(path):
    assert [link for link in LINK.findall(path.read_text()) if not (path.parent / link).exists()] == []


def test_every_page_is_in_the_index():
    index = (ROOT / "docs" / "README.md").read_text()
    pages = (p.relative_to(ROOT / "docs") for p in ROOT.glob("docs/*/**/*.md") if p.name != "README.md")
    assert [str(p) for p in pages if f"({p})" not in index] == []


def faults() -> dict[str, list[tuple[str, str]]]:
    """The page's sections by their numbers, each with the tests that it names: file, function."""
    text = (ROOT / "docs" / "explanation" / "faults.md").read_text()
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    return {s.partition(".")[0]: re.findall(r"`(test_\w+\.py)::(test_\w+)`", s) for s in sections}


def test_every_fault_of_one_host_has_its_section_and_each_has_tests():
    sections = faults()
    assert {"1", "2", *map(str, range(6, 16)), "17", "18", "20", "21"} <= sections.keys()
    assert [number for number, tests in sections.items() if not tests] == []


def test_every_test_that_the_faults_name_is_there():
    homes = [ROOT / "tests" / "fleetd", ROOT / "tests" / "planner"]
    there = {
        f"{path.name}::{name}"
        for home in homes
        for path in home.rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)\(", path.read_text(), flags=re.MULTILINE)
    }
    named = {f"{file}::{name}" for tests in faults().values() for file, name in tests}
    assert named - there == set()
