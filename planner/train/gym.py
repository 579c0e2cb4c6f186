"""The duel as Gymnasium knows environments, for trainers that are not ours (the extra `gym`).

    envs = gymnasium.make_vec("treadcore/Duel-v1", num_envs=64)      # after importing this module
    env = gymnasium.make("treadcore/Duel-v1")

Both are views of the same world as `treadcore train` has: same seed, same actions, same numbers. A vector env begins
anew in the step that ended a duel (`AutoresetMode.SAME_STEP`).
"""

from typing import Any, Final

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from planner.arena.observe import HIGH, LOW, OBS
from planner.arena.rules import THINK, TICKS_PER_S
from planner.brain.decide import SCALE
from planner.brain.weights import BEHAVIOURS
from planner.train.duel import VERSION, Duels
from planner.train.world import F32, Step

ID: Final = f"treadcore/Duel-v{VERSION}"
FPS: Final = TICKS_PER_S // THINK  # decisions a second of the game
SEEDS: Final = 1 << 31

Info = dict[str, Any]


def _sight_space() -> Any:
    low, high = ((bound * SCALE).astype(np.float32) for bound in (LOW, HIGH))
    return spaces.Box(low, high, (OBS,), np.float32)


class _Run:
    """A world of its own, and the step that it is at."""

    def __init__(self, making: Duels) -> None:
        self.world, self.envs = making.make(bytearray(making.size()), 0), making.envs
        sights, flags = np.zeros((2, self.envs, OBS), np.float32), np.zeros((2, self.envs), np.uint8)
        floats = np.zeros((2, self.envs), np.float32)
        self.out = Step(sights[0], floats[0], flags[0], flags[1], sights[1], floats[1])
        self.seed, self.tick = 0, 0

    def begin(self, seed: int) -> F32:
        self.seed, self.tick = seed, 0
        self.world.reset(0, self.envs, seed, self.out.obs)
        return self.out.obs.copy()

    def step(self, actions: Any) -> Step:
        chosen = np.asarray(actions, dtype=np.int32).reshape(self.envs, 1)
        self.world.step(0, self.envs, chosen, self.seed, self.tick, self.out)
        self.tick += 1
        return self.out


class DuelVectorEnv(VectorEnv[F32, Any, Any]):
    """Duels side by side. `infos` of ended ones: `final_obs`, and in `final_info` their `score`: 1, 0.5 or 0."""

    metadata = {"render_modes": [], "render_fps": FPS, "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012 - Gymnasium's own way

    def __init__(self, num_envs: int = 1, **how: Any) -> None:
        """`how` is what Duels takes besides: pool, rewards and so on."""
        self._run = _Run(Duels(envs=num_envs, **how))
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = _sight_space(), spaces.Discrete(len(BEHAVIOURS))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[F32, Info]:
        """Begin all duels; without a seed, with one drawn from the generator."""
        super().reset(seed=seed, options=options)
        return self._run.begin(int(self.np_random.integers(SEEDS)) if seed is None else seed), {}

    def step(self, actions: Any) -> tuple[F32, F32, npt.NDArray[np.bool_], npt.NDArray[np.bool_], Info]:
        out = self._run.step(actions)
        ended = (out.terminated | out.truncated) != 0
        infos: Info = {}
        if ended.any():
            final = np.full(self.num_envs, None, dtype=object)
            for i in np.flatnonzero(ended):
                final[i] = out.final_obs[i].copy()
            score = {"score": np.where(ended, out.score, 0), "_score": ended}
            infos = {"final_obs": final, "_final_obs": ended, "final_info": score, "_final_info": ended}
        return out.obs.copy(), out.reward.copy(), out.terminated != 0, out.truncated != 0, infos


class DuelEnv(gymnasium.Env[F32, np.int64]):
    """One duel; `info` of the last step has its `score`."""

    metadata = {"render_modes": [], "render_fps": FPS}  # noqa: RUF012

    def __init__(self, **how: Any) -> None:
        """`how` is what Duels takes besides: pool, rewards and so on."""
        self._run = _Run(Duels(envs=1, **how))
        self.observation_space, self.action_space = _sight_space(), spaces.Discrete(len(BEHAVIOURS))
        self._begun = False  # the world has already begun the duel that follows the last

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[F32, Info]:
        """The next duel of the seed; in the middle of one, or at first, a seed drawn from the generator."""
        super().reset(seed=seed, options=options)
        if seed is None and self._begun:
            obs = self._run.out.obs.copy()
        else:
            obs = self._run.begin(int(self.np_random.integers(SEEDS)) if seed is None else seed)
        self._begun = False
        return obs[0], {}

    def step(self, action: np.int64) -> tuple[F32, float, bool, bool, Info]:
        out = self._run.step(action)
        self._begun = bool(out.terminated[0] or out.truncated[0])
        seen = (out.final_obs if self._begun else out.obs)[0].copy()
        info = {"score": float(out.score[0])} if self._begun else {}
        return seen, float(out.reward[0]), bool(out.terminated[0]), bool(out.truncated[0]), info


gymnasium.register(ID, entry_point=f"{__name__}:DuelEnv", vector_entry_point=f"{__name__}:DuelVectorEnv")
