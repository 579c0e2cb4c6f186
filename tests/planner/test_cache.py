"""The cache of a long ledger: with it, without it and with a bad one, the standing is the same."""

import json
import marshal
import os
import re
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from fleetd import Ledger
from planner import cache, filing
from planner.cache import Cache
from planner.fill import Filler
from planner.plan import read_plan
from planner.residuals import alarm, residuals

from .test_residuals import poisoned


@pytest.fixture
def kept(worked, tmp_path, monkeypatch):
    """A farm that has worked, and the directory with the cache of what its ledger said."""
    monkeypatch.setattr(filing, "LONG", 1)
    home = tmp_path / "cache"
    filler(worked, home).look()
    assert shelf(worked, home)
    return worked, home


def filler(farm, home=None):
    return Filler(farm.spool, read_plan(farm.spool.plan), farm.name, lambda: datetime.now(UTC), home)


def shelf(farm, home):
    found = Cache(home=home, ledger=farm.spool.ledger_d, plan="hill").read()
    return [line.id for line in found.lines] if found else None


def same(farm, home):
    """Whether all that is seen by the cache is what the ledger says; the cache's filler."""
    quick, fresh = filler(farm, home), filler(farm)
    seen, right = quick.look(), fresh.look()
    assert (list(seen.courses), seen) == (list(right.courses), right)
    assert quick.rounds == fresh.rounds
    assert sorted(map(str, quick.dealt())) == sorted(map(str, fresh.dealt()))
    assert quick.rows_of("calber") == fresh.rows_of("calber") != []
    assert quick.history() == fresh.history()
    return True


def row_of(farm, id_, event):
    return next(
        row for row in farm.rows(event) if id_ in (row.body.get("trial"), row.body.get("payload", {}).get("trial"))
    )


def void(farm, row):
    named = [{"host": row.host, "seq": row.seq}]
    farm.row({"event": "void", "by": "a test", "reason": "bad memory", "rows": named})


def test_what_is_on_the_shelf_says_what_its_rows_say(kept):
    farm, home = kept
    quick = filler(farm, home)
    course = quick.look().courses[shelf(farm, home)[0]]
    assert course.shelved
    assert course == filler(farm).look().courses[course.trial.id]
    assert course.ruling.event == "keep"
    assert same(farm, home)


def test_a_process_that_has_filed_its_trials_goes_on_seeing_what_all_rows_say(kept):
    farm, _ = kept
    long_lived = filler(farm)
    long_lived.look()
    seen, right = long_lived.look(), filler(farm).look()
    assert any(course.shelved for course in seen.courses.values())
    assert (list(seen.courses), seen) == (list(right.courses), right)


def test_a_segment_that_comes_meanwhile_or_is_none_ends_no_command(worked, tmp_path, monkeypatch):
    monkeypatch.setattr(filing, "LONG", 1)
    quick = filler(worked, tmp_path)
    keep = quick._reader.keep

    def late(*facts):
        (worked.spool.ledger_d / "new.jsonl").write_bytes(b"{}\n")
        (worked.spool.ledger_d / "none.jsonl").mkdir()
        keep(*facts)

    monkeypatch.setattr(quick._reader, "keep", late)
    quick.look()
    assert shelf(worked, tmp_path)
    assert same(worked, tmp_path)


@pytest.mark.parametrize("part", [1, 5_000, 50_000])
def test_a_long_ledger_is_read_in_parts_and_says_the_same(worked, monkeypatch, part):
    row = worked.rows("result")[3]
    void(worked, row)
    right = filler(worked)
    told = right.look()
    monkeypatch.setattr(filing, "PART", part)
    quick = filler(worked)
    seen = quick.look()
    assert (list(seen.courses), seen, quick.rounds) == (list(told.courses), told, right.rounds)
    assert any(course.shelved for course in seen.courses.values())
    assert [ruling.key for ruling in quick.history()] == [ruling.key for ruling in right.history()] != []


