"""Plays set up by hand, for what is perceived of them."""

import numpy as np

from planner.arena import rules
from planner.arena.state import new_state
from planner.arena.step import begin_block


def facing(cells, *, row=3):
    """One play on `pillars` with the tanks so many cells apart in a free row, the player to the left."""
    s = new_state(np.array([3]))
    begin_block(s, 0)
    s.map[:] = 1
    s.x[:, 0] = (np.array([2, 2 + cells]) * rules.CELL) + rules.CELL // 2
    s.y[:, 0] = row * rules.CELL + rules.CELL // 2
    return s
