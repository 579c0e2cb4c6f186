"""How far to shake: curvature and the most that can be lost, from pairs beside the centre."""

import numpy as np
import pytest

from planner.policy.shaking import fit, shaken
from planner.screen import PARTS
from planner.seeds import Span
from planner.sheaf import sheaf_of

from .hills import Fleet, Hill, plan, space

LENGTHS = 3.0 * np.repeat(np.arange(1, PARTS + 1) / PARTS, 24)  # 120 pairs, less those of one variable


def lost(first, most, length):
    return most * (1 - np.exp(-first * length**2 / (2 * most)))


@pytest.mark.parametrize(("first", "most"), [(2.0, 4.0), (8.0, 8.0), (4.0, 16.0)])
def test_curvature_and_the_most_that_is_lost_are_recovered_within_a_fifth(first, most):
    found = []
    for seed in range(20):
        noise = np.random.default_rng(seed).standard_normal(len(LENGTHS))
        found.append(fit(LENGTHS, lost(first, most, LENGTHS) + noise))
    curvature, limit = np.median(found, axis=0)
    assert abs(curvature / first - 1) < 0.2
    assert abs(limit / most - 1) < 0.2


def sheaves(hill, names=10, jobs=3):
    fleet = Fleet(plan(space(*(f"v{n}" for n in range(names))), floor=0.0), hill)
    fleet.go(jobs)
    return [sheaf for sheaf in fleet.seen().screened.sheaves if sheaf.is_beside]


def test_curvature_is_told_for_a_step_of_one_variable():
    told = shaken(sheaves(Hill(np.zeros(10), curvature=0.3, sd=0.5)))
    assert told.pairs == 165
    assert abs(told.curvature / 0.3 - 1) < 0.2


def test_the_reach_is_never_longer_than_what_was_tried():
    told = shaken(sheaves(Hill(np.zeros(10), curvature=0.05, sd=0.5)))
    assert told.reach == told.tried == 3.0


def test_where_everything_is_lost_early_the_reach_is_short():
    class Cliff(Hill):
        def mean(self, x):
            return -lost(40.0, 5.0, np.abs(x - self.best).max(axis=-1))

    told = shaken(sheaves(Cliff(np.zeros(10), sd=0.5)))
    assert 0.2 < told.reach < 0.8
    assert 4 < told.lost < 6


def test_where_nothing_is_lost_the_longest_is_best_and_the_curvature_small():
    class Slope(Hill):
        def mean(self, x):
            return 0.25 * (x[..., 0] - x[..., 1])

    for names in (3, 10):
        told = shaken(sheaves(Slope(np.zeros(names), sd=0.5), names))
        assert told.reach == told.tried == 3.0
        assert 0 < told.curvature < 0.08


def test_nothing_is_told_before_two_pairs_of_each_length():
    (first, *_) = sheaves(Hill(np.zeros(10)), jobs=1)
    few = {seed: d for seed, d in first.opened().differences.items() if seed < first.told.low + 9}
    assert shaken([]) is None
    assert shaken([sheaf_of(first.told, first.opened().screen, few)]) is None


def test_a_score_that_never_changes_is_no_division_by_zero():
    told = shaken(sheaves(Hill(np.zeros(10), curvature=0.0, sd=0.0)))
    assert (told.reach, told.near_sd, told.far_sd, told.lost) == (3.0, 0.0, 0.0, 0.0)


def test_pairs_of_one_variable_alone_say_nothing_of_lengths():
    (first, *_) = sheaves(Hill(np.zeros(10)), jobs=1)
    alone = {seed: d for seed, d in first.opened().differences.items() if seed % (PARTS + 1) == PARTS}
    assert first.is_beside
    assert first.opened().screen.seeds == Span(1, 56)
    assert shaken([sheaf_of(first.told, first.opened().screen, alone)]) is None
