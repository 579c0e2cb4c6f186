"""What step.py does to N plays, done to one: a card, the play's column of the state's block, and what goes with it.

The same whole numbers in the same order of turns; where numpy computes and throws away, a branch is taken instead.
"""

from itertools import accumulate
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from planner.arena import rules as r
from planner.arena import tables
from planner.arena.compiled import compiled
from planner.arena.maps import MAPS
from planner.arena.rays import FREE
from planner.arena.state import ROW_OF, STATE_ROWS
from planner.arena.tables import DAMAGE, DRIVES, HEADING_X, HEADING_Y, LOOK_MIDDLE, LOOK_ROW, SPREAD

Bytes = npt.NDArray[np.uint8]


class Row(Protocol):
    """An array (K,) of int64, as machine code sees it: its numbers are plain ints."""

    def __getitem__(self, i: int, /) -> int: ...
    def __setitem__(self, i: int, value: int, /) -> None: ...


# Where a card has what: two of each for the tanks, one for the play, eight times two of stray.
X, Y, VX, VY, HULL, GUN = (ROW_OF[name] for name in ("x", "y", "vx", "vy", "hull", "gun"))
RELOAD, HEALTH, POWER, DRIFT, WON = (ROW_OF[name] for name in ("reload", "health", "power", "drift", "won"))
LIVE, SHELL_X, SHELL_Y, SHELL_VX, SHELL_VY, SHELL_HEADING, SHELL_POWER = (
    ROW_OF[f"shell_{name}"] for name in ("live", "x", "y", "vx", "vy", "heading", "power")
)
SEED, SIDE, MAP, DUEL, BORN, OVER, DRAWN = (
    ROW_OF[name] for name in ("seed", "side", "map", "duel", "born", "over", "drawn")
)
PACK_CELL, PACK_WAIT, POWER_CELL, POWER_WAIT, STRAY = (
    ROW_OF[name] for name in ("pack_cell", "pack_wait", "power_cell", "power_wait", "stray")
)
# After the state: the orders, kept from one decision to the next.
HEADING, SPEED, AIM, CARE = (STATE_ROWS + 2 * i for i in range(4))
CARD: Final = STATE_ROWS + 8

# Every table of bytes, one behind the other, and where each begins: one argument of a kernel instead of fourteen.
_MAPS: Final = (tables.GO, tables.SIGHT, tables.LENGTH, tables.COVER, tables.WAY, tables.FLOOR, tables.SOLID, FREE)
_PLACES: Final = (tables.STARTS, tables.PACKS, tables.POWERS, tables.BEARING, tables.DISTANCE)
LOOKUP: Final = np.concatenate([table.astype(np.uint8) for table in (*_MAPS, *_PLACES)])
_BEGINS: Final = list(accumulate((table.size for table in (*_MAPS, *_PLACES)), initial=0))
GO, SIGHT, LENGTH, COVER, WAY, FLOOR, SOLID, RAYS, STARTS, PACKS, POWERS, BEARING, DISTANCE, _ = _BEGINS

_GOLDEN, _STREAM = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
TICK, _LANE = np.uint64(0x8CB92BA72F3D8DD7), np.uint64(0xAEF17502108EF2D9)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)
_1, _8, _BOARDS = np.uint64(1), np.uint64(8), np.uint64(len(MAPS))
_HALF_CELL: Final = r.CELL // 2
_LOOK_HALF: Final = 1 << r.LOOK_SHIFT - 1


@compiled
def whole(bits: "np.uint64 | np.uint8") -> int:
    """Signed, so that arithmetic with other numbers stays whole."""
    return np.int64(bits)  # type: ignore[return-value] # the one kind of int that machine code has


@compiled
def mix(z: np.uint64) -> np.uint64:
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    return z ^ (z >> _31)


@compiled
def key(seed: int, stream: int) -> np.uint64:
    return mix(mix(np.uint64(seed) + _GOLDEN) + np.uint64(stream) * _STREAM)


@compiled
def draw(keys: np.uint64, tick: int, lane: int) -> int:
    return whole(mix(keys + np.uint64(tick) * TICK + np.uint64(lane) * _LANE) >> _32)


@compiled
def at(lookup: Bytes, i: int) -> int:
    return whole(lookup[np.uint64(i)])


@compiled
def look(dx: int, dy: int) -> int:
    return (dy + _LOOK_HALF >> r.LOOK_SHIFT) * LOOK_ROW + (dx + _LOOK_HALF >> r.LOOK_SHIFT) + LOOK_MIDDLE


@compiled
def begin_play(c: Row, seed: int) -> None:
    """The card before the play's first tick, whatever it held."""
    for i in range(STATE_ROWS):
        c[i] = 0
    bits = key(seed, 0)
    c[SEED] = seed
    c[SIDE], c[MAP] = whole(bits & _1), whole((bits >> _8) % _BOARDS)
    c[DUEL] = -1
    c[OVER] = 1


