"""Short jobs stand at a lane's door before it is free; nobody may lose by that."""

import fcntl
import json
import os
import signal
import socket
import sys
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from fleetd import child
from fleetd.claim import claim, unclaim
from fleetd.crew import Crew
from fleetd.errors import FleetError
from fleetd.history import History
from fleetd.job import Job, seconds
from fleetd.order import order
from fleetd.recall import cancel
from fleetd.settings import Settings
from fleetd.ward import Ward


def crowd(rig, *, before, after):
    """Short jobs, a long one, short jobs: their names in order."""
    names = [f"a{n:03d}" for n in range(before)] + ["b-long"] + [f"c{n:03d}" for n in range(after)]
    for name in names:
        rig.drop(name, "sleep" if name == "b-long" else "true", *(["2"] if name == "b-long" else []), rerun_safe=True)
    return names


def test_what_stands_behind_a_long_job_is_taken_back_and_runs_elsewhere(rig):
    crowd(rig, before=40, after=20)
    assert rig.once(lanes=2) == 0
    rows = {row["job"]: row for row in rig.rows()}
    assert len(rows) == 61
    assert all(row["attempt"] == 1 for row in rows.values())
    late = seconds(rows["b-long"]["started"]) + 1.5
    assert not [name for name, row in rows.items() if seconds(row["started"]) > late]


def test_what_stands_at_a_door_under_stop_now_goes_back_without_a_row(rig, wait_for):
    names = crowd(rig, before=40, after=20)
    rig.start(lanes=1)
    rig.pid("b-long")
    (rig.root / "STOP_NOW").touch()
    wait_for(lambda: rig.rows("stop"))
    outcomes = {row["job"]: row["outcome"] for row in rig.rows()}
    assert outcomes == dict.fromkeys(names[:40], "ok") | {"b-long": "stopped"}
    wait_for(lambda: len(rig.spool.waiting()) == 21)
    assert not list((rig.spool.running / "calber").iterdir())


def test_a_killed_daemon_s_orders_run_once(rig, wait_for):
    for n in range(60):
        rig.shell(f"j{n:03d}", f"echo x >> $FLEET_SPOOL/ran-{n:03d}", rerun_safe=False)
    for _ in range(3):
        daemon = rig.start(lanes=2)
        wait_for(rig.rows)
        daemon.kill()
        daemon.wait()
    rig.start(lanes=2)
    wait_for(lambda: len(rig.rows()) == 60)
    assert all((rig.root / f"ran-{n:03d}").read_text() == "x\n" for n in range(60))


def test_nothing_waits_at_the_only_lane_s_door_while_its_job_takes_long(rig, wait_for):
    """Orders that are taken back and given again fill the lane's socket, and then the daemon waits on it."""
    crowd(rig, before=40, after=60)
    rig.start(lanes=1)
    rig.pid("b-long")
    wait_for(lambda: len(rig.spool.waiting()) == 60, 1.5)
    (rig.root / "STOP_ADDING").touch()
    wait_for(lambda: rig.rows("stop"), 1)
    assert rig.attempt("b-long").exists()
    assert len(rig.spool.waiting()) == 60
    wait_for(lambda: len(rig.rows()) == 101)


@pytest.fixture
def door(rig):
    """A ward, and its lane with three claims that its parent knows nothing of; the second has run by now."""
    crew = Crew({})
    lane = crew.idle()
    (rig.spool.running / "calber").mkdir()
    for name in ("head", "ran", "waits"):
        taken = claim(rig.spool, "calber", Job(id=rig.drop(name, "true"), argv=("true",)), 1)
        lane.orders[str(taken.path)] = taken
    (rig.spool.running / "calber" / "ran" / "pid.json").write_text("{}")
    (rig.spool.running / "calber" / "ran" / "exit.json").write_text('{"outcome": "ok", "ended": "x"}')
    yield Ward(rig.spool, rig.ledger, "calber", crew, History(), Settings(), ()), lane
    crew.close()


def test_what_has_run_at_a_door_by_now_is_not_taken_back(rig, door):
    ward, lane = door
    ward.recall(lane.since + 60)
    assert rig.spool.waiting() == ["waits"]
    assert [path.rpartition("/")[2] for path in lane.orders] == ["head", "ran"]


@pytest.mark.parametrize("take_back", [Ward.heed, lambda ward, now: ward.recall(now + 60)])
def test_what_was_cancelled_at_a_door_ends_by_that_and_is_not_put_back(rig, door, take_back):
    ward, lane = door
    (rig.attempt("waits") / "cancel").touch()
    take_back(ward, lane.since)
    assert [path.rpartition("/")[2] for path in lane.orders] == ["head", "ran"]
    assert ward.has_ends
    assert [(end.path.name, end.row["outcome"]) for end in ward.look(lane.since, set())] == [("waits", "cancelled")]
    assert rig.spool.waiting() == []


def test_a_cancel_holds_wherever_it_finds_the_job(rig, wait_for):
    crowd(rig, before=40, after=20)
    rig.start(lanes=1)
    rig.pid("b-long")
    for name in ("c000", "c001", "c019"):
        cancel(rig.spool, "calber", name)
    wait_for(lambda: len(rig.rows()) == 61)
    assert {row["job"] for row in rig.rows() if row["outcome"] == "cancelled"} == {"c000", "c001", "c019"}


