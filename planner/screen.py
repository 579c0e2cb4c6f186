"""A screen: one job of many plays in mirrored pairs, all variables changed at once. `fleet.screen/1`, a job's payload.

payload   schema       "fleet.screen/1"                   name, census, seconds, play_timeout_s, deterministic, title
          screen       its id                             defaults  hash of the best when it was made
          seeds        [low, high): a pair each           pairs     read of the slopes when it was made
          shake        "mirrored": the centre plus and minus reach, up or down at random for each variable
                       "beside": the centre shaken so, by a part of its reach, beside the centre itself
          variables    [[name, centre, reach, step, low, high, 1 if whole], …]
result    schema       "fleet.reads/1", as of a trial: [seed, the one side's score, the other's]

A job carries no points: both sides' weights are a pure function of the payload and the seed. The signs are the top bits of
Philox's raw output (Salmon et al. 2011), whose stream numpy promises to keep, keyed by the screen's id and the seed, a word
for each variable in turn. Whole variables are played at whole numbers: centre and reach are rounded up or down at random,
so that they are right on average. What leaves a range is cut at its bound.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import gt
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fleetd import BadData, count, encode_json
from planner.seeds import Draw, Purpose, Span, stray
from planner.trial import are_numbers, decode_span, number_of

SCREEN: Final = "fleet.screen/1"
PARTS: Final = 4  # lengths of the shakes beside a centre; a fifth kind of pair has one variable changed by a step
DIGITS: Final = 12  # of a played value, beside the point of its step
FINEST: Final = 300  # digits after the point at most: what a double can scale by
ID: Final = re.compile(r"s[0-9a-f]{10}", re.ASCII)
_UNIT: Final = 2.0**-53

Vector = npt.NDArray[np.float64]
Numbers = npt.NDArray[Any]


class Shake(StrEnum):
    MIRRORED = "mirrored"
    BESIDE = "beside"


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A variable as a screen varies it."""

    name: str
    centre: float
    reach: float
    step: float
    low: float
    high: float
    whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """One job's pairs."""

    id: str
    name: str
    census: tuple[str, ...]
    seconds: float
    seeds: Span
    axes: tuple[Axis, ...]
    defaults: str
    pairs: int
    shake: Shake
    play_timeout_s: float
    deterministic: bool

    @property
    def span(self) -> Span:
        return self.seeds

    @property
    def purpose(self) -> Purpose:
        return Purpose.SEARCH

    @property
    def draw(self) -> Draw:
        return Draw(self.seeds, Purpose.SEARCH, self.id)

    @property
    def change(self) -> str:
        """For people."""
        pairs = f"{len(self.seeds)} {'mirrored pairs' if self.shake is Shake.MIRRORED else 'pairs beside the best'}"
        return f"{count(len(self.axes), 'variable')}, {pairs}"

    @property
    def hashes(self) -> dict[str, str]:
        """A side is another player on each seed: known by the screen."""
        return {"candidate": f"{self.id}+", "best": f"{self.id}-"}

    def players_on(self, seed: int) -> dict[str, dict[str, Any]]:
        """The two sides, as a census takes them."""
        names = [axis.name for axis in self.axes]
        sides = (dict(zip(names, side.tolist(), strict=True)) for side in points(self, seed))
        return {side: {"weights": weights} for side, weights in zip(("candidate", "best"), sides, strict=True)}


def points(screen: Screen, seed: int) -> tuple[Vector, Vector]:
    """The weights of both sides, in the order of the axes."""
    one, other = sides(screen, [seed])
    return one[0], other[0]


def sides(screen: Screen, seeds: Sequence[int]) -> tuple[Vector, Vector]:
    """The weights of both sides on each seed: (n, D) each."""
    d, by, key = len(screen.axes), _columns(screen), int(screen.id[1:], 16)
    raw = np.array([np.random.Philox(key=[key, seed]).random_raw(3 * d).reshape(3, d) for seed in seeds])
    sign = np.where(raw[:, 0] >> np.uint64(63), 1.0, -1.0)
    centre_up, reach_up = ((raw[:, lane] >> np.uint64(11)) * _UNIT for lane in (1, 2))
    whole = by.whole > 0
    centre = np.where(whole, np.floor(by.centre + centre_up), by.centre)
    reach = by.reach * _parts(screen, seeds)
    reach = np.where(whole, np.maximum(1.0, np.floor(reach + reach_up)), reach)
    if screen.shake is Shake.MIRRORED:
        return _played(by, centre + sign * reach), _played(by, centre - sign * reach)
    reach = np.where(_alone(screen, seeds), np.where(whole, np.maximum(1.0, by.step), by.step), reach)
    reach = np.where(_others(screen, seeds), 0.0, reach)
    return _played(by, centre + sign * reach), _played(by, centre)


@dataclass(frozen=True, slots=True)
class Columns:
    """The axes' numbers, (D,) each."""

    centre: Vector
    reach: Vector
    step: Vector
    low: Vector
    high: Vector
    whole: Vector


def _columns(screen: Screen) -> Columns:
    rows = [(a.centre, a.reach, a.step, a.low, a.high, float(a.whole)) for a in screen.axes]
    return Columns(*np.array(rows).T)


