"""The public face of the engine: pinned with a version, told on its page, and no name of it that nothing calls."""

import ast
import dataclasses
import enum
import inspect
import json
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import fleetd

PAGE, PINNED = "docs/reference/fleetd/python.md", "tests/data/surface.json"
HOW = f"tell it in {PAGE}, as a new version, and in CHANGELOG.md; python tests/fleetd/test_surface.py VERSION pins it"


def signature(function) -> str:
    """The parameters' names; `*` and `**` where they gather, `=` where they have a default, `/` and `*` as dividers."""
    parts = []
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
            parts.append("*")
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        parts.append(f"{stars}{p.name}{'' if p.default is p.empty else '='}")
    return f"({', '.join(parts)})"


def members(cls: type, told: str) -> dict[str, str]:
    """What the class itself offers, as far as its line on the page names it."""
    own = {f.name: "field" for f in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else {}
    own |= {name: signature(value) if inspect.isfunction(value) else "value" for name, value in vars(cls).items()}
    return {name: own[name] for name in sorted(own) if re.search(rf"`{name}\b", told)}


def described(name: str, told: str):
    """What a caller of the name relies on, for JSON."""
    value = getattr(fleetd, name)
    if isinstance(value, type) and issubclass(value, fleetd.FleetError):
        return {"exit_code": value.exit_code, "is": value.__base__.__name__}
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return [str(member) for member in value]
    if isinstance(value, type):
        return {"": signature(value)} | members(value, told)
    return signature(value) if inspect.isfunction(value) else "type"


def lines(page: str) -> dict[str, str]:
    """The page's lines by the names that they tell of."""
    rows = [line.split(" | ", 1) for line in page.splitlines() if line.startswith("| `")]
    return {name: told for names, told in rows for name in re.findall(r"`(\w+)`", names)}


def surface(page: str) -> dict:
    told = lines(page)
    return {name: described(name, told.get(name, "")) for name in sorted(fleetd.__all__)}


def digest(names: dict) -> str:
    return f"{zlib.crc32(json.dumps(names, sort_keys=True).encode()):08x}"


@pytest.fixture
def pinned(checkout):
    return json.loads((checkout / PINNED).read_text())


@pytest.fixture
def page(checkout):
    return (checkout / PAGE).read_text()


def test_names_and_signatures_are_those_that_are_pinned(pinned, page):
    assert surface(page) == pinned["names"], HOW


def test_the_page_tells_the_version_and_each_change(pinned, page):
    assert f"Version {pinned['version']} of the public face" in page, HOW
    told = re.findall(r"^\| (\d+) \| ([0-9a-f]{8}) \| \w.* \|$", page, re.MULTILINE)
    assert [int(version) for version, _ in told] == list(range(1, pinned["version"] + 1)), HOW
    assert told[-1][1] == digest(surface(page)), HOW


def test_every_name_has_its_line_on_the_page(pinned, page):
    assert set(lines(page)) == set(pinned["names"]), HOW


def test_every_name_is_called_by_something_outside_the_engine(pinned, checkout):
    """Tests and measurements are no callers: what they alone use is taken from where it is."""
    used: set[str] = set()
    for path in (checkout / "planner").rglob("*.py"):
        imports = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.ImportFrom)]
        used |= {alias.name for node in imports if node.module == "fleetd" for alias in node.names}
    assert set(pinned["names"]) - used == set(), "nothing calls it: take it out of fleetd/__init__.py"


def test_the_example_on_the_page_runs(rig, page):
    example = "\n".join(line[4:] for line in page.splitlines() if line.startswith("    "))
    rig.start()
    environ = {"FLEET_SPOOL": str(rig.root), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", example], env=environ, capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.stdout, done.stderr) == ("ok\n", "")


if __name__ == "__main__":
    here = Path(__file__).resolve().parents[2]
    names = surface((here / PAGE).read_text())
    (here / PINNED).write_text(json.dumps({"version": int(sys.argv[1]), "names": names}, indent=1) + "\n")
    print(digest(names))
