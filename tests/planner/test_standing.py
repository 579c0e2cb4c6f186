"""The standing is a fold of the rows: whatever their order, wherever they were read."""

import random
from dataclasses import replace

import pytest

from fleetd import Ledger
from planner.facts import Facts
from planner.filing import lines_of
from planner.plan import read_plan
from planner.rows import REPLACED
from planner.seeds import Purpose
from planner.standing import standing
from planner.trial import player_hash
from planner.verdict import Call, verdict_on

from .policy.hills import Fleet, Hill, plan, space


def fold(farm, rows):
    facts = Facts("hill")
    facts.add(rows)
    return standing(facts, read_plan(farm.spool.plan).space, {})


def test_the_order_of_the_rows_does_not_matter(worked):
    rows = list(Ledger(worked.spool.ledger_d).rows())
    right = fold(worked, rows)
    assert len(right.best.adoptions) >= 1
    for seed in range(20):
        random.Random(seed).shuffle(rows)
        assert fold(worked, rows) == right


def test_a_row_read_twice_counts_once(worked):
    rows = list(Ledger(worked.spool.ledger_d).rows())
    assert fold(worked, rows + rows[::-1]) == fold(worked, rows)


def test_reading_as_it_grows_and_reading_at_once_agree(worked):
    filler, facts, ledger = worked.filler(), Facts("hill"), Ledger(worked.spool.ledger_d)
    facts.add(ledger.poll())
    worked.plan("fill", "--depth", "4")
    worked.run()
    facts.add(ledger.poll())
    assert standing(facts, filler.plan.space, {}) == fold(worked, Ledger(worked.spool.ledger_d).rows())


def test_plays_are_counted_by_purpose(worked):
    seen = fold(worked, Ledger(worked.spool.ledger_d).rows())
    rows = worked.rows("result")
    assert sum(seen.plays.values()) == sum(row.body["result"]["plays"] for row in rows) > 0
    assert seen.plays[Purpose.JUDGE] == 0


def test_rows_of_other_defaults_are_kept_and_not_pooled(worked):
    before = fold(worked, Ledger(worked.spool.ledger_d).rows())
    space = (worked.spool.root / "space.toml").read_text()
    (worked.spool.root / "space.toml").write_text(space.replace("start = 0", "start = 0.25"))
    after = fold(worked, Ledger(worked.spool.ledger_d).rows())
    assert after.courses == before.courses
    assert after.best.adoptions == ()
    assert not any(after.current(course) for course in after.courses.values())


def test_rows_of_another_plan_are_not_seen(worked):
    facts = Facts("another")
    facts.add(Ledger(worked.spool.ledger_d).rows())
    assert standing(facts, read_plan(worked.spool.plan).space, {}).courses == {}


def test_a_voided_adoption_is_undone_and_history_stays(worked):
    adopted = worked.rows("adopt")[0]
    worked.row(
        {"event": "void", "by": "a test", "rows": [{"host": adopted.host, "seq": adopted.seq}], "reason": "bad memory"}
    )
    seen = fold(worked, Ledger(worked.spool.ledger_d).rows())
    assert adopted.body["defaults"] in (seen.best.defaults, *[r.body["defaults"] for r in seen.best.adoptions])
    assert adopted.body["trial"] not in [ruling.trial for ruling in seen.best.adoptions]
    assert worked.rows("adopt")[0] == adopted


def test_a_voided_read_is_asked_again(farm):
    farm.plan("fill", "--count", "1")
    farm.run()
    row = farm.rows("result")[0]
    farm.row({"event": "void", "by": "a test", "rows": [{"host": row.host, "seq": row.seq}], "reason": "wrong libm"})
    farm.plan("fill", "--count", "1")
    assert [job.payload["trial"] for job in farm.jobs()] == [row.body["payload"]["trial"]]
    assert farm.run_job(farm.spool.waiting()[0])["reused"] == 0


