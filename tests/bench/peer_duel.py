"""PPO on the duel, ours and other people's, an iteration at a time: trainer_peers.py runs some of these by turns.

python tests/bench/peer_duel.py WHO ENVS KERNEL [SHARDS]: for each line on stdin, a number, that many iterations; then a line
of JSON with their seconds, by the clock and of this process's processor time. WHO is `ours`, or, by a Python that has torch,
`sb3` (Stable-Baselines3's PPO over all envs in one call, the fastest that it can be had), `sb3-dummy` (over its DummyVecEnv
of single envs, as most would run it) or `cleanrl` (over all envs in one call).
"""

import json
import sys
import time

import numpy as np

from planner.brain.shape import Shape, param_count
from planner.train.duel import Duels

STEPS, MINIBATCHES = 128, 4
MANY = 1_000_000  # iterations: more than anybody waits for


class Turns:
    """Stands before each iteration: waits there until it is this process's turn."""

    def __init__(self):
        self.left, self.began = 0, None

    def wait(self):
        """False if there is no turn to come."""
        if self.left == 0:
            if self.began:
                wall, cpu = self.began
                print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]), flush=True)
            self.left = int(sys.stdin.readline() or 0)
            self.began = time.perf_counter(), time.process_time()
        self.left -= 1
        return self.left >= 0

    def must(self, *_):
        if not self.wait():
            sys.exit()


def ours(envs, kernel, shards, turns):
    from planner.train.settings import Settings  # noqa: PLC0415
    from planner.train.trainer import Talk, train  # noqa: PLC0415

    settings = Settings()
    talk = Talk(stop=lambda: not turns.wait())
    train(Duels(envs=envs, kernel=kernel), settings, envs * settings.steps * MANY, shards=shards, talk=talk)


def cleanrl(envs, kernel, turns):
    from tests.bench.peer_cleanrl import learn  # noqa: PLC0415

    turns.must()
    learn(Duels(envs=envs, kernel=kernel), 1, MANY, turns.must, value_clip=False)


def sb3_envs(envs, kernel, single):  # noqa: C901 - a class as that library wants it
    from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv  # noqa: PLC0415

    from planner.train.gym import DuelEnv, DuelVectorEnv  # noqa: PLC0415

    class Whole(VecEnv):
        """Gymnasium's vector env as Stable-Baselines3 wants one."""

        def __init__(self):
            self.inner = DuelVectorEnv(envs, kernel=kernel)
            super().__init__(envs, self.inner.single_observation_space, self.inner.single_action_space)
            self.calm = [{} for _ in range(envs)]

        def reset(self):
            return self.inner.reset(seed=1)[0]

        def step_async(self, actions):
            self.actions = actions

        def step_wait(self):
            obs, reward, terminated, _, told = self.inner.step(self.actions)
            infos = self.calm
            if told:
                infos = [{} for _ in range(envs)]
                for i in np.flatnonzero(terminated):
                    infos[i]["terminal_observation"] = told["final_obs"][i]
            return obs, reward, terminated, infos

        def close(self):
            pass

        def get_attr(self, _name, _indices=None):
            return [None] * envs

        def set_attr(self, _name, _value, _indices=None):
            pass

        def env_method(self, *_, **__):
            return [None] * envs

        def env_is_wrapped(self, _wrapper, _indices=None):
            return [False] * envs

    return DummyVecEnv([lambda: DuelEnv(kernel=kernel)] * envs) if single else Whole()


def sb3(envs, kernel, turns, *, single):
    import torch  # noqa: PLC0415
    from stable_baselines3 import PPO  # noqa: PLC0415
    from stable_baselines3.common.callbacks import BaseCallback  # noqa: PLC0415

    class Turning(BaseCallback):
        def _on_rollout_start(self):
            turns.must()

        def _on_step(self):
            return True

    torch.set_num_threads(1)
    rows = envs * STEPS
    told = {"n_steps": STEPS, "batch_size": rows // MINIBATCHES, "n_epochs": 4, "ent_coef": 0.01, "seed": 1}
    world = sb3_envs(envs, kernel, single)
    model = PPO("MlpPolicy", world, learning_rate=lambda left: left * 2.5e-4, device="cpu", **told)
    making = Duels(envs=1)
    weights = param_count(Shape(obs=making.obs, heads=making.heads))
    assert sum(p.numel() for p in model.policy.parameters()) == weights, "another net than ours"
    model.learn(rows * MANY, callback=Turning())


def main(who, envs, kernel, shards=1):
    turns = Turns()
    if who == "ours":
        ours(envs, kernel, shards, turns)
    elif who == "cleanrl":
        cleanrl(envs, kernel, turns)
    else:
        sb3(envs, kernel, turns, single=who == "sb3-dummy")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], *map(int, sys.argv[4:]))
