"""A rollout: T steps of a shard's own envs, with no word to any other shard."""

from collections.abc import Callable

import numpy as np

from planner.brain.shape import Policy, Shape
from planner.train.forward import Eyes, log_probability
from planner.train.gae import advantages
from planner.train.rng import Stream, bits, uniform
from planner.train.settings import ENV_CHUNK, Settings
from planner.train.slab import Rollout
from planner.train.world import F32, Step, World

BEAT = 16  # steps between two looks at whether the others still live


class Collector:
    """Steps the envs lo..hi-1 of a world; its buffers are kept from rollout to rollout.

    All is noted step by step, where the world and the net write it, and put in the rollout's order at the end: what is
    done at once for a whole rollout takes a fraction of what it takes in each step.
    """

    def __init__(self, shape: Shape, world: World, rollout: Rollout, lo: int, hi: int, kernel: str = "numpy") -> None:
        self.world, self.rollout, self.lo, self.hi = world, rollout, lo, hi
        self.heads = shape.heads
        self.eyes = Eyes(shape, hi - lo, ENV_CHUNK, kernel)
        n, steps = hi - lo, rollout.reward.shape[1]
        self._seen = np.empty((steps + 1, n, shape.obs), np.float32)
        self._action = np.empty((steps, n, len(shape.heads)), np.int32)
        self._logits = np.empty((steps, n, sum(shape.heads)), np.float32)
        self._value, self._reward, self._beyond, self._score = np.zeros((4, steps, n), np.float32)
        self._terminated, self._truncated = np.empty((2, steps, n), np.uint8)
        final = np.empty((n, shape.obs), np.float32)
        kept = (self._seen[1:], self._reward, self._terminated, self._truncated, [final] * steps, self._score)
        self._out = [Step(*parts) for parts in zip(*kept, strict=True)]

    def reset(self, seed: int) -> None:
        self.world.reset(self.lo, self.hi, seed, self._seen[0])
        self.rollout.last_obs[self.lo : self.hi] = self._seen[0]

    def collect(self, policy: Policy, settings: Settings, tick: int, beat: Callable[[], None]) -> None:
        """Fill the envs' rows of the rollout, advantages and all; `tick` counts steps since the run's start."""
        env, lane = np.arange(self.lo, self.hi)[:, None], np.arange(len(self.heads))
        ticks = np.arange(tick, tick + settings.steps)[:, None, None]
        u = uniform(bits(settings.seed, Stream.ACTION, env, ticks, lane))
        self._seen[0] = self.rollout.last_obs[self.lo : self.hi]
        self._beyond.fill(0)
        for t in range(settings.steps):
            if t % BEAT == 0:
                beat()
            self._step(policy, settings.seed, tick, t, u[t])
        self._keep(policy)
        advantages(self.rollout, self.lo, self.hi, settings.gamma, settings.lam)

    def _step(self, policy: Policy, seed: int, tick: int, t: int, u: F32) -> None:
        out = self._out[t]
        self._value[t] = self.eyes.look(policy, self._seen[t])
        self._logits[t] = self.eyes.logits
        self.eyes.draw(u, self._action[t])
        self.world.step(self.lo, self.hi, self._action[t], seed, tick + t, out)
        if out.truncated.any():
            self._beyond[t] = self.eyes.values_where(policy, out.final_obs, out.truncated)

    def _keep(self, policy: Policy) -> None:
        """Put what was noted in the rollout, env by env."""
        kept, mine, last = self.rollout, slice(self.lo, self.hi), self._seen[-1]
        rows = self._value.size
        logp = log_probability(self._logits.reshape(rows, -1), self.heads, self._action.reshape(rows, -1))
        kept.obs[mine] = self._seen[:-1].swapaxes(0, 1)
        kept.action[mine] = self._action.swapaxes(0, 1)
        kept.logp[mine] = logp.reshape(self._value.shape).T
        kept.value[mine], kept.reward[mine], kept.beyond[mine] = self._value.T, self._reward.T, self._beyond.T
        kept.terminated[mine], kept.truncated[mine] = self._terminated.T, self._truncated.T
        ends = (self._terminated | self._truncated) != 0
        kept.ended[mine] = ends.sum(axis=0)
        kept.score[mine] = np.where(ends, self._score, np.float32(0)).sum(axis=0, dtype=np.float64)
        kept.last_obs[mine] = last
        kept.last_value[mine] = self.eyes.look(policy, last)