def test_of_two_ok_rows_the_lower_attempt_counts(farm):
    farm.plan("fill", "--count", "1")
    farm.run()
    first = farm.rows("result")[0]
    late = {k: v for k, v in first.body.items() if k not in ("host", "seq", "at", "boot", "crc", "schema")}
    reads = [[seed, 9.0, 1.0] for seed, _, _ in first.body["result"]["reads"]]
    farm.row(late | {"attempt": 2, "result": {"reads": reads, "plays": 40}})
    (course,) = fold(farm, Ledger(farm.spool.ledger_d).rows()).courses.values()
    assert course.search.pairs() == {s: (c, b) for s, c, b in first.body["result"]["reads"]}


def test_a_player_is_known_by_its_weights_whatever_their_order_or_type():
    assert player_hash({"a": 1, "b": 2.5}) == player_hash({"b": 2.5, "a": 1.0})
    assert player_hash({"a": 1}) != player_hash({"a": 1.1})


def overtaken():
    """A fleet whose first trial was read against a best that was replaced, as its verdict says, and that is back."""
    made = Fleet(plan(space("a", "b"), "rotate"), Hill([3.0, 3.0], curvature=0.2))
    made.fill(1)
    made.play(min(made.queue))
    made.decide(Call.KEEP, REPLACED)
    return made


def test_a_replaced_trial_whose_best_is_back_is_decided_by_its_reads():
    made = overtaken()
    (course,) = made.seen().open
    assert course.ruling is None
    made.settle()
    assert [row.body["reason"] for row in made.rows if row.event == "keep"] == [REPLACED]
    assert verdict_on(made.seen(), course).call is Call.MORE
    made.go(4)
    assert next(row.body["trial"] for row in made.rows if row.event == "adopt") == course.trial.id


def test_once_decided_it_is_decided_in_whatever_order_the_rows_are_read():
    made = overtaken()
    made.decide(Call.KEEP, "hopeless")
    for seed in range(5):
        (course,) = made.shuffled(seed).courses.values()
        assert course.ruling.reason == "hopeless"
    made.settle()
    assert sum(row.event == "keep" for row in made.rows) == 2
    assert made.fill(1)[0].trial.id != course.trial.id


def test_a_replaced_trial_on_the_shelf_is_taken_down_when_its_best_is_back():
    made = overtaken()
    facts = Facts("hill")
    facts.add(made.rows)
    away = standing(facts, space("a", "b", start=1.0), {})
    rows = {(row.host, row.seq): row for row in made.rows}
    filed = list(lines_of(facts, away, {key: (*key, 0, 0) for key in rows}))
    facts.shelve(filed, lambda places: [rows[place[:2]] for place in places])
    assert [line.event for line in filed] == ["replaced"]
    assert standing(facts, space("a", "b", start=1.0), {}).open == ()
    assert len(standing(facts, space("a", "b"), {}).open) == 1


@pytest.mark.parametrize("changes", [{"high": 0.25}, {"type": "int", "step": 1}])
def test_a_candidate_that_the_space_does_not_allow_any_more_is_kept_out(changes):
    made = Fleet(plan(space("a"), "rotate"), Hill([3.0], curvature=0.2))
    made.go(1, depth=1)
    assert made.fill(1)[0].purpose is Purpose.HELDOUT
    made.plan = replace(made.plan, space=space("a", **changes))
    while made.queue:
        made.play(min(made.queue))
    made.settle()
    assert [row.event for row in made.rows if row.event in ("adopt", "keep")] == ["keep"]
    assert made.rows[-1].body["reason"] == "outside the space"
    assert "the space does not allow it any more, the best stays" in made.rows[-1].body["sentence"]
    assert made.seen().best.weights == {"a": 0}


def test_a_job_that_failed_has_the_reason_of_its_plays_in_the_sentence():
    made = Fleet(plan(space("a"), "rotate"), Hill([3.0]))
    made.fill(1)
    result = {"reads": [], "errors": {"not finite: nan": 12, "too late": 1}}
    made.play(min(made.queue), outcome="failed", exit=1, result=result)
    made.settle()
    assert "exit 1 (12 × not finite: nan))" in made.rows[-1].body["sentence"]


