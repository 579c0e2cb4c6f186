"""What a learner sees of a duel: fifty whole numbers a tank in 256ths, exact and bounded, in the tank's own frame.

Directions come as cosine and sine (`…_on`, `…_right`: 256 and 0 is dead ahead, 0 and 256 to the right), so that nothing
jumps where a turn begins anew. Ten of the numbers are the scripted brain's features; its eleventh is always 1, which a
net has by itself. All that the orders of a behaviour depend on is here, but for the way to each behaviour's goal.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from planner.arena import rules as r
from planner.arena.rays import FREE, HALF_SHIFT, HALVES, HEADINGS
from planner.arena.senses import FEATURES, ONE, Senses, look
from planner.arena.state import Ints, State
from planner.arena.tables import BEARING, COVER, FAR, HEADING_X, HEADING_Y, LENGTH, WAY

Seen = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeing:
    """One number of the observation; bounds in 256ths."""

    name: str
    meaning: str
    low: int
    high: int


SIDES: Final = 8  # directions in which free way is told
_TURNS: Final = ("ahead", "ahead right", "right", "behind right", "behind", "behind left", "left", "ahead left")


def _see(low: int, high: int, /, **named: str) -> list[Seeing]:
    return [Seeing(name=name, meaning=meaning, low=low, high=high) for name, meaning in named.items()]


OBSERVATION: Final = (
    *_see(  # noqa: S604 - a tank's shell
        0,
        ONE,
        my_health="own health; 256 is whole",
        enemy_health="the enemy's health",
        distance="to the enemy; 16 a cell, 256 from 16 cells on",
        sight="256 when the two see each other, else 0",
        loaded="how nearly the own gun is loaded; 256 is ready",
        enemy_loaded="how nearly the enemy's gun is loaded",
        threat="in sight, how nearly the enemy's gun points at the tank: 8 less for each heading that it is off",
        shell="how near the enemy's shell is that may hit: 32 less for each cell, 0 when none comes",
        pack="how near the health pack is: 20 less for each cell of the way, 0 while none lies there",
        power="how near the power-up is, likewise",
    ),
    *_see(
        -ONE,
        ONE,
        enemy_on="cosine from the hull to the enemy",
        gun_on="cosine from the gun to the enemy",
        way_on="cosine from the hull to the next cell of the way to the enemy",
        shell_on="cosine from the hull to where the coming shell goes, 0 when none comes",
        enemy_right="sine from the hull to the enemy",
        gun_right="sine from the gun to the enemy",
        way_right="sine from the hull to the next cell of the way",
        shell_right="sine from the hull to where the coming shell goes, 0 when none comes",
        hull_at_me="cosine from the enemy's hull to the tank: 256 shows its front",
        gun_at_me="cosine from the enemy's gun to the tank",
        hull_past_me="sine from the enemy's hull to the tank",
        gun_past_me="sine from the enemy's gun to the tank",
        speed="own speed along the hull; 192 is full",
        slide="own speed to the right of the hull, along a wall",
        enemy_leaves="the enemy's speed away from the tank",
        enemy_crosses="the enemy's speed to the right, as the tank looks at it",
        drift="256 or -256: which way round circle and dodge go now",
        shell_aside="on which side the coming shell passes, 256 a cell, 0 when none comes",
        my_shell_aside="on which side of the enemy the own shell passes, 0 when it cannot meet it",
    ),
    *_see(
        0,
        ONE,
        my_shell="how near the own shell is to the enemy that it may hit, as `shell`",
        shell_power="256 when the coming shell does half as much again",
        my_power="what the own power-up still lasts; 240 is 10 s",
        enemy_power="what the enemy's power-up still lasts",
        time_left="until the duel is drawn; 240 is 60 s",
        pack_wait="until the health pack lies there; 256 is 20 s",
        power_wait="until the power-up lies there, likewise",
    ),
    *_see(
        0,
        FAR,
        way="length of the way to the enemy; 5 a cell straight, 7 slanting, cut at 255",
        cover_way="way to the nearest cell that the enemy does not see; 20 a cell, cut at 255",
        pack_way="way to where the health pack lies or will",
        power_way="way to where the power-up lies or will",
        enemy_pack_way="the enemy's way to the health pack",
        enemy_power_way="the enemy's way to the power-up",
    ),
    *(
        Seeing(name=f"free_{i}", meaning=f"free {turn} of the hull, to the first wall; 32 a cell", low=0, high=ONE)
        for i, turn in enumerate(_TURNS)
    ),
)
OBS: Final = len(OBSERVATION)
NAMES: Final = tuple(seeing.name for seeing in OBSERVATION)
LOW: Final = np.array([seeing.low for seeing in OBSERVATION], dtype=np.int32)
HIGH: Final = np.array([seeing.high for seeing in OBSERVATION], dtype=np.int32)

_AT: Final = {name: i for i, name in enumerate(NAMES)}
_ON, _RIGHT, _AT_ME, _PAST, _OWN = (_AT[n] for n in ("enemy_on", "enemy_right", "hull_at_me", "hull_past_me", "speed"))
_SHELL, _MINE, _WAYS, _RAYS = (_AT[n] for n in ("drift", "my_shell", "way", "free_0"))
_COS, _SIN = HEADING_X >> 4, HEADING_Y >> 4  # 256ths
PACE: Final = 19  # velocity times cosine to 256ths of 2 cells a second
_AROUND = np.arange(SIDES, dtype=np.int64)[:, None, None] * (HEADINGS // SIDES)


def observe(s: State, senses: Senses, now: int) -> Seen:
    """(2, N, OBS) of both tanks, a view whose last axis is not the contiguous one; `now` is the tick to come."""
    o = np.empty((OBS, *s.x.shape), dtype=np.int32)
    o[:_ON] = senses.features[1 : len(FEATURES)]
    _directions(o, s, senses)
    _speeds(o[_OWN:_SHELL], s, senses)
    _shells(o, s, senses)
    _clocks(o[_MINE + 2 : _WAYS], s, now)
    _ways(o[_WAYS:_RAYS], s, senses)
    o[_RAYS:] = _rays(s)
    return o.transpose(1, 2, 0)


def _directions(o: Seen, s: State, senses: Senses) -> None:
    """Cosines and sines to the enemy from hull and gun, to its way, and of its shell; and the enemy's of the first two."""
    to = np.empty((4, *s.x.shape), dtype=np.int64)
    to[0] = senses.bearing - s.hull
    to[1] = senses.bearing - s.gun
    step = WAY.take((s.map << 16) + (senses.cell[::-1] << 8) + senses.cell).astype(np.int64)
    middle = r.CELL // 2
    to[2] = BEARING.take(look(((step & 15) << r.SHIFT) + middle - s.x, (step >> 4 << r.SHIFT) + middle - s.y)) - s.hull
    to[3] = s.shell_heading[::-1] - s.hull
    to &= r.TURN - 1
    o[_ON:_RIGHT] = _COS.take(to)
    o[_RIGHT:_AT_ME] = _SIN.take(to)
    o[_AT_ME:_PAST] = o[_ON : _ON + 2, ::-1]
    o[_PAST:_OWN] = o[_RIGHT : _RIGHT + 2, ::-1]
    for at in (_RIGHT - 1, _AT_ME - 1):
        o[at] *= senses.coming


