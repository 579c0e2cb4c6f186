"""Whole plays, in lockstep: two brains a play, what came of it, and the score."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.arena.rules import BLOCK, THINK, TICKS_PER_S
from planner.arena.senses import perceive
from planner.arena.state import STATE_ROWS, Ints, State, begin_state
from planner.arena.step import begin_block, hold_orders, tick
from planner.brain.scripted import Whole, choose, give_orders

Watch = Callable[[State, npt.NDArray[np.intp], int], None]  # state, behaviours (2, N), tick just played


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Duels of one play; one still undecided at the end counts for nobody."""

    won: int
    lost: int
    drawn: int

    @property
    def score(self) -> float:
        """The share of the duels that the player won, a draw being half of one; a half where there was none."""
        duels = self.won + self.lost + self.drawn
        return (2 * self.won + self.drawn) / (2 * duels) if duels else 0.5


def play(
    players: Sequence[Whole],  # (11, 10) each, of weights.whole_weights
    opponents: Sequence[Whole],
    seeds: Sequence[int],
    seconds: float,
    *,
    swap: bool = False,
    watch: Watch | None = None,
    kernel: str = "numpy",
) -> list[Result]:
    """Play `seconds` of N plays. `swap` changes the sides of every play over, and nothing else.

    `kernel` "numba" plays the same, to the bit, as machine code.
    """
    block = np.empty((STATE_ROWS, len(seeds)), dtype=np.int64)
    s = begin_state(block, np.array(seeds, dtype=np.int64), swap=swap)
    brains = np.stack([np.stack(players), np.stack(opponents)])
    ticks = round(seconds * TICKS_PER_S)
    (_play_compiled if kernel == "numba" else _play)(s, block, brains, ticks, watch)
    return [
        Result(won=int(won), lost=int(lost), drawn=int(drawn))
        for won, lost, drawn in zip(s.won[0], s.won[1], s.drawn, strict=True)
    ]


def _play(s: State, block: Ints, brains: Whole, ticks: int, watch: Watch | None) -> None:
    """All plays one tick at a time; `brains` (2, N, 11, 10)."""
    weights = np.ascontiguousarray(brains.transpose(2, 3, 0, 1))
    orders = hold_orders(block.shape[1])
    behaviour = np.zeros((2, block.shape[1]), dtype=np.intp)
    for now in range(ticks):
        if now % BLOCK == 0:
            begin_block(s, now)
        if now % THINK == 0:
            senses = perceive(s)
            behaviour = choose(weights, senses)
            give_orders(s, senses, behaviour, orders)
        tick(s, orders, now)
        if watch is not None:
            watch(s, behaviour, now)


def _play_compiled(s: State, block: Ints, brains: Whole, ticks: int, watch: Watch | None) -> None:
    """Each play from its beginning to its end, or all tick by tick where somebody watches."""
    from planner.brain.kernel import BEHAVIOURS_FROM, ORDER_ROWS, play_columns  # noqa: PLC0415 - numba may not be there

    weights = np.ascontiguousarray(brains.transpose(1, 0, 2, 3))
    orders = np.zeros((ORDER_ROWS, block.shape[1]), dtype=np.int64)
    if watch is None:
        play_columns(block, orders, weights, 0, ticks)
        return
    for now in range(ticks):
        play_columns(block, orders, weights, now, now + 1)
        watch(s, orders[BEHAVIOURS_FROM:].astype(np.intp), now)
