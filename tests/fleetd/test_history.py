"""What the ledger says of each job: its last attempt and its fate, in whatever order the rows come."""

import tracemalloc
from itertools import permutations

from fleetd.history import History
from fleetd.lane import Fate


def row(attempt, outcome, following=None, job="a"):
    return {"event": "result", "job": job, "attempt": attempt, "outcome": outcome, "next": following}


def history(*rows):
    made = History()
    for one in rows:
        made.add(one)
    return made


def test_an_id_nobody_has_published_is_open():
    assert history().fate("a") is Fate.OPEN
    assert history().attempt("a") == 0


def test_the_order_of_the_rows_does_not_matter():
    rows = [row(1, "failed", 2), row(2, "lost", 3), row(3, "failed")]
    for order in permutations(rows):
        assert (history(*order).fate("a"), history(*order).attempt("a")) == (Fate.FAILED, 3)


def test_an_ok_of_any_attempt_stays_ok():
    for order in permutations([row(1, "lost", 2), row(2, "ok"), row(3, "failed")]):
        assert history(*order).fate("a") is Fate.OK


def test_a_row_with_an_attempt_after_it_is_not_final():
    assert history(row(1, "failed", 2)).fate("a") is Fate.OPEN
    assert history(row(1, "superseded")).fate("a") is Fate.OPEN


def test_every_other_final_outcome_is_failed():
    for outcome in ("failed", "timeout", "stopped", "cancelled", "lost", "build_failed", "rejected"):
        assert history(row(1, outcome)).fate("a") is Fate.FAILED


def test_rows_that_are_no_results_do_not_matter():
    noise = history({"event": "stop", "stop": "STOP_NOW"}, {"event": "note", "job": "a", "attempt": 3})
    assert (noise.fate("a"), noise.attempt("a")) == (Fate.OPEN, 0)


def test_jobs_are_kept_apart():
    made = history(row(1, "ok"), row(2, "failed", job="b"))
    assert (made.fate("a"), made.fate("b"), made.attempt("b")) == (Fate.OK, Fate.FAILED, 2)


def test_any_text_may_be_an_id():
    for job in ("\ud800", "é", "\0", ""):
        made = history(row(2, "ok", job=job))
        assert (made.fate(job), made.attempt(job), made.fate("a")) == (Fate.OK, 2, Fate.OPEN)


def test_any_number_of_attempts_is_kept_exactly():
    for count in (84, 85, 86, 4000):
        assert history(row(count, "failed", count + 1), row(2, "lost", 3)).attempt("a") == count


def test_twenty_thousand_jobs_cost_less_than_half_a_megabyte():
    tracemalloc.start()
    made = History()
    for n in range(20_000):
        made.add(row(1, "ok", job=f"50-20261130T165200.{n:06d}Z-trial-9f3a2c"))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 500_000
    assert made.fate("50-20261130T165200.019999Z-trial-9f3a2c") is Fate.OK
    assert made.fate("50-20261130T165200.020000Z-trial-9f3a2c") is Fate.OPEN
