"""What may lie in queue/: what runs, what is waited for, what is ignored, what is moved to rejected/ and why."""

import json
import os
import stat
import subprocess
import time
from pathlib import Path

import pytest

from fleetd.job import seconds, utc

JOB = b'{"argv": ["true"]}'
EDITORS = [".job.json.swp", "job.json~", "job.json.bak", ".nfs0001", ".DS_Store", "4913", "#job.json#", "._mac.json"]
WRONG = [".hidden.json", "-dash.json", "a b.json", "job.JSON", "x" * 129 + ".json", "..json", "é.json", "a\nb.json"]


def cpu_s(pid: int) -> float:
    """Seconds of a core that the process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def rejected(busy, wait_for):
    """`rejected(name)`: the reason beside the rejected file, once its row is there."""

    def reason(name, limit_s=5.0):
        row = wait_for(lambda: next((row for row in busy.results(name) if row["outcome"] == "rejected"), None), limit_s)
        beside = busy.spool.rejected / f"{name}.json.why"
        why = wait_for(lambda: beside.exists() and beside.read_text(), limit_s)
        assert why.count("\n") == 1
        assert (row["attempt"], row["next"], row["reason"]) == (0, None, why.strip())
        wait_for(lambda: not (busy.spool.queue / f"{name}.json").exists(), limit_s)
        assert (busy.spool.rejected / f"{name}.json").exists()
        return why

    return reason


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("a-list", ["true"], "object"),
        ("a-number", 7, "object"),
        ("no-argv", {}, "argv"),
        ("argv-text", {"argv": "true"}, "argv"),
        ("cwd-relative", {"argv": ["true"], "cwd": "here"}, "cwd"),
        ("env-number", {"argv": ["true"], "env": {"K": 1}}, "env"),
        ("other-id", {"argv": ["true"], "id": "somebody"}, "somebody"),
        ("up-id", {"argv": ["true"], "id": "../../up"}, "../../up"),
        ("slash-id", {"argv": ["true"], "id": "a/b"}, "a/b"),
        ("itself", {"argv": ["true"], "after": ["itself"]}, "itself"),
        ("later-format", {"argv": ["true"], "schema": "fleet.job/9"}, "schema"),
    ],
)
def test_what_can_never_run_is_rejected_at_once_with_one_line(busy, rejected, name, value, said):
    busy.drop_bytes(name, json.dumps(value).encode())
    assert said in rejected(name)


@pytest.mark.parametrize("megabytes", [1.1, 50])
def test_a_file_that_is_too_big_is_rejected(busy, rejected, megabytes):
    name = busy.drop_bytes(f"huge-{megabytes}", b'{"argv": ["' + b"x" * int(megabytes * (1 << 20)) + b'"]}')
    assert "bytes" in rejected(name)


def test_a_stranger_s_file_is_rejected(root_only, busy, rejected):
    draft = busy.spool.tmp / "stranger"
    draft.write_bytes(JOB)
    os.chown(draft, 54321, 54321)
    draft.rename(busy.spool.queue / "stranger.json")
    assert "54321" in rejected("stranger")


@pytest.mark.parametrize("name", [*EDITORS, *WRONG])
def test_names_that_are_no_job_s_are_ignored(busy, name):
    (busy.spool.queue / name).write_bytes(JOB)
    busy.ended(busy.drop(f"after-{abs(hash(name))}", "true"))
    assert (busy.spool.queue / name).read_bytes() == JOB
    (busy.spool.queue / name).unlink()


@pytest.mark.parametrize("kind", ["link", "dangling", "fifo", "directory", "socket"])
def test_what_is_no_plain_file_is_neither_followed_nor_waited_on(busy, tmp_path, kind):
    at = busy.spool.queue / f"{kind}.json"
    (tmp_path / "target").write_text(json.dumps({"argv": ["touch", str(tmp_path / "ran")]}))
    made = {"link": lambda: at.symlink_to(tmp_path / "target"), "dangling": lambda: at.symlink_to("nowhere")}
    made |= {
        "fifo": lambda: os.mkfifo(at),
        "directory": at.mkdir,
        "socket": lambda: os.mknod(at, stat.S_IFSOCK | 0o644),
    }
    made[kind]()
    busy.ended(busy.drop(f"beside-{kind}", "true"), limit_s=3)
    assert os.path.lexists(at)
    assert not (tmp_path / "ran").exists()
    assert not busy.results(kind)
    at.rmdir() if kind == "directory" else at.unlink()


def test_a_file_written_in_two_halves_runs_when_it_is_whole(busy):
    data = b'{"argv": ["echo", "whole"]}'
    with open(busy.spool.queue / "halves.json", "wb") as file:
        file.write(data[:11])
        file.flush()
        busy.ended(busy.drop("meanwhile", "true"))
        assert (busy.spool.queue / "halves.json").exists()
        file.write(data[11:])
    assert busy.log(busy.ended("halves", limit_s=3)) == b"whole\n"


def test_a_file_copied_in_is_taken_when_it_parses(busy, tmp_path):
    (tmp_path / "copied.json").write_text('{"argv": ["echo", "copied"]}')
    subprocess.run(["cp", tmp_path / "copied.json", busy.spool.queue], check=True)
    assert busy.log(busy.ended("copied", limit_s=3)) == b"copied\n"


def test_an_editor_s_save_is_one_job(busy):
    queue = busy.spool.queue
    (queue / ".edited.json.swp").write_bytes(b"b0VIM")
    (queue / "4913").write_bytes(b"")
    (queue / "4913").unlink()
    (queue / "edited.json~").write_bytes(JOB)
    busy.drop("edited", "true")
    (queue / ".edited.json.swp").unlink()
    busy.ended("edited")
    assert len(busy.results("edited")) == 1


@pytest.mark.parametrize(("name", "data"), [("empty", b""), ("torn", b'{"argv": ["tr'), ("noise", b"\xff\xfe\x00")])
def test_what_does_not_parse_is_waited_for_and_then_rejected(busy, name, data):
    busy.drop_bytes(name, data)
    busy.ended(busy.drop(f"while-{name}", "true"))
    assert not (busy.spool.rejected / f"{name}.json").exists()


@pytest.mark.slow
def test_ten_seconds_unchanged_is_long_enough(busy, rejected):
    assert "JSON" in rejected(busy.drop_bytes("torn-long", b'{"argv": ["tr'), limit_s=15)
    assert "empty" in rejected(busy.drop_bytes("empty-long", b""), limit_s=15)


def test_lower_names_go_first(rig):
    for name in ("50-b", "10-z", "50-a", "99-0", "00-q", "5-x"):
        rig.drop(name, "true")
    assert rig.once(lanes=1) == 0
    assert [row["job"] for row in rig.rows()] == ["00-q", "10-z", "5-x", "50-a", "50-b", "99-0"]


def test_a_tag_that_is_missing_holds_up_nobody(rig):
    rig.drop("00-tagged", "true", needs=["gpu"])
    rig.drop("50-plain", "true")
    assert rig.once() == 0
    assert [row["job"] for row in rig.rows()] == ["50-plain"]
    assert rig.once("--tags", "gpu,avx") == 0
    assert rig.results("00-tagged")[0]["outcome"] == "ok"


def test_a_job_takes_as_many_lanes_as_it_has_cores(rig):
    overlap = f"mkdir {rig.root}/busy || exit 9; sleep 0.15; rmdir {rig.root}/busy"
    for name in "abc":
        rig.shell(name, overlap, cores=2)
    assert rig.once(lanes=3) == 0
    assert [row["outcome"] for row in rig.rows()] == ["ok"] * 3


def test_a_wide_job_is_not_starved_by_narrow_ones(rig):
    rig.start(lanes=2)
    for n in range(2):
        rig.shell(f"00-first-{n}", f"sleep 0.{n + 2}")
    rig.pid("00-first-1")
    rig.drop("50-wide", "true", cores=2)
    for n in range(4):
        rig.drop(f"60-narrow-{n}", "true")
    rig.ended("60-narrow-3")
    assert [row["job"] for row in rig.rows()][2] == "50-wide"


def test_a_job_wider_than_the_host_waits_and_holds_up_nobody(rig):
    rig.drop("00-wide", "true", cores=3)
    rig.drop("50-plain", "true")
    assert rig.once(lanes=2) == 0
    assert rig.spool.waiting() == ["00-wide"]


def test_many_that_may_not_start_cost_those_behind_them_nothing(rig):
    for n in range(4000):
        rig.drop(f"10-after-{n}", "true", after=[f"nobody-{n}"])
        rig.drop(f"10-tag-{n}", "true", needs=["gpu"])
        rig.drop(f"10-late-{n}", "true", not_before="2999-01-01T00:00:00Z")
    daemon = rig.start(lanes=1)
    rig.ended(rig.drop("50-first", "true"))
    used = cpu_s(daemon.pid)
    for n in range(20):
        rig.ended(rig.drop(f"50-{n}", "true"))
    assert cpu_s(daemon.pid) - used < 0.02 * 20  # to look at all of them once takes more than that


def test_what_comes_after_a_failure_is_rejected_even_while_every_lane_is_busy(rig, wait_for):
    rig.shell("00-fails", f"until test -e {rig.root}/go; do sleep 0.02; done; exit 1")
    rig.drop("90-dependent", "true", after=["00-fails"])
    rig.start(lanes=2)
    rig.pid("00-fails")
    rig.drop("20-long", "sleep", "60")
    rig.drop("30-long", "sleep", "60")
    rig.pid("20-long")
    (rig.root / "go").touch()
    rig.ended("00-fails")
    rig.pid("30-long")
    wait_for(lambda: rig.results("90-dependent"))
    assert "00-fails" in rig.results("90-dependent")[0]["reason"]


def test_a_job_starts_when_its_time_comes_not_when_the_daemon_looks_next(busy):
    at = utc(time.time() + 0.5)
    row = busy.ended(busy.drop("timed", "true", not_before=at), limit_s=5)
    assert 0 <= seconds(row["started"]) - seconds(at) < 1


def test_after_waits_for_an_ok(busy):
    busy.drop("10-second", "true", after=["90-first"])
    busy.ended(busy.drop("90-first", "true"))
    row = busy.ended("10-second", limit_s=3)
    assert row["started"] >= busy.results("90-first")[0]["ended"]


def test_after_a_final_failure_is_rejected(busy, rejected):
    busy.drop("dependent", "true", after=["fails"])
    busy.drop("fails", "false", retries=1)
    assert "fails" in rejected("dependent")
    assert len(busy.results("fails")) == 2


def test_a_failure_that_is_retried_does_not_reject_the_dependent(busy):
    busy.drop("patient", "true", after=["flaky"])
    busy.shell("flaky", "test $FLEET_ATTEMPT = 2", retries=1)
    assert busy.ended("patient")["outcome"] == "ok"


def test_after_an_id_nobody_has_published_waits(busy):
    busy.drop("waits", "true", after=["unheard-of"])
    busy.ended(busy.drop("other", "true"))
    assert (busy.spool.queue / "waits.json").exists()
    busy.drop("unheard-of", "true")
    assert busy.ended("waits", limit_s=3)["outcome"] == "ok"


def test_the_id_of_a_job_that_ended_ok_is_rejected(busy, rejected):
    busy.ended(busy.drop("once-only", "true"))
    busy.drop("once-only", "true")
    assert "ended ok on 20" in rejected("once-only")
    assert [row["outcome"] for row in busy.results("once-only")] == ["ok", "rejected"]


def test_the_id_of_a_job_that_failed_is_its_next_attempt(busy, wait_for):
    busy.ended(busy.drop("again", "false"))
    busy.drop("again", "true")
    wait_for(lambda: len(busy.results("again")) == 2)
    assert [(row["attempt"], row["outcome"]) for row in busy.results("again")] == [(1, "failed"), (2, "ok")]


def test_a_ring_of_afters_is_said_at_once(busy, rejected):
    busy.drop("ring-a", "true", after=["ring-b"])
    busy.drop("ring-b", "true", after=["ring-c"])
    busy.drop("ring-c", "true", after=["ring-a"])
    assert "ring" in rejected("ring-a", limit_s=3)
    rejected("ring-b", limit_s=3)
