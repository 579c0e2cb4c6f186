"""Rollouts: what counts after an end, what chance depends on, and what a fresh slab holds."""

from dataclasses import replace

import numpy as np
import pytest

from planner.brain.shape import Shape, policy_over
from planner.train.collect import Collector
from planner.train.forward import Eyes, log_probability
from planner.train.gae import advantages
from planner.train.init import first_weights
from planner.train.rng import bits, normal, shuffle, uniform
from planner.train.settings import Settings, env_share, share
from planner.train.slab import rollout_bytes, rollout_over
from planner.train.trainer import plot_of

from .worlds import Odd

SHAPE = Shape(obs=5, heads=(2, 3), hidden=(8, 8))
GAMMA, LAM = 0.9, 0.8


def fresh_rollout(envs, steps, seed=0):
    rollout = rollout_over(SHAPE, envs, steps, bytearray(rollout_bytes(SHAPE, envs, steps)))
    draw = np.random.default_rng(seed)
    for array in (rollout.reward, rollout.value, rollout.last_value):
        array[...] = draw.normal(0, 1, array.shape)
    return rollout


def by_hand(rollout, env):
    """The sum over what comes, as the paper writes it."""
    steps = rollout.reward.shape[1]
    out = np.zeros(steps)
    for start in range(steps):
        weight = 1.0
        for t in range(start, steps):
            follows = rollout.value[env, t + 1] if t + 1 < steps else rollout.last_value[env]
            ends = rollout.terminated[env, t] or rollout.truncated[env, t]
            after = rollout.beyond[env, t] if ends else follows
            out[start] += weight * (rollout.reward[env, t] + GAMMA * after - rollout.value[env, t])
            if ends:
                break
            weight *= GAMMA * LAM
    return out


def test_advantages_are_the_papers_sum():
    rollout = fresh_rollout(3, 9)
    rollout.terminated[0, 3] = rollout.truncated[1, 4] = rollout.truncated[2, 8] = 1
    rollout.beyond[1, 4], rollout.beyond[2, 8] = 1.5, -0.5
    advantages(rollout, 0, 3, GAMMA, LAM)
    for env in range(3):
        assert rollout.advantage[env] == pytest.approx(by_hand(rollout, env), abs=1e-5)
    assert rollout.ret == pytest.approx(rollout.advantage + rollout.value, abs=1e-6)


def test_a_time_limit_bootstraps_and_a_real_end_does_not():
    rollout = fresh_rollout(2, 1)
    rollout.terminated[0, 0] = rollout.truncated[1, 0] = 1
    rollout.beyond[1, 0] = 10
    advantages(rollout, 0, 2, GAMMA, LAM)
    assert rollout.ret[:, 0] == pytest.approx(rollout.reward[:, 0] + [0, 9])


def collected(lo, hi, envs=13, **changed):
    """The rows lo..hi-1 of a rollout of Odd, by a shard of its own."""
    making, settings = Odd(envs=envs, **changed), Settings(steps=20, hidden=SHAPE.hidden)
    plot = plot_of(making, settings)
    buffer = bytearray(plot.size())
    plot.fill_absurd(buffer, 0)
    slab = plot.over(buffer, 0)
    slab.policy.flat[:] = first_weights(SHAPE, 3)
    collector = Collector(SHAPE, slab.world, slab.rollout, lo, hi)
    collector.reset(settings.seed)
    collector.collect(slab.policy, settings, 0, lambda: None)
    return slab


def test_a_fresh_slab_holds_absurd_values_and_a_rollout_leaves_none_in_its_rows():
    rollout = collected(8, 13).rollout
    assert np.isnan(rollout.reward[:8]).all()
    assert (rollout.action[:8] == np.iinfo(np.int32).min).all()
    for name in ("obs", "last_obs", "logp", "value", "reward", "beyond", "advantage", "ret", "score"):
        assert np.isfinite(getattr(rollout, name)[8:]).all(), name
    assert set(np.unique(rollout.terminated[8:])) == {0, 1} == set(np.unique(rollout.truncated[8:]))


def test_what_lies_beyond_a_time_limit_is_valued_by_the_net():
    slab = collected(0, 13)
    rollout, eyes = slab.rollout, Eyes(SHAPE, 1, 8)
    env, t = np.argwhere(rollout.truncated)[0]
    made = slab.world.making.move(rollout.obs[env, t][None].astype(float), rollout.action[env, t][None])[0]
    assert rollout.beyond[env, t] == pytest.approx(eyes.look(slab.policy, made.astype(np.float32))[0], abs=1e-5)
    assert not rollout.beyond[rollout.truncated == 0].any()


