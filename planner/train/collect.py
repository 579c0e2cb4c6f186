"""A rollout: T steps of a shard's own envs, with no word to any other shard."""

from collections.abc import Callable

import numpy as np

from planner.brain.shape import Policy, Shape
from planner.train.forward import Eyes
from planner.train.gae import advantages
from planner.train.rng import Stream, bits, uniform
from planner.train.settings import ENV_CHUNK, Settings
from planner.train.slab import Rollout
from planner.train.world import Step, World

BEAT = 16  # steps between two looks at whether the others still live


class Collector:
    """Steps the envs lo..hi-1 of a world; its buffers are kept from rollout to rollout."""

    def __init__(self, shape: Shape, world: World, rollout: Rollout, lo: int, hi: int) -> None:
        self.world, self.rollout, self.lo, self.hi = world, rollout, lo, hi
        self.heads = len(shape.heads)
        self.eyes = Eyes(shape, hi - lo, ENV_CHUNK)
        n = hi - lo
        self._action, self._logp = np.empty((n, self.heads), np.int32), np.empty(n, np.float32)
        self._out = Step(
            obs=np.empty((n, shape.obs), np.float32),
            reward=np.empty(n, np.float32),
            terminated=np.empty(n, np.uint8),
            truncated=np.empty(n, np.uint8),
            final_obs=np.empty((n, shape.obs), np.float32),
            score=np.empty(n, np.float32),
        )

    def reset(self, seed: int) -> None:
        self.world.reset(self.lo, self.hi, seed, self._out.obs)
        self.rollout.last_obs[self.lo : self.hi] = self._out.obs

    def collect(self, policy: Policy, settings: Settings, tick: int, beat: Callable[[], None]) -> None:
        """Fill the envs' rows of the rollout, advantages and all; `tick` counts steps since the run's start."""
        mine, steps = slice(self.lo, self.hi), settings.steps
        env, lane = np.arange(self.lo, self.hi)[:, None, None], np.arange(self.heads)
        u = uniform(bits(settings.seed, Stream.ACTION, env, np.arange(tick, tick + steps)[:, None], lane))
        self.rollout.ended[mine] = 0
        self.rollout.score[mine] = 0
        self._out.obs[...] = self.rollout.last_obs[mine]
        for t in range(steps):
            if t % BEAT == 0:
                beat()
            self._step(policy, settings.seed, tick, t, u[:, t])
        self.rollout.last_obs[mine] = self._out.obs
        self.rollout.last_value[mine] = self.eyes.look(policy, self._out.obs)
        advantages(self.rollout, self.lo, self.hi, settings.gamma, settings.lam)

    def _step(self, policy: Policy, seed: int, tick: int, t: int, u: np.ndarray) -> None:
        kept, mine, out = self.rollout, slice(self.lo, self.hi), self._out
        kept.obs[mine, t] = out.obs
        kept.value[mine, t] = self.eyes.look(policy, out.obs)
        self.eyes.draw(u, self._action, self._logp)
        self.world.step(self.lo, self.hi, self._action, seed, tick + t, out)
        kept.action[mine, t], kept.logp[mine, t] = self._action, self._logp
        kept.reward[mine, t] = out.reward
        kept.terminated[mine, t], kept.truncated[mine, t] = out.terminated, out.truncated
        kept.beyond[mine, t] = 0
        if out.truncated.any():
            kept.beyond[mine, t] = self.eyes.values_where(policy, out.final_obs, out.truncated)
        if (ends := np.flatnonzero(out.terminated | out.truncated)).size:
            kept.ended[self.lo + ends] += 1
            kept.score[self.lo + ends] += out.score[ends]
