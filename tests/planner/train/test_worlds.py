"""The two worlds that the trainer is checked on are Gymnasium's own, where that is installed."""

import numpy as np
import pytest

from .worlds import Acrobot, CartPole

gymnasium = pytest.importorskip("gymnasium", reason="compares with Gymnasium, the extra `gym`")


@pytest.mark.parametrize(("name", "making"), [("CartPole-v1", CartPole(envs=1)), ("Acrobot-v1", Acrobot(envs=1))])
def test_a_world_moves_as_gymnasiums(name, making):
    env, draw, ends = gymnasium.make(name).unwrapped, np.random.default_rng(4), 0
    for play in range(40):
        env.reset(seed=play)
        if name == "Acrobot-v1":
            env.state = draw.uniform(-3, 3, 4)
        for _ in range(60):
            before, action = np.array(env.state, float), int(draw.integers(making.heads[0]))
            seen, reward, ended, _, _ = env.step(action)
            new, ours, over = making.move(before[None], np.array([[action]]))
            assert making.see(new)[0] == pytest.approx(seen, abs=1e-5)
            assert (np.broadcast_to(ours, 1)[0], over[0]) == (reward, ended)
            ends += ended
            if ended:
                break
    assert ends > 5
    assert gymnasium.spec(name).max_episode_steps == making.limit