def test_what_hosts_read_of_a_trial_on_the_shelf_still_tells_them_apart(farm, tmp_path, monkeypatch):
    poisoned(farm, ["ada", "bo", "calber"], off=-3.0)
    for job in farm.spool.waiting():
        (farm.spool.queue / f"{job}.json").unlink()
    farm.plan("fill", "--count", "0")
    monkeypatch.setattr(filing, "LONG", 1)
    filler(farm, tmp_path).look()
    assert [
        line.hosts for line in Cache(home=tmp_path, ledger=farm.spool.ledger_d, plan="hill").read().lines if line.hosts
    ]
    assert same(farm, tmp_path)
    told = filler(farm, tmp_path)
    told.look()
    assert alarm(residuals(told.dealt())).host == "calber"


def test_with_a_cache_only_what_is_new_and_what_is_asked_for_is_read(kept, monkeypatch):
    farm, home = kept
    read = []
    monkeypatch.setattr(
        Ledger, "rows_at", lambda self, host, at, of=Ledger.rows_at: read.extend(at) or of(self, host, at)
    )
    quick = filler(farm, home)
    quick.look()
    assert quick._ledger.poll() == []
    rows = len(list(Ledger(farm.spool.ledger_d).rows()))
    assert len(read) <= rows - 2 * len(shelf(farm, home))


def test_rows_that_came_after_are_seen(kept):
    farm, home = kept
    farm.plan("fill", "--depth", "2")
    farm.run()
    assert same(farm, home)


@pytest.mark.parametrize("event", ["result", "keep"])
def test_a_void_row_that_came_after_opens_the_trial(kept, event):
    farm, home = kept
    id_ = shelf(farm, home)[0]
    void(farm, row_of(farm, id_, event))
    assert same(farm, home)


@pytest.mark.parametrize("event", ["result", "keep"])
def test_one_more_row_of_a_trial_on_the_shelf_opens_it(kept, event):
    farm, home = kept
    row = row_of(farm, shelf(farm, home)[0], event)
    farm.row({k: v for k, v in row.body.items() if k not in ("host", "seq", "at", "boot", "crc", "schema")})
    assert same(farm, home)


def test_feedback_on_a_trial_on_the_shelf_is_about_it(kept):
    farm, home = kept
    row = row_of(farm, shelf(farm, home)[0], "result")
    farm.plan("feedback", f"{row.host}:{row.seq}", "+")
    quick, fresh = filler(farm, home), filler(farm)
    quick.look(), fresh.look()
    assert quick.feedback() == fresh.feedback() != []
    assert quick.rounds.opinions == fresh.rounds.opinions != ()


def test_verdicts_that_one_process_wrote_at_once_are_where_it_says(farm, tmp_path, monkeypatch):
    long_lived = filler(farm, tmp_path)
    farm.plan("fill", "--depth", "3")
    farm.run()
    long_lived.look()
    with long_lived.alone():
        assert len(long_lived.settle()[1]) > 1
    monkeypatch.setattr(filing, "LONG", 1)
    farm.plan("fill", "--depth", "2")
    farm.run()
    long_lived.look()
    assert shelf(farm, tmp_path)
    assert same(farm, tmp_path)
    fresh = filler(farm)
    fresh.look()
    assert [ruling.key for ruling in long_lived.history()] == [ruling.key for ruling in fresh.history()] != []


def of_another_version(path):
    path.write_bytes(path.read_bytes().replace(cache.sources().encode(), b"0" * 16, 1))


def of_another_plan(path):
    path.write_bytes(path.read_bytes().replace(b'"plan":"hill"', b'"plan":"dale"', 1))


def with_another_row(path):
    """As somebody would write who knows the format: the checksum is right, and a row is not where it is said to be."""
    head, _, rest = path.read_bytes().partition(b"\n")
    *lines, places = marshal.loads(rest)
    rest = marshal.dumps((*lines, [(host, seq, start + 1, end) for host, seq, start, end in places]))
    path.write_bytes(json.dumps(json.loads(head) | {"crc": cache.zlib.crc32(rest)}).encode() + b"\n" + rest)