@compiled
def begin_block(c: Row, lookup: Bytes, now: int) -> None:
    if c[OVER] == 0 and now - c[BORN] >= r.DUEL_LIMIT:
        c[DRAWN] += 1
        c[OVER] = 1
    if c[OVER] != 0:
        begin_duel(c, lookup, now)
    draw_block(c, now)


@compiled
def draw_block(c: Row, now: int) -> None:
    """Chance for the ticks from `now` to the end of the block; ages count from the duel's beginning."""
    side, age = (c[SIDE] + c[DUEL]) & 1, now - c[BORN]
    drifts, strays = key(c[SEED], c[DUEL] * 8 + 1), key(c[SEED], c[DUEL] * 8 + 2)
    for me in range(2):
        c[DRIFT + me] = 2 * (draw(drifts, age >> 4, side ^ me) & 1) - 1
        for i in range(now % r.BLOCK, r.BLOCK):
            c[STRAY + 2 * i + me] = draw(strays, now - now % r.BLOCK + i - c[BORN], side ^ me) & 511


@compiled
def begin_duel(c: Row, lookup: Bytes, now: int) -> None:
    c[DUEL] += 1
    c[BORN] = now
    c[OVER] = 0
    duel, where = c[DUEL], c[MAP]
    starts = key(c[SEED], (duel >> 1) * 8)
    for me in range(2):
        side = ((c[SIDE] + duel) & 1) ^ me
        cell = at(lookup, STARTS + 8 * where + (draw(starts, 0, side) & 7))
        if side == 1:
            cell = r.CELLS * r.CELLS - 1 - cell
        c[X + me] = (cell & 15) * r.CELL + _HALF_CELL
        c[Y + me] = (cell >> 4) * r.CELL + _HALF_CELL
        c[HULL + me] = c[GUN + me] = 3 * r.TURN // 4 if side == 1 else r.TURN // 4
        c[HEALTH + me] = r.HEALTH
        c[LIVE + me] = c[VX + me] = c[VY + me] = c[RELOAD + me] = c[POWER + me] = 0
    spot = draw(key(c[SEED], duel * 8), 1, 0)
    c[PACK_CELL] = at(lookup, PACKS + 2 * where + (spot & 1))
    c[POWER_CELL] = at(lookup, POWERS + 2 * where + (spot >> 1 & 1))
    c[PACK_WAIT] = r.PACK_FIRST
    c[POWER_WAIT] = r.POWER_FIRST


@compiled
def tick(c: Row, lookup: Bytes, now: int) -> None:
    for me in range(2):
        off = turn(c, HULL + me, c[HEADING + me], r.HULL_TURN)
        drive(c, lookup, me, c[SPEED + me] * DRIVES[off & 255])
    keep_apart(c)
    fire_0 = abs(turn(c, GUN, c[AIM], r.GUN_TURN)) <= c[CARE]
    fire_1 = abs(turn(c, GUN + 1, c[AIM + 1], r.GUN_TURN)) <= c[CARE + 1]
    for me in range(2):
        c[RELOAD + me] = max(c[RELOAD + me] - 1, 0)
        c[POWER + me] = max(c[POWER + me] - 1, 0)
    c[PACK_WAIT] = max(c[PACK_WAIT] - 1, 0)
    c[POWER_WAIT] = max(c[POWER_WAIT] - 1, 0)
    hit_0, hit_1 = fly(c, lookup, 0), fly(c, lookup, 1)
    if (hit_0 or hit_1) and c[OVER] == 0:
        hurt(c, hit_0, hit_1)
    if fire_0 and c[RELOAD] == 0:
        fire(c, 0, now)
    if fire_1 and c[RELOAD + 1] == 0:
        fire(c, 1, now)
    if now % r.THINK == 0:
        pick_up(c)


@compiled
def turn(c: Row, angle: int, wanted: int, most: int) -> int:
    off = ((wanted - c[angle] + 128) & 255) - 128
    turned = min(max(off, -most), most)
    c[angle] = (c[angle] + turned) & 255
    return off - turned


@compiled
def drive(c: Row, lookup: Bytes, me: int, speed: int) -> None:
    """What the tank would add to its place, if the other were not there."""
    row = GO + (c[MAP] << 12)
    x, y = c[X + me], c[Y + me]
    vx, vy = HEADING_X[c[HULL + me]] * speed, HEADING_Y[c[HULL + me]] * speed
    vx *= at(lookup, row + (y >> r.FINE_SHIFT << 6) + (x + vx >> r.FINE_SHIFT))
    vy *= at(lookup, row + (y + vy >> r.FINE_SHIFT << 6) + (x + vx >> r.FINE_SHIFT))
    c[VX + me] = vx
    c[VY + me] = vy


