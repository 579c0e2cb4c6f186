"""The duel as a world to be trained on: an env is one duel, a step one decision, that is THINK ticks of both tanks.

The learner is row 0 and chooses one of the ten behaviours; its opponent comes from a pool. A duel that is over begins
anew in the same step, with the next seed and opponent of its env. A draw by time is the game's own rule, and the time
left is seen: so it terminates, and nothing is ever truncated.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from planner.arena.observe import OBS, Seen, observe
from planner.arena.rules import BLOCK, DUEL_LIMIT, THINK
from planner.arena.senses import Senses, perceive
from planner.arena.state import STATE_ROWS, Ints, State, state_over
from planner.arena.step import draw_block, hold_orders, tick
from planner.brain.decide import HEADS, SCALE, Seats, decide, seat
from planner.brain.scripted import give_orders
from planner.train.pool import SCRIPTED, Opponent, load
from planner.train.rewards import Pay, Rewards, mark
from planner.train.slab import Field, layout, over
from planner.train.starts import Starts
from planner.train.world import F32, I32, Buffer, Step, World

VERSION: Final = 1  # of the environment: another one is another task


@dataclass(frozen=True, slots=True, kw_only=True)
class Duels:
    """How to make the world."""

    envs: int
    pool: tuple[Opponent, ...] = (SCRIPTED,)
    rewards: Rewards = Rewards()  # noqa: RUF009 - frozen
    version: int = VERSION
    kernel: str = field(default="numpy", repr=False)  # or numba: the same bits, so that a run goes on with either

    @property
    def obs(self) -> int:
        return OBS

    @property
    def heads(self) -> tuple[int, ...]:
        return HEADS

    def size(self) -> int:
        return layout(_fields(self.envs))[1]

    def make(self, buffer: Buffer, offset: int) -> World:
        arrays = over(_fields(self.envs), buffer, offset)
        if self.kernel != "numba":
            return Duel(self, arrays)
        from planner.train.fast_duel import FastDuel  # noqa: PLC0415 - numba may not be there

        return FastDuel(self.pool, self.rewards, arrays)


def _fields(envs: int) -> tuple[Field, ...]:
    return (
        ("state", np.int64, (STATE_ROWS, envs)),
        ("episode", np.int64, (envs,)),
        ("opponent", np.int64, (envs,)),
        ("acted", np.int64, (envs,)),
    )


@dataclass(slots=True)
class Part:
    """The envs lo..hi-1 of a world, as views; and what they see, if nobody has touched them since."""

    block: Ints
    state: State
    episode: Ints
    opponent: Ints
    acted: Ints  # the learner's last behaviour in this duel, -1 at its beginning
    starts: Starts
    known: tuple[int, Ints, Senses, Seen] | None = None  # tick to come, block, and what is seen then


class Duel:
    """The world over arrays that lie in the slab."""

    def __init__(self, making: Duels, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self._making, self._arrays = making, arrays
        self._pay = Pay(making.rewards)
        self._seats = seat([load(opponent) for opponent in making.pool])
        self._parts: dict[tuple[int, int], Part] = {}

    def arrays(self) -> Mapping[str, npt.NDArray[Any]]:
        return self._arrays

    def reset(self, lo: int, hi: int, seed: int, obs: F32) -> None:
        """Begin the envs lo..hi-1 with their first duels, at tick 0."""
        part = self._part(lo, hi)
        part.episode[:] = -1
        self._begin(part, np.arange(hi - lo), seed, 0)
        part.known = None
        np.multiply(part.starts.seen[0], SCALE, out=obs)

    def step(self, lo: int, hi: int, action: I32, seed: int, tick: int, out: Step) -> None:
        """One decision; `action` (hi-lo, 1) is a behaviour each."""
        part, now = self._part(lo, hi), tick * THINK
        senses, seen = _look(part, now)
        before = mark(part.state, senses)
        behaviour = np.stack([action[:, 0], self._answer(part, senses, seen)]).astype(np.intp)
        _play(part.state, senses, behaviour, now)
        now += THINK
        senses = perceive(part.state)
        seen = observe(part.state, senses, now)
        ended, won = _ends(part.state, now)
        acted = part.acted.copy(), behaviour[0]
        out.reward[:] = self._pay.total(self._pay.values(before, mark(part.state, senses), ended, won, acted))
        out.terminated[:] = ended
        out.truncated[:] = 0
        part.acted[:] = behaviour[0]
        np.multiply(seen[0], SCALE, out=out.obs)
        if (i := np.flatnonzero(ended)).size:
            out.final_obs[i] = out.obs[i]
            out.score[i] = (1 + won[0, i] - won[1, i]) * np.float32(0.5)
            self._begin(part, i, seed, now)
            part.starts.patch(senses, seen, i)
            out.obs[i] = seen[0, i] * SCALE
        part.known = now, part.block.copy(), senses, seen

    def _part(self, lo: int, hi: int) -> Part:
        if (lo, hi) not in self._parts:
            a = self._arrays
            env, block = np.arange(lo, hi), a["state"][:, lo:hi]
            episode, opponent, acted = (a[name][lo:hi] for name in ("episode", "opponent", "acted"))
            starts = Starts(self._making.pool, env)
            self._parts[lo, hi] = Part(block, state_over(block), episode, opponent, acted, starts)
        return self._parts[lo, hi]

    def _begin(self, part: Part, i: npt.NDArray[np.intp], seed: int, now: int) -> None:
        """The next duels of the part's envs `i`."""
        part.starts.prepare(seed, part.episode + 1, i)
        part.episode[i] += 1
        part.opponent[i] = part.starts.opponent[i]
        part.acted[i] = -1
        part.block[:, i] = part.starts.block(i, now)

    def _answer(self, part: Part, senses: Senses, seen: Seen) -> npt.NDArray[np.intp]:
        """(N,) the opponents' behaviours."""
        nets = tuple((net, np.flatnonzero(np.isin(part.opponent, at))) for net, at in self._seats.nets)
        weights = self._seats.weights.take(part.opponent, axis=2)
        return decide(Seats(weights, tuple(n for n in nets if n[1].size)), senses.features[:, 1], seen[1])


def _look(part: Part, now: int) -> tuple[Senses, Seen]:
    """What is seen before tick `now`, looked at again only if it is not known."""
    if part.known is not None and part.known[0] == now and np.array_equal(part.known[1], part.block):
        return part.known[2:]
    senses = perceive(part.state)
    return senses, observe(part.state, senses, now)


def _play(s: State, senses: Senses, behaviour: npt.NDArray[np.intp], now: int) -> None:
    """THINK ticks from `now` on."""
    if now % BLOCK == 0:
        draw_block(s, now)
    orders = hold_orders(behaviour.shape[1])
    give_orders(s, senses, behaviour, orders)
    for after in range(THINK):
        tick(s, orders, now + after)


def _ends(s: State, now: int) -> tuple[npt.NDArray[np.bool_], Ints]:
    """Which duels are over before tick `now`, and (2, N) 1 for who won."""
    return s.over | (now - s.born >= DUEL_LIMIT), s.won
