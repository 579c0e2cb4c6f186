"""Whole plays in which nets sit: the same game as match.play's, and the same score in any batch.

A net sees more than weights do, so this is slower. The sums in a net are exact (planner.brain.net), hence a play is the
same alone and in company, and on any machine.
"""

from collections.abc import Sequence

import numpy as np

from planner.arena.observe import observe
from planner.arena.rules import BLOCK, THINK, TICKS_PER_S
from planner.arena.senses import perceive
from planner.arena.state import new_state
from planner.arena.step import begin_block, hold_orders, tick
from planner.brain.decide import Brain, decide, seat
from planner.brain.match import Result, Watch
from planner.brain.scripted import give_orders


def play_nets(
    players: Sequence[Brain],
    opponents: Sequence[Brain],
    seeds: Sequence[int],
    seconds: float,
    *,
    swap: bool = False,
    watch: Watch | None = None,
) -> list[Result]:
    """Play `seconds` of N plays, weights or nets on either side; the rest as match.play."""
    n = len(seeds)
    s = new_state(np.array(seeds, dtype=np.int64), swap=swap)
    seats, orders = seat([*players, *opponents]), hold_orders(n)
    behaviour = np.zeros((2, n), dtype=np.intp)
    for now in range(round(seconds * TICKS_PER_S)):
        if now % BLOCK == 0:
            begin_block(s, now)
        if now % THINK == 0:
            senses = perceive(s)
            features, seen = senses.features.reshape(-1, 2 * n), observe(s, senses, now).reshape(2 * n, -1)
            behaviour = decide(seats, features, seen).reshape(2, n)
            give_orders(s, senses, behaviour, orders)
        tick(s, orders, now)
        if watch is not None:
            watch(s, behaviour, now)
    return [
        Result(won=int(won), lost=int(lost), drawn=int(drawn))
        for won, lost, drawn in zip(s.won[0], s.won[1], s.drawn, strict=True)
    ]
