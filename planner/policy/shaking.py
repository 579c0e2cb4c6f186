"""How far to shake: from plays of a shaken brain beside the still one. All lengths are in steps.

A brain whose D variables are all changed by c loses D · curvature · c² / 2, as long as that is little; in the end it plays as
badly as can be, and loses no more. Fitted is `most · (1 - exp(-D · curvature · c² / (2 · most)))`. A mirrored pair tells the
most about a slope where c is large, but where everything is lost nothing is told: c · exp(-D · curvature · c² / (2 · most)) is
largest at c² = most / (D · curvature), where two fifths of all that can be lost are.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.policy.slopes import Vector
from planner.screen import PARTS, Screen
from planner.sheaf import Opened, Sheaf

GRID: Final = np.geomspace(0.01, 1000.0, 90)  # standard deviations of a pair: what is lost at most, and at one step

SHOWN: Final = 2.0  # standard errors that the longest has to lose before anything is fitted


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaken:
    """What plays beside the centre told."""

    pairs: int
    curvature: float  # a variable's usual one, per step²
    reach: float  # the best c; not over what was tried
    tried: float  # the longest c
    near_sd: float | None  # of a pair's difference, one variable changed by a step
    far_sd: float  # all of them changed, by the longest
    lost: float  # by the longest, on average


def shaken(sheaves: list[Sheaf]) -> Shaken | None:
    """None before as many pairs have been read as two of each length."""
    read = [sheaf.opened() for sheaf in sheaves]
    rows = [(_length(of.screen, seed), lost) for of in read for seed, lost in _losses(of)]
    if sum(length > 0 for length, _ in rows) < 2 * PARTS:
        return None
    length, lost = np.array(rows).T
    all_, d = length > 0, len(read[0].screen.axes)
    longest = length >= length.max() * (1 - 1e-9)
    sd = float(np.std(lost[all_], ddof=1))
    if not sd:
        return Shaken(
            pairs=len(rows), curvature=1.0, reach=length.max(), tried=length.max(), near_sd=0.0, far_sd=0.0, lost=0.0
        )
    first, most = fit(length[all_], lost[all_] / sd)
    if (bound := _lost_at_most(lost[longest] / sd)) is not None:
        first, most = 2 * bound / float(length.max()) ** 2, np.inf
    reach = min(float(length.max()), float(np.sqrt(most / first)))
    return Shaken(
        pairs=len(rows),
        curvature=float(sd * first / d),
        reach=reach,
        tried=float(length.max()),
        near_sd=float(np.std(lost[~all_], ddof=1)) if (~all_).sum() > 1 else None,
        far_sd=float(np.std(lost[longest], ddof=1)) if longest.sum() > 1 else sd,
        lost=float(lost[longest].mean()),
    )


def _lost_at_most(lost: Vector) -> float | None:
    """Of the longest, where it is not shown to lose anything (then the fit would be of chance); None where it is."""
    mean, error = float(lost.mean()), float(np.std(lost, ddof=1)) / np.sqrt(len(lost)) if len(lost) > 1 else 1.0
    return max(mean, 0.0) + SHOWN * max(error, float(GRID[0])) if mean <= SHOWN * error else None


def _losses(read: Opened) -> list[tuple[int, float]]:
    return [(seed, -difference) for seed, difference in sorted(read.differences.items())]


def _length(screen: Screen, seed: int) -> float:
    """c, of the variable that is shaken farthest; 0 where one alone is changed."""
    kind = seed % (PARTS + 1)
    return 0.0 if kind == PARTS else max(axis.reach / axis.step for axis in screen.axes) * (kind + 1) / PARTS


def fit(length: Vector, lost: Vector) -> tuple[float, float]:
    """D · curvature and the most that is lost, by least squares over GRID."""
    first, most = (grid.reshape(-1, 1) for grid in np.meshgrid(GRID, GRID, indexing="ij"))
    square = length**2
    errors = ((lost - most * (1 - np.exp(-first * square / (2 * most)))) ** 2).sum(axis=1)
    best = int(np.argmin(errors))
    return float(first[best, 0]), float(most[best, 0])
