"""The slopes of the score at a centre that moves: a Kalman filter over mirrored pairs.

All is in units of a variable's step. Of D variables the filter knows 2 D numbers: the slope of each at the centre, and
the curvature by which its slope falls as it moves. A mirrored pair, the centre plus and minus `half`, differs by 2 half · slope:
whatever is even around the centre cancels out. Where the centre moves by a, each slope falls by its curvature times a;
what the others' moves do to it is not modelled, and makes older pairs count for less: by COUPLING of each one's share.

Source: Kalman 1960; the mirrored pairs are Spall's simultaneous perturbation (1992), kept instead of followed.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

COUPLING: Final = 0.2  # how strongly one variable's move changes another's slope, beside its own curvature's effect
LEAST_CURVATURE: Final = 0.1  # of the usual one: what a variable is taken for that shows less, or none
NOISE_MEMORY: Final = 0.05  # a block's part in the running estimate of a pair's variance
NOISE_BOUNDS: Final = (0.01, 2.0)  # of the variance it began with, which has the slopes' own part in it


@dataclass(frozen=True, slots=True, kw_only=True)
class Slopes:
    """What is believed: means (2 D,) and covariance (2 D, 2 D) of slopes and curvatures at `centre` (D,)."""

    centre: Vector
    mean: Vector
    covariance: Vector
    noise: float  # variance of a pair's difference
    first_noise: float
    usual: float  # the curvature that a variable is expected to have

    @property
    def slope(self) -> Vector:
        return self.mean[: len(self.centre)]

    @property
    def variance(self) -> Vector:
        """Of the slopes."""
        return np.diag(self.covariance)[: len(self.centre)]

    @property
    def curvature(self) -> Vector:
        """Never less than LEAST_CURVATURE of the usual: no variable's best is infinitely far."""
        return np.maximum(self.mean[len(self.centre) :], LEAST_CURVATURE * self.usual)


def begun(centre: Vector, slope_variance: float, curvature: float, noise: float) -> Slopes:
    """Before any pair: slopes around zero, curvatures around the usual one, as uncertain as they are large."""
    d = len(centre)
    spread = np.concatenate([np.full(d, slope_variance), np.full(d, curvature**2)])
    mean = np.concatenate([np.zeros(d), np.full(d, curvature)])
    return Slopes(centre=centre, mean=mean, covariance=np.diag(spread), noise=noise, first_noise=noise, usual=curvature)


def learned(slopes: Slopes, half: Vector, difference: Vector) -> Slopes:
    """After n pairs round the centre: `half` (n, D) of what sets their two sides apart, `difference` (n,) of scores."""
    d = len(slopes.centre)
    h = 2 * half
    across = slopes.covariance[:, :d] @ h.T  # (2 D, n)
    told = h @ across[:d]
    missed = difference - h @ slopes.slope
    gain = np.linalg.solve(told + slopes.noise * np.eye(len(h)), across.T).T
    covariance = slopes.covariance - gain @ across.T
    low, high = (bound * slopes.first_noise for bound in NOISE_BOUNDS)
    own = float(np.mean(missed**2) - np.trace(told) / len(h))
    noise = (1 - NOISE_MEMORY) * slopes.noise + NOISE_MEMORY * min(max(own, low), high)
    return replace(slopes, mean=slopes.mean + gain @ missed, covariance=(covariance + covariance.T) / 2, noise=noise)


def moved(slopes: Slopes, to: Vector) -> Slopes:
    """The same seen from another centre."""
    d, a = len(slopes.centre), to - slopes.centre
    mean, covariance = slopes.mean.copy(), slopes.covariance.copy()
    mean[:d] -= mean[d:] * a
    covariance[:d] -= a[:, None] * covariance[d:]
    covariance[:, :d] -= covariance[:, d:] * a
    lost = COUPLING**2 * slopes.curvature * float(np.sum(slopes.curvature * a * a))
    covariance[np.arange(d), np.arange(d)] += lost
    return replace(slopes, centre=to, mean=mean, covariance=covariance)


def shrunken(slopes: Slopes) -> Vector:
    """The slopes, each drawn towards zero by how uncertain it is."""
    square = slopes.slope**2
    return slopes.slope * square / np.maximum(square + slopes.variance, np.finfo(float).tiny)


def way(slopes: Slopes, part: float, longest: float) -> Vector:
    """The next move: `part` of the way to where the shrunken slopes would be zero, no variable by more than `longest`."""
    return np.clip(part * shrunken(slopes) / slopes.curvature, -longest, longest)


def expected_gain(slopes: Slopes, frm: Vector) -> tuple[float, float]:
    """By how much the centre is expected to score better than `frm`, and the standard deviation of that belief."""
    d, a = len(slopes.centre), slopes.centre - frm
    by = np.concatenate([a, a * a / 2])
    mean = float(slopes.slope @ a + slopes.curvature @ by[d:])
    return mean, float(np.sqrt(by @ slopes.covariance @ by))
