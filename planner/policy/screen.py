"""screen: mirrored pairs of all variables at once round a centre that follows their slopes, and leaps to where it has come.

First a brain shaken by four lengths plays beside the best: that says how far to shake (shaking.py). Then come mirrored pairs
round the centre, at first the best, and after each screen that was read the centre moves on by what the slopes say
(slopes.py). A variable is shaken the farther, the less its curvature is: each is to cost the brain about the same. Once its
centre has gone from the start, it is shaken the shorter, the more is known: a long shake about a place that was found reads
what lies far to both sides, and draws the centre off where the sides are not alike. When the centre is expected to be better
than the best by so much that held-out seeds may well show it at a fair price, it leaps there: held-out seeds alone decide, and
the best is what they adopt. A share of the plays, the floor, goes to raced trials of single variables, so that each is visited
on its own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import Final

import numpy as np

from planner.policy import slopes as s
from planner.policy.asks import Ask, Leap, Move, Pairs, Terms
from planner.policy.race import race
from planner.policy.shaking import Shaken, is_beside, shaken
from planner.policy.slopes import Slopes, Vector
from planner.screen import Axis, Screen, Shake, centre_in_steps, in_steps
from planner.screened import Sheaf
from planner.space import Variable
from planner.standing import Course, Standing

BESIDE: Final = 120  # pairs of a shaken brain
FIRST: Final = 200  # mirrored pairs before the centre moves
REACH: Final = 3.0  # steps: the longest shake, until it shows nothing
RANGE_PART: Final = 0.25  # of a variable's range: no shake is longer
GROWTH: Final = 1.5  # of the longest shake, each time that SILENT pairs show nothing
SILENT: Final = 440
SHOWN: Final = 2.0  # standard deviations of the slopes' sum of squares
SHORTEST: Final = 0.8  # steps
GONE: Final = (
    1.0  # steps from the start: a variable whose centre is as far is shaken the shorter, the more pairs were read
)
SHRINK: Final = 0.101  # by which power of the pairs; Spall's (1998) for the lengths of his perturbations
PART: Final = 0.3  # of the way to where the slopes say that they are zero
LONGEST: Final = 1 / 6  # of the shake: a variable's move from screen to screen
SURER: Final = 3.5  # standard errors that a leap's held-out is expected to come to, before any leap was adopted
SURE: Final = 2.5  # and then, as the slopes have been shown to lead upwards
PRICE: Final = 0.1  # of the plays since the last leap: what its held-out may take
DOUBTS: Final = 3  # leaps that failed one after another each halve the price, at most so often
LEAST_MOVE: Final = 0.05  # steps: what a leap leaves as it is

Read = tuple[Vector, Vector]
Shape = tuple[tuple[str, float, float, float, bool], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """What the screens say together."""

    pairs: int  # mirrored ones that were read
    shaken: Shaken | None
    slopes: Slopes | None
    reach: float  # steps


def screen(standing: Standing, terms: Terms, room: int) -> list[Ask]:
    """The next `room` asks; none only when no variable can move at all."""
    if not terms.movable:
        return []
    belief = believed(standing, terms)
    asks: list[Ask] = []
    if belief.slopes and (leap := leap_due(standing, terms, belief)):
        asks.append(leap)
    owed = race(standing, terms, room)
    while len(asks) < room:
        queued = [ask for ask in asks if isinstance(ask, Pairs)]
        if owed and _floor_is_due(standing, terms, asks):
            asks.append(owed.pop(0))
        else:
            asks.append(_pairs(standing, terms, belief, queued))
    return asks[:room]


def fitting(standing: Standing, terms: Terms) -> list[Sheaf]:
    """What was read of the space as it is, under the newest build and rules."""
    ours = tuple((v.name, v.step, v.low, v.high, v.type == "int") for v in terms.space.weights())
    fit = [
        sheaf
        for sheaf in standing.screened.sheaves
        if sheaf.screen.seconds == terms.seconds and MEMORY.shape(sheaf.screen) == ours
    ]
    newest = max(((sheaf.at, sheaf.rules) for sheaf in fit), default=("", ("", "")))[1]
    return [sheaf for sheaf in fit if sheaf.rules == newest]


def mirrored_of(fit: Iterable[Sheaf]) -> tuple[list[Sheaf], int]:
    """Those of mirrored pairs, and how many pairs that are."""
    mirrored = [sheaf for sheaf in fit if not is_beside(sheaf)]
    return mirrored, sum(len(sheaf.differences) for sheaf in mirrored)


def believed(standing: Standing, terms: Terms) -> Belief:
    """What the screens say together."""
    fit = fitting(standing, terms)
    known = MEMORY.shaken([sheaf for sheaf in fit if is_beside(sheaf)])
    mirrored, pairs = mirrored_of(fit)
    first = known.reach if known else REACH
    believed_ = MEMORY.followed(mirrored, known) if known and pairs >= FIRST else None
    return Belief(pairs=pairs, shaken=known, slopes=believed_, reach=first * _growth(mirrored, standing))


def _read(sheaf: Sheaf) -> Read:
    seeds = sorted(sheaf.differences)
    return in_steps(sheaf.screen, seeds), np.array([sheaf.differences[seed] for seed in seeds])


class Memory:
    """What this process has worked out before. It changes no result: whatever differs is worked out anew."""

    def __init__(self) -> None:
        self._shapes: dict[str, Shape] = {}
        self._reads: dict[str, tuple[Sheaf, Read]] = {}
        self._trail: list[tuple[Sheaf, Slopes]] = []
        self._known: Shaken | None = None  # what the trail began with
        self._shaken: tuple[list[Sheaf], Shaken | None] = ([], None)

    def shape(self, screen: Screen) -> Shape:
        """Of the space that it was made of."""
        if screen.id not in self._shapes:
            self._shapes[screen.id] = tuple((a.name, a.step, a.low, a.high, a.whole) for a in screen.axes)
        return self._shapes[screen.id]

    def read(self, sheaf: Sheaf) -> Read:
        """Half of what sets the sides apart (n, D), and the differences (n,)."""
        known, read = self._reads.get(sheaf.screen.id, (None, None))
        if read is None or known is None or not _same(known, sheaf):
            read = _read(sheaf)
            self._reads[sheaf.screen.id] = sheaf, read
        return read

    def shaken(self, beside: list[Sheaf]) -> Shaken | None:
        known, found = self._shaken
        if len(known) != len(beside) or not all(map(_same, known, beside)):
            found = shaken(beside)
            self._shaken = beside, found
        return found

    def followed(self, mirrored: list[Sheaf], known: Shaken) -> Slopes | None:
        """The first FIRST pairs say how large slopes are; then each screen teaches in turn."""
        early = self._early(mirrored)
        if known != self._known:
            self._known, self._trail = known, []
        done = sum(
            1 for _ in takewhile(lambda pair: _same(pair[0][0], pair[1]), zip(self._trail, mirrored, strict=False))
        )
        state = self._trail[done - 1][1] if done > early else self._begun(mirrored[: early + 1], known)
        del self._trail[done if done > early else 0 :]
        if state is None:
            return None
        for sheaf in mirrored[len(self._trail) :]:
            state = s.learned(s.moved(state, centre_in_steps(sheaf.screen)), *self.read(sheaf))
            self._trail.append((sheaf, state))
        return state

    def _early(self, mirrored: list[Sheaf]) -> int:
        """The screen with the FIRST-th pair."""
        return next(i for i, n in enumerate(accumulate(len(x.differences) for x in mirrored)) if n >= FIRST)

    def _begun(self, early: list[Sheaf], known: Shaken) -> Slopes | None:
        half, difference = joined([self.read(sheaf) for sheaf in early])
        variance, noise = spread_of(half, difference)
        if not noise:
            return None
        usual = max(known.curvature, 1e-3 * float(np.sqrt(noise)) / half.shape[1])
        return s.begun(centre_in_steps(early[0].screen), variance, usual, noise)


MEMORY: Final = Memory()


def _same(one: Sheaf, other: Sheaf) -> bool:
    return one.screen.id == other.screen.id and one.differences == other.differences


def joined(reads: Iterable[Read]) -> Read:
    half, difference = zip(*reads, strict=True)
    return np.concatenate(half), np.concatenate(difference)


def spread_of(half: Vector, difference: Vector) -> tuple[float, float]:
    """The variance of true slopes, by moments, and that of a pair's noise."""
    weight = (half**2).sum(axis=0)
    moved = weight > 0  # what cannot move has no slope
    slope = (half.T @ difference)[moved] / (2 * weight[moved])
    error = float(np.var(difference)) / (4 * weight[moved])
    return max(float(np.mean(slope**2 - error)), 0.02 * float(np.mean(error))), 0.8 * float(np.var(difference))