def test_an_envs_rollout_depends_on_no_other_env_and_no_shard():
    whole, parts = collected(0, 13).rollout, (collected(0, 8).rollout, collected(8, 13).rollout)
    for name in ("obs", "action", "logp", "value", "reward", "beyond", "advantage", "last_value", "ended"):
        joined = np.concatenate([getattr(parts[0], name)[:8], getattr(parts[1], name)[8:]])
        assert joined.tobytes() == getattr(whole, name).tobytes(), name


def test_plays_that_end_are_counted_with_their_scores():
    rollout = collected(0, 13, reward=1.0).rollout
    ends = (rollout.terminated | rollout.truncated).sum(axis=1)
    last = 20 - np.array(
        [np.flatnonzero(a | b)[-1] + 1 for a, b in zip(rollout.terminated, rollout.truncated, strict=True)]
    )
    assert rollout.ended.tolist() == ends.tolist()
    assert rollout.score.tolist() == (20 - last).tolist()


def test_drawn_actions_follow_the_net_and_tell_their_probability():
    policy = policy_over(SHAPE, bytearray(4 * 4096))
    policy.flat[:] = 40 * first_weights(SHAPE, 1)
    count = 4000
    obs = np.tile(np.array([1, -1, 0.5, 0, 2], np.float32), (count, 1))
    eyes, action = Eyes(SHAPE, count, 8), np.empty((count, 2), np.int32)
    eyes.look(policy, obs)
    eyes.draw(uniform(bits(0, 0, np.arange(count)[:, None], 0, np.arange(2))), action)
    logp = log_probability(eyes.logits, SHAPE.heads, action)
    for choice in np.unique(action, axis=0):
        rows = (action == choice).all(axis=1)
        assert np.exp(logp[rows][0]) == pytest.approx(rows.mean(), abs=0.03)


def test_bits_depend_on_each_of_their_five_causes_alone():
    causes = (7, 1, 2, 3, 4)
    drawn = {int(bits(*causes)[0])}
    drawn |= {int(bits(*(c + (i == j) for j, c in enumerate(causes)))[0]) for i in range(5)}
    assert len(drawn) == 6
    assert bits(7, 1, np.arange(5), 3, 4)[2] == bits(*causes)[0]


def test_chance_is_even_and_normal():
    drawn = uniform(bits(1, 0, np.arange(200)[:, None], np.arange(200), 0)).ravel()
    assert 0 <= drawn.min() < drawn.max() < 1
    assert np.bincount((drawn * 10).astype(int)) / len(drawn) == pytest.approx(np.full(10, 0.1), abs=0.01)
    gauss = normal(bits(1, 2, np.arange(40000), 0, 0), bits(1, 2, np.arange(40000), 0, 1))
    assert (gauss.mean(), gauss.std()) == pytest.approx((0, 1), abs=0.02)


def test_a_shuffle_is_an_order_of_its_iteration_and_epoch():
    assert sorted(shuffle(1, 2, 3, 100)) == list(range(100))
    assert (shuffle(1, 2, 3, 100) == shuffle(1, 2, 3, 100)).all()
    assert (shuffle(1, 2, 3, 100) != shuffle(1, 2, 4, 100)).any()


def test_first_weights_are_orthogonal():
    shape = Shape(obs=40, heads=(10,))
    policy = replace(policy_over(shape, bytearray(first_weights(shape, 1).tobytes())))
    assert policy.hidden[1].weight[0] @ policy.hidden[1].weight[0].T == pytest.approx(2 * np.eye(64), abs=1e-5)
    assert policy.hidden[0].weight[1] @ policy.hidden[0].weight[1].T == pytest.approx(2 * np.eye(40), abs=1e-5)
    assert not np.array_equal(policy.hidden[1].weight[0], policy.hidden[1].weight[1])
    assert np.abs(policy.policy.weight).max() < 0.01
    assert not policy.policy.bias.any()


@pytest.mark.parametrize("shards", [1, 2, 3, 4, 8])
def test_shards_share_out_every_env_and_chunk_once(shards):
    for cuts in ([env_share(61, i, shards) for i in range(shards)], [share(16, i, shards) for i in range(shards)]):
        assert [lo for lo, _ in cuts[1:]] == [hi for _, hi in cuts[:-1]]
        assert cuts[0][0] == 0
    assert env_share(61, shards - 1, shards)[1] == 61
    assert all(lo % 8 == 0 for lo, _ in [env_share(61, i, shards) for i in range(shards)])
