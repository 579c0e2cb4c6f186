"""What numba compiles plays every tick as numpy does, to the bit."""

import hashlib
from dataclasses import fields

import numpy as np
import pytest

from planner.arena.state import State
from planner.brain.match import play
from planner.brain.weights import DEFAULT, LIMIT, NAMES, whole_weights

pytest.importorskip("numba", reason="the extra `fast` is not installed")

BRAIN = whole_weights(DEFAULT)


def brains(n, seed):
    """Half of them hardly different from the default, half random, a few at the limit."""
    rng = np.random.default_rng(seed)
    values = rng.uniform(-2, 2, (n, 110))
    values[::2] = [DEFAULT[name] for name in NAMES] + rng.normal(0, 0.3, (len(values[::2]), 110))
    values[::16] = np.sign(values[::16]) * LIMIT
    return [whole_weights(dict(zip(NAMES, row.tolist(), strict=True))) for row in values]


def told(kernel, players, seeds, ticks, **other):
    """The results, and a digest of each tick's whole state and behaviours."""
    ticks_told = []

    def watch(s, behaviour, _now):
        h = hashlib.sha256(np.ascontiguousarray(behaviour).astype("<i8"))
        for f in fields(State):
            h.update(np.ascontiguousarray(getattr(s, f.name)).astype("<i8"))
        ticks_told.append(h.hexdigest())

    results = play(players, brains(len(players), 1), seeds, ticks / 8, watch=watch, kernel=kernel, **other)
    return results, ticks_told


def test_every_tick_is_numpy_s():
    players, seeds = brains(24, 0), [*range(23), 2**63 - 1]
    assert told("numba", players, seeds, 500) == told("numpy", players, seeds, 500)


@pytest.mark.slow
@pytest.mark.parametrize("swap", [False, True])
def test_every_tick_is_numpy_s_for_long(swap):
    players, seeds = brains(64, 2), range(64)
    assert told("numba", players, seeds, 2000, swap=swap) == told("numpy", players, seeds, 2000, swap=swap)


def test_a_play_in_one_go_is_that_of_all_its_ticks():
    players, seeds = brains(40, 3), range(100, 140)
    opponents = [BRAIN] * 40
    assert play(players, opponents, seeds, 200, kernel="numba") == play(players, opponents, seeds, 200)
