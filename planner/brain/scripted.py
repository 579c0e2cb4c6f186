"""The scripted brain: which behaviour pulls most, and the orders that it gives. Whole numbers throughout."""

from typing import Final

import numpy as np
import numpy.typing as npt

from planner.arena import rules as r
from planner.arena.senses import Senses, look
from planner.arena.state import Ints, State
from planner.arena.step import Orders
from planner.arena.tables import BEARING, FLOOR, HEADING_X, HEADING_Y, KINDS, WAY
from planner.brain.weights import BEHAVIOURS

Whole = npt.NDArray[np.int32]

_AT: Final = {name: i for i, name in enumerate(BEHAVIOURS)}
CHARGE, FLANK, CIRCLE, HEAL, BOOST, DODGE, HUNT = (
    _AT[n] for n in ("charge", "flank", "circle", "heal", "boost", "dodge", "hunt")
)
BEHIND: Final = 80  # 1/32 cell: flank makes for a point this far behind the enemy
WIDE: Final = 15 * r.CELL  # as far as aim is looked up
CLOSE: Final = 12  # eighths of a cell: charge stops here


def _by_behaviour(default: int, **other: int) -> Ints:
    return np.array([other.get(name, default) for name in BEHAVIOURS], dtype=np.int64)


# By behaviour: where WAY has its kind; whether it steers by a bearing and not by a way; its speed; its care.
KIND = _by_behaviour(0, cover=KINDS)
DIRECT = _by_behaviour(0, circle=1, hold=1, back=1, dodge=1).astype(np.bool_)
SPEED = _by_behaviour(r.FORWARD, hold=0, back=r.REVERSE)
EITHER_WAY = _by_behaviour(0, circle=64, dodge=64)  # goes backwards if that asks for less turning
CARE = _by_behaviour(2, charge=4, flank=3, hold=1, cover=-1, heal=-1, boost=-1, dodge=-1)
# By distance in eighths: how far off the bearing circling goes, so that it neither closes in nor drifts off.
ROUND = np.concatenate([np.full(24, 88), np.full(24, 64), np.full(140, 44)]).astype(np.int64)


def choose(weights: Whole, senses: Senses) -> npt.NDArray[np.intp]:
    """(2, N) number of the behaviour that pulls most, the first of equals. `weights` is (11, 10, 2, N)."""
    return strongest(weights, senses.features)


def strongest(weights: Whole, features: Whole) -> npt.NDArray[np.intp]:
    """(…) number of the behaviour that pulls most by weights (11, 10, …) and features (11, …)."""
    pull: Whole = np.add.reduce(weights * features[:, None], axis=0, dtype=np.int32)
    first: npt.NDArray[np.intp] = np.argmax(pull, axis=0)
    return first


def give_orders(s: State, senses: Senses, behaviour: npt.NDArray[np.intp], orders: Orders) -> None:
    """Rewrite `orders` as the behaviours want them."""
    speed = SPEED.take(behaviour)
    direct = DIRECT.take(behaviour)
    seen = senses.features[4] > 0
    along, stay = _along(s, senses, behaviour)
    sideways = _sideways(s, senses, behaviour)
    backwards = np.abs((sideways - s.hull & 255) - 128) < EITHER_WAY.take(behaviour)
    heading = np.where(direct, np.where(backwards, sideways + 128, sideways), along)
    speed = np.where(backwards, -speed, speed)
    there = (behaviour == CHARGE) & (senses.distance <= CLOSE)
    idle = ((behaviour == HEAL) & (s.pack_wait > 0)) | ((behaviour == BOOST) & (s.power_wait > 0))
    stops = ~direct & (stay | there | idle | ((behaviour == HUNT) & seen))
    orders.heading = np.where(stops, senses.bearing, heading)
    orders.speed = np.where(stops, 0, speed)
    orders.aim = _aim(s, senses)
    orders.care = np.where(seen, CARE.take(behaviour), -1)


def _along(s: State, senses: Senses, behaviour: npt.NDArray[np.intp]) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Heading to the middle of the next cell of the way, and whether there is no further to go."""
    goal = np.where(behaviour == HEAL, s.pack_cell, senses.cell[::-1])
    goal = np.where(behaviour == BOOST, s.power_cell, goal)
    goal = np.where(behaviour == FLANK, _behind(s), goal)
    step = WAY.take(KIND.take(behaviour) + (s.map << 16) + (goal << 8) + senses.cell).astype(np.int64)
    dx = ((step & 15) << r.SHIFT) + r.CELL // 2 - s.x
    dy = (step >> 4 << r.SHIFT) + r.CELL // 2 - s.y
    return BEARING.take(look(dx, dy)), step == senses.cell


def _behind(s: State) -> Ints:
    """The free cell nearest to a point behind the enemy."""
    x = s.x - HEADING_X.take(s.hull) * BEHIND >> r.SHIFT
    y = s.y - HEADING_Y.take(s.hull) * BEHIND >> r.SHIFT
    cell = (_between(y, 0, r.CELLS - 1) << 4) + _between(x, 0, r.CELLS - 1)
    behind: Ints = FLOOR.take((s.map << 8) + cell)[::-1]
    return behind


def _sideways(s: State, senses: Senses, behaviour: npt.NDArray[np.intp]) -> Ints:
    """Heading of the behaviours that steer by a bearing."""
    around = senses.bearing + s.drift * ROUND.take(senses.distance)
    across = s.shell_heading[::-1] + np.where(senses.aside >= 0, -64, 64)
    dodge = np.where(senses.coming, across, senses.bearing + 64 * s.drift)
    heading = np.where(behaviour == CIRCLE, around, senses.bearing)
    return np.where(behaviour == DODGE, dodge, heading)


def _aim(s: State, senses: Senses) -> Ints:
    """Heading to where the enemy will be three quarters through a shell's flight."""
    flight = senses.distance * r.LEAD
    dx = s.x[::-1] - s.x + (s.vx[::-1] * flight >> 8)
    dy = s.y[::-1] - s.y + (s.vy[::-1] * flight >> 8)
    return BEARING.take(look(_between(dx, -WIDE, WIDE), _between(dy, -WIDE, WIDE)))


def _between(a: Ints, low: int, high: int) -> Ints:
    """np.clip, which takes four times as long for arrays as small as these."""
    between: Ints = np.minimum(np.maximum(a, low), high)
    return between
