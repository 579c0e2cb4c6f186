"""screen: what it asks for is a function of the standing, from the first shakes to a leap."""

from dataclasses import replace

import numpy as np
import pytest

from planner.due import terms_of
from planner.facts import Facts
from planner.policy import Leap, Move, Pairs
from planner.policy.memory import MEMORY, Memory, spread_of
from planner.policy.screen import GONE, SHRINK, believed, fitting, last_leap, round_centre
from planner.screen import Screen
from planner.space import Space
from planner.standing import Course, standing
from planner.trial import Block, Trial

from .hills import Fleet, Hill, plan, space

NAMES = tuple(f"v{n}" for n in range(12))


def fleet(best=2.0, jobs=0, curvature=0.02, variables=None, **changes):
    variables = variables or space(*NAMES)
    made = Fleet(plan(variables, **changes), Hill(np.full(len(variables.variables), best), curvature))
    made.go(jobs)
    return made


@pytest.fixture(scope="module")
def climbed():
    """A fleet that has come to a leap and adopted it."""
    made = fleet()
    for _ in range(40):
        made.go(1)
        if made.seen().best.adoptions:
            return made
    raise AssertionError


def shakes(tasks):
    return [str(task.shake) for task in tasks if isinstance(task, Screen)]


def test_first_come_pairs_beside_the_best_then_mirrored_ones():
    made = fleet(floor=0.0)
    assert shakes(made.fill(5)) == ["beside"] * 3 + ["mirrored"] * 2
    for axis in next(iter(made.queue.values())).axes:
        assert (axis.centre, axis.reach) == (0.0, 1.5)
    made.play(min(made.queue))
    assert shakes(made.fill(5)) == ["mirrored"]


@pytest.mark.parametrize("floor", [0.0, 0.1, 0.5, 0.9])
def test_single_variables_have_their_share_of_the_search_to_within_a_trial(floor):
    made = fleet(best=0.0, floor=floor, seeds=20)
    for _ in range(30):
        made.go(1, depth=1)
        seen = made.seen()
        single, screens = seen.single_plays, seen.screened.plays
        assert abs(single - floor * (single + screens)) <= 2 * 4 * 20


def test_many_seeds_are_cut_to_screens_of_a_hundred_and_the_share_stays():
    made = fleet(best=0.0, floor=0.5, seeds=400)
    tasks = made.fill(10)
    assert {len(task.seeds) for task in tasks} == {100}
    assert sum(isinstance(ask, Move) for ask in made.asks(10)) <= 5


def test_once_slopes_are_known_the_centre_moves_towards_what_is_better(climbed):
    axes = next(ask.axes for ask in climbed.asks(9) if isinstance(ask, Pairs))
    assert np.mean([axis.centre / axis.step for axis in axes]) > 0.5
    assert all(axis.low <= axis.centre <= axis.high for axis in axes)


def test_a_leap_comes_once_and_not_while_one_is_under_way():
    made = fleet()
    for _ in range(40):
        made.go(1, depth=1)
        if any(isinstance(task, Block) and task.trial.single is None for task in made.fill(2)):
            break
    (leap,) = {task.trial.id for task in made.queue.values() if isinstance(task, Block) and task.trial.single is None}
    assert not any(isinstance(ask, Leap) for ask in made.asks(40))
    while not made.seen().courses[leap].ruling:
        made.play(min(made.queue))
        made.settle()
        made.fill(3)
    assert not any(isinstance(ask, Leap) and ask.candidate == made.seen().courses[leap].trial.candidate
                   for ask in made.asks(40))  # fmt: skip


def test_an_adopted_leap_is_a_gain_and_leads_from_what_stood(climbed):
    (adopted,) = climbed.seen().best.adoptions
    assert adopted.body["variable"] is None
    assert set(adopted.weights.values()) == {0}
    assert np.mean([adopted.candidate.get(name, 0.0) for name in NAMES]) > 0.2
    assert climbed.seen().best.weights == {**adopted.weights, **adopted.candidate}