@compiled
def keep_apart(c: Row) -> None:
    """Both go where they would, or neither does."""
    dx, dy = c[X] - c[X + 1], c[Y] - c[Y + 1]
    apart = max(abs(dx + c[VX] - c[VX + 1]), abs(dy + c[VY] - c[VY + 1]))
    if apart < r.TANK_GAP and apart < max(abs(dx), abs(dy)):
        c[VX] = c[VX + 1] = c[VY] = c[VY + 1] = 0
    for me in range(2):
        c[X + me] += c[VX + me]
        c[Y + me] += c[VY + me]


@compiled
def fly(c: Row, lookup: Bytes, me: int) -> bool:
    """The shell goes one tick; whether it hit."""
    cos, sin = c[SHELL_VX + me], c[SHELL_VY + me]
    x, y = c[SHELL_X + me], c[SHELL_Y + me]
    step_x, step_y = cos * (r.SHELL_SPEED // 2), sin * (r.SHELL_SPEED // 2)
    c[SHELL_X + me] = x + 2 * step_x
    c[SHELL_Y + me] = y + 2 * step_y
    if c[LIVE + me] == 0:
        return False
    dx, dy = c[X + 1 - me] - x >> 5, c[Y + 1 - me] - y >> 5
    ahead = dx * cos + dy * sin >> 12
    near_wall = in_wall(c, lookup, x + step_x, y + step_y)
    reach = r.SHELL_SPEED * 64 if near_wall else r.SHELL_SPEED * 128
    hit = abs(dx * sin - dy * cos >> 12) <= r.SHELL_RADIUS and -1024 <= ahead <= reach
    if hit or near_wall or in_wall(c, lookup, x + 2 * step_x, y + 2 * step_y):
        c[LIVE + me] = 0
    return hit


@compiled
def in_wall(c: Row, lookup: Bytes, x: int, y: int) -> bool:
    """Of a shell in the air: it came out of no wall, so it is on the map or within its outermost wall."""
    return at(lookup, SOLID + (c[MAP] << 8) + (y >> r.SHIFT << 4) + (x >> r.SHIFT)) != 0


@compiled
def hurt(c: Row, hit_0: bool, hit_1: bool) -> None:  # noqa: FBT001 - the two shells
    if hit_0:
        c[HEALTH + 1] -= DAMAGE[(c[SHELL_HEADING] - c[HULL + 1] & 255) + c[SHELL_POWER]]
    if hit_1:
        c[HEALTH] -= DAMAGE[(c[SHELL_HEADING + 1] - c[HULL] & 255) + c[SHELL_POWER + 1]]
    dead_0, dead_1 = c[HEALTH] <= 0, c[HEALTH + 1] <= 0
    if dead_0 or dead_1:
        c[OVER] = 1
        if not dead_0:
            c[WON] += 1
        elif not dead_1:
            c[WON + 1] += 1
        else:
            c[DRAWN] += 1


@compiled
def fire(c: Row, me: int, now: int) -> None:
    bits = c[STRAY + 2 * (now % r.BLOCK) + me]
    moving = 64 if c[VX + me] | c[VY + me] else 0
    heading = c[GUN + me] + SPREAD[(bits & 63) + moving] & 255
    c[LIVE + me] = 1
    c[SHELL_X + me] = c[X + me]
    c[SHELL_Y + me] = c[Y + me]
    c[SHELL_HEADING + me] = heading
    c[SHELL_VX + me] = HEADING_X[heading]
    c[SHELL_VY + me] = HEADING_Y[heading]
    c[SHELL_POWER + me] = 256 if c[POWER + me] > 0 else 0
    c[RELOAD + me] = r.RELOAD + (bits >> 6 & r.RELOAD_MORE)


@compiled
def pick_up(c: Row) -> None:
    cell_0 = (c[Y] >> r.SHIFT << 4) + (c[X] >> r.SHIFT)
    cell_1 = (c[Y + 1] >> r.SHIFT << 4) + (c[X + 1] >> r.SHIFT)
    pack, power = c[PACK_CELL], c[POWER_CELL]
    if c[PACK_WAIT] == 0 and pack in (cell_0, cell_1):
        if cell_0 == pack:
            c[HEALTH] = min(c[HEALTH] + r.PACK_HEALS, r.HEALTH)
        if cell_1 == pack:
            c[HEALTH + 1] = min(c[HEALTH + 1] + r.PACK_HEALS, r.HEALTH)
        c[PACK_WAIT] = r.PACK_AGAIN
        c[PACK_CELL] = 255 - pack
    if c[POWER_WAIT] == 0 and power in (cell_0, cell_1):
        if cell_0 == power:
            c[POWER] = r.POWER_LASTS
        if cell_1 == power:
            c[POWER + 1] = r.POWER_LASTS
        c[POWER_WAIT] = r.POWER_AGAIN
        c[POWER_CELL] = 255 - power
