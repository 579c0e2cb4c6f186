"""What is too old in ended/ goes, and what a standing row names stays."""

import os
import time
import tracemalloc

import pytest

from fleetd.job import seconds, utc
from fleetd.ledger import Row
from fleetd.sweep import Named, due, remove

DAY = "2026-11-01"
NOW = time.time()


@pytest.fixture
def ended(tmp_path):
    """`ended(name, age_s)`: an attempt's directory of that age."""
    (tmp_path / DAY).mkdir()

    def make(name, age_s):
        path = tmp_path / DAY / name
        (path / "out").mkdir(parents=True)
        (path / "log").write_text("x")
        os.utime(path, (NOW - age_s, NOW - age_s))
        return path

    make.root = tmp_path
    return make


def named(*bodies):
    fold, ledger = Named(), []
    for seq, body in enumerate(bodies, 1):
        ledger.append(Row("h", seq, body["event"], body.get("at", utc(NOW)), body))
    for row in ledger:
        fold.add(row)
    return fold


def found(root, fold, days=1.0, now=NOW):
    return sorted(path.name for path in due(root, fold, days, now))


def test_what_is_older_goes_and_what_is_younger_stays(ended):
    ended("old~1", 90000)
    ended("new~1", 80000)
    assert found(ended.root, named({"event": "note"})) == ["old~1"]


def test_fractions_of_a_day_count(ended):
    ended("a~1", 100)
    assert found(ended.root, named({"event": "note"}), days=0.001) == ["a~1"]


def test_a_result_kept_beside_its_row_stays_until_the_row_is_void(ended):
    ended("a~1", 90000)
    row = {"event": "result", "result_file": f"ended/{DAY}/a~1/result.json"}
    assert found(ended.root, named(row)) == []
    assert found(ended.root, named(row, {"event": "void", "rows": [{"host": "h", "seq": 1}]})) == ["a~1"]


def test_what_an_adopt_row_names_stays_and_a_log_is_no_naming(ended):
    ended("net~1", 90000)
    ended("job~1", 90000)
    rows = (
        {"event": "adopt", "net": f"ended/{DAY}/net~1/out/net.npz"},
        {"event": "result", "log": f"ended/{DAY}/job~1/log"},
    )
    assert found(ended.root, named(*rows)) == ["job~1"]


def test_nothing_goes_when_the_clock_is_a_day_ahead_of_the_ledger(ended):
    ended("old~1", 900000)
    assert found(ended.root, named({"event": "note", "at": utc(NOW - 90000)})) == []


def test_a_clock_that_has_jumped_ahead_takes_one_day_at_the_most(ended):
    """Whatever is written by it: the ledger has no rows of the days between."""
    ended("old~1", 100000)
    jump, lived = 60 * 86400, [{"event": "note", "at": utc(NOW - n * 86400)} for n in range(3)]
    wrong = [{"event": "note", "at": utc(NOW + jump)} for _ in range(3)]
    days_after = (NOW - seconds(f"{DAY}T00:00:00Z")) // 86400
    assert days_after > 3
    assert found(ended.root, named(*lived, *wrong), days=5.0, now=NOW + jump + 7200) == []
    assert found(ended.root, named(*lived, *wrong), days=4.0, now=NOW + jump + 7200) == ["old~1"]
    assert found(ended.root, named(*lived, *wrong), days=4.0, now=NOW) == []


def test_a_link_is_removed_and_never_followed(ended, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "keep").touch()
    (ended("a~1", 90000) / "out" / "link").symlink_to(elsewhere)
    remove(ended.root / DAY / "a~1")
    assert (elsewhere / "keep").exists()
    assert not (ended.root / DAY).exists()


def test_the_daemon_sweeps_and_its_ledger_stays(rig, wait_for):
    rig.settings(keep_ended_days=0.00002, poll_s=0.2)
    rig.start()
    rig.ended(rig.drop("gone", "true"))
    wait_for(lambda: not list(rig.spool.ended.glob("*/gone~1")), 15)
    assert [row["job"] for row in rig.rows()] == ["gone"]


def test_a_day_of_many_attempts_costs_no_memory(tmp_path):
    (tmp_path / DAY).mkdir()
    for n in range(20_000):
        os.mkdir(tmp_path / DAY / f"50-20261130T165200.{n:06d}Z-trial-9f3a2c~1")
    fold = named({"event": "note"})
    tracemalloc.start()
    assert next(due(tmp_path, fold, 0.5, NOW), None) is None
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 500_000
