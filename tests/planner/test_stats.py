"""The statistics against the tables of the literature."""

import math
import random

import numpy as np
import pytest

from planner.stats import (
    GATE,
    SIDE,
    Paired,
    paired,
    past_gate,
    raced_looks,
    seeds_needed,
    shrunk,
    smallest_seen,
    spread,
    t_cdf,
    t_quantile,
)


@pytest.mark.parametrize(("df", "t"), [(1, 12.706), (2, 4.303), (3, 3.182), (9, 2.262), (54, 2.005), (399, 1.966)])
def test_t_quantiles_are_those_of_the_tables(df, t):
    assert t_quantile(SIDE, df) == pytest.approx(t, abs=6e-4)


@pytest.mark.parametrize(("n", "bound"), [(4, 3.31), (10, 2.32), (55, 2.05), (400, 2.006)])
def test_two_standard_errors_have_the_same_error_at_every_n(n, bound):
    assert t_quantile(GATE, n - 1) == pytest.approx(bound, abs=6e-3)
    assert 1 - t_cdf(t_quantile(GATE, n - 1), n - 1) == pytest.approx(0.02275, abs=1e-5)


def test_four_seeds_give_the_interval_of_student():
    read = paired([0.64 + d for d in (-0.9798, -0.3266, 0.3266, 0.9798)])
    assert (read.mean, read.n) == (pytest.approx(0.64), 4)
    assert read.high - read.mean == pytest.approx(3.182 * read.se, rel=1e-3)


@pytest.mark.parametrize(("seeds", "at"), [(55, (14, 28, 55, 110, 220)), (20, (10, 20, 40, 80)), (9, (9,))])
def test_a_raced_search_goes_on_to_four_times_its_seeds_but_not_from_under_ten(seeds, at):
    assert raced_looks(seeds) == at


def test_under_ten_seeds_nothing_is_past_the_gate():
    assert not past_gate(paired([5.0 + 0.01 * k for k in range(9)]))
    assert past_gate(paired([5.0 + 0.01 * k for k in range(10)]))


def test_equal_differences_are_no_division_by_zero():
    still, even = paired([0.0] * 20), paired([0.5] * 20)
    assert (still.still, past_gate(still), past_gate(even)) == (True, False, True)
    assert shrunk(still, 0.0) == 0.0
    assert math.isfinite(spread([still, even]))


def test_one_difference_has_no_interval():
    assert (paired([0.3]).low, paired([0.3]).se) == (None, 0.0)


def test_how_many_seeds_would_show_it():
    assert seeds_needed(0.64, 0.80) == 15
    assert seeds_needed(0.0, 1.0) is None
    assert seeds_needed(1e-9, 1.0) is None


@pytest.mark.parametrize(("n", "seen"), [(55, 0.39), (400, 0.14)])
def test_the_power_said_beforehand_is_that_of_the_gate(n, seen):
    assert smallest_seen(n) == pytest.approx(seen, abs=0.005)
    draw, effect = random.Random(n), smallest_seen(n)
    past = sum(past_gate(paired([draw.gauss(effect, 1) for _ in range(n)])) for _ in range(1000))
    assert 750 < past < 850


def test_as_many_seeds_as_are_needed_see_the_effect_and_one_less_does_not():
    needed = seeds_needed(0.3, 1.0)
    assert smallest_seen(needed) <= 0.3 < smallest_seen(needed - 1)


def test_the_best_of_many_shrinks_to_what_it_is():
    draw = random.Random(4)
    truth = [draw.gauss(0, 0.5) for _ in range(2000)]
    reads = [paired([draw.gauss(t, 4) for _ in range(16)]) for t in truth]
    best = max(range(2000), key=lambda k: reads[k].mean)
    assert shrunk(reads[best], spread(reads)) < 0.5 * reads[best].mean


def e_values(draws, n):
    """Of the first n differences of each run."""
    means, errors = draws[:, :n].mean(axis=1), draws[:, :n].std(axis=1, ddof=1) / n**0.5
    return np.array(
        [
            Paired(n=n, mean=float(m), se=float(se), low=None, high=None).e_value
            for m, se in zip(means, errors, strict=True)
        ]
    )


@pytest.mark.parametrize("loss", [0.0, 0.1])
@pytest.mark.parametrize("n", [2, 10, 55, 400])
def test_an_e_value_is_at_most_one_on_average_where_there_is_no_gain(n, loss):
    found = e_values(np.random.default_rng(n).normal(-loss, 3.0, (20_000, n)), n)
    assert found.mean() <= 1 + 3 * found.std() / len(found) ** 0.5


@pytest.mark.parametrize("scale", [1.0, 1e-6])
def test_an_e_value_that_is_looked_at_all_the_time_comes_to_twenty_in_at_most_one_run_of_twenty(scale):
    draws = np.random.default_rng(7).normal(0.0, scale, (2000, 400))
    highest = np.max([e_values(draws, n) for n in range(10, 401, 10)], axis=0)
    assert 0 < np.mean(highest >= 20) <= 0.05


def test_an_e_value_grows_where_there_is_a_gain():
    found = e_values(np.random.default_rng(8).normal(0.25, 1.0, (200, 400)), 400)
    assert np.mean(found >= 20) > 0.9


def test_an_e_value_hangs_on_no_order():
    draws = [random.Random(5).gauss(0.3, 1) for _ in range(60)]
    assert paired(draws).e_value == pytest.approx(paired(sorted(draws)).e_value, rel=1e-9)


@pytest.mark.parametrize("differences", [[0.5], [0.5] * 20, [1e100] * 1000, [5e-324, 0.0], [1e100, -1e99], [0.0] * 20])
def test_an_e_value_is_a_finite_number_whatever_the_differences(differences):
    assert 0 <= paired(differences).e_value <= 1e300


def test_equal_gains_on_a_million_seeds_are_capped():
    assert Paired(n=10**6, mean=1.0, se=0.0, low=1.0, high=1.0).e_value == pytest.approx(1e300)
