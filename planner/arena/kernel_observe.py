"""What observe.py shows of N plays, shown of one: a row (OBS,) of float32, from a card and what is perceived."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from planner.arena import rules as r
from planner.arena.compiled import compiled
from planner.arena.kernel import (
    BEARING,
    BORN,
    COVER,
    DRIFT,
    GUN,
    HULL,
    LENGTH,
    MAP,
    PACK_CELL,
    PACK_WAIT,
    POWER,
    POWER_CELL,
    POWER_WAIT,
    RAYS,
    SHELL_HEADING,
    SHELL_POWER,
    VX,
    VY,
    WAY,
    Bytes,
    Row,
    X,
    Y,
    at,
    look,
)
from planner.arena.kernel_senses import ASIDE, CELL, COMING, FACING, FELT, KINDS
from planner.arena.observe import NAMES, PACE, SIDES
from planner.arena.rays import HALF_SHIFT, HALVES, HEADINGS
from planner.arena.senses import FEATURES, ONE
from planner.arena.tables import FAR, HEADING_X, HEADING_Y

Sight = npt.NDArray[np.float32]

_ON, _RIGHT, _AT_ME, _PAST, _OWN, _SHELL, _MINE, _CLOCKS, _WAYS, _FREE = (
    NAMES.index(name)
    for name in (
        "enemy_on",
        "enemy_right",
        "hull_at_me",
        "hull_past_me",
        "speed",
        "drift",
        "my_shell",
        "my_power",
        "way",
        "free_0",
    )
)
_COS, _SIN = HEADING_X >> 4, HEADING_Y >> 4  # 256ths
_SCALE: Final = np.float32(2.0**-8)
_MIDDLE: Final = r.CELL // 2
_SHELL_FELT: Final = FELT + FEATURES.index("shell")


@compiled
def show(o: Sight, i: int, value: Any) -> None:
    """A whole number of 256ths, at most 2¹⁶: exact."""
    o[i] = np.float32(value) * _SCALE


@compiled
def observe(c: Row, lookup: Bytes, w: Row, me: int, now: int, o: Sight) -> None:
    for k in range(1, KINDS):
        show(o, k - 1, w[FELT + KINDS * me + k])
    show_directions(c, lookup, w, me, o)
    show_speeds(c, w, me, o)
    show_shells(c, w, me, o)
    show(o, _CLOCKS, c[POWER + me] * 3)
    show(o, _CLOCKS + 1, c[POWER + 1 - me] * 3)
    show(o, _CLOCKS + 2, max(r.DUEL_LIMIT - now + c[BORN], 0) >> 1)
    show(o, _CLOCKS + 3, (c[PACK_WAIT] << 3) // 5)
    show(o, _CLOCKS + 4, (c[POWER_WAIT] << 3) // 5)
    show_ways(c, lookup, w, me, o)
    half = (c[MAP] * HALVES + (c[Y + me] >> HALF_SHIFT)) * HALVES + (c[X + me] >> HALF_SHIFT)
    ahead = c[HULL + me] + 4 >> 3
    for i in range(SIDES):
        heading = ahead + i * (HEADINGS // SIDES) & HEADINGS - 1
        show(o, _FREE + i, at(lookup, RAYS + half * HEADINGS + heading) << 2)


@compiled
def show_directions(c: Row, lookup: Bytes, w: Row, me: int, o: Sight) -> None:
    them = 1 - me
    for i in range(2):
        mine = w[FACING + me] - c[(HULL, GUN)[i] + me] & 255
        theirs = w[FACING + them] - c[(HULL, GUN)[i] + them] & 255
        show(o, _ON + i, _COS[mine])
        show(o, _RIGHT + i, _SIN[mine])
        show(o, _AT_ME + i, _COS[theirs])
        show(o, _PAST + i, _SIN[theirs])
    step = at(lookup, WAY + (c[MAP] << 16) + (w[CELL + them] << 8) + w[CELL + me])
    dx, dy = ((step & 15) << r.SHIFT) + _MIDDLE - c[X + me], (step >> 4 << r.SHIFT) + _MIDDLE - c[Y + me]
    way = at(lookup, BEARING + look(dx, dy)) - c[HULL + me] & 255
    show(o, _ON + 2, _COS[way])
    show(o, _RIGHT + 2, _SIN[way])
    shell = c[SHELL_HEADING + them] - c[HULL + me] & 255
    show(o, _ON + 3, _COS[shell] * w[COMING + me])
    show(o, _RIGHT + 3, _SIN[shell] * w[COMING + me])


@compiled
def show_speeds(c: Row, w: Row, me: int, o: Sight) -> None:
    vx, vy = c[VX + me], c[VY + me]
    cos, sin = HEADING_X[c[HULL + me]], HEADING_Y[c[HULL + me]]
    show(o, _OWN, vx * cos + vy * sin >> PACE)
    show(o, _OWN + 1, vy * cos - vx * sin >> PACE)
    vx, vy = c[VX + 1 - me], c[VY + 1 - me]
    cos, sin = HEADING_X[w[FACING + me]], HEADING_Y[w[FACING + me]]
    show(o, _OWN + 2, vx * cos + vy * sin >> PACE)
    show(o, _OWN + 3, vy * cos - vx * sin >> PACE)


@compiled
def show_shells(c: Row, w: Row, me: int, o: Sight) -> None:
    them = 1 - me
    show(o, _SHELL, c[DRIFT + me] * ONE)
    show(o, _SHELL + 1, (w[ASIDE + me] >> 4) * w[COMING + me])
    show(o, _SHELL + 2, (w[ASIDE + them] >> 4) * w[COMING + them])
    show(o, _MINE, w[_SHELL_FELT + KINDS * them])
    show(o, _MINE + 1, c[SHELL_POWER + them] * w[COMING + me])


@compiled
def show_ways(c: Row, lookup: Bytes, w: Row, me: int, o: Sight) -> None:
    here, there = (c[MAP] << 16) + w[CELL + me], (c[MAP] << 16) + w[CELL + 1 - me]
    to_enemy = here + (w[CELL + 1 - me] << 8)
    show(o, _WAYS, at(lookup, LENGTH + to_enemy))
    show(o, _WAYS + 1, min(at(lookup, COVER + to_enemy), FAR // 4) * 4)
    show(o, _WAYS + 2, at(lookup, LENGTH + here + (c[PACK_CELL] << 8)))
    show(o, _WAYS + 3, at(lookup, LENGTH + here + (c[POWER_CELL] << 8)))
    show(o, _WAYS + 4, at(lookup, LENGTH + there + (c[PACK_CELL] << 8)))
    show(o, _WAYS + 5, at(lookup, LENGTH + there + (c[POWER_CELL] << 8)))