BAD = {
    "removed": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "cut in its first line": lambda path: path.write_bytes(path.read_bytes()[:50]),
    "another byte": lambda path: path.write_bytes(path.read_bytes().replace(b"keep", b"kemp", 1)),
    "no text": lambda path: path.write_bytes(b"\xff\x00" * 999),
    "another version": of_another_version,
    "another plan": of_another_plan,
    "another row": with_another_row,
    "others may write it": lambda path: path.chmod(0o666),
    "no segments": lambda path: path.write_bytes(re.sub(rb'"segments":{.*?}', b'"segments":[]', path.read_bytes(), count=1)),
    "a link": lambda path: path.symlink_to(path.rename(path.with_suffix(".there"))),
    "a directory": lambda path: (path.unlink(), path.mkdir()),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "deep": lambda path: path.write_bytes(b"[" * 200_000),
}  # fmt: skip


@pytest.mark.parametrize("how", BAD)
def test_a_cache_that_is_not_good_is_read_past(kept, how):
    farm, home = kept
    (path,) = home.iterdir()
    BAD[how](path)
    assert same(farm, home)


def test_a_segment_that_is_another_file_is_read_anew(kept):
    """As after a restore, or where somebody has put a merged one in its place."""
    farm, home = kept
    path = farm.spool.ledger_d / "ada.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.rename(path.with_suffix(".old"))
    path.write_bytes(b"".join(lines[: len(lines) // 2]))
    assert shelf(farm, home) is None
    assert same(farm, home)


def test_a_segment_that_was_cut_and_has_grown_again_is_read_anew(kept):
    farm, home = kept
    path = farm.spool.ledger_d / "calber.jsonl"
    size = path.stat().st_size
    os.truncate(path, size - 10)
    while path.stat().st_size < size:
        farm.row({"event": "note", "by": "a test"})
    assert same(farm, home)


@pytest.mark.parametrize("where", [0.5, 1.0], ids=["in the middle", "at the end"])
def test_a_damaged_row_that_was_mended_in_place_is_seen(worked, tmp_path, monkeypatch, where):
    monkeypatch.setattr(filing, "LONG", 1)
    monkeypatch.setattr(cache, "ENDS", 1)
    path = worked.spool.ledger_d / f"{worked.name}.jsonl"
    right = path.read_bytes()
    at = right.rindex(b'"outcome"', 0, int(len(right) * where))
    path.write_bytes(right[:at] + b"0" + right[at + 1 :])
    filler(worked, tmp_path).look()
    inode = path.stat().st_ino
    path.write_bytes(right)
    assert path.stat().st_ino == inode
    assert same(worked, tmp_path)


def test_the_cache_is_the_user_s_alone_and_never_in_the_spool(kept):
    farm, home = kept
    (path,) = home.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    assert not home.is_relative_to(farm.spool.root)


def test_where_there_is_no_place_for_it_nothing_is_said(worked, tmp_path, monkeypatch):
    monkeypatch.setattr(filing, "LONG", 1)
    (tmp_path / "file").touch()
    assert same(worked, tmp_path / "file" / "cache")
    assert cache.cache_home({"XDG_CACHE_HOME": "relative"}) is None
    assert cache.cache_home({}) is None


READER = """
import sys
from pathlib import Path
from tests.planner.test_cache import filler, filing
from tests.planner.conftest import Farm
from fleetd import Spool
filing.LONG = 1
for _ in range(5):
    filler(Farm(Spool(Path(sys.argv[1]))), Path(sys.argv[2])).look()
"""


def test_two_at_once_leave_a_good_one(kept, checkout):
    farm, home = kept
    for path in home.iterdir():
        path.unlink()
    command = [sys.executable, "-c", READER, str(farm.spool.root), str(home)]
    two = [subprocess.Popen(command, cwd=checkout) for _ in range(2)]
    assert [process.wait(60) for process in two] == [0, 0]
    assert len(list(home.iterdir())) == 1
    assert shelf(farm, home)
    assert same(farm, home)
