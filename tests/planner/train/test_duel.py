"""The duel as a world: exact for any split of its envs, and the same game as a census plays."""

import pickle

import numpy as np
import pytest

from fleetd import BadData
from planner import seeds
from planner.arena.observe import NAMES, OBS
from planner.arena.rules import DUEL_LIMIT, HEALTH, PACK_HEALS, THINK
from planner.brain.match import play
from planner.brain.net import Net, save_net
from planner.brain.scripted import strongest
from planner.brain.shape import Shape, param_count
from planner.brain.weights import DEFAULT, whole_weights
from planner.train.duel import Duels
from planner.train.pool import SCRIPTED, SEEDS, Opponent, draw_opponents, draw_seeds
from planner.train.rewards import Rewards
from planner.train.world import Step

AT = {name: i for i, name in enumerate(NAMES)}
WEIGHTS = whole_weights(DEFAULT)
ODD = Opponent(weights={"dodge.shell": -1.0, "hunt.bias": 3.0}, share=2)


def step_of(n):
    flags = (np.empty(n, np.uint8), np.empty(n, np.uint8))
    sights = [np.full((n, OBS), np.nan, np.float32) for _ in range(2)]
    return Step(sights[0], np.empty(n, np.float32), *flags, sights[1], np.empty(n, np.float32))


def scripted(obs):
    """What the scripted brain chooses, from what a learner sees."""
    f = np.concatenate([np.full((1, len(obs)), 256), obs[:, :10].T * 256]).astype(np.int32)
    return strongest(WEIGHTS[:, :, None], f).astype(np.int32)[:, None]


def actions(n, tick):
    return np.random.default_rng(tick).integers(0, 10, (n, 1)).astype(np.int32)


def world(making):
    buffer = bytearray(making.size())
    return making.make(buffer, 0), buffer


def run(making, parts, ticks, seed=3):
    """Every step's outputs (all envs, side by side), and the state at the end, with the envs stepped in `parts`."""
    w, buffer = world(making)
    outs = {p: step_of(p[1] - p[0]) for p in parts}
    told = []
    for (lo, hi), out in outs.items():
        w.reset(lo, hi, seed, out.obs)
    for t in ticks:
        for (lo, hi), out in outs.items():
            w.step(lo, hi, actions(making.envs, t)[lo:hi], seed, t, out)
        told.append([np.concatenate([getattr(o, k) for o in outs.values()]) for k in ("obs", "reward", "terminated")])
    return [np.stack(column) for column in zip(*told, strict=True)], bytes(buffer)


@pytest.fixture
def net(tmp_path):
    """A net of chance as an opponent."""
    shape = Shape(obs=OBS, heads=(10,), hidden=(16,))
    flat = np.random.default_rng(4).normal(0, 1, param_count(shape)).astype(np.float32)
    path = tmp_path / "net"
    return Opponent(net=str(path), sha256=save_net(path, Net(shape=shape, flat=flat)))


def test_envs_are_the_same_in_any_split(net):
    making = Duels(envs=24, pool=(SCRIPTED, ODD, net))
    (obs, reward, done), state = run(making, [(0, 24)], range(200))
    (obs_2, reward_2, done_2), state_2 = run(making, [(0, 5), (5, 6), (6, 24)], range(200))
    assert (obs.tobytes(), reward.tobytes(), done.tobytes()) == (obs_2.tobytes(), reward_2.tobytes(), done_2.tobytes())
    assert state == state_2
    assert done.sum() > 24


def test_the_buffer_is_the_whole_state(net):
    making = Duels(envs=9, pool=(net, ODD))
    w, buffer = world(making)
    out = step_of(9)
    w.reset(0, 9, 1, out.obs)
    for t in range(120):
        w.step(0, 9, actions(9, t), 1, t, out)
        if t == 60:
            kept = bytes(buffer)
    end, seen = bytes(buffer), out.obs.copy()
    other, copy = world(pickle.loads(pickle.dumps(making)))
    copy[:] = kept
    for t in range(61, 120):
        other.step(0, 9, actions(9, t), 1, t, out)
    assert (bytes(copy), out.obs.tobytes()) == (end, seen.tobytes())
    buffer[:] = kept  # the same world, put back behind its back
    w.step(0, 9, actions(9, 61), 1, 61, out)
    assert set(w.arrays()) == {"state", "episode", "opponent", "acted"}