def _growth(mirrored: list[Sheaf], standing: Standing) -> float:
    """The longest shake grows where no slope shows; not once a leap has been adopted."""
    if any(map(_adopted, standing.leaps)):
        return 1.0
    growth, batch = 1.0, list[Read]()
    for sheaf in mirrored:
        batch.append(MEMORY.read(sheaf))
        if sum(len(half) for half, _ in batch) >= SILENT:
            growth *= 1.0 if _shows(*joined(batch)) else GROWTH
            batch = []
    return growth


def _shows(half: Vector, difference: Vector) -> bool:
    """Whether the slopes are larger together than chance has them (U statistic over pairs of pairs)."""
    n, signed = len(half), np.sign(half) * difference[:, None]
    energy = float((signed.sum(axis=0) ** 2 - (signed**2).sum(axis=0)).sum()) / (n * (n - 1))
    chance = float(np.sqrt(2 * half.shape[1])) * float(np.var(difference)) / n
    return energy > SHOWN * chance


def _adopted(course: Course) -> bool:
    return course.ruling is not None and course.ruling.event == "adopt"


def _floor_is_due(standing: Standing, terms: Terms, asks: list[Ask]) -> bool:
    """Whether single variables have had less than their share of the search, with all that is asked for."""
    moves, queued = (sum(isinstance(ask, kind) for ask in asks) for kind in (Move, Pairs))
    single = standing.single_plays + 2 * (standing.single_seeds + terms.seeds * moves)
    screens = standing.screened.plays + 2 * (standing.screened.waiting + terms.pairs * queued)
    return single < terms.floor * (single + screens)


