"""A full disk: claims stop with a visible reason, running jobs go on, what has ended is not lost, stops are carried out."""

import json
import os

import pytest


@pytest.fixture
def tight(rig, small_disk, tmp_path, wait_for):
    """A rig on a disk of 512 KiB."""
    made = type(rig)(small_disk("512k") / "spool", wait_for, tmp_path / "said")
    yield made
    made.close()


def fill(rig):
    """Take all there is left."""
    with open(rig.root / "ballast", "wb", buffering=0) as file:
        try:
            while file.write(b"x" * 512):
                pass
        except OSError:
            return


def starved(rig, spare):
    """Start a daemon, put a job in its queue once only that many bytes are free."""
    rig.settings(min_free_mb=0.2, poll_s=0.2)
    rig.start()
    (rig.spool.tmp / "waits").write_text('{"argv": ["true"]}')
    fill(rig)
    os.truncate(rig.root / "ballast", (rig.root / "ballast").stat().st_size - spare)
    (rig.spool.tmp / "waits").rename(rig.spool.queue / "waits.json")


def test_too_little_space_is_said_in_the_heartbeat_and_room_lets_claims_go_on(tight, wait_for):
    starved(tight, 64 << 10)
    wait_for(lambda: "min_free_mb" in (tight.beat()["claims"] or ""))
    assert tight.spool.waiting() == ["waits"]
    assert not tight.rows()
    (tight.root / "ballast").unlink()
    assert tight.ended("waits")["outcome"] == "ok"


def test_a_full_disk_is_said_on_stderr_where_no_heartbeat_can_be_written(tight, wait_for):
    starved(tight, 0)
    wait_for(lambda: "min_free_mb" in tight.said() or "No space" in tight.said())
    assert tight.spool.waiting() == ["waits"]
    assert not tight.rows()


def test_a_daemon_that_cannot_write_its_heartbeat_is_shown_as_living(tight, wait_for, fleet):
    tight.start()
    fill(tight)
    tight.kill()
    tight.start(ready=False)
    wait_for(lambda: tight.said().count("lanes") == 2)
    asked = "--spool", str(tight.root), "hosts", "--json"
    assert json.loads(fleet(*asked).stdout)["live"]
    tight.kill()
    assert not json.loads(fleet(*asked).stdout)["live"]


def test_what_ends_on_a_full_disk_is_in_the_ledger_once_there_is_room(tight, wait_for):
    tight.start()
    tight.shell("runs", "echo 5 > $FLEET_RESULT; until test -e $FLEET_SPOOL/go; do sleep 0.02; done; exit 3")
    tight.pid("runs")
    result = tight.attempt("runs") / "result.json"
    wait_for(lambda: result.exists() and result.read_text() == "5\n")
    (tight.root / "not-yet").touch()
    fill(tight)
    (tight.root / "not-yet").rename(tight.root / "go")
    wait_for((tight.attempt("runs") / "exit.json").exists)
    (tight.root / "ballast").unlink()
    row = tight.ended("runs")
    assert (row["outcome"], row["exit"], row["result"]) == ("failed", 3, 5)
    assert [row["seq"] for row in tight.rows()] == list(range(1, len(tight.rows()) + 1))


def test_nothing_seems_to_succeed_that_has_not_run(tight, wait_for, tmp_path):
    for n in range(5):
        tight.shell(f"j{n}", f"echo x >> {tmp_path}/ran-{n}")
    fill(tight)
    tight.start(ready=False)
    wait_for(lambda: "No space" in tight.said() or "free some space" in tight.said())
    assert not [row for row in tight.rows() if row["outcome"] == "ok"]
    (tight.root / "ballast").unlink()
    assert [tight.ended(f"j{n}")["outcome"] for n in range(5)] == ["ok"] * 5
    assert [(tmp_path / f"ran-{n}").read_text() for n in range(5)] == ["x\n"] * 5


def test_stop_now_ends_what_runs_although_a_row_cannot_be_written(tight, wait_for):
    tight.start()
    tight.shell("long", "sleep 100", rerun_safe=True)
    tight.drop("ends", "sh", "-c", "until test -e $FLEET_SPOOL/go; do sleep 0.02; done", "x" * 3000)
    tight.pid("long")
    tight.pid("ends")
    for name in ("one", "two"):
        (tight.root / name).touch()
    fill(tight)
    (tight.root / "one").rename(tight.root / "go")
    wait_for((tight.attempt("ends") / "exit.json").exists)
    (tight.root / "two").rename(tight.root / "STOP_NOW")
    wait_for((tight.attempt("long") / "exit.json").exists, 5)
    assert not tight.jobs()
    (tight.root / "ballast").unlink()
    wait_for(lambda: tight.rows("stop"), 8)
    assert {row["job"]: row["outcome"] for row in tight.rows()} == {"long": "stopped", "ends": "ok"}
