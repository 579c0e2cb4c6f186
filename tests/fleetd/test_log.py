"""An attempt's log: bytes as they were printed, within the cap, head and tail kept and the cut counted."""

import os
import re
import subprocess
import time

import pytest

from fleetd.log import CappedLog

CUT = re.compile(rb"\n\[(about )?(\d+) bytes cut\]\n")
COUNT = "i=0; while [ $i -lt 60000 ]; do printf '%09d\\n' $i; i=$((i+1)); done"


def numbers(data):
    return [int(line) for line in data.split(b"\n") if len(line) == 9]


def test_a_log_past_its_cap_keeps_head_and_tail_and_the_right_count(rig):
    rig.settings(log_max_mb=0.125)
    rig.start()
    data = rig.log(rig.ended(rig.shell("counts", COUNT), limit_s=30))
    cut = CUT.search(data)
    assert len(data) <= 0.125 * (1 << 20) + 100
    head, tail = data[: cut.start()], data[cut.end() :]
    assert len(head) + len(tail) + int(cut[2]) == 600_000
    assert not cut[1]
    assert head.startswith(b"000000000\n000000001\n")
    assert tail.endswith(b"000059999\n")
    assert numbers(tail[10:]) == list(range(60_000 - len(numbers(tail[10:])), 60_000))


def test_a_job_that_prints_without_end_never_takes_the_disk(rig):
    rig.settings(log_max_mb=1)
    rig.start()
    rig.drop("yes", "yes", "abcdefghijklmnop", timeout_s=1.5)
    log, most = rig.attempt("yes") / "log", 0
    rig.pid("yes")
    end = time.monotonic() + 1.2
    while time.monotonic() < end and log.exists():
        most = max(most, log.stat().st_blocks * 512)
    row = rig.ended("yes")
    data = rig.log(row)
    assert row["outcome"] == "timeout"
    assert len(data) <= (1 << 20) + 100
    assert 0 < most < int(CUT.search(data)[2]) / 2


def test_a_quiet_log_is_looked_at_ever_more_rarely(tmp_path):
    with open(tmp_path / "log", "wb") as file:
        log = CappedLog(tmp_path / "log", file.fileno(), 1 << 20)
        now, looks = 100.0, 0
        while now < 160.0:
            now, looks = log.tend(now), looks + 1
    assert 240 <= looks < 260


def test_a_log_within_its_cap_is_left_as_it_is(busy):
    row = busy.ended(busy.shell("short", "printf 'a\\r\\n\\0\\377\\376b'; printf err >&2"))
    assert busy.log(row) == b"a\r\n\0\xff\xfeberr"


def test_a_log_can_be_followed_while_the_job_runs(busy, wait_for):
    busy.shell("talks", "echo first; sleep 1; echo last")
    wait_for(lambda: busy.attempt("talks").joinpath("log").exists())
    wait_for(lambda: busy.attempt("talks").joinpath("log").read_bytes() == b"first\n")
    assert busy.log(busy.ended("talks")) == b"first\nlast\n"


def test_where_holes_cannot_be_punched_head_and_tail_are_kept_as_well(rig, small_disk, wait_for):
    rig.settings(log_max_mb=0.125)
    disk = small_disk(kind="ramfs")
    other = type(rig)(disk / "spool", wait_for)
    try:
        other.settings(log_max_mb=0.125)
        other.start()
        data = other.log(other.ended(other.shell("counts", COUNT), limit_s=30))
    finally:
        other.close()
    cut = CUT.search(data)
    assert len(data) <= 0.125 * (1 << 20) + 100
    assert cut[1]
    assert data.startswith(b"000000000\n")
    assert data.endswith(b"000059999\n")
    assert abs(len(data) - len(cut[0]) + int(cut[2]) - 600_000) < 60_000


def test_file_names_that_are_not_utf_8_are_carried_to_ended(busy):
    row = busy.ended(busy.shell("names", "printf x > $FLEET_OUT/$(printf '\\377\\376')"))
    assert os.listdir(os.fsencode(busy.root / row["log"].replace("/log", "/out"))) == [b"\xff\xfe"]


@pytest.mark.slow
def test_four_seconds_of_yes_are_within_the_cap(rig):
    rig.settings(log_max_mb=4)
    rig.start()
    row = rig.ended(rig.drop("yes", "yes", timeout_s=4))
    data = rig.log(row)
    assert len(data) <= (4 << 20) + 100
    assert int(CUT.search(data)[2]) > 1 << 20
    assert subprocess.run(["pgrep", "-x", "yes"], capture_output=True, check=False).returncode in (0, 1)
