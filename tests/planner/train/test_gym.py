"""The duel keeps Gymnasium's rules, and is the world that we train on."""

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium", reason="the extra `gym` is not installed")

from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402

from planner.arena.observe import OBS  # noqa: E402
from planner.train.duel import Duels  # noqa: E402
from planner.train.gym import ID, DuelEnv, DuelVectorEnv  # noqa: E402
from planner.train.world import Step  # noqa: E402


def vector_steps(envs, steps, seed):
    """(obs, reward, terminated, infos) of each step of actions that a generator draws."""
    rng = np.random.default_rng(9)
    envs.reset(seed=seed)
    for _ in range(steps):
        obs, reward, terminated, truncated, infos = envs.step(rng.integers(0, 10, envs.num_envs))
        assert not truncated.any()
        yield obs, reward, terminated, infos


@pytest.mark.filterwarnings("ignore:.*:UserWarning")  # what it thinks of bounds and of rendering
def test_gymnasiums_checker_finds_nothing():
    check_env(DuelEnv(), skip_render_check=True)


def test_it_is_made_by_its_name():
    envs = gymnasium.make_vec(ID, num_envs=3, vectorization_mode="vector_entry_point")
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert envs.reset(seed=1)[0].shape == (3, OBS)
    assert gymnasium.make(ID).reset(seed=1)[0].shape == (OBS,)


def test_a_vector_env_is_the_world():
    making = Duels(envs=6)
    world = making.make(bytearray(making.size()), 0)
    flags = [np.empty(6, np.uint8), np.empty(6, np.uint8)]
    sights = [np.empty((6, OBS), np.float32) for _ in range(2)]
    out = Step(sights[0], np.empty(6, np.float32), *flags, sights[1], np.empty(6, np.float32))
    world.reset(0, 6, 4, out.obs)
    rng = np.random.default_rng(9)
    for t, (obs, reward, terminated, _) in enumerate(vector_steps(DuelVectorEnv(6), 100, 4)):
        world.step(0, 6, rng.integers(0, 10, (6, 1)).astype(np.int32), 4, t, out)
        assert (obs == out.obs).all()
        assert (reward == out.reward).all()
        assert (terminated == (out.terminated != 0)).all()


def test_all_that_is_seen_is_in_its_space():
    envs = DuelVectorEnv(8)
    assert all(envs.observation_space.contains(obs) for obs, *_ in vector_steps(envs, 200, 2))


def test_what_ended_tells_its_last_sight_and_its_score():
    ends = 0
    for obs, _, terminated, infos in vector_steps(DuelVectorEnv(8), 250, 3):
        assert ("final_obs" in infos) == terminated.any()
        for i in np.flatnonzero(terminated):
            assert infos["_final_obs"][i]
            assert not (infos["final_obs"][i] == obs[i]).all()
            assert infos["final_info"]["score"][i] in {0, 0.5, 1}
            ends += 1
    assert ends >= 8


def test_one_env_goes_on_with_the_next_duel():
    env, seen = DuelEnv(), []
    for _ in range(2):
        obs, _ = env.reset(seed=None if seen else 5)
        seen.append(obs)
        ended = False
        while not ended:
            _, _, ended, _, info = env.step(env.action_space.sample())
        assert info["score"] in {0, 0.5, 1}
    assert (seen[0] != seen[1]).any()
    assert (env.reset(seed=5)[0] == seen[0]).all()