def _speeds(o: Seen, s: State, senses: Senses) -> None:
    """Own speed in the hull's frame, the enemy's in that of the line of sight."""
    cos, sin = HEADING_X.take(s.hull), HEADING_Y.take(s.hull)
    o[0] = s.vx * cos + s.vy * sin >> PACE
    o[1] = s.vy * cos - s.vx * sin >> PACE
    cos, sin = HEADING_X.take(senses.bearing), HEADING_Y.take(senses.bearing)
    vx, vy = s.vx[::-1], s.vy[::-1]
    o[2] = vx * cos + vy * sin >> PACE
    o[3] = vy * cos - vx * sin >> PACE


def _shells(o: Seen, s: State, senses: Senses) -> None:
    """Drift, and both shells in the air."""
    o[_SHELL] = s.drift * ONE
    o[_SHELL + 1] = (senses.aside >> 4) * senses.coming
    o[_SHELL + 2] = o[_SHELL + 1, ::-1]
    o[_MINE] = senses.features[FEATURES.index("shell"), ::-1]
    o[_MINE + 1] = s.shell_power[::-1] * senses.coming


def _clocks(o: Seen, s: State, now: int) -> None:
    """What lasts, and what is to come."""
    o[0] = s.power * 3
    o[1] = o[0, ::-1]
    o[2] = np.maximum(r.DUEL_LIMIT - now + s.born, 0) >> 1
    o[3] = (s.pack_wait << 3) // 5
    o[4] = (s.power_wait << 3) // 5


def _ways(o: Seen, s: State, senses: Senses) -> None:
    """Path lengths."""
    here = (s.map << 16) + senses.cell
    to_enemy = here + (senses.cell[::-1] << 8)
    o[0] = LENGTH.take(to_enemy)
    o[1] = np.minimum(COVER.take(to_enemy), FAR // 4) * np.uint8(4)
    o[2] = LENGTH.take(here + (s.pack_cell << 8))
    o[3] = LENGTH.take(here + (s.power_cell << 8))
    o[4:6] = o[2:4, ::-1]


def _rays(s: State) -> Ints:
    """(8, 2, N) free way round the hull, from the nearest of 32 headings."""
    half = ((s.map * HALVES) + (s.y >> HALF_SHIFT)) * HALVES + (s.x >> HALF_SHIFT)
    heading = (s.hull + 4 >> 3) + _AROUND & HEADINGS - 1
    rays: Ints = FREE.take(half * HEADINGS + heading).astype(np.int64) << 2
    return rays
