"""spsa: θ follows single pairs, stays in its ranges, and ends at its horizon."""

import numpy as np
import pytest

from planner.due import terms_of
from planner.policy import Leap, Pairs
from planner.policy.screen import as_steps
from planner.policy.spsa import followed
from planner.sheaf import mark_of, sheaf_of

from .hills import Fleet, Hill, plan, space


def fleet(best=4.0, jobs=0, horizon=4000, names=6, **changes):
    made = Fleet(plan(space(*(f"v{n}" for n in range(names)), **changes), policy="spsa", horizon=horizon),
                 Hill(np.full(names, best), curvature=0.5, sd=0.3))  # fmt: skip
    made.go(jobs)
    return made


def theta(made):
    terms, seen = terms_of(made.plan), made.seen()
    return followed(
        as_steps(terms.space.weights(), terms.space.starts()), list(seen.screened.sheaves), terms.horizon // 2
    )


def test_theta_moves_towards_the_better_side():
    away = [np.abs(theta(fleet(jobs=jobs)) - 4.0).mean() for jobs in (0, 4, 36)]
    assert away[0] == 4.0
    assert away[1] < 3.0
    assert away[2] < 1.0


def test_theta_stays_within_its_ranges():
    at = theta(fleet(best=40.0, jobs=30, high=1.0))
    assert at.max() == 2.0  # steps of a half


def test_one_pair_moves_it_by_what_the_two_sides_differ():
    made = fleet(jobs=1)
    (sheaf,) = made.seen().screened.sheaves
    one, other = (
        sheaf_of(sheaf.told._replace(mark=mark_of(read)), sheaf.opened().screen, read) for read in ({3: 2.0}, {3: -2.0})
    )
    up, down = (followed(np.zeros(6), [each], 2000) for each in (one, other))
    assert np.allclose(up, -down)
    assert np.abs(up).min() > 0


def test_the_leaps_lead_to_what_is_better():
    made = fleet(jobs=40)
    assert made.seen().best.adoptions
    assert np.mean(list(made.seen().best.weights.values())) > 0.5


def test_at_the_horizon_nothing_more_is_asked_for():
    made = fleet(horizon=1100)
    made.go(200)
    seen = made.seen()
    assert 550 <= sum(sheaf.told.n for sheaf in seen.screened.sheaves) < 550 + 2 * 55
    assert made.asks(40) == []
    assert made.queue == {}


@pytest.mark.parametrize("room", [1, 3, 40])
def test_what_is_under_way_counts_towards_the_horizon(room):
    made = fleet(horizon=1100)
    asks = made.asks(room)
    assert len(asks) == min(room, 10)
    assert all(isinstance(ask, Pairs) for ask in asks)
    while made.fill(room):
        pass
    assert sum(len(task.seeds) for task in made.queue.values()) <= 550 + 55


def test_a_check_is_not_made_twice():
    made = fleet()
    while not any(isinstance(ask, Leap) for ask in made.asks(1)):
        made.go(1, depth=1)
    made.fill(1)
    assert not any(isinstance(ask, Leap) for ask in made.asks(9))
