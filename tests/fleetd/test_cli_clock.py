"""What `fleet hosts` says of clocks, and that nobody's work depends on them."""

import json
import sys

import pytest

ELSEWHEN = """
import sys, time
right = time.time
time.time = lambda: right() + float(sys.argv[1])
from fleetd import cli_daemon
sys.exit(cli_daemon.main(sys.argv[3:]))
"""


def told(fleet, rig):
    said = fleet("--spool", str(rig.root), "hosts", "--json").stdout
    return {line["host"]: line["clock_offset_s"] for line in map(json.loads, said.splitlines())}


@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_that_is_an_hour_off_is_shown_and_nothing_is_taken_over(rig, fleet, hours):
    rig.settings(poll_s=0.2)
    rig.start(host="odd", wrap=(sys.executable, "-c", ELSEWHEN, str(hours * 3600)))
    rig.shell("held", "until test -e $FLEET_SPOOL/go; do sleep 0.02; done", rerun_safe=True)
    rig.pid("held", host="odd")
    rig.start(host="calber")
    rig.ended(rig.drop("other", "true"))
    offsets = told(fleet, rig)
    assert abs(offsets["odd"] - hours * 3600) < 5
    assert abs(offsets["calber"]) < 5
    assert rig.attempt("held", "odd").exists()
    (rig.root / "go").touch()
    assert [(row["host"], row["outcome"]) for row in rig.results("held") or [rig.ended("held")]] == [("odd", "ok")]


def test_the_offset_has_its_column(rig, fleet):
    assert rig.once() == 0
    header, line = fleet("--spool", str(rig.root), "hosts").stdout.splitlines()
    assert float(line[header.index("CLOCK") :].split()[0]) == pytest.approx(0, abs=2)


def test_what_is_not_known_is_said_to_be_so(rig, fleet):
    (rig.spool.hosts / "odd.json").write_text('{"at": "yesterday"}')
    assert told(fleet, rig) == {"odd": None}
    header, line = fleet("--spool", str(rig.root), "hosts").stdout.splitlines()
    assert line[header.index("CLOCK") :].split()[0] == "?"
