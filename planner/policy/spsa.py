"""spsa: simultaneous perturbation stochastic approximation (Spall 1992) with the schedule of the fishtest framework.

At its k-th pair of N, the horizon's half, it plays θ ± c_k Δ and moves θ by r_k c_k Δ times the difference, in steps:
c_k = C_END · (N / k)^0.101 and r_k c_k² = R_END · C_END² · ((A + N) / (A + k))^0.602 with A = N / 10. Screens in flight share
their θ. At every eighth of the horizon θ is put to held-out seeds. The horizon, in plays, is [policy] horizon.
"""

from typing import Final

import numpy as np

from planner.policy.asks import Ask, Leap, Pairs, Terms
from planner.policy.memory import MEMORY
from planner.policy.screen import as_steps, axes_of, changed_to, fitting, last_leap, mirrored_of
from planner.policy.slopes import Vector
from planner.policy.trail import Trail
from planner.screen import Shake
from planner.sheaf import Sheaf
from planner.standing import Standing

C_END: Final = 1.0  # steps
R_END: Final = 0.002
ALPHA, GAMMA, STABLE = 0.602, 0.101, 0.1
CHECKS: Final = 8

Followed = tuple[Vector, int]  # θ, and after how many pairs

TRAIL: Final[Trail[Followed]] = Trail()


def spsa(standing: Standing, terms: Terms, room: int) -> list[Ask]:
    """The next `room` asks; none more once the horizon is reached."""
    if not terms.movable:
        return []
    n = terms.horizon // 2
    sheaves, pairs = mirrored_of(fitting(standing, terms))
    theta = followed(as_steps(terms.space.weights(), terms.space.starts()), sheaves, n)
    asks: list[Ask] = []
    if leap := _check(standing, terms, theta, pairs, n):
        asks.append(leap)
    while len(asks) < room and pairs + standing.screened.waiting + terms.pairs * len(asks) < n:
        reach = np.full(len(theta), C_END * (n / max(1, pairs)) ** GAMMA)
        asks.append(Pairs(axes=axes_of(terms.space.weights(), theta, reach), shake=Shake.MIRRORED, pairs=pairs))
    return asks[:room]


def followed(theta: Vector, sheaves: list[Sheaf], n: int) -> Vector:
    """θ after these screens' pairs, never outside of the ranges."""
    TRAIL.begins_with((theta.tolist(), n))
    return TRAIL.followed(sheaves, lambda: (theta, 0), lambda state, sheaf: _taught(state, sheaf, n))[0]


def _taught(state: Followed, sheaf: Sheaf, n: int) -> Followed:
    (theta, k), read = state, MEMORY.read(sheaf)
    for row, difference in zip(read.half, read.difference, strict=True):
        k += 1
        c = C_END * (n / k) ** GAMMA
        a = R_END * C_END**2 * ((STABLE * n + n) / (STABLE * n + k)) ** ALPHA
        theta = np.clip(theta + a / c**2 * difference * row, read.low, read.high)
    return theta, k


def _check(standing: Standing, terms: Terms, theta: Vector, pairs: int, n: int) -> Leap | None:
    """At each eighth, and not twice."""
    last = last_leap(standing, pairs)
    if last is None or pairs * CHECKS // n <= last * CHECKS // n:
        return None
    changed = changed_to(terms.space.weights(), theta, standing)
    return Leap(candidate=changed, pairs=pairs) if changed else None