def test_a_duel_is_the_one_that_a_census_plays():
    w, _ = world(Duels(envs=30, pool=(ODD,)))
    out, first = step_of(30), np.full(30, -1.0)
    w.reset(0, 30, 8, out.obs)
    for t in range(DUEL_LIMIT // THINK):
        w.step(0, 30, scripted(out.obs), 8, t, out)
        first = np.where((first < 0) & (out.terminated > 0), out.score, first)
    played = np.full(30, -1.0)

    def watch(s, _behaviour, _now):
        decided = s.won[0] + 0.5 * s.drawn
        played[:] = np.where((played < 0) & (s.won.sum(0) + s.drawn == 1), decided, played)

    odd = whole_weights({**DEFAULT, **ODD.weights})
    play([WEIGHTS] * 30, [odd] * 30, draw_seeds(8, np.arange(30), 0).tolist(), 61.5, watch=watch)
    assert first.tolist() == played.tolist()
    assert len(set(first.tolist())) > 1


def test_a_duel_that_ends_begins_anew_in_the_same_step():
    (obs, _, done), _ = run(Duels(envs=16), [(0, 16)], range(250))
    at, env = np.nonzero(done)
    assert at.size >= 16
    assert (obs[at, env, AT["time_left"]] == 240 / 256).all()
    assert (obs[at, env, AT["my_health"]] == 1).all()


def test_what_was_last_seen_of_a_duel_is_kept():
    w, _ = world(Duels(envs=16))
    out = step_of(16)
    w.reset(0, 16, 2, out.obs)
    ends = 0
    for t in range(240):
        w.step(0, 16, scripted(out.obs), 2, t, out)
        for i in np.flatnonzero(out.terminated):
            seen = dict(zip(NAMES, out.final_obs[i], strict=True))
            drawn = min(seen["time_left"], seen["my_health"] + seen["enemy_health"])
            left = {1.0: seen["enemy_health"], 0.0: seen["my_health"], 0.5: drawn}[float(out.score[i])]
            assert left <= PACK_HEALS / HEALTH  # who is destroyed on a pack still takes it
            ends += 1
    assert ends >= 16
    assert not out.truncated.any()


def test_a_duel_nobody_wins_ends_with_its_time():
    w, _ = world(Duels(envs=4, pool=(Opponent(weights={"cover.bias": 60.0}),)))
    out = step_of(4)
    w.reset(0, 4, 5, out.obs)
    ended = []
    for t in range(DUEL_LIMIT // THINK):
        w.step(0, 4, np.full((4, 1), 5, np.int32), 5, t, out)
        ended.append(out.terminated.tolist())
    assert ended == [[0] * 4] * (len(ended) - 1) + [[1] * 4]
    assert out.score.tolist() == [0.5] * 4


def test_seeds_and_opponents_are_functions_of_seed_env_and_episode():
    env, episode = np.arange(3000), np.arange(3000) % 7
    together = draw_seeds(5, env, episode), draw_opponents((SCRIPTED, ODD), 5, env, episode)
    assert together[0][40] == draw_seeds(5, env[40:41], 40 % 7)[0]
    assert together[1][40] == draw_opponents((SCRIPTED, ODD), 5, env[40:41], 40 % 7)[0]
    assert together[1].mean() == pytest.approx(2 / 3, abs=0.04)  # ODD has two shares of three
    assert len(set(together[0].tolist())) == 3000


def test_training_draws_only_training_seeds():
    assert seeds.RANGES[seeds.Purpose.TRAINING] == SEEDS
    drawn = draw_seeds(1, np.arange(10_000), 3)
    assert SEEDS.start <= drawn.min() <= drawn.max() < SEEDS.stop


@pytest.mark.parametrize(
    ("pool", "rewards", "said"),
    [
        ((Opponent(weights={"flee.bias": 1.0}),), Rewards(), "no such weight: 'flee.bias'"),
        ((Opponent(share=0),), Rewards(), "share is a whole number from 1"),
        ((Opponent(net="/nowhere/net", sha256="00"),), Rewards(), "no net can be read"),
        ((SCRIPTED,), Rewards(weights={"speed": 1.0}), "no such reward term: 'speed'"),
        ((SCRIPTED,), Rewards(weights={"win": float("nan")}), "reward term 'win' is not a number"),
        ((SCRIPTED,), Rewards(liked={"charge": 2.0}), "behaviour 'charge' is not a number from 0 to 1"),
    ],
)
def test_a_making_that_cannot_be_is_refused(pool, rewards, said):
    with pytest.raises(BadData, match=said):
        world(Duels(envs=2, pool=pool, rewards=rewards))


def test_a_net_that_is_not_the_one_named_is_refused(net):
    with pytest.raises(BadData, match="another net"):
        world(Duels(envs=2, pool=(Opponent(net=net.net, sha256="0" * 64),)))
