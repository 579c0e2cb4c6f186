"""Reward terms pay for what their names say, exactly, and potentials add up to nothing."""

import numpy as np
import pytest

from planner.arena.observe import OBS
from planner.brain.weights import BEHAVIOURS
from planner.train.duel import Duels
from planner.train.rewards import DEFAULT, TERMS, Pay, Rewards
from planner.train.world import Step

NONE = dict.fromkeys(TERMS, 0.0)


def duels(rewards, steps=260, envs=24, among=range(10)):
    """(steps, envs) rewards, ends and scores of random play."""
    making = Duels(envs=envs, rewards=rewards)
    w = making.make(bytearray(making.size()), 0)
    floats = [np.empty((envs, OBS), np.float32), np.empty((envs, OBS), np.float32)]
    flags = [np.empty(envs, np.uint8), np.empty(envs, np.uint8)]
    out = Step(floats[0], np.empty(envs, np.float32), *flags, floats[1], np.empty(envs, np.float32))
    w.reset(0, envs, 6, out.obs)
    rng, told = np.random.default_rng(1), []
    for t in range(steps):
        w.step(0, envs, rng.choice(among, (envs, 1)).astype(np.int32), 6, t, out)
        told.append([out.reward.copy(), out.terminated.copy(), out.score.copy()])
    return [np.stack(column) for column in zip(*told, strict=True)]


def only(term, weight=1.0, **more):
    return Rewards(weights=NONE | {term: weight}, **more)


def whole_duels(reward, done):
    """The sum of rewards of each duel that was played to its end."""
    sums = []
    for env in range(reward.shape[1]):
        ends = np.flatnonzero(done[:, env])
        starts = np.concatenate([[0], ends[:-1] + 1]) if ends.size else []
        sums += [float(reward[a : b + 1, env].sum()) for a, b in zip(starts, ends, strict=True)]
    return np.array(sums)


@pytest.mark.parametrize(("term", "score"), [("win", 1.0), ("loss", 0.0), ("draw", 0.5)])
def test_an_end_pays_once_by_what_it_was(term, score):
    reward, done, scores = duels(only(term))
    assert (reward == ((done > 0) & (scores == score))).all()


def test_damage_pays_for_health_lost_and_a_winner_has_dealt_all_of_it():
    dealt, done, score = duels(only("damage_dealt"))
    assert dealt.min() == 0
    won = whole_duels(dealt, done)[whole_duels(np.where(done, score, 0), done) == 1]
    assert won.size
    assert won.min() >= 1  # more where the enemy healed


@pytest.mark.parametrize("term", ["closeness", "aim", "threat", "feedback.positive", "feedback.negative"])
def test_a_potential_takes_away_what_it_was_in_the_beginning(term):
    liked = {name: i / 10 for i, name in enumerate(BEHAVIOURS)}
    reward, done, _ = duels(only(term, liked=liked, disliked=liked))
    sums = whole_duels(reward, done)
    assert np.abs(reward).max() > 0
    assert (sums <= 0).all()
    assert (sums == 0).all() or "feedback" not in term  # no behaviour has acted before the first step


@pytest.mark.parametrize(("term", "behaviour"), [("pack", "heal"), ("power", "boost")])
def test_what_is_fetched_pays(term, behaviour):
    reward, _, _ = duels(only(term), among=[list(BEHAVIOURS).index(behaviour)])
    assert reward.min() == 0 < reward.max()


def test_weights_have_either_sign_and_add_up():
    terms = {"win": 1.0, "damage_taken": -0.5, "closeness": 0.125}
    parts = [duels(only(term, weight))[0] for term, weight in terms.items()]
    assert (duels(Rewards(weights=NONE | terms))[0] == np.sum(parts, axis=0, dtype=np.float32)).all()


def test_terms_not_given_have_their_defaults():
    assert Pay(Rewards(weights={"pack": 0.5})).weights.tolist() == [
        round((0.5 if t == "pack" else DEFAULT[t]) * 4096) for t in TERMS
    ]
    assert DEFAULT["feedback.positive"] == DEFAULT["feedback.negative"] == 0
