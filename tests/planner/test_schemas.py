"""What programs read has a name and a version, and stands on a page."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = re.compile(r'"((?:fleet|treadcore)\.[\w-]+/\d+)"')


def test_every_schema_that_the_planner_writes_is_documented():
    written = {name for path in ROOT.glob("planner/**/*.py") for name in SCHEMA.findall(path.read_text())}
    told = {name for path in ROOT.glob("docs/reference/*.md") for name in SCHEMA.findall(path.read_text())}
    assert len(written) >= 10
    assert written - told == set()
