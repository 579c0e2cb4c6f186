"""`fleet fsck`: a sound spool is clean, each damage has its line, and nothing is changed by looking."""

import json
import os
import shutil
import time

import pytest

from fleetd import Ledger
from fleetd.cli_fsck import _without_directory
from fleetd.ledger import encode_row


@pytest.fixture
def sound(rig):
    """A spool on which two jobs have ended and one was rejected; its daemon is gone."""
    daemon = rig.start()
    rig.shell("good", "true")
    rig.ended("good")  # its row is the first
    rig.shell("bad", "exit 3", retries=1)
    rig.drop_bytes("none", b'{"argv": []}')
    rig.ended("bad")
    rig.ended("none")
    daemon.terminate()
    daemon.wait()
    return rig


@pytest.fixture
def found(fleet):
    """The findings of a run that ends with `code`, notes left out, by path from the spool."""

    def run(code=1):
        done = fleet("fsck", "--json")
        assert done.returncode == code, done.stdout
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return [(one["path"].partition("/spool/")[2], one["what"]) for one in lines if not one["note"]]

    return run


def segment(rig):
    return rig.spool.ledger_d / "calber.jsonl"


def rewrite(rig, change):
    """Put other lines into the segment."""
    lines = segment(rig).read_bytes().splitlines(keepends=True)
    segment(rig).write_bytes(b"".join(change(lines)))
    return lines


def old(path, seconds=20):
    """Wait until the path's last change is too long ago to be somebody's work: ctime cannot be set."""
    while time.time() - path.lstat().st_ctime < seconds:
        time.sleep(0.2)


def everything(root):
    return {
        path: (path.lstat().st_mtime_ns, path.lstat().st_ino, path.read_bytes() if path.is_file() else b"")
        for path in root.rglob("*")
    }


def test_a_sound_spool_is_clean(sound, found):
    assert found(0) == []


def test_a_spool_at_work_is_clean(rig, found):
    rig.start(lanes=4)
    for number in range(60):
        rig.shell(f"j{number}", "sleep 0.05")
    assert found(0) == []
    assert found(0) == []


def test_looking_changes_nothing(sound, found):
    segment(sound).write_bytes(segment(sound).read_bytes()[:-9])
    (sound.spool.queue / "x.json").write_text("{")
    before = everything(sound.root)
    found()
    assert everything(sound.root) == before


def test_a_finding_says_where_what_and_what_to_do(sound, fleet):
    (sound.spool.queue / "x.json").symlink_to("/etc/passwd")
    done = fleet("fsck")
    line = f"{sound.spool.queue}/x.json: a symbolic link; rm it: nothing here follows one\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, line, "1 finding\n")


def test_a_lost_row_is_a_gap_and_its_job_has_no_row(sound, found):
    (lost, *_) = rewrite(sound, lambda lines: lines[1:])
    assert found() == [
        ("ledger.d/calber.jsonl", "gap in seq before byte 0: 1 missing"),
        ("ledger.jsonl", "1 row of calber that calber.jsonl does not have: seq 1"),
        (f"ended/{json.loads(lost)['at'][:10]}/good~1", "no row says how it ended"),
    ]


def test_damaged_lines_are_told_by_their_byte(sound, found):
    wrong = b'{"a":1,"crc":"00000000"}\n'
    lines = rewrite(sound, lambda lines: [lines[0], b"half\n", b"\0\0\0" + lines[1], wrong, *lines[2:], b'{"sch'])
    first, second = len(lines[0]), len(lines[0]) + len(b"half\n")
    told = [what for path, what in found() if path == "ledger.d/calber.jsonl"]
    assert told == [
        f"torn line of 4 bytes at byte {first}",
        f"3 bytes with NULs at byte {second}",
        f"line whose crc is wrong, or that is no fleet.row/1 at byte {second + 3 + len(lines[1])}",
        f"torn line at byte {second + 3 + len(wrong) + sum(map(len, lines[1:]))}, the last",
    ]


def test_a_seq_that_comes_again_is_told(sound, found):
    lines = rewrite(sound, lambda lines: [*lines, lines[0]])
    assert ("ledger.d/calber.jsonl", f"seq 1 once more at byte {sum(map(len, lines))}") in found()


def test_an_attempt_with_two_rows_and_a_job_with_two_oks_are_told(sound, found):
    row = next(row for row in sound.rows() if row["job"] == "good")
    body = {key: value for key, value in row.items() if key not in ("schema", "host", "boot", "seq", "crc")}
    Ledger(sound.spool.ledger_d).append("calber", [body, body | {"attempt": 2}])
    told = [what.partition(":")[0] for path, what in found() if path == "ledger.d"]
    assert told == ["attempt 1 of good has 2 rows", "good ended ok 3 times"]