def _kind(seeds: Sequence[int]) -> Numbers:
    """Which length the pairs beside the centre have, (n, 1): 0 to PARTS - 1, or PARTS where one variable alone is changed.

    By the seed itself, so that screens of a few seeds come to every length and every variable, too.
    """
    kind: Numbers = np.array(seeds)[:, None] % (PARTS + 1)
    return kind


def _parts(screen: Screen, seeds: Sequence[int]) -> Vector | float:
    """Of the reach."""
    if screen.shake is Shake.MIRRORED:
        return 1.0
    parts: Vector = (_kind(seeds) + 1) / PARTS
    return parts


def _alone(screen: Screen, seeds: Sequence[int]) -> Numbers:
    """(n, D): where a variable alone is changed."""
    turn: Numbers = np.array(seeds)[:, None] // (PARTS + 1) % len(screen.axes)
    alone: Numbers = (_kind(seeds) == PARTS) & (np.arange(len(screen.axes)) == turn)
    return alone


def _others(screen: Screen, seeds: Sequence[int]) -> Numbers:
    """(n, D): where another one alone is changed."""
    others: Numbers = (_kind(seeds) == PARTS) & ~_alone(screen, seeds)
    return others


def _played(by: Columns, value: Vector) -> Vector:
    """Inside the range, and to so many digits of the step."""
    scale = 10.0 ** np.minimum(DIGITS - 1 - np.floor(np.log10(by.step)), FINEST)
    played: Vector = np.round(np.clip(value, by.low, by.high) * scale) / scale + 0.0
    return played


def in_steps(screen: Screen, seeds: Sequence[int]) -> Vector:
    """(n, D): half of what sets the two sides apart on each seed, in steps."""
    one, other = sides(screen, seeds)
    return (one - other) / (2 * _columns(screen).step)


def frame_in_steps(screen: Screen) -> tuple[Vector, Vector, Vector]:
    """Where its pairs lie round, and how far down and up each variable goes, (D,) each."""
    by = _columns(screen)
    return by.centre / by.step, by.low / by.step, by.high / by.step


def screen_id(axes: Sequence[Axis], shake: Shake, seconds: float, seeds: Span) -> str:
    """A name for the screen: s and ten hex digits."""
    what = [[[*_listed(axis)] for axis in axes], str(shake), float(seconds), seeds.low, seeds.high]
    return "s" + hashlib.sha256(encode_json(what)).hexdigest()[:10]


def shape_of(variables: Iterable[tuple[str, float, float, float, bool]]) -> str:
    """A name for a space: the names, steps, bounds of its variables, and whether they are whole, in order."""
    what = [[name, float(step), float(low), float(high), int(whole)] for name, step, low, high, whole in variables]
    return hashlib.sha256(encode_json(what)).hexdigest()[:16]


def _listed(axis: Axis) -> tuple[Any, ...]:
    return (axis.name, axis.centre, axis.reach, axis.step, axis.low, axis.high, int(axis.whole))


def encode_screen(screen: Screen) -> dict[str, Any]:
    """The job's payload."""
    return {
        "schema": SCREEN,
        "title": f"{screen.change}, search seeds from {screen.seeds.low}",
        "name": screen.name,
        "census": list(screen.census),
        "seconds": screen.seconds,
        "purpose": str(screen.purpose),
        "screen": screen.id,
        "defaults": screen.defaults,
        "seeds": [screen.seeds.low, screen.seeds.high],
        "pairs": screen.pairs,
        "shake": str(screen.shake),
        "variables": [list(_listed(axis)) for axis in screen.axes],
        "play_timeout_s": screen.play_timeout_s,
        "deterministic": screen.deterministic,
    }


def decode_screen(payload: Mapping[str, Any]) -> Screen:
    """The screen that a payload describes; raises BadData saying what is wrong with it."""
    try:
        return Screen(
            id=_named(payload["screen"]),
            name=str(payload["name"]),
            census=tuple(str(word) for word in payload["census"]),
            seconds=number_of(payload["seconds"]),
            seeds=decode_span(payload["seeds"]),
            axes=_axes(payload["variables"]),
            defaults=str(payload["defaults"]),
            pairs=int(number_of(payload["pairs"])),
            shake=Shake(payload["shake"]),
            play_timeout_s=float(number_of(payload["play_timeout_s"])),
            deterministic=bool(payload["deterministic"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise BadData(f"the {SCREEN} payload cannot be read: {type(error).__name__}: {error}") from error


def _named(value: Any) -> str:
    if not isinstance(value, str) or not ID.fullmatch(value):
        raise ValueError(f"{str(value)[:80]!r} is no screen's id")
    return value


def _axes(value: Any) -> tuple[Axis, ...]:
    """By columns, for a long ledger has 110 variables in each of thousands of rows."""
    names, *numbers, whole = zip(*value, strict=True)
    centre, reach, step, low, high = numbers
    if (
        set(map(type, names)) != {str}
        or not all(map(are_numbers, numbers))
        or min(step) <= 0
        or any(map(gt, low, high))
    ):
        raise ValueError(
            "a variable of the screen has no name, odd numbers, no step, or its bounds the wrong way round"
        )
    return tuple(
        Axis(name=n, centre=c, reach=r, step=s, low=lo, high=hi, whole=bool(w))
        for n, c, r, s, lo, hi, w in zip(names, centre, reach, step, low, high, whole, strict=True)
    )


def stray_screen(screen: Screen) -> str | None:
    """What is wrong with a screen whose seeds are not all search seeds, or None."""
    return stray(screen.draw)