def test_the_rows_in_any_order_give_the_same_asks(climbed):
    right = climbed.asks(12)
    for seed in range(10):
        assert climbed.asks(12, climbed.shuffled(seed)) == right


def test_what_was_worked_out_before_changes_nothing(climbed):
    terms, seen = terms_of(climbed.plan), climbed.seen()
    mirrored = [sheaf for sheaf in fitting(seen, terms) if not sheaf.is_beside]
    known, anew = believed(seen, terms), Memory().followed(mirrored, believed(seen, terms).shaken)
    for short in (mirrored[:-3], mirrored[2:], mirrored):
        again = MEMORY.followed(short, known.shaken)
    assert np.array_equal(again.mean, anew.mean)
    assert np.array_equal(known.slopes.covariance, anew.covariance)


def changed(space_, **changes):
    return Space((replace(space_.variables[0], **changes), *space_.variables[1:]))


@pytest.mark.parametrize("change", [{"step": 0.25}, {"high": 4.0}, {"name": "other"}])
def test_screens_of_another_space_are_not_used(climbed, change):
    other = replace(climbed.plan, space=changed(climbed.plan.space, **change))
    seen = standing(facts_of(climbed), other.space, {})
    assert fitting(seen, terms_of(climbed.plan))
    assert fitting(seen, terms_of(other)) == []
    assert believed(seen, terms_of(other)).pairs == 0


def facts_of(made):
    facts = Facts("hill")
    facts.add(made.rows)
    return facts


def test_screens_of_other_seconds_are_not_used(climbed):
    other = replace(terms_of(climbed.plan), seconds=900)
    assert fitting(climbed.seen(), other) == []


def test_screens_of_an_older_build_are_not_used():
    made = fleet(floor=0.0)
    made.fill(8)
    for job in sorted(made.queue)[:6]:
        made.play(job, build="b1")
    before = believed(made.seen(), terms_of(made.plan))
    made.play(min(made.queue), build="b2")
    assert before.pairs == 3 * 55
    assert believed(made.seen(), terms_of(made.plan)).pairs == 55


def test_pairs_of_stopped_and_failed_jobs_count():
    made = fleet(floor=0.0)
    made.fill(5)
    for job, outcome in zip(sorted(made.queue), ("ok", "ok", "ok", "stopped", "failed"), strict=True):
        made.play(job, outcome=outcome, next="requeue" if outcome == "stopped" else None)
    assert believed(made.seen(), terms_of(made.plan)).pairs == 2 * 55


def test_a_pair_that_was_read_twice_counts_once():
    made = fleet(floor=0.0, jobs=6)
    before = believed(made.seen(), terms_of(made.plan))
    made.rows += [replace(row, seq=row.seq + 1000) for row in made.rows]
    after = believed(made.seen(), terms_of(made.plan))
    assert (before.pairs, before.shaken) == (after.pairs, after.shaken)


def test_a_variable_that_cannot_move_takes_no_part_in_how_large_slopes_are():
    rng = np.random.default_rng(1)
    half = rng.choice([-1.5, 1.5], (400, 9))
    difference = 2 * half @ np.full(9, 0.3) + rng.standard_normal(400)
    alone = spread_of(half, difference)
    with_fixed = spread_of(np.hstack([half, np.zeros((400, 3))]), difference)
    assert np.allclose(alone, with_fixed)
    assert abs(alone[0] / 0.09 - 1) < 0.3


def test_where_nothing_can_move_nothing_is_asked_for():
    for policy in ("screen", "race", "rotate", "spsa"):
        assert fleet(variables=space("a", "b", low=0.0, high=0.0), policy=policy).asks(40) == []
        assert fleet(variables=space("r", group="reward"), best=0.0, policy=policy).asks(40) == []


