"""Calling a job back, and sending one out again."""

import os
import signal
from dataclasses import replace

import pytest

from fleetd import BadData, Ledger, NotFound, TryLater, reap
from fleetd.claim import claim, new_token
from fleetd.job import Job, Outcome, Result
from fleetd.recall import cancel, retry


def again(rig, name):
    return retry(rig.spool, name, Ledger(rig.spool.ledger_d).rows())


def test_a_waiting_job_is_cancelled_with_a_row_and_never_runs(rig):
    rig.drop("j", "touch", str(rig.root / "ran"))
    assert cancel(rig.spool, "calber", "j") == "queued"
    assert rig.once() == 0
    assert [(row["outcome"], row["next"]) for row in rig.rows()] == [("cancelled", None)]
    assert not (rig.root / "ran").exists()
    assert rig.spool.attempts() == []


def test_a_job_that_was_put_in_again_and_cancelled_is_its_next_attempt(rig):
    rig.drop("j", "false")
    rig.once()
    rig.drop("j", "false")
    assert cancel(rig.spool, "calber", "j") == "queued"
    assert [(row["attempt"], row["outcome"]) for row in rig.rows()] == [(1, "failed"), (2, "cancelled")]


def test_a_running_job_is_cancelled_whatever_it_says_on_term(rig):
    rig.start()
    rig.shell("j", "trap 'exit 0' TERM; sleep 100 & wait", retries=3, rerun_safe=True)
    rig.pid("j")
    assert cancel(rig.spool, "calber", "j") == "running"
    row = rig.ended("j", limit_s=3)
    assert (row["outcome"], row["next"]) == ("cancelled", None)
    assert not rig.jobs()


def test_a_job_that_has_stopped_its_parent_is_cancelled(rig):
    rig.start()
    known = """until grep -q '"pid":[0-9]' ../pid.json; do sleep 0.02; done"""
    rig.shell("j", f"{known}; kill -STOP $PPID; sleep 100")
    rig.pid("j")
    assert cancel(rig.spool, "calber", "j") == "running"
    assert rig.ended("j", limit_s=4)["outcome"] == "cancelled"
    assert not rig.jobs()


def test_a_cancel_holds_for_what_a_killed_daemon_had_taken_and_not_started(rig):
    (rig.spool.running / "calber").mkdir()
    taken = claim(rig.spool, "calber", job_in(rig), 1)
    (taken.path / "cancel").touch()
    assert rig.once() == 0
    assert [(row["outcome"], row["next"]) for row in rig.rows()] == [("cancelled", None)]
    assert rig.spool.waiting() == []


def test_a_cancel_that_comes_too_late_for_an_attempt_holds_for_the_next(rig):
    (rig.spool.running / "calber").mkdir()
    taken = claim(rig.spool, "calber", job_in(rig), 1)
    reap.write_exit(taken.path, replace(CANCELLED, outcome=Outcome.FAILED, reason=None))
    (taken.path / "pid.json").write_text("{}")
    (taken.path / "cancel").touch()
    assert rig.once() == 0
    assert [(row["outcome"], row["next"]) for row in rig.rows()] == [("failed", None)]


def job_in(rig):
    """A job that would go again, waiting."""
    return Job(id=rig.drop("j", "true", retries=3), argv=("true",), retries=3)


CANCELLED = Result(outcome=Outcome.CANCELLED, reason="cancelled before it started", ended="2026-11-30T00:00:00.000000Z")


def killed_after(rig, step):
    """running/calber/j/ as a cancel leaves it that was killed after that step, on a machine without a daemon."""
    steps = ("directory", "lock", "taken", "exit", "row")
    path = rig.attempt("j")
    path.mkdir(parents=True)
    if steps.index(step) >= 1:
        (path / "lock").write_text(new_token())
    if steps.index(step) >= 2:
        os.rename(rig.spool.queue / "j.json", path / "job.json")
    if steps.index(step) >= 3:
        reap.write_exit(path, CANCELLED)
    if steps.index(step) >= 4:
        end = reap.ended(path, "calber", CANCELLED, {}, "2026-11-30T00:00:00.000000Z", reap.read_job(path, {}))
        rig.ledger.append("calber", [end.row])


@pytest.mark.parametrize("step", ["directory", "lock", "taken", "exit", "row"])
def test_a_cancel_that_was_killed_is_brought_to_its_end_by_the_next(rig, step):
    rig.drop("j", "touch", str(rig.root / "ran"))
    killed_after(rig, step)
    assert cancel(rig.spool, "calber", "j") == "queued"
    assert rig.spool.attempts() == []
    assert rig.spool.waiting() == []
    assert [(row["outcome"], row["next"]) for row in rig.rows()] == [("cancelled", None)]
    assert len(list(rig.spool.ended.glob("*/j~1/job.json"))) == 1


def test_what_a_living_daemon_has_taken_is_left_to_it(rig, wait_for):
    rig.settings(poll_s=0.2)
    rig.start()
    rig.shell("j", "sleep 100")
    rig.pid("j")
    (rig.attempt("j") / "pid.json").rename(rig.attempt("j") / "hidden")
    assert cancel(rig.spool, "calber", "j") == "running"
    assert rig.ended("j")["outcome"] == "cancelled"


def test_what_ran_when_its_daemon_was_killed_is_not_cancelled_as_if_it_had_not(rig, wait_for):
    rig.start()
    rig.shell("j", "sleep 100")
    pid = rig.pid("j")
    rig.kill()
    for process in (pid["parent"], pid["pid"]):
        os.kill(process, signal.SIGKILL)
    assert cancel(rig.spool, "calber", "j") == "running"
    assert rig.rows() == []
    assert rig.once() == 0
    assert [row["outcome"] for row in rig.rows()] == ["lost"]


def test_a_job_that_is_nowhere_cannot_be_cancelled(rig):
    with pytest.raises(NotFound, match="neither waiting nor running"):
        cancel(rig.spool, "calber", "nobody")


def test_a_failed_job_goes_again_as_its_next_attempt_with_its_retries_anew(rig):
    rig.shell("j", "test -e $FLEET_SPOOL/mended", retries=1)
    assert rig.once() == 0
    (rig.root / "mended").touch()
    assert again(rig, "j") == 3
    assert rig.once() == 0
    outcomes = [(row["attempt"], row["outcome"]) for row in rig.results("j")]
    assert outcomes == [(1, "failed"), (2, "failed"), (3, "ok")]


def test_what_ended_ok_does_not_run_again(rig):
    rig.drop("j", "true")
    assert rig.once() == 0
    with pytest.raises(BadData, match="ended ok"):
        again(rig, "j")


def test_what_has_not_ended_or_has_gone_cannot_go_again(rig):
    with pytest.raises(NotFound, match="it has never run"):
        again(rig, "j")
    rig.drop("j", "false")
    assert rig.once() == 0
    os.unlink(rig.root / rig.results("j")[0]["log"].replace("/log", "/job.json"))
    with pytest.raises(NotFound, match="submit the job anew"):
        again(rig, "j")


def test_nothing_is_sent_out_again_while_a_stop_stands(rig):
    rig.drop("j", "false")
    assert rig.once() == 0
    (rig.root / "STOP_ADDING").touch()
    with pytest.raises(TryLater):
        again(rig, "j")
