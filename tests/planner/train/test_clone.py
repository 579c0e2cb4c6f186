"""The clone learns the scripted brain's choices, and seed and settings decide it."""

import numpy as np
import pytest

from planner.arena.observe import OBS
from planner.brain.decide import HEADS
from planner.brain.net import logits, net_bytes, player
from planner.brain.netplay import play_nets
from planner.brain.weights import DEFAULT, whole_weights
from planner.train.clone import Cloning, agreement, clone, watch_scripted

SMALL = Cloning(plays=48, seconds=60, hidden=(32,), epochs=40, rows=256, lr=0.01)


@pytest.fixture(scope="module")
def small():
    return clone(SMALL)


def test_a_small_clone_agrees_nearly_always_on_fresh_seeds(small):
    assert (small.shape.obs, small.shape.heads) == (OBS, HEADS)
    assert agreement(small, 77, plays=16, seconds=60) > 0.9


def test_a_clone_plays_as_well_as_what_it_is_cloned_from(small):
    scripted, seeds = whole_weights(DEFAULT), list(range(40))
    scores = [r.score for r in play_nets([player(small)] * 40, [scripted] * 40, seeds, 120)]
    assert abs(np.mean(scores) - 0.5) < 0.15


def test_seed_and_settings_decide_the_net():
    how = Cloning(seed=5, plays=8, seconds=30, hidden=(8,), epochs=2, rows=64)
    other = Cloning(seed=6, plays=8, seconds=30, hidden=(8,), epochs=2, rows=64)
    assert net_bytes(clone(how)) == net_bytes(clone(how)) != net_bytes(clone(other))


def test_a_soft_clone_chooses_alike_but_less_surely():
    how = {"seed": 5, "plays": 16, "seconds": 30, "hidden": (16,), "epochs": 20, "rows": 64}
    obs = (watch_scripted(9, 8, 30)[0] / 256).astype(np.float32)
    hard, soft = (logits(player(clone(Cloning(**how, soft=soft))), obs) for soft in (1.0, 0.25))
    assert (hard.argmax(axis=1) == soft.argmax(axis=1)).mean() > 0.999
    assert np.ptp(soft, axis=1) == pytest.approx(np.ptp(hard, axis=1) / 4, abs=0.01)


def test_what_errs_is_seen_but_not_learned():
    straight, labels = watch_scripted(3, 8, 30, errs=0)
    erring, taught = watch_scripted(3, 8, 30)
    assert straight.shape == erring.shape == (8 * 2 * 30, OBS)
    assert (straight[:16] == erring[:16]).all()
    assert (labels[:16] == taught[:16]).all()
    assert (straight != erring).any()
