"""The duel world with its steps as machine code: the same buffer, the same bits as duel.py's, some times as fast."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.arena.kernel import LOOKUP
from planner.arena.observe import OBS
from planner.arena.rules import THINK
from planner.arena.state import Ints
from planner.brain.decide import seat
from planner.brain.net import choose
from planner.train.kernel import Arrays, Given, Out, begin_envs, show_rivals, step_envs
from planner.train.pool import Opponent, load
from planner.train.rewards import Pay, Rewards
from planner.train.world import F32, I32, Step


class FastDuel:
    """A world over arrays that lie in the slab; nothing is kept from one step to the next but in them."""

    def __init__(self, pool: tuple[Opponent, ...], rewards: Rewards, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self._arrays = arrays
        self._own = Arrays(*(arrays[name] for name in Arrays._fields))
        self._seats = seat([load(opponent) for opponent in pool])
        weights = np.ascontiguousarray(self._seats.weights.transpose(2, 0, 1))
        ends = np.cumsum([opponent.share for opponent in pool], dtype=np.int64)
        pay = Pay(rewards)
        self._given = Given(LOOKUP, weights, ends, pay.weights, pay.liked)

    def arrays(self) -> Mapping[str, npt.NDArray[Any]]:
        return self._arrays

    def reset(self, lo: int, hi: int, seed: int, obs: F32) -> None:
        begin_envs(self._own, lo, hi, LOOKUP, self._given.ends, seed, obs)

    def step(self, lo: int, hi: int, action: I32, seed: int, tick: int, out: Step) -> None:
        behaviours = np.full((2, hi - lo), -1, dtype=np.int64)
        behaviours[0] = action[:, 0]
        self._answer(behaviours[1], lo, tick * THINK)
        told = Out(out.obs, out.reward, out.terminated, out.truncated, out.final_obs, out.score)
        step_envs(self._own, lo, hi, behaviours, self._given, seed, tick * THINK, told)

    def _answer(self, answers: Ints, lo: int, now: int) -> None:
        """Fill in what the nets among the opponents choose."""
        for net, at in self._seats.nets:
            (envs,) = np.nonzero(np.isin(self._own.opponent[lo : lo + answers.size], at))
            if envs.size:
                obs = np.empty((envs.size, OBS), dtype=np.float32)
                show_rivals(self._own.state, envs + lo, LOOKUP, now, obs)
                answers[envs] = choose(net, obs)[:, 0]
