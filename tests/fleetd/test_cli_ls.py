"""fleet ls: every waiting job with the one reason why, however many there are and however they are shared out."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fleetd.cli_shares import in_shares
from fleetd.job import utc

BIN = Path(sys.executable).parent
MANY = 12_000  # so many that they are shared out, where there are cores for it


def squares(share: range) -> list[int]:
    return [number * number for number in share]


def reasons(fleet, rig) -> dict[str, str]:
    done = fleet("--spool", str(rig.root), "ls", "--json", FLEET_HOST="calber")
    assert done.returncode == 0, done.stderr
    return {job["job"]: job["why"] for job in map(json.loads, done.stdout.splitlines()) if job["state"] == "queued"}


@pytest.mark.parametrize("count", [0, 1, 4_999, 5_000, 5_001, 23_456])
@pytest.mark.parametrize("cores", [1, 2, 7])
def test_shares_come_back_whole_and_in_order(count, cores):
    assert in_shares(squares, count, cores) == squares(range(count))


def test_a_share_whose_process_dies_is_done_here():
    here = os.getpid()

    def fragile(share: range) -> list[int]:
        if os.getpid() != here and share.start == 5_000:
            os.kill(os.getpid(), signal.SIGKILL)
        if os.getpid() != here:
            raise RuntimeError
        return squares(share)

    assert in_shares(fragile, 15_000, 3) == squares(range(15_000))


def test_each_waiting_job_has_its_own_reason(rig, fleet):
    rig.start(lanes=1)
    rig.shell("00-runs", "sleep 60")
    rig.pid("00-runs")
    rig.drop("10-tag", "true", needs=["gpu\x1b[31m"])
    rig.drop("20-after", "true", after=["nobody", "90-last"])
    rig.drop("30-later", "true", not_before=utc(4e9))
    rig.drop("40-wide", "true", cores=2)
    rig.drop("50-gpu", "true", gpus=1)
    rig.drop_bytes("60-half", b'{"argv": ["tr')
    rig.drop("70-plain", "true")
    assert reasons(fleet, rig) == {
        "10-tag": "needs the tag gpu\x1b[31m, which calber does not have",
        "20-after": "waits for nobody and 1 more",
        "30-later": f"not before {utc(4e9)}",
        "40-wide": "needs 2 lanes, calber has 1",
        "50-gpu": "needs 1 GPUs, calber has 0",
        "60-half": "cannot be read (yet)",
        "70-plain": "for a free lane, 6 before it",
    }
    lines = fleet("--spool", str(rig.root), "ls", FLEET_HOST="calber").stdout.splitlines()
    assert re.fullmatch(r"00-runs +runs on calber for .* s +sh -c 'sleep 60'", lines[1])
    assert re.fullmatch(r"10-tag +waits: needs the tag gpu\\x1b\[31m, which calber does not have +true", lines[2])
    assert lines[7].rstrip().endswith("cannot be read (yet)")


def test_a_name_without_a_priority_is_told_that_others_come_first(rig, fleet):
    """hi, beside a planner that keeps the queue full: its turn never comes."""
    rig.start(lanes=1)
    rig.shell("00-runs", "sleep 60")
    rig.pid("00-runs")
    for name in ("50-trial", "60-trial", "hi"):
        rig.drop(name, "true")
    later = "for a free lane, 2 before it; names with a priority (50-…) come first"
    assert reasons(fleet, rig) == {
        "50-trial": "for a free lane",
        "60-trial": "for a free lane, 1 before it",
        "hi": later,
    }
    assert f"waits {later}" in fleet("--spool", str(rig.root), "show", "hi", FLEET_HOST="calber").stdout


def test_the_log_of_a_job_that_waits_says_that_it_waits(rig, fleet, environ):
    rig.start(lanes=1)
    rig.shell("00-runs", "sleep 60")
    rig.pid("00-runs")
    rig.shell("50-later", "echo now")
    waits = "waits for a free lane"
    assert waits in fleet("--spool", str(rig.root), "log", "50-later", FLEET_HOST="calber").stderr
    command = [BIN / "fleet", "--spool", rig.root, "log", "-f", "50-later"]
    with subprocess.Popen(
        command, env=environ | {"FLEET_HOST": "calber"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as follows:
        assert waits in follows.stderr.readline()
        fleet("--spool", str(rig.root), "cancel", "00-runs", FLEET_HOST="calber")
        assert follows.stdout.readline() == "now\n"


def test_many_are_told_as_few_are(rig, fleet):
    for n in range(MANY):
        (rig.spool.queue / f"50-{n:06d}.json").write_text(json.dumps({"argv": ["echo", f"{n}"]}))
    told = [json.loads(line) for line in fleet("--spool", str(rig.root), "ls", "--json").stdout.splitlines()]
    assert [job["argv"] for job in told] == [["echo", f"{n}"] for n in range(MANY)]
    lines = fleet("--spool", str(rig.root), "ls").stdout.splitlines()
    assert lines[0].split() == ["JOB", "STATE", "WHAT"]
    assert lines[1:] == [f"50-{n:06d}  waits: no daemon runs  echo {n}" for n in range(MANY)]


def test_where_lanes_are_all_that_is_missing_the_place_in_line_is_said(rig, fleet):
    for n in range(MANY):
        (rig.spool.queue / f"50-{n:06d}.json").write_text('{"argv": ["true"]}')
    rig.drop("00-first", "sleep", "60")
    rig.start(lanes=1)
    rig.pid("00-first")
    assert reasons(fleet, rig) == {
        f"50-{n:06d}": "for a free lane" + (f", {n} before it" if n else "") for n in range(MANY)
    }
