"""What each tank perceives: eleven features, 0 to 256 each (256 is 1.0), and the bearings that orders are made of."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from planner.arena import rules as r
from planner.arena.state import Flags, Ints, State
from planner.arena.tables import BEARING, DISTANCE, LENGTH, LOOK_MIDDLE, LOOK_ROW, SIGHT

FEATURES: Final = (
    "bias",
    "my_health",
    "enemy_health",
    "distance",
    "sight",
    "loaded",
    "enemy_loaded",
    "threat",
    "shell",
    "pack",
    "power",
)
ONE: Final = 256  # a feature's 1.0
_LONGEST = r.RELOAD + r.RELOAD_MORE
LOADED = np.arange(_LONGEST, -1, -1, dtype=np.int64) * ONE // _LONGEST  # by ticks left


@dataclass(slots=True, kw_only=True)
class Senses:
    """What both tanks perceive at one moment; (2, N) each but for `features`."""

    features: npt.NDArray[np.int32]  # (11, 2, N)
    cell: Ints  # where it is
    bearing: Ints  # to the enemy
    distance: Ints  # to the enemy, eighths of a cell
    coming: Flags  # the enemy's shell is in the air and may still meet it
    aside: Ints  # on which side that shell's course passes, and how far, 2⁻¹² cells


def look(dx: Ints, dy: Ints) -> Ints:
    """Where BEARING and DISTANCE have the point (dx, dy) units away."""
    dx += 1 << r.LOOK_SHIFT - 1
    dy += 1 << r.LOOK_SHIFT - 1
    return (dy >> r.LOOK_SHIFT) * LOOK_ROW + (dx >> r.LOOK_SHIFT) + LOOK_MIDDLE


def perceive(s: State) -> Senses:
    """The senses of both tanks of every play."""
    cell = (s.y >> r.SHIFT << 4) + (s.x >> r.SHIFT)
    here = (s.map << 16) + cell
    at = look(s.x[::-1] - s.x, s.y[::-1] - s.y)
    bearing = BEARING.take(at)
    distance = DISTANCE.take(at)
    sight = SIGHT.take(here + (cell[::-1] << 8))
    coming, ahead, aside = _incoming(s)
    pointed = np.abs((s.gun[::-1] - bearing & 255) - 128)  # how far the enemy's gun is off, headings
    f = np.empty((len(FEATURES), *s.x.shape), dtype=np.int64)
    f[0] = ONE
    f[1] = s.health * (ONE // r.HEALTH)
    f[2] = f[1, ::-1]
    f[3] = np.minimum(distance * 2, ONE)
    f[4] = sight * np.int64(ONE)
    f[5] = LOADED.take(s.reload)
    f[6] = f[5, ::-1]
    f[7] = np.maximum(ONE - 8 * pointed, 0) * sight
    f[8] = np.maximum(ONE - (ahead >> 7), 0) * coming
    f[9] = _nearness(here, s.pack_cell, s.pack_wait)
    f[10] = _nearness(here, s.power_cell, s.power_wait)
    np.maximum(f[1:3], 0, out=f[1:3])
    return Senses(
        features=f.astype(np.int32), cell=cell, bearing=bearing, distance=distance, coming=coming, aside=aside
    )


def _incoming(s: State) -> tuple[Flags, Ints, Ints]:
    """Whether the enemy's shell may still meet a tank; how far it has to go, and by how much its course passes."""
    cos, sin = s.shell_vx[::-1], s.shell_vy[::-1]
    dx = s.x - s.shell_x[::-1] >> 5
    dy = s.y - s.shell_y[::-1] >> 5
    ahead = dx * cos + dy * sin >> 12
    aside = dx * sin - dy * cos >> 12
    return s.shell_live[::-1] & (ahead > 0) & (np.abs(aside) < 4096), ahead, aside


def _nearness(here: Ints, cell: Ints, wait: Ints) -> Ints:
    """1.0 at the thing that lies at `cell`, 0 from 12.8 cells' way on, and 0 while nothing lies there."""
    way = LENGTH.take(here + (cell << 8)).astype(np.int64)
    near: Ints = np.maximum(ONE - 4 * way, 0) * (wait == 0)
    return near