def _pairs(standing: Standing, terms: Terms, belief: Belief, queued: list[Pairs]) -> Pairs:
    beside = sum(len(x.seeds) for x in standing.screened.alive.values() if x.shake is Shake.BESIDE)
    beside += sum(terms.pairs for ask in queued if ask.shake is Shake.BESIDE) + (
        belief.shaken.pairs if belief.shaken else 0
    )
    weights = terms.space.weights()
    best = as_steps(weights, standing.best.weights)
    if beside < BESIDE:
        return Pairs(axes=axes_of(weights, best, np.full(len(best), REACH)), shake=Shake.BESIDE, pairs=0)
    return Pairs(axes=round_centre(weights, best, belief), shake=Shake.MIRRORED, pairs=belief.pairs)


def round_centre(weights: tuple[Variable, ...], best: Vector, belief: Belief) -> tuple[Axis, ...]:
    """What the next mirrored pairs vary: round where the slopes lead, each variable as far as tells the most of it."""
    state = belief.slopes
    if state is None:
        return axes_of(weights, best, np.full(len(best), belief.reach))
    centre = state.centre + s.way(state, PART, LONGEST * belief.reach)
    alike = np.minimum(1.0, np.sqrt(state.usual / state.curvature))
    gone = np.abs(centre - as_steps(weights, {v.name: v.start for v in weights})) >= GONE
    later = np.where(gone, (max(belief.pairs, FIRST) / FIRST) ** -SHRINK, 1.0)
    return axes_of(weights, centre, np.maximum(belief.reach * alike * later, min(SHORTEST, belief.reach)))


def axes_of(weights: tuple[Variable, ...], centre: Vector, reach: Vector) -> tuple[Axis, ...]:
    """`centre` and `reach` are in steps."""
    return tuple(
        Axis(
            name=v.name,
            centre=_bounded(v, float(c) * v.step),
            reach=v.step if v.low == v.high else _digits(v, min(float(r) * v.step, RANGE_PART * (v.high - v.low))),
            step=v.step,
            low=v.low,
            high=v.high,
            whole=v.type == "int",
        )
        for v, c, r in zip(weights, centre, reach, strict=True)
    )


def _bounded(variable: Variable, value: float) -> float:
    return min(max(_digits(variable, value), variable.low), variable.high)


def _digits(variable: Variable, value: float) -> float:
    """To a millionth of a step: what is finer only makes rows longer."""
    return round(value / variable.step, 6) * variable.step


def leap_due(standing: Standing, terms: Terms, belief: Belief) -> Leap | None:
    """To the centre, where held-out seeds would show what it is expected to gain, at a fair price."""
    state, weights, last = belief.slopes, terms.space.weights(), last_leap(standing)
    if state is None or last is None:
        return None
    gain, sd = s.expected_gain(state, as_steps(weights, standing.best.weights))
    if gain - sd <= 0:
        return None
    price = PRICE * (belief.pairs - last) / (1 - terms.floor) * 0.5 ** _doubts(standing.leaps)
    sure = SURE if any(map(_adopted, standing.leaps)) else SURER
    needed = sure**2 * state.noise / (gain - sd) ** 2
    if needed > min(terms.heldout, price):
        return None
    changed = changed_to(weights, state.centre, standing)
    return Leap(candidate=changed, pairs=belief.pairs) if changed else None


def last_leap(standing: Standing) -> int | None:
    """After how many pairs it was, 0 where there was none; None while one is under way: there is one at a time."""
    if any(not course.ruling and standing.current(course) for course in standing.leaps):
        return None
    return max((course.trial.pairs or 0 for course in standing.leaps), default=0)


def as_steps(weights: tuple[Variable, ...], values: Mapping[str, float]) -> Vector:
    """(D,) in units of each one's step."""
    return np.array([values[v.name] / v.step for v in weights])


def changed_to(weights: tuple[Variable, ...], centre: Vector, standing: Standing) -> dict[str, float]:
    """What differs from the best, as it would be played, where the centre (in steps) is LEAST_MOVE or more away."""
    best = standing.best.weights
    there = {v.name: _played(v, float(c)) for v, c in zip(weights, centre, strict=True)}
    far = {v.name for v in weights if abs(there[v.name] - best[v.name]) >= LEAST_MOVE * v.step}
    return {name: value for name, value in there.items() if name in far}


def _played(variable: Variable, steps: float) -> float:
    return variable.typed(min(max(steps * variable.step, variable.low), variable.high))


def _doubts(leaps: Iterable[Course]) -> int:
    """Leaps in a row that were not adopted, newest first."""
    newest = sorted((c for c in leaps if c.ruling), key=lambda c: c.trial.pairs or 0, reverse=True)
    failed = next((i for i, course in enumerate(newest) if _adopted(course)), len(newest))
    return min(DOUBTS, max(0, failed - 1))
