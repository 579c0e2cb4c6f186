"""Whole plays, in lockstep: two brains a play, what came of it, and the score."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.arena.rules import BLOCK, THINK, TICKS_PER_S
from planner.arena.senses import perceive
from planner.arena.state import State, new_state
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
) -> list[Result]:
    """Play `seconds` of N plays. `swap` changes the sides of every play over, and nothing else."""
    weights = np.ascontiguousarray(np.stack([np.stack(players), np.stack(opponents)]).transpose(2, 3, 0, 1))
    s = new_state(np.array(seeds, dtype=np.int64), swap=swap)
    orders = hold_orders(len(seeds))
    behaviour = np.zeros((2, len(seeds)), dtype=np.intp)
    for now in range(round(seconds * TICKS_PER_S)):
        if now % BLOCK == 0:
            begin_block(s, now)
        if now % THINK == 0:
            senses = perceive(s)
            behaviour = choose(weights, senses)
            give_orders(s, senses, behaviour, orders)
        tick(s, orders, now)
        if watch is not None:
            watch(s, behaviour, now)
    return [
        Result(won=int(won), lost=int(lost), drawn=int(drawn))
        for won, lost, drawn in zip(s.won[0], s.won[1], s.drawn, strict=True)
    ]
