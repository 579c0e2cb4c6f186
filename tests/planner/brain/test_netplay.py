"""Nets play the census's game, and a net's play is the same in any company."""

import numpy as np
import pytest

from planner.arena.observe import NAMES, OBS
from planner.arena.senses import FEATURES
from planner.brain.match import play
from planner.brain.net import Net, player
from planner.brain.netplay import play_nets
from planner.brain.shape import Shape, param_count, views
from planner.brain.weights import DEFAULT, whole_weights

WEIGHTS = whole_weights(DEFAULT)


def odd(seed):
    shape = Shape(obs=OBS, heads=(10,), hidden=(16,))
    flat = np.random.default_rng(seed).normal(0, 0.7, param_count(shape)).astype(np.float32)
    return player(Net(shape=shape, flat=flat))


@pytest.fixture(scope="module")
def copy():
    """A net whose pulls are the scripted brain's, but for what tanh bends and rounds."""
    shape = Shape(obs=OBS, heads=(10,), hidden=(len(FEATURES) - 1,))
    policy = views(shape, np.zeros(param_count(shape), np.float32))
    for i, name in enumerate(FEATURES[1:]):
        policy.hidden[0].weight[0, NAMES.index(name), i] = 1 / 32
    policy.policy.weight[:] = WEIGHTS[1:] / 128
    policy.policy.bias[:] = WEIGHTS[0] / 4096
    return player(Net(shape=shape, flat=policy.flat))


def test_weights_play_as_they_always_do():
    seeds = list(range(8))
    assert play_nets([WEIGHTS] * 8, [WEIGHTS] * 8, seeds, 100) == play([WEIGHTS] * 8, [WEIGHTS] * 8, seeds, 100)


def test_a_net_that_pulls_like_the_weights_plays_like_them(copy):
    agreed = []

    def watch(_s, behaviour, _now):
        agreed.append((behaviour[0] == theirs.pop(0)).mean())

    theirs, seeds = [], list(range(6))
    play([WEIGHTS] * 6, [WEIGHTS] * 6, seeds, 6, watch=lambda _s, b, _now: theirs.append(b[0].copy()))
    play_nets([copy] * 6, [WEIGHTS] * 6, seeds, 6, watch=watch)
    assert np.mean(agreed) > 0.99


def test_a_net_plays_the_same_in_any_company_and_order(copy):
    brains, seeds = [odd(1), WEIGHTS, copy, odd(2), odd(1)], [5, 6, 7, 8, 9]
    together = play_nets(brains, [odd(3), copy, WEIGHTS, odd(3), WEIGHTS], seeds, 60)
    back = play_nets(brains[::-1], [WEIGHTS, odd(3), WEIGHTS, copy, odd(3)], seeds[::-1], 60)
    alone = [play_nets([b], [o], [s], 60)[0] for b, o, s in zip(brains[:2], [odd(3), copy], seeds, strict=False)]
    assert back[::-1] == together
    assert alone == together[:2]


def test_sides_changed_over_change_the_results_over():
    a, b, seeds = [odd(1)] * 8, [WEIGHTS] * 8, list(range(8))
    one, other = play_nets(a, b, seeds, 60), play_nets(b, a, seeds, 60, swap=True)
    assert [(r.won, r.lost, r.drawn) for r in one] == [(r.lost, r.won, r.drawn) for r in other]
