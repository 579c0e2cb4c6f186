"""Other people's PPO on the duel, by a Python that has torch (trainer_peers.py runs it, by turns with ours).

python tests/bench/peer_duel.py WHO ENVS KERNEL ITERATIONS: JSON of the seconds of each iteration, by the clock and of
the processor. WHO is `sb3` (Stable-Baselines3's PPO over all envs in one call, the fastest it can be had), `sb3-dummy` (over
its DummyVecEnv of single envs, as most would run it) or `cleanrl` (over all envs in one call).
"""

import json
import sys
import time

import numpy as np
import torch

from planner.train.duel import Duels
from tests.bench.peer_cleanrl import learn

STEPS, MINIBATCHES = 128, 4


class Laps:
    def __init__(self):
        self.wall, self.cpu = [time.perf_counter()], [time.process_time()]

    def lap(self, *_):
        self.wall.append(time.perf_counter())
        self.cpu.append(time.process_time())


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


def sb3(envs, kernel, iterations, laps, *, single=False):
    from stable_baselines3 import PPO  # noqa: PLC0415
    from stable_baselines3.common.callbacks import BaseCallback  # noqa: PLC0415

    class Lapping(BaseCallback):
        begun = False

        def _on_rollout_start(self):
            if self.begun:
                laps.lap()
            else:
                laps.__init__()
            self.begun = True

        def _on_step(self):
            return True

    rows = envs * STEPS
    told = {"n_steps": STEPS, "batch_size": rows // MINIBATCHES, "n_epochs": 4, "ent_coef": 0.01, "seed": 1}
    world = sb3_envs(envs, kernel, single)
    model = PPO("MlpPolicy", world, learning_rate=lambda left: left * 2.5e-4, device="cpu", **told)
    assert sum(p.numel() for p in model.policy.parameters()) == weights(), "another net than ours"
    model.learn(rows * iterations, callback=Lapping())
    laps.lap()


def weights():
    from planner.brain.shape import Shape, param_count  # noqa: PLC0415

    making = Duels(envs=1)
    return param_count(Shape(obs=making.obs, heads=making.heads))


def main(who, envs, kernel, iterations):
    torch.set_num_threads(1)
    laps = Laps()
    if who == "cleanrl":
        learn(Duels(envs=envs, kernel=kernel), 1, iterations, laps.lap, value_clip=False)
    else:
        sb3(envs, kernel, iterations, laps, single=who == "sb3-dummy")
    print(json.dumps({"wall": np.diff(laps.wall).tolist(), "cpu": np.diff(laps.cpu).tolist()}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
