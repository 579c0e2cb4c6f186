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
from typing import Final

import numpy as np

from planner.policy import slopes as s
from planner.policy.asks import Ask, Leap, Move, Pairs, Terms
from planner.policy.memory import FIRST, MEMORY
from planner.policy.race import race
from planner.policy.shaking import Shaken
from planner.policy.slopes import Slopes, Vector
from planner.screen import Axis, Shake, shape_of
from planner.sheaf import Sheaf
from planner.space import Variable
from planner.standing import Course, Standing

BESIDE: Final = 120  # pairs of a shaken brain
REACH: Final = 3.0  # steps: the longest shake, until it shows nothing (memory.py)
RANGE_PART: Final = 0.25  # of a variable's range: no shake is longer
SHORTEST: Final = 0.8  # steps
GONE: Final = (
    1.0  # steps from the start: a variable whose centre is as far is shaken the shorter, the more pairs were read
)
SHRINK: Final = 0.101  # by which power of the pairs; Spall's (1998) for the lengths of his perturbations
PART: Final = 0.3  # of the way to where the slopes say that they are zero
LONGEST: Final = 1 / 6  # of the shake: a variable's move from screen to screen
SURER: Final = 3.5  # standard errors that a leap's held-out is expected to come to, before any leap was adopted
SURE: Final = 2.5  # and then, as the slopes have been shown to lead upwards
PRICE: Final = 0.15  # of the plays since the last leap: what its held-out may take
DOUBTS: Final = 1  # leaps that failed one after another, from the second on: each halves the price, at most so often
LEAST_MOVE: Final = 0.05  # steps: what a leap leaves as it is


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
    owed: list[Ask] | None = None
    while len(asks) < room:
        queued = [ask for ask in asks if isinstance(ask, Pairs)]
        due = _floor_is_due(standing, terms, asks)
        if due and owed is None:
            owed = race(standing, terms, room)
        asks.append(owed.pop(0) if due and owed else _pairs(standing, terms, belief, queued))
    return asks[:room]


def fitting(standing: Standing, terms: Terms) -> list[Sheaf]:
    """What was read of the space as it is, under the newest build, rules and census: by the seeds, for a clock may be wrong."""
    ours = shape_of((v.name, v.step, v.low, v.high, v.type == "int") for v in terms.space.weights())
    fit = [
        sheaf
        for sheaf in standing.screened.sheaves
        if sheaf.told.n and sheaf.told.seconds == terms.seconds and sheaf.told.shape == ours
    ]
    newest = max(((told.low, told.at, told.rules) for told in (sheaf.told for sheaf in fit)), default=(0, "", ()))[-1]
    return [sheaf for sheaf in fit if sheaf.told.rules == newest]


def mirrored_of(fit: Iterable[Sheaf]) -> tuple[list[Sheaf], int]:
    """Those of mirrored pairs, and how many pairs that are."""
    mirrored = [sheaf for sheaf in fit if not sheaf.is_beside]
    return mirrored, sum(sheaf.told.n for sheaf in mirrored)


def believed(standing: Standing, terms: Terms) -> Belief:
    """What the screens say together."""
    fit = fitting(standing, terms)
    known = MEMORY.shaken([sheaf for sheaf in fit if sheaf.is_beside])
    mirrored, pairs = mirrored_of(fit)
    first = known.reach if known else REACH
    growth = 1.0 if any(map(_adopted, standing.leaps)) else MEMORY.growth(mirrored, known)
    believed_ = MEMORY.followed(mirrored, known) if known and pairs >= FIRST else None
    return Belief(pairs=pairs, shaken=known, slopes=believed_, reach=first * growth)


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
    state, weights, last = belief.slopes, terms.space.weights(), last_leap(standing, belief.pairs)
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


def last_leap(standing: Standing, pairs: int) -> int | None:
    """After how many of the `pairs` it was, 0 where there was none; None while one is under way: there is one at a time.

    After an edit of what is played the pairs are counted anew: a leap of more belongs to what was played before.
    """
    if any(not course.ruling and standing.current(course) for course in standing.leaps):
        return None
    return max((n for course in standing.leaps if (n := course.trial.pairs or 0) <= pairs), default=0)


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