def test_a_void_row_answers_a_row_too_many(sound, found):
    row = next(row for row in sound.rows() if row["job"] == "good")
    body = {key: value for key, value in row.items() if key not in ("schema", "host", "boot", "seq", "crc")}
    (again,) = Ledger(sound.spool.ledger_d).append("calber", [body])
    void = {"event": "void", "by": "test", "reason": "twice", "rows": [{"host": "calber", "seq": again.seq}]}
    Ledger(sound.spool.ledger_d).append("calber", [void])
    assert [path for path, _ in found() if path == "ledger.d"] == []


def test_a_row_of_another_host_in_a_segment_is_told(sound, found):
    segment(sound).rename(sound.spool.ledger_d / "other.jsonl")
    assert ("ledger.d/other.jsonl", "row of host 'calber' at byte 0") in found()


def test_the_merged_view_lacks_rows_or_has_strange_ones(sound, found):
    lines = sound.spool.ledger.read_bytes().splitlines(keepends=True)
    strange = encode_row(
        {"schema": "fleet.row/1", "event": "note", "host": "ada", "seq": 7, "at": "2026-11-30T00:00:00Z"}
    )
    sound.spool.ledger.write_bytes(b"".join([*lines[:-1], strange, b"x\n"]))
    told = [what for path, what in found() if path == "ledger.jsonl"]
    assert told[0] == "1 damaged line"
    assert told[1:] == [
        f"1 row of calber missing: seq {len(lines)}",
        "1 row of ada that ada.jsonl does not have: seq 7",
    ]


def test_a_segment_that_cannot_be_read_is_74(sound, found):
    (sound.spool.ledger_d / "ada.jsonl").mkdir()
    ((path, what),) = found(74)
    assert path == "ledger.d/ada.jsonl"
    assert "directory" in what


def test_what_runs_has_an_owner_also_without_a_daemon(rig, found):
    rig.start()
    rig.shell("x", "sleep 60")
    rig.pid("x")
    rig.kill()
    assert found(0) == []


def test_an_attempt_whose_processes_are_gone_has_no_owner(rig, found, wait_for):
    rig.start()
    rig.shell("x", "sleep 60")
    pid = rig.pid("x")
    rig.kill()
    os.kill(pid["parent"], 9)
    os.killpg(pid["pgid"], 9)
    wait_for(lambda: not rig.jobs())
    assert found() == [("running/calber/x", "nobody owns it: no lease is held, and its processes are gone")]
    rig.start()
    rig.ended("x")
    assert found(0) == []


def test_an_attempt_that_ended_without_a_daemon_waits_for_its_row(rig, found, wait_for):
    rig.start()
    rig.shell("x", "sleep 0.5")
    rig.pid("x")
    rig.kill()
    wait_for(lambda: not rig.jobs() and not rig.parents())
    assert found() == [("running/calber/x", "has ended, and nobody has written its row or moved it to ended/")]


def test_a_claim_without_a_directory_is_told(sound, found):
    (sound.spool.running / "calber" / "x~1~00112233aabbccdd.json").write_text('{"argv": ["true"]}')
    assert found() == [
        ("running/calber/x~1~00112233aabbccdd.json", "claimed, but its attempt has no directory yet"),
    ]


def test_files_that_wait_for_too_long_are_told(sound, found):
    (sound.spool.queue / "half.json").write_text("{")
    (sound.spool.queue / "none.json~").write_text("an editor's")
    (sound.spool.rejected / "dumb.json").write_text("{}")
    assert found(0) == []
    old(sound.spool.rejected / "dumb.json", 10.1)
    told = dict(found())
    assert told.keys() == {"queue/half.json", "rejected/dumb.json"}
    assert told["rejected/dumb.json"] == "no dumb.json.why beside it"


def test_what_was_swept_is_only_a_note(sound, fleet, found):
    day = next(sound.spool.ended.iterdir())
    shutil.rmtree(day / "good~1")
    assert found(0) == []
    assert "1 attempt with a row and no directory" in fleet("fsck").stderr


def test_a_link_in_an_attempt_is_told_but_not_one_in_its_out(sound, found):
    attempt = next(sound.spool.ended.glob("*/good~1"))
    (attempt / "out" / "link").symlink_to("/")
    assert found(0) == []
    (attempt / "link").symlink_to("/")
    assert found() == [(f"ended/{attempt.parent.name}/good~1/link", "a symbolic link")]


def test_a_directory_that_arrives_while_it_is_read_was_not_swept(sound):
    spool, missing = sound.spool, {("good", 1), ("bad", 1)}
    (there,) = spool.ended.glob("*/good~1")
    assert _without_directory(spool, missing) == 0
    shutil.move(there, spool.running / "calber" / "good")
    assert _without_directory(spool, missing) == 0
    shutil.rmtree(spool.running / "calber" / "good")
    assert _without_directory(spool, missing) == 1
