"""One tick of N plays. Whole numbers only: adds, multiplies, shifts, comparisons and looked-up values.

`begin_block` at every BLOCK-th tick, then `tick`; what the brains want is in `Orders`, which they rewrite every THINK
ticks. Both change the state in place and draw nothing from anywhere but the state.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.arena import rules as r
from planner.arena.chance import draw, key
from planner.arena.state import Ints, State
from planner.arena.tables import DAMAGE, DRIVES, GO, HEADING_X, HEADING_Y, PACKS, POWERS, SOLID, SPREAD, STARTS

_ROWS = np.array([[0], [1]], dtype=np.int64)
_TICKS = np.arange(r.BLOCK, dtype=np.int64)[:, None, None]
_STREAMS = 8  # streams a duel: 0 starts, 1 drift, 2 stray
_HALF_CELL = r.CELL // 2


@dataclass(slots=True, kw_only=True)
class Orders:
    """What the brains want, (2, N) each."""

    heading: Ints  # of the hull
    speed: Ints  # 1/32 cell a tick
    aim: Ints  # heading of the gun
    care: Ints  # fire when the gun is off by at most this many headings; -1: hold fire


def hold_orders(n: int) -> Orders:
    """Orders to do nothing."""
    zero = np.zeros((2, n), dtype=np.int64)
    return Orders(heading=zero.copy(), speed=zero.copy(), aim=zero.copy(), care=zero - 1)


def begin_block(s: State, now: int) -> None:
    """Call draws, begin the next duel where one is over, and draw this block's chance. `now` is a multiple of BLOCK."""
    stale = ~s.over & (now - s.born >= r.DUEL_LIMIT)
    s.drawn += stale
    s.over |= stale
    _begin_duels(s, np.flatnonzero(s.over), now)
    draw_block(s, now)


def draw_block(s: State, now: int) -> None:
    """Draw the chance of the block that begins at `now`."""
    lane = (s.side + s.duel & 1) ^ _ROWS
    age = now - s.born
    s.drift[:] = _drift(s.seed, s.duel, age >> 4, lane)
    s.stray[:] = _stray(s.seed, s.duel, age + _TICKS, lane)


def begin_within(s: State, i: npt.NDArray[np.intp], now: int) -> None:
    """Begin the next duel of plays `i` at any tick, not only with a block, and draw what chance is left of this block."""
    _begin_duels(s, i, now)
    lane = (s.side[i] + s.duel[i] & 1) ^ _ROWS
    left = _TICKS[: r.BLOCK - now % r.BLOCK]
    s.drift[:, i] = _drift(s.seed[i], s.duel[i], np.zeros_like(i), lane)
    s.stray[now % r.BLOCK :, :, i] = _stray(s.seed[i], s.duel[i], left, lane)


def _drift(seed: Ints, duel: Ints, age: Ints, lane: Ints) -> Ints:
    return 2 * (draw(key(seed, duel * _STREAMS + 1), age, lane) & 1) - 1


def _stray(seed: Ints, duel: Ints, age: Ints, lane: Ints) -> Ints:
    return draw(key(seed, duel * _STREAMS + 2), age, lane) & 511


