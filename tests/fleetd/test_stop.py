"""Stop files: acknowledged at once, carried through, told in the ledger, and lifted by rm."""

import os
import time
from pathlib import Path

import pytest

from fleetd import TryLater
from fleetd.job import Job
from fleetd.lease import boot_id

PARTIAL = 'echo "[1,2]" > $FLEET_RESULT.new && mv $FLEET_RESULT.new $FLEET_RESULT; sleep 100'
ONCE_KNOWN = """until grep -q '"pid":[0-9]' ../pid.json; do sleep 0.02; done"""  # or its parent has no time to write it
DEAF = "trap '' TERM; while :; do sleep 0.1; done"


@pytest.fixture
def stop(rig):
    def made(name):
        (rig.root / name).touch()

    return made


def test_stop_now_is_acknowledged_within_a_second(rig, stop, wait_for):
    rig.start()
    rig.shell("j", DEAF)
    rig.pid("j")
    stop("STOP_NOW")
    said = wait_for(lambda: rig.beat()["stops"].get("STOP_NOW"), 1.0)
    assert said["seen"].endswith("Z")
    wait_for(lambda: rig.beat()["stops"]["STOP_NOW"] | {"seen": ""} == {"seen": "", "ended": ["j"], "left": 1})


def test_partial_results_are_kept_and_only_rerun_safe_jobs_are_queued_again(rig, stop, wait_for):
    rig.start()
    for name, safe in {"safe": True, "stranger": False}.items():
        rig.shell(name, PARTIAL, rerun_safe=safe)
        rig.pid(name)
        wait_for((rig.attempt(name) / "result.json").exists)
    stop("STOP_NOW")
    wait_for(lambda: rig.rows("stop"), 5)
    rows = {row["job"]: (row["outcome"], row["result"], row["next"]) for row in rig.rows()}
    assert rows == {"safe": ("stopped", [1, 2], 2), "stranger": ("stopped", [1, 2], None)}
    assert rig.spool.waiting() == ["safe"]
    assert not rig.jobs()


def test_a_stop_ends_a_job_that_has_stopped_its_parent(rig, stop, wait_for):
    rig.start()
    rig.shell("j", f"{ONCE_KNOWN}; kill -STOP $PPID; sleep 100")
    parent = rig.pid("j")["parent"]
    wait_for(lambda: Path(f"/proc/{parent}/stat").read_text().split()[2] == "T")
    stop("STOP_NOW")
    assert rig.ended("j", limit_s=4)["outcome"] == "stopped"
    assert not rig.jobs()


def test_a_parent_that_is_stopped_again_and_again_ends_its_job_all_the_same(rig, stop):
    rig.start()
    rig.shell("j", f"{ONCE_KNOWN}; trap 'kill -STOP $PPID' TERM; while :; do kill -STOP $PPID; sleep 0.02; done")
    rig.pid("j")
    stop("STOP_NOW")
    assert rig.ended("j", limit_s=12)["outcome"] == "stopped"


def test_a_time_limit_holds_although_the_parent_is_stopped(rig):
    rig.settings(poll_s=0.3)
    rig.start()
    rig.shell("j", "kill -STOP $PPID; sleep 100", timeout_s=0.5)
    assert rig.ended("j", limit_s=5)["outcome"] == "timeout"


def test_exit_0_on_term_is_still_stopped(rig, stop):
    rig.start()
    rig.shell("polite", "trap 'exit 0' TERM; sleep 100 & wait")
    rig.pid("polite")
    stop("STOP_NOW")
    row = rig.ended("polite")
    assert (row["outcome"], row["exit"]) == ("stopped", 0)


def test_nothing_is_claimed_while_stop_now_stands(rig, stop, wait_for):
    rig.start()
    stop("STOP_NOW")
    wait_for(lambda: rig.beat()["claims"])
    rig.drop("waits", "true")
    wait_for(lambda: rig.rows("stop"))
    assert "STOP_NOW" in rig.beat()["claims"]
    assert rig.spool.waiting() == ["waits"]
    (rig.root / "STOP_NOW").unlink()
    assert rig.ended("waits", limit_s=2)["outcome"] == "ok"


def test_the_stop_row_says_what_was_ended_and_the_resume_row_follows_rm(rig, stop, wait_for):
    rig.start()
    rig.shell("j", "sleep 100")
    rig.pid("j")
    stop("STOP_NOW")
    (row,) = wait_for(lambda: rig.rows("stop"), 5)
    assert (row["stop"], row["ended"], row["left"], row["by"]) == ("STOP_NOW", ["j"], 0, "fleetd@calber")
    assert row["seen"] <= row["at"]
    assert rig.results("j")[0]["seq"] < row["seq"]
    assert rig.rows("resume") == []
    (rig.root / "STOP_NOW").unlink()
    (back,) = wait_for(lambda: rig.rows("resume"), 2)
    assert (back["stop"], back["by"]) == ("STOP_NOW", "fleetd@calber")


