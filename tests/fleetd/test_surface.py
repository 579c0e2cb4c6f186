"""The public face of the engine is pinned: who changes it says so."""

import json

import pytest

import fleetd

HOW = "change docs/reference/python.md, the version in surface.json and CHANGELOG.md"


@pytest.fixture
def pinned(checkout):
    return json.loads((checkout / "tests" / "data" / "surface.json").read_text())


def test_the_names_are_those_that_are_pinned(pinned):
    assert sorted(fleetd.__all__) == pinned["names"], HOW


def test_every_name_is_there_to_be_imported(pinned):
    assert [name for name in pinned["names"] if getattr(fleetd, name, None) is None] == []


def test_the_page_has_every_name_and_the_version(pinned, checkout):
    pages = [(checkout / "docs" / "reference" / f"{page}.md").read_text() for page in ("python", "exit-codes")]
    assert f"Version {pinned['version']} of the public face" in pages[0], HOW
    assert [n for n in pinned["names"] if f"`{n}`" not in pages[0] and f"| {n} |" not in pages[1]] == [], HOW
