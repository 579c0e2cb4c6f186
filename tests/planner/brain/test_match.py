"""Plays are the same to the bit alone, in any company, in any order, and from either side."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from planner.brain.match import Result, play
from planner.brain.weights import DEFAULT, NAMES, whole_weights

GOLDEN = Path(__file__).parents[2] / "data" / "arena_play_1.json"
BRAIN = whole_weights(DEFAULT)


def changed(seed):
    return whole_weights({n: w + ((i + seed) * 37 % 17 - 8) / 8 for i, (n, w) in enumerate(DEFAULT.items())})


def states(players, seeds, seconds):
    """A digest of every play's every tick, one a play."""
    hashes = [hashlib.sha256() for _ in seeds]

    def watch(s, behaviour, _now):
        for i, h in enumerate(hashes):
            for a in (s.x, s.y, s.hull, s.gun, s.health, s.shell_x, s.shell_y, behaviour):
                h.update(np.ascontiguousarray(a[:, i]).astype("<i8").tobytes())

    results = play(players, [BRAIN] * len(seeds), seeds, seconds, watch=watch)
    return [h.hexdigest() for h in hashes], results


def test_a_play_is_the_same_alone_and_in_any_company():
    players, seeds = [changed(i) for i in range(7)], [3, 1, 4, 15, 9, 2**63 - 1, 6]
    together, _ = states(players, seeds, 60)
    alone = [states([p], [s], 60)[0][0] for p, s in zip(players, seeds, strict=True)]
    assert together == alone


def test_a_play_is_the_same_in_any_order():
    players, seeds = [changed(i) for i in range(9)], list(range(9))
    forward = play(players, [BRAIN] * 9, seeds, 120)
    assert play(players[::-1], [BRAIN] * 9, seeds[::-1], 120)[::-1] == forward


def test_sides_changed_over_change_the_results_over():
    seeds = list(range(40))
    one = play([BRAIN] * 40, [BRAIN] * 40, seeds, 120)
    other = play([BRAIN] * 40, [BRAIN] * 40, seeds, 120, swap=True)
    assert [(r.won, r.lost, r.drawn) for r in one] == [(r.lost, r.won, r.drawn) for r in other]
    assert one != other


def test_two_players_changed_over_on_changed_sides_change_the_results_over():
    a, b, seeds = [changed(1)] * 20, [changed(2)] * 20, list(range(20))
    one, other = play(a, b, seeds, 120), play(b, a, seeds, 120, swap=True)
    assert [r.score for r in one] == pytest.approx([1 - r.score for r in other])


def test_a_short_play_is_what_it_always_was():
    digests, results = states([BRAIN, changed(1)], [7, 8], 60)
    golden = json.loads(GOLDEN.read_text())
    assert digests == golden["sha256"]
    assert [[r.won, r.lost, r.drawn] for r in results] == golden["results"]


def test_a_longer_play_begins_like_a_shorter_one():
    short, long = play([BRAIN], [BRAIN], [5], 100)[0], play([BRAIN], [BRAIN], [5], 200)[0]
    assert (long.won >= short.won, long.lost >= short.lost, long.drawn >= short.drawn) == (True, True, True)


@pytest.mark.parametrize(
    ("won", "lost", "drawn", "score"), [(3, 1, 0, 0.75), (0, 0, 4, 0.5), (1, 2, 1, 0.375), (0, 0, 0, 0.5)]
)
def test_the_score_is_the_share_of_duels_won(won, lost, drawn, score):
    assert Result(won=won, lost=lost, drawn=drawn).score == score


def test_the_default_beats_a_random_brain():
    rng = np.random.default_rng(0)
    players = [whole_weights(dict(zip(NAMES, rng.uniform(-2, 2, 110).tolist(), strict=True))) for _ in range(64)]
    scores = [r.score for r in play(players, [BRAIN] * 64, range(64), 120)]
    assert np.mean(scores) + 4 * np.std(scores) / 8 < 0.5