def test_a_stop_lifted_half_way_is_carried_through(rig, stop, wait_for):
    rig.settings(grace_s=0.6)
    rig.start()
    rig.shell("deaf", DEAF, rerun_safe=True)
    rig.pid("deaf")
    stop("STOP_NOW")
    wait_for(lambda: rig.beat()["stops"].get("STOP_NOW"))
    (rig.root / "STOP_NOW").unlink()
    wait_for(lambda: rig.rows("resume"), 5)
    assert [row["event"] for row in (*rig.rows("stop"), *rig.rows("resume"))] == ["stop", "resume"]
    assert rig.rows("stop")[0]["ended"] == ["deaf"]
    assert rig.results("deaf")[0]["outcome"] == "stopped"


def test_a_job_claimed_but_not_started_goes_back_without_a_row(rig, stop, wait_for):
    path = rig.attempt("claimed")
    (path / "out").mkdir(parents=True)
    (path / "job.json").write_bytes(b'{"argv": ["true"]}')
    (path / "lock").write_text(boot_id().replace("-", "")[:8])
    stop("STOP_NOW")
    rig.start()
    wait_for(lambda: rig.rows("stop"))
    assert rig.rows() == []
    assert rig.spool.waiting() == ["claimed"]
    assert not path.exists()


def test_no_daemon_removes_a_stop_file_and_a_restart_does_not_repeat_the_row(rig, stop, wait_for):
    stop("STOP_NOW")
    rig.start()
    wait_for(lambda: rig.rows("stop"))
    rig.kill()
    rig.start()
    wait_for(lambda: rig.beat()["stops"].get("STOP_NOW"))
    assert len(rig.rows("stop")) == 1
    assert (rig.root / "STOP_NOW").exists()


def test_a_daemon_started_under_stop_now_ends_what_it_adopts(rig, stop, wait_for):
    rig.start()
    rig.shell("adopted", "sleep 100")
    rig.pid("adopted")
    rig.kill()
    stop("STOP_NOW")
    rig.start()
    assert rig.ended("adopted")["outcome"] == "stopped"
    wait_for(lambda: rig.rows("stop"))
    assert not rig.jobs()


def test_stop_adding_drains_the_queue(rig, stop, wait_for):
    for n in range(4):
        rig.shell(f"j{n}", "sleep 0.1")
    stop("STOP_ADDING")
    rig.start(lanes=1)
    wait_for(lambda: len(rig.rows()) == 4)
    assert {row["outcome"] for row in rig.rows()} == {"ok"}
    assert rig.rows("stop")[0]["stop"] == "STOP_ADDING"
    assert rig.beat()["claims"] is None


@pytest.mark.parametrize("name", ["STOP_ADDING", "STOP_NOW"])
def test_nobody_publishes_while_a_stop_stands(rig, stop, name):
    stop(name)
    with pytest.raises(TryLater, match=name):
        rig.spool.publish(Job(id="a", argv=("true",)))
    assert rig.spool.waiting() == []


@pytest.mark.parametrize("kind", ["fifo", "link", "directory"])
def test_a_stop_s_content_is_never_looked_at(rig, wait_for, kind):
    rig.start()
    at = rig.root / "STOP_NOW"
    {"fifo": lambda: os.mkfifo(at), "link": lambda: at.symlink_to("nowhere"), "directory": at.mkdir}[kind]()
    wait_for(lambda: rig.rows("stop"), 3)


def test_once_under_stop_now_is_75_with_the_reason(rig, stop):
    rig.drop("waits", "true")
    stop("STOP_NOW")
    assert rig.once() == 75
    assert "STOP_NOW" in rig.said()
    assert rig.spool.waiting() == ["waits"]


def test_once_under_stop_adding_drains_and_is_0(rig, stop):
    rig.drop("runs", "true")
    stop("STOP_ADDING")
    assert rig.once() == 0
    assert rig.rows()[0]["outcome"] == "ok"


def test_many_short_jobs_under_stop_now_leave_none_half_done(rig, stop, wait_for):
    for n in range(200):
        rig.shell(f"j{n:03d}", "sleep 0.01", rerun_safe=True)
    rig.start(lanes=4)
    wait_for(lambda: len(rig.rows()) > 20)
    stop("STOP_NOW")
    wait_for(lambda: rig.rows("stop"), 5)
    assert not rig.jobs()
    done = {row["job"] for row in rig.rows() if row["outcome"] == "ok"}
    assert done.isdisjoint(rig.spool.waiting())
    assert len(done) + len(rig.spool.waiting()) == 200
    (rig.root / "STOP_NOW").unlink()
    wait_for(lambda: len({row["job"] for row in rig.rows() if row["outcome"] == "ok"}) == 200, 20)


def test_the_stop_is_seen_although_the_daemon_polls_rarely(rig, stop, wait_for):
    rig.start()
    began = time.monotonic()
    stop("STOP_NOW")
    wait_for(lambda: rig.rows("stop"), 2)
    assert time.monotonic() - began < 1.5
