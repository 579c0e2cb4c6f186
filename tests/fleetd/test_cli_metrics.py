"""`fleet metrics`: Prometheus' text format 0.0.4, read by a strict parser, and the numbers in it."""

import json
import re
import stat

import pytest

from fleetd.cli_metrics import Family, Sample, as_text

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?\d+(?:\.\d+)?)")


def parse(text):
    """{(name, labels): value}; refuses what node_exporter's collector would, and a name in two places."""
    assert text.endswith("\n")
    lines, numbers, seen = text.splitlines(), {}, set()
    while lines:
        name = re.fullmatch(rf"# HELP ({NAME}) \S.*", lines.pop(0))[1]
        kind = re.fullmatch(rf"# TYPE {name} (gauge|counter)", lines.pop(0))[1]
        assert name not in seen
        assert name.endswith("_total") == (kind == "counter")
        seen.add(name)
        while lines and not lines[0].startswith("#"):
            found = SAMPLE.fullmatch(lines.pop(0))
            assert found[1] == name
            labels = tuple(sorted(re.findall(LABEL, found[2] or "")))
            assert (name, labels) not in numbers
            numbers[name, labels] = float(found[found.re.groups])
    return numbers


def number(numbers, name, **labels):
    return numbers[f"fleet_{name}", tuple(sorted(labels.items()))]


def test_the_numbers_are_those_of_the_spool(rig, fleet):
    rig.start()
    rig.shell("good", "true")
    rig.shell("bad", "exit 3")
    rig.ended("good")
    rig.ended("bad")
    fleet("hosts", "drain", "calber")
    fleet("stop", "adding")
    rig.shell("x", "true")
    numbers = parse(fleet("metrics").stdout)
    assert (number(numbers, "jobs_waiting"), number(numbers, "jobs_running")) == (1, 0)
    assert number(numbers, "attempts_ended_total", outcome="ok") == 1
    assert number(numbers, "attempts_ended_total", outcome="failed") == 1
    assert number(numbers, "attempts_ended_total", outcome="lost") == 0
    assert number(numbers, "host_up", host="calber") == number(numbers, "host_drained", host="calber") == 1
    assert (number(numbers, "host_lanes", host="calber"), number(numbers, "host_busy", host="calber")) == (2, 0)
    assert (number(numbers, "stop", stop="STOP_ADDING"), number(numbers, "stop", stop="STOP_NOW")) == (1, 0)
    assert 0 <= number(numbers, "host_heartbeat_age_seconds", host="calber") < 30
    assert number(numbers, "last_update_timestamp_seconds") > 1.7e9


def test_a_dead_host_and_damaged_lines_are_told(rig, fleet):
    rig.start()
    rig.kill()
    with (rig.spool.ledger_d / "calber.jsonl").open("ab") as segment:
        segment.write(b"half\n")
    numbers = parse(fleet("metrics").stdout)
    assert number(numbers, "host_up", host="calber") == 0
    assert number(numbers, "ledger_skipped_lines") == 1


def test_a_textfile_is_put_in_place_whole_and_others_may_read_it(rig, fleet, tmp_path):
    file = tmp_path / "fleet.prom"
    file.write_text("old")
    before = file.stat().st_ino
    done = fleet("metrics", "--textfile", str(file))
    assert (done.returncode, done.stdout) == (0, "")
    assert file.stat().st_ino != before
    assert stat.S_IMODE(file.stat().st_mode) & 0o444 == 0o444
    assert [p.name for p in tmp_path.glob("*.prom*")] == ["fleet.prom"]
    parse(file.read_text())


def test_a_directory_that_is_not_there_is_73(rig, fleet, tmp_path):
    done = fleet("metrics", "--textfile", str(tmp_path / "nowhere" / "fleet.prom"))
    assert done.returncode == 73
    assert "nowhere/fleet.prom: not written" in done.stderr


def test_json_has_a_line_for_each_name(rig, fleet):
    lines = [json.loads(line) for line in fleet("metrics", "--json").stdout.splitlines()]
    assert {line["schema"] for line in lines} == {"fleet.metrics/1"}
    assert {line["name"] for line in lines} >= {"fleet_jobs_waiting", "fleet_host_up", "fleet_stop"}


@pytest.mark.parametrize("value", ['a"b', "a\\b", "a\nb", "ünïcode", "{}=,"])
def test_a_label_of_any_text_stays_one_label(value):
    text = as_text([Family("fleet_x", "gauge", "about", (Sample(1.5, {"host": value}),))])
    ((_, ((_, told),)),) = parse(text)
    assert told.replace("\\\\", "\0").replace('\\"', '"').replace("\\n", "\n").replace("\0", "\\") == value