def _begin_duels(s: State, i: npt.NDArray[np.intp], now: int) -> None:
    """New duels in plays `i`. Two duels running share their starts, with the sides changed over."""
    if not i.size:
        return
    s.duel[i] += 1
    s.born[i] = now
    s.over[i] = False
    duel, where = s.duel[i], s.map[i]
    side = ((s.side[i] + duel) & 1) ^ _ROWS  # (2, K)
    pair = draw(key(s.seed[i], (duel >> 1) * _STREAMS), np.zeros_like(duel), side)
    own = STARTS[8 * where + (pair & 7)]
    cell = np.where(side == 1, r.CELLS * r.CELLS - 1 - own, own)
    s.x[:, i] = (cell % r.CELLS) * r.CELL + _HALF_CELL
    s.y[:, i] = (cell // r.CELLS) * r.CELL + _HALF_CELL
    s.hull[:, i] = s.gun[:, i] = np.where(side == 1, 3 * r.TURN // 4, r.TURN // 4)
    s.health[:, i] = r.HEALTH
    s.shell_live[:, i] = False
    for zeroed in (s.vx, s.vy, s.reload, s.power):
        zeroed[:, i] = 0
    spot = draw(key(s.seed[i], duel * _STREAMS), np.ones_like(duel), np.zeros_like(duel))
    s.pack_cell[i] = PACKS[2 * where + (spot & 1)]
    s.power_cell[i] = POWERS[2 * where + (spot >> 1 & 1)]
    s.pack_wait[i] = r.PACK_FIRST
    s.power_wait[i] = r.POWER_FIRST


def tick(s: State, orders: Orders, now: int) -> None:
    """Everything moves once: hulls and tanks, guns, fire, shells, then what lies about."""
    turned = _turn(s.hull, orders.heading, r.HULL_TURN)
    _drive(s, orders.speed * DRIVES.take(turned & 255))
    off = _turn(s.gun, orders.aim, r.GUN_TURN)
    for countdown in (s.reload, s.power, s.pack_wait, s.power_wait):
        np.maximum(countdown - 1, 0, out=countdown)  # four times as quick as subtracting `countdown > 0`
    _fly(s)
    _fire(s, np.flatnonzero((np.abs(off) <= orders.care) & (s.reload == 0)), s.stray[now % r.BLOCK])
    if now % r.THINK == 0:
        _pick_up(s)


def _turn(angle: Ints, wanted: Ints, most: int) -> Ints:
    """Turn `angle` towards `wanted` in place; how far off it still is, -128 .. 127."""
    off = ((wanted - angle + 128) & 255) - 128
    turned = np.minimum(np.maximum(off, -most), most)
    angle += turned
    angle &= 255
    off -= turned
    return off


def _drive(s: State, speed: Ints) -> None:
    """Move, first along x and then along y, so that a wall met at a slant is slid along."""
    row = s.map << 12
    vx = HEADING_X.take(s.hull) * speed
    vy = HEADING_Y.take(s.hull) * speed
    rank = row + (s.y >> r.FINE_SHIFT << 6)
    vx *= GO.take(rank + (s.x + vx >> r.FINE_SHIFT))
    x = s.x + vx
    rank = row + (x >> r.FINE_SHIFT)
    vy *= GO.take(rank + (s.y + vy >> r.FINE_SHIFT << 6))
    y = s.y + vy
    apart = np.maximum(np.abs(x[0] - x[1]), np.abs(y[0] - y[1]))
    if apart.min() < r.TANK_GAP:
        before = np.maximum(np.abs(s.x[0] - s.x[1]), np.abs(s.y[0] - s.y[1]))
        clear = (apart >= r.TANK_GAP) | (apart >= before)
        vx *= clear
        vy *= clear
    s.vx[:] = vx
    s.vy[:] = vy
    s.x += vx
    s.y += vy


def _fly(s: State) -> None:
    """Shells go one tick: what they meet first, the other tank or a wall, ends them."""
    cos, sin = s.shell_vx, s.shell_vy
    dx = s.x[::-1] - s.shell_x >> 5  # 2⁻¹² cells
    dy = s.y[::-1] - s.shell_y >> 5
    ahead = dx * cos + dy * sin >> 12
    aside = np.abs(dx * sin - dy * cos >> 12)
    step_x, step_y = cos * (r.SHELL_SPEED // 2), sin * (r.SHELL_SPEED // 2)
    s.shell_x += step_x
    s.shell_y += step_y
    near_wall = _in_wall(s)
    s.shell_x += step_x
    s.shell_y += step_y
    reach = r.SHELL_SPEED * 128 - near_wall * (r.SHELL_SPEED * 64)
    hit = s.shell_live & (aside <= r.SHELL_RADIUS) & (ahead <= reach) & (ahead >= -1024)
    s.shell_live &= near_wall + _in_wall(s) == 0
    s.shell_live &= ~hit
    hit &= ~s.over
    at = np.flatnonzero(hit)
    if at.size:
        _hurt(s, at)


def _in_wall(s: State) -> Ints:
    """1 where a shell is in a wall; a dead one may be anywhere, even off the map."""
    cell = (s.map << 8) + (s.shell_y >> r.SHIFT << 4) + (s.shell_x >> r.SHIFT)
    inside: Ints = SOLID.take(cell, mode="clip")
    return inside


def _hurt(s: State, at: npt.NDArray[np.intp]) -> None:
    """Shells numbered `at` (row * N + play) hit; a tank without health ends the duel, both without draw it."""
    n = s.over.size
    struck = np.where(at < n, at + n, at - n)
    turned = s.shell_heading.take(at) - s.hull.take(struck) & 255
    s.health.put(struck, s.health.take(struck) - DAMAGE.take(turned + s.shell_power.take(at)))
    dead = s.health <= 0
    ended = dead.any(axis=0) & ~s.over
    s.won += dead[::-1] & ~dead & ended
    s.drawn += dead[0] & dead[1] & ended
    s.over |= ended


def _fire(s: State, at: npt.NDArray[np.intp], stray: Ints) -> None:
    """Guns numbered `at` (row * N + play) fire; moving makes a shell stray further."""
    if not at.size:
        return
    moving = (s.vx.take(at) | s.vy.take(at)) != 0
    bits = stray.take(at)
    heading = s.gun.take(at) + SPREAD.take((bits & 63) + 64 * moving) & 255
    s.shell_live.put(at, True)
    s.shell_x.put(at, s.x.take(at))
    s.shell_y.put(at, s.y.take(at))
    s.shell_heading.put(at, heading)
    s.shell_vx.put(at, HEADING_X.take(heading))
    s.shell_vy.put(at, HEADING_Y.take(heading))
    s.shell_power.put(at, 256 * (s.power.take(at) > 0))
    s.reload.put(at, r.RELOAD + (bits >> 6 & r.RELOAD_MORE))


def _pick_up(s: State) -> None:
    """What lies on a tank's cell is taken; both tanks on it share it. The next lies at the other place."""
    cell = (s.y >> r.SHIFT << 4) + (s.x >> r.SHIFT)
    takes = (cell == s.pack_cell) & (s.pack_wait == 0)
    taken = takes[0] | takes[1]
    if taken.any():
        s.health[takes] = np.minimum(s.health[takes] + r.PACK_HEALS, r.HEALTH)
        s.pack_wait[taken] = r.PACK_AGAIN
        s.pack_cell[taken] = 255 - s.pack_cell[taken]
    takes = (cell == s.power_cell) & (s.power_wait == 0)
    taken = takes[0] | takes[1]
    if taken.any():
        s.power[takes] = r.POWER_LASTS
        s.power_wait[taken] = r.POWER_AGAIN
        s.power_cell[taken] = 255 - s.power_cell[taken]