def test_a_cancel_ends_no_other_job_and_the_lane_lives_on(rig, wait_for):
    names = [rig.drop(f"j{n:02d}", "sleep", "0.06") for n in range(40)]
    rig.start(lanes=1)
    wait_for(rig.rows)
    (parent,) = wait_for(
        lambda: found if len(found := rig.parents()) == 1 else None
    )  # a job just forked looks like one
    asked = set()
    for many in range(3, 41, 3):
        asked.update(name for name in names if (rig.attempt(name) / "pid.json").exists() and called_back(rig, name))
        wait_for(partial(ended_are, rig, many))
    wait_for(partial(ended_are, rig, 40))
    outcomes = {row["job"]: row["outcome"] for row in rig.rows()}
    assert {name for name, outcome in outcomes.items() if outcome != "ok"} <= asked
    assert set(outcomes.values()) == {"ok", "cancelled"}
    assert rig.parents() == {parent}


def ended_are(rig, many):
    """Whether so many have."""
    return len(rig.rows()) >= many


def called_back(rig, name):
    """Whether it was there still to be cancelled."""
    try:
        return cancel(rig.spool, "calber", name)
    except FleetError:
        return None


@pytest.fixture
def lane(rig):
    """The lane of a crew without a daemon, and a claim with an order larger than its socket's buffer."""
    crew = Crew({})
    crew.idle()._sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    (rig.spool.running / "calber").mkdir()
    name = rig.drop("j", "true", env={f"V{n}": "x" * 100_000 for n in range(8)})
    taken = claim(rig.spool, "calber", rig.spool.read_waiting(name), 1)
    yield crew.idle(), taken, order(rig.spool, Settings(), "calber", taken, 0)
    crew.close()


def test_a_stopped_parent_holds_up_nobody_who_gives_it_an_order(lane, wait_for):
    lane, taken, said = lane
    os.kill(lane.pid, signal.SIGSTOP)
    lane.order(taken, said)
    assert lane.has_unsent
    assert lane.hear() == ([], True)
    os.kill(lane.pid, signal.SIGCONT)
    answers, _ = wait_for(lambda: heard if (heard := lane.hear())[0] else None)
    assert [answer.started for answer in answers] == [True]


def test_an_order_to_a_parent_that_has_just_ended_is_no_fault_of_anybody(lane, wait_for):
    lane, taken, said = lane
    os.kill(lane.pid, signal.SIGKILL)
    wait_for(lane.has_ended)
    lane.order(taken, said)
    assert lane.hear() == ([], False)
    assert lane.begun() is None


def test_claiming_goes_on_when_a_lane_s_parent_has_just_ended(rig, wait_for):
    daemon = rig.start(lanes=1)
    rig.ended(rig.drop("one", "true"))
    (parent,) = rig.parents()
    daemon.send_signal(signal.SIGSTOP)
    os.kill(parent, signal.SIGKILL)
    rig.drop("two", "true")
    daemon.send_signal(signal.SIGCONT)
    assert rig.ended("two", limit_s=1.5)["attempt"] == 1
    assert "claims nothing" not in rig.said()


def test_an_attempt_that_cannot_be_looked_into_ends_no_daemon(rig, door):
    ward, lane = door
    lane.orders = {"x": replace(lane.orders[str(rig.attempt("head"))], path=rig.root / ("x" * 300))}
    ward.heed(lane.since)


def test_an_old_order_does_not_start_what_was_taken_back_and_claimed_anew(rig, monkeypatch):
    """Between its open and its flock of the lock the parent may sleep for as long as that takes."""
    (rig.spool.running / "calber").mkdir()
    job = Job(id=rig.drop("j", "true"), argv=("true",))
    old = claim(rig.spool, "calber", job, 1)

    def after_a_sleep(lock):
        fd = os.open(lock, os.O_RDWR)
        unclaim(rig.spool, old.path)
        claim(rig.spool, "calber", job, 1)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return fd

    monkeypatch.setattr(child, "take_lease", after_a_sleep)
    said = child._run(SimpleNamespace(told_to_end=False), {"mark": old.token}, str(old.path))
    assert json.loads(said) == {"reason": f"{old.path}: the claim is no longer this lane's to start"}
    assert not (old.path / "pid.json").exists()


def test_a_lane_s_parent_that_cannot_live_is_said_and_not_made_anew_without_end(rig, wait_for, tmp_path):
    boot = f"open({str(tmp_path / 'born')!r}, 'a').write('x')"
    stillborn = (
        f"import fleetd.crew, sys; fleetd.crew._BOOT = {boot!r}; from fleetd.cli_daemon import main; main(sys.argv[2:])"
    )
    rig.start(wrap=(sys.executable, "-c", stillborn))
    began = time.monotonic()
    rig.drop("j", "true")
    why = wait_for(lambda: rig.beat()["claims"])
    assert "died before it could start anything: j" in why
    wait_for(lambda: len((tmp_path / "born").read_text()) >= 2)
    assert time.monotonic() - began > 1.5
    assert "died before it could start" in rig.said()
    rig.kill()
    rig.start()
    assert rig.ended("j")["outcome"] == "ok"
