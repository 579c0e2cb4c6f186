"""Calling a job back, and sending one out again."""

import os

import pytest

from fleetd import BadData, Ledger, NotFound, TryLater
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


def test_a_running_job_is_cancelled_whatever_it_says_on_term(rig):
    rig.start()
    rig.shell("j", "trap 'exit 0' TERM; sleep 100 & wait", retries=3, rerun_safe=True)
    rig.pid("j")
    assert cancel(rig.spool, "calber", "j") == "running"
    row = rig.ended("j", limit_s=3)
    assert (row["outcome"], row["next"]) == ("cancelled", None)
    assert not rig.jobs()


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
    with pytest.raises(NotFound, match="no attempt"):
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
