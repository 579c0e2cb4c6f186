"""The breaker as a fold of rows: which failures count, when it opens, what closes it."""

from functools import reduce

import pytest

from fleetd.breaker import Breaker, Limits, Streak, fleet_trips, fold_breaker, fold_streak, reason, trips
from fleetd.job import utc
from fleetd.stops import Mode, mode

LIMITS = Limits(failures=5, rest_s=300)


def failed(job, outcome="failed", host="calber", exit=1, at=0.0):  # noqa: A002 - the row's word
    row = {"event": "result", "job": job, "host": host, "outcome": outcome, "exit": exit}
    return row | {"started": utc(at), "ended": utc(at)}


def event(name, **keys):
    return {"event": name, "host": "calber", **keys}


def tripped(*rows):
    return trips(reduce(fold_streak, rows, Streak()), LIMITS)


def opened(at=0.0):
    row = event("breaker", scope="host", until=utc(at + LIMITS.rest_s), reason="five")
    return fold_breaker(Breaker(), row, LIMITS)


FOUR = [failed(f"j{n}") for n in range(4)]


@pytest.mark.parametrize("outcome", ["failed", "timeout", "build_failed"])
def test_five_different_jobs_failing_in_a_row_trip_it(outcome):
    assert not tripped(*FOUR)
    assert tripped(*FOUR, failed("j5", outcome))


def test_one_job_failing_five_times_does_not_trip_it():
    assert not tripped(*[failed("same") for _ in range(5)])
    assert not tripped(*FOUR, failed("j0"))


@pytest.mark.parametrize("outcome", ["stopped", "cancelled", "declined", "lost", "superseded", "rejected"])
def test_other_outcomes_neither_count_nor_break_the_run(outcome):
    assert not tripped(*FOUR, failed("j5", outcome))
    assert tripped(*FOUR, failed("j5", outcome), failed("j6"))


def test_the_last_of_a_job_s_refusals_is_no_failure():
    assert not tripped(*FOUR, failed("j5", exit=75))


@pytest.mark.parametrize(
    "between",
    [
        failed("x", "ok", exit=0),
        event("resume", stop="STOP_NOW"),
        event("breaker", scope="fleet"),
        event("note", note="reset"),
    ],
)
def test_counting_starts_anew(between):
    assert not tripped(*FOUR, between, failed("j5"))


def test_another_note_changes_nothing():
    assert tripped(*FOUR, event("note", note="hello"), failed("j5"))


def test_the_whole_fleet_trips_from_two_hosts_or_from_the_only_one():
    alone = reduce(fold_streak, [*FOUR, failed("j5")], Streak())
    both = reduce(fold_streak, [*FOUR, failed("j5", host="other")], Streak())
    assert fleet_trips(alone, LIMITS, hosts=1)
    assert not fleet_trips(alone, LIMITS, hosts=2)
    assert fleet_trips(both, LIMITS, hosts=2)


def test_the_reason_counts_and_names_the_last():
    assert reason(reduce(fold_streak, [*FOUR, failed("j5", exit=3)], Streak())) == (
        "5 different jobs failed in a row; the last: j5 ended failed, exit 3"
    )


def test_a_breaker_row_opens_it_until_it_has_rested():
    breaker = opened(1000.0)
    assert (breaker.open, breaker.until, breaker.reason) == (True, 1300.0, "five")


def test_a_probe_that_ends_ok_closes_it():
    assert not fold_breaker(opened(), failed("p", "ok", exit=0, at=301.0), LIMITS).open


def test_a_probe_that_fails_has_it_rest_again():
    again = fold_breaker(opened(), failed("p", at=301.0), LIMITS)
    assert again.open
    assert again.until == 601.0


def test_what_was_started_before_is_no_probe():
    assert fold_breaker(opened(), failed("p", "ok", exit=0, at=299.0), LIMITS).open


def test_a_reset_closes_it_and_a_resume_does_not():
    assert not fold_breaker(opened(), event("note", note="reset"), LIMITS).open
    assert fold_breaker(opened(), event("resume", stop="STOP_ADDING"), LIMITS).open


@pytest.mark.parametrize(
    ("stops", "expected"),
    [
        (set(), Mode.RUN),
        ({"STOP_ADDING"}, Mode.DRAIN),
        ({"STOP_NOW"}, Mode.HALT),
        ({"STOP_ADDING", "STOP_NOW"}, Mode.HALT),
    ],
)
def test_the_stronger_stop_file_wins(stops, expected):
    assert mode(stops) is expected