def failed():
    """A fleet whose first job has failed, as its verdict says."""
    made = Fleet(plan(space("a"), "rotate"), Hill([3.0], curvature=0.2))
    made.fill(1)
    task = made.queue["50-00000000-x"]
    made.play("50-00000000-x", outcome="failed", exit=1, result=None)
    made.settle()
    made.queue["50-00000000-x"] = task
    return made


def test_a_job_that_was_read_when_it_was_retried_is_judged_by_its_reads():
    made = failed()
    made.play("50-00000000-x", attempt=2)
    assert verdict_on(made.seen(), *made.seen().open).call is Call.MORE
    assert made.fill(1)[0].purpose is Purpose.HELDOUT
    while made.queue:
        made.play(min(made.queue))
        made.settle()
        made.fill(1) if made.seen().open else None
    assert [row.event for row in made.rows if row.event in ("keep", "adopt")] == ["keep", "adopt"]
    assert made.seen().best.adoptions == made.shuffled(1).best.adoptions != ()


def test_a_retried_job_whose_best_was_replaced_gets_one_verdict_more(monkeypatch):
    made = failed()
    made.play("50-00000000-x", attempt=2)
    monkeypatch.setattr(made, "plan", replace(made.plan, space=space("a", start=1.0)))
    for _ in range(3):
        made.settle()
    assert [row.body["reason"] for row in made.rows if row.event == "keep"] == ["not read", REPLACED]


def test_a_verdict_that_has_lapsed_puts_nothing_on_the_shelf():
    """Else the trial would be open for whoever reads all rows, and decided for whoever reads the cache."""
    made = overtaken()
    facts = Facts("hill")
    facts.add(made.rows)
    rows = {(row.host, row.seq): row for row in made.rows}
    assert list(lines_of(facts, standing(facts, made.plan.space, {}), {key: (*key, 0, 0) for key in rows})) == []


def of_other_seeds(row, low, **changes):
    """The same trial's job on as many seeds from `low`, as of a fleet that drew those."""
    reads = [[low + n, *scores] for n, (_, *scores) in enumerate(row.body["result"]["reads"])]
    seeds = [low, low + len(reads)]
    payload = row.body["payload"] | {"seeds": seeds, "span": seeds}
    return row.body | {"job": "50-zz-x", "payload": payload, "result": row.body["result"] | {"reads": reads}} | changes


def test_what_was_read_outside_of_a_trial_s_span_is_not_pooled_with_it():
    made = Fleet(plan(space("a"), "rotate", seeds=12), Hill([3.0]))
    made.fill(1)
    made.play(min(made.queue))
    made.row("result", of_other_seeds(made.rows[0], 401))
    (course,) = made.seen().courses.values()
    assert sorted(course.search.pairs()) == list(range(1, 13))


def test_a_job_that_failed_does_not_count_where_another_has_read_its_seeds():
    made = Fleet(plan(space("a"), "rotate", seeds=12), Hill([3.0]))
    made.fill(1)
    made.play(min(made.queue))
    failed = {"job": "50-zz-x", "outcome": "failed", "exit": 3, "result": None}
    made.row("result", made.rows[0].body | failed)
    (course,) = made.seen().courses.values()
    assert (course.search.failures, len(course.search.pairs())) == ({}, 12)


def test_a_candidate_outside_the_space_is_asked_for_no_more():
    made = Fleet(plan(space("a"), "race", seeds=12), Hill([3.0], curvature=0.2))
    made.fill(1)
    made.play(min(made.queue))
    assert made.seen().open
    made.plan = replace(made.plan, space=space("a", high=0.25, low=-0.25, step=0.25))
    outside = made.seen().open[0].trial.id
    assert outside in made.seen().outside
    assert all(task.trial.id != outside for task in made.fill(4))
