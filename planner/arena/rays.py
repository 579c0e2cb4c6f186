"""How far a tank can see along 32 headings from any half cell: looked up, not marched."""

from typing import Final

import numpy as np
import numpy.typing as npt

from planner.arena.maps import MAPS
from planner.arena.rules import CELLS, LOOK_SHIFT, SHIFT
from planner.arena.tables import HEADING_X, HEADING_Y, SOLID

HEADINGS: Final = 32  # each eight headings wide
HALF_SHIFT: Final = SHIFT - 1
HALVES: Final = 2 * CELLS  # half cells across a map
FARTHEST: Final = 64  # eighths of a cell: where marching ends


def _march() -> npt.NDArray[np.uint8]:
    """Eighths of a cell to the first wall, from the middle of each half cell, FARTHEST where there is none so near."""
    row, column = np.divmod(np.arange(HALVES * HALVES, dtype=np.int64), HALVES)
    middle = 1 << HALF_SHIFT - 1
    step = np.arange(HEADINGS, dtype=np.int64) * (256 // HEADINGS)
    step_x, step_y = HEADING_X[step] << LOOK_SHIFT - 12, HEADING_Y[step] << LOOK_SHIFT - 12
    board = np.arange(len(MAPS), dtype=np.int64)[:, None, None] << 8
    x = np.repeat((column << HALF_SHIFT)[:, None] + middle, HEADINGS, 1)
    y = np.repeat((row << HALF_SHIFT)[:, None] + middle, HEADINGS, 1)
    free = np.full((len(MAPS), HALVES * HALVES, HEADINGS), FARTHEST, dtype=np.uint8)
    for eighth in range(FARTHEST):
        wall = SOLID.take(board + (y >> SHIFT << 4) + (x >> SHIFT), mode="clip") > 0
        free[wall & (free == FARTHEST)] = eighth
        x += step_x
        y += step_y
    return free.ravel()


# Indexed by ((map * HALVES + half row) * HALVES + half column) * HEADINGS + heading // 8.
FREE = _march()
