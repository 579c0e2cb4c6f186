"""What senses.py perceives of N plays, perceived of one: a row of whole numbers, `SEEN` of them, from a card."""

from typing import Final

from planner.arena import rules as r
from planner.arena.compiled import compiled
from planner.arena.kernel import (
    BEARING,
    DISTANCE,
    GUN,
    HEALTH,
    LENGTH,
    LIVE,
    MAP,
    PACK_CELL,
    PACK_WAIT,
    POWER_CELL,
    POWER_WAIT,
    RELOAD,
    SHELL_VX,
    SHELL_VY,
    SHELL_X,
    SHELL_Y,
    SIGHT,
    Bytes,
    Row,
    X,
    Y,
    at,
    look,
)
from planner.arena.senses import FEATURES, LOADED, ONE

# Two of each, the tank's own first; after them the features of one tank, then those of the other.
CELL, FACING, AWAY, COMING, ASIDE = range(0, 10, 2)
FELT: Final = 10
KINDS: Final = len(FEATURES)
SEEN: Final = FELT + 2 * KINDS
SIGHT_FELT: Final = FELT + FEATURES.index("sight")


@compiled
def perceive(c: Row, lookup: Bytes, w: Row) -> None:
    for me in range(2):
        w[CELL + me] = (c[Y + me] >> r.SHIFT << 4) + (c[X + me] >> r.SHIFT)
    for me in range(2):
        feel(c, lookup, w, me)


@compiled
def feel(c: Row, lookup: Bytes, w: Row, me: int) -> None:
    them, f = 1 - me, FELT + KINDS * me
    here = (c[MAP] << 16) + w[CELL + me]
    to = look(c[X + them] - c[X + me], c[Y + them] - c[Y + me])
    bearing, distance = at(lookup, BEARING + to), at(lookup, DISTANCE + to)
    sight = at(lookup, SIGHT + here + (w[CELL + them] << 8))
    pointed = abs((c[GUN + them] - bearing & 255) - 128)
    w[FACING + me] = bearing
    w[AWAY + me] = distance
    w[f] = ONE
    w[f + 1] = max(c[HEALTH + me] * (ONE // r.HEALTH), 0)
    w[f + 2] = max(c[HEALTH + them] * (ONE // r.HEALTH), 0)
    w[f + 3] = min(distance * 2, ONE)
    w[f + 4] = sight * ONE
    w[f + 5] = LOADED[c[RELOAD + me]]
    w[f + 6] = LOADED[c[RELOAD + them]]
    w[f + 7] = max(ONE - 8 * pointed, 0) * sight
    w[f + 8] = incoming(c, w, me)
    w[f + 9] = nearness(lookup, here, c[PACK_CELL], c[PACK_WAIT])
    w[f + 10] = nearness(lookup, here, c[POWER_CELL], c[POWER_WAIT])


@compiled
def incoming(c: Row, w: Row, me: int) -> int:
    """How near the enemy's shell is that may still meet the tank; on which side its course passes, into `w`."""
    them = 1 - me
    cos, sin = c[SHELL_VX + them], c[SHELL_VY + them]
    dx, dy = c[X + me] - c[SHELL_X + them] >> 5, c[Y + me] - c[SHELL_Y + them] >> 5
    ahead, aside = dx * cos + dy * sin >> 12, dx * sin - dy * cos >> 12
    coming = c[LIVE + them] != 0 and ahead > 0 and abs(aside) < 4096
    w[COMING + me] = coming
    w[ASIDE + me] = aside
    return max(ONE - (ahead >> 7), 0) if coming else 0


@compiled
def nearness(lookup: Bytes, here: int, cell: int, wait: int) -> int:
    return max(ONE - 4 * at(lookup, LENGTH + here + (cell << 8)), 0) if wait == 0 else 0
