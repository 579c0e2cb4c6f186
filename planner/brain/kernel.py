"""The scripted brain for one play, and whole plays: what match.py plays in lockstep, one behind the other."""

from typing import Final

import numpy as np

from planner.arena import rules as r
from planner.arena.compiled import compiled, kernel
from planner.arena.kernel import (
    AIM,
    BEARING,
    CARD,
    DRIFT,
    FLOOR,
    HEADING,
    HULL,
    LOOKUP,
    MAP,
    PACK_CELL,
    PACK_WAIT,
    POWER_CELL,
    POWER_WAIT,
    SHELL_HEADING,
    VX,
    VY,
    WAY,
    Bytes,
    Row,
    X,
    Y,
    at,
    begin_block,
    look,
    tick,
)
from planner.arena.kernel import CARE as ORDERED_CARE
from planner.arena.kernel import SPEED as ORDERED_SPEED
from planner.arena.kernel_senses import ASIDE, AWAY, CELL, COMING, FACING, FELT, KINDS, SEEN, SIGHT_FELT, perceive
from planner.arena.state import STATE_ROWS, Ints
from planner.arena.tables import HEADING_X, HEADING_Y
from planner.brain.scripted import (
    BEHIND,
    BOOST,
    CARE,
    CHARGE,
    CIRCLE,
    CLOSE,
    DIRECT,
    DODGE,
    EITHER_WAY,
    FLANK,
    HEAL,
    HUNT,
    KIND,
    ROUND,
    SPEED,
    WIDE,
    Whole,
)
from planner.brain.weights import BEHAVIOURS

PULLS: Final = len(BEHAVIOURS)
ORDER_ROWS: Final = CARD - STATE_ROWS + 2  # orders, and the two behaviours that gave them
BEHAVIOUR: Final = CARD
BEHAVIOURS_FROM: Final = BEHAVIOUR - STATE_ROWS
_NO_PULL: Final = -(1 << 40)
_MIDDLE: Final = r.CELL // 2


@compiled
def choose(weights: Whole, player: int, w: Row, me: int) -> int:
    """The behaviour that pulls most, the first of equals; `weights` (players, 11, 10)."""
    best, most = 0, _NO_PULL
    for b in range(PULLS):
        pull = 0
        for k in range(KINDS):
            pull += weights[player, k, b] * w[FELT + KINDS * me + k]
        if pull > most:
            best, most = b, pull
    return best


@compiled
def give_orders(c: Row, lookup: Bytes, w: Row, me: int, behaviour: int) -> None:
    seen = w[SIGHT_FELT + KINDS * me] > 0
    heading, speed = w[FACING + me], SPEED[behaviour]
    if DIRECT[behaviour]:
        heading = sideways(c, w, me, behaviour)
        if abs((heading - c[HULL + me] & 255) - 128) < EITHER_WAY[behaviour]:
            heading, speed = heading + 128, -speed
    elif stops(c, w, me, behaviour, seen):
        speed = 0
    else:
        step = at(
            lookup, WAY + KIND[behaviour] + (c[MAP] << 16) + (goal(c, lookup, w, me, behaviour) << 8) + w[CELL + me]
        )
        if step == w[CELL + me]:
            speed = 0
        else:
            dx, dy = ((step & 15) << r.SHIFT) + _MIDDLE - c[X + me], (step >> 4 << r.SHIFT) + _MIDDLE - c[Y + me]
            heading = at(lookup, BEARING + look(dx, dy))
    c[HEADING + me] = heading
    c[ORDERED_SPEED + me] = speed
    c[AIM + me] = aim(c, lookup, w, me)
    c[ORDERED_CARE + me] = CARE[behaviour] if seen else -1


@compiled
def stops(c: Row, w: Row, me: int, behaviour: int, seen: bool) -> bool:  # noqa: FBT001
    if behaviour == CHARGE:
        return w[AWAY + me] <= CLOSE
    if behaviour == HEAL:
        return c[PACK_WAIT] > 0
    if behaviour == BOOST:
        return c[POWER_WAIT] > 0
    return behaviour == HUNT and seen


@compiled
def goal(c: Row, lookup: Bytes, w: Row, me: int, behaviour: int) -> int:
    if behaviour == HEAL:
        return c[PACK_CELL]
    if behaviour == BOOST:
        return c[POWER_CELL]
    them = 1 - me
    if behaviour == FLANK:
        x = c[X + them] - HEADING_X[c[HULL + them]] * BEHIND >> r.SHIFT
        y = c[Y + them] - HEADING_Y[c[HULL + them]] * BEHIND >> r.SHIFT
        cell = (min(max(y, 0), r.CELLS - 1) << 4) + min(max(x, 0), r.CELLS - 1)
        return at(lookup, FLOOR + (c[MAP] << 8) + cell)
    return w[CELL + them]


@compiled
def sideways(c: Row, w: Row, me: int, behaviour: int) -> int:
    if behaviour == CIRCLE:
        off: int = ROUND[w[AWAY + me]]
        return w[FACING + me] + c[DRIFT + me] * off
    if behaviour != DODGE:
        return w[FACING + me]
    if w[COMING + me]:
        return c[SHELL_HEADING + 1 - me] + (-64 if w[ASIDE + me] >= 0 else 64)
    return w[FACING + me] + 64 * c[DRIFT + me]


@compiled
def aim(c: Row, lookup: Bytes, w: Row, me: int) -> int:
    them, flight = 1 - me, w[AWAY + me] * r.LEAD
    dx = c[X + them] - c[X + me] + (c[VX + them] * flight >> 8)
    dy = c[Y + them] - c[Y + me] + (c[VY + them] * flight >> 8)
    return at(lookup, BEARING + look(min(max(dx, -WIDE), WIDE), min(max(dy, -WIDE), WIDE)))


@compiled
def play_card(c: Row, lookup: Bytes, weights: Whole, e: int, w: Row, first: int, last: int) -> None:
    """Ticks first to last - 1 of one play; `weights` (2 * plays, 11, 10), two rows a play."""
    for now in range(first, last):
        if now % r.BLOCK == 0:
            begin_block(c, lookup, now)
        if now % r.THINK == 0:
            perceive(c, lookup, w)
            for me in range(2):
                c[BEHAVIOUR + me] = choose(weights, 2 * e + me, w, me)
            for me in range(2):
                give_orders(c, lookup, w, me, c[BEHAVIOUR + me])
        tick(c, lookup, now)


@kernel
def _play_columns(block: Ints, orders: Ints, lookup: Bytes, weights: Whole, first: int, last: int) -> None:
    c, w = np.empty(BEHAVIOUR + 2, np.int64), np.empty(SEEN, np.int64)
    for e in range(block.shape[1]):
        c[:STATE_ROWS] = block[:, e]
        c[STATE_ROWS:] = orders[:, e]
        play_card(c, lookup, weights, e, w, first, last)
        block[:, e] = c[:STATE_ROWS]
        orders[:, e] = c[STATE_ROWS:]


def play_columns(block: Ints, orders: Ints, weights: Whole, first: int, last: int) -> None:
    """Play ticks first to last - 1 of the N plays whose state is `block`; `weights` (N, 2, 11, 10).

    `orders` (ORDER_ROWS, N) carries what the brains want from a call to the next; where `first` is a multiple of THINK
    it may hold anything.
    """
    _play_columns(block, orders, LOOKUP, weights.reshape(-1, *weights.shape[2:]), first, last)
