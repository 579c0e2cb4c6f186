"""FLEET_WORLDS=PATH python -m pytest tests/bench/test_planner_world.py: the fast worlds are the worlds of PATH."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import planner_world

WORLDS = planner_world.load(os.environ["FLEET_WORLDS"])
SEEDS = range(5, 25)


@pytest.fixture(params=WORLDS.WORLDS)
def hill(request):
    return planner_world.Hill(WORLDS, request.param, 3)


@pytest.fixture
def players(hill):
    return hill.playable(np.random.default_rng(1).normal(0, 2.5, (20, hill.d)))


def test_scores_are_those_of_the_file(hill, players):
    own = [[hill.world.score(x, seed) for seed in SEEDS] for x in players]
    assert np.abs(hill.scores(players, SEEDS) - own).max() < 1e-12


def test_differences_are_those_of_the_file(hill, players):
    those = players[::-1].copy()
    own = [hill.world.score(a, s) - hill.world.score(b, s) for a, b, s in zip(players, those, SEEDS, strict=True)]
    assert np.abs(hill.diffs(players, those, SEEDS[0]) - own).max() < 1e-12


def test_each_play_is_counted_and_no_seed_comes_twice(hill):
    game = planner_world.Game(hill, 36000)
    seen = {*game.seeds(7)}
    game.scores(np.zeros((3, hill.d)), game.seeds(5))
    game.diffs(np.ones((4, hill.d)), np.zeros((4, hill.d)))
    assert (game.plays, game.seed) == (3 * 5 + 2 * 4, 1 + 7 + 5 + 4)
    assert seen.isdisjoint(game.seeds(1))


def test_the_top_is_adopted_and_a_player_that_is_the_best_already_is_not_played(hill):
    game = planner_world.Game(hill, 36000)
    assert game.check(hill.world.best) is (hill.name != "null")
    plays = game.plays
    assert not game.check(game.best)
    assert game.plays == plays
    assert all(row["plays"] == 200 and row["true"] > 0 for row in game.adoptions)


def test_what_is_worse_is_given_up_at_the_first_look(hill):
    game = planner_world.Game(hill, 36000)
    assert not game.check(np.full(hill.d, 4.0))
    assert game.spent == {"search": 0, "heldout": 200}