def test_a_score_that_never_changes_is_gone_on_with_and_never_leapt_on():
    made = fleet(curvature=0.0, floor=0.0)
    made.hill.sd = 0.0
    made.go(30)
    assert believed(made.seen(), terms_of(made.plan)).slopes is None
    assert made.seen().courses == {}
    assert all(np.isfinite(axis.reach) for ask in made.asks(3) for axis in ask.axes)


def test_a_variable_that_has_gone_from_the_start_is_shaken_the_shorter_the_more_is_known():
    made = fleet()
    made.hill.best[6:] = 0.0
    made.go(20)
    weights, belief = made.plan.space.weights(), believed(made.seen(), terms_of(made.plan))
    now, later = (round_centre(weights, np.zeros(12), replace(belief, pairs=n * 200)) for n in (1, 16))
    gone = np.array([abs(axis.centre) >= GONE * axis.step for axis in now])
    shorter = np.array([axis.reach for axis in later]) / [axis.reach for axis in now]
    assert 0 < gone.sum() < 12
    assert shorter[gone] == pytest.approx(16**-SHRINK)
    assert shorter[~gone] == pytest.approx(1.0)


def test_shakes_grow_where_nothing_shows_and_stay_within_a_quarter_of_the_range():
    made = fleet(best=0.0, curvature=0.0, floor=0.0, heldout=10)
    made.hill.best[:] = 0.0
    made.go(5)
    first = max(axis.reach for axis in made.asks(1)[0].axes)
    made.go(25)
    last = max(axis.reach for axis in made.asks(1)[0].axes)
    assert first < last <= 0.25 * 10.0


@pytest.mark.parametrize(
    "changes",
    [{"type": "int", "step": 1, "low": -5, "high": 5}, {"step": 0.7}, {"low": 0.0}, {"high": 0.0, "start": 0.0},
     {"start": 5.0}, {"low": -0.5, "high": 0.5, "step": 1.0}],
)  # fmt: skip
def test_at_bounds_and_with_odd_steps_what_is_played_lies_in_the_range_and_is_what_is_recorded(changes):
    variables = space(*NAMES[:3], **changes)
    made = fleet(variables=variables, best=8.0, jobs=30, curvature=0.01)
    first = variables.variables[0]
    for ask in made.asks(5):
        if isinstance(ask, Pairs):
            assert all(first.low <= axis.centre <= first.high for axis in ask.axes)
    for ruling in made.seen().best.adoptions:
        assert all(first.typed(value) == value == first.inside(value) for value in ruling.candidate.values())


def test_one_variable_and_four_hundred_are_no_different():
    assert believed(fleet(variables=space("a"), jobs=12).seen(), terms_of(plan(space("a")))).slopes is not None
    many = space(*(f"v{n}" for n in range(400)))
    made = fleet(variables=many, jobs=9, floor=0.0)
    assert len(made.asks(2)[0].axes) == 400


def test_screens_that_cannot_be_read_are_told_of():
    """The trials between them are read, so that no breaker opens."""
    made = fleet(jobs=0)
    made.fill(8)
    *five, last = sorted(job for job, task in made.queue.items() if isinstance(task, Screen))[:6]
    for job in five:
        assert made.seen().screened.failing is None
        made.play(job, outcome="failed", exit=3, result={"reads": [], "errors": {"no map": 110}})
    assert "the last 5 screens could not be read (failed: exit 3): no slope is learned" in made.seen().screened.failing
    made.play(last)
    assert made.seen().screened.failing is None


def test_a_leap_of_more_pairs_than_count_now_is_none_of_these():
    """After an edit of the space pairs are counted anew: else none would leap for as long as it took before."""
    trial = Trial(id="t1", changes=(), defaults="d", pass_=1, seconds=1, pairs=9_000)
    seen = replace(fleet(jobs=0).seen(), leaps=(Course(trial=trial, ruling=object()),))
    assert (last_leap(seen, 100), last_leap(seen, 9_000)) == (0, 9_000)
