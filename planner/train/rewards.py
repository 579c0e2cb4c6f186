"""What a learner is rewarded for: named terms, each with a weight of either sign.

A term's value is a whole number of 256ths, a weight is kept on a grid of 2⁻¹²; so a step's reward is an exact sum,
rounded once, to float32. The terms marked as potentials pay a change of something: over a duel they add up to what it
was in the beginning, taken away, so that they guide without changing which play is best.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from fleetd import BadData
from planner.arena.rules import HEALTH
from planner.arena.senses import FEATURES, ONE, Senses
from planner.arena.state import Flags, Ints, State
from planner.brain.weights import BEHAVIOURS

GRID: Final = 4096
LIMIT: Final = 64.0  # of |weight|

MEANINGS: Final = {
    "win": "1 for a duel won",
    "loss": "1 for a duel lost",
    "draw": "1 for a duel that nobody won",
    "damage_dealt": "the enemy's health lost in the step, 1 for all of it",
    "damage_taken": "own health lost in the step",
    "pack": "own health gained in the step",
    "power": "1 for taking the power-up",
    "closeness": "potential: 1 less 1/16 for each cell between the two",
    "aim": "potential: in sight, how nearly the own gun points at the enemy",
    "threat": "potential: in sight, how nearly the enemy's gun points at the tank",
    "feedback.positive": "potential: how much people liked the behaviour that acts",
    "feedback.negative": "potential: how much people disliked the behaviour that acts",
}
TERMS: Final = tuple(MEANINGS)
DEFAULT: Final[Mapping[str, float]] = dict.fromkeys(TERMS, 0.0) | {
    "win": 1.0,
    "loss": -1.0,
    "damage_dealt": 0.25,
    "damage_taken": -0.25,
}
_ROW: Final = {name: i for i, name in enumerate(TERMS)}
_DISTANCE, _THREAT = FEATURES.index("distance"), FEATURES.index("threat")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewards:
    """Weight by term, DEFAULT where none is given; by behaviour, 0 to 1, how much people liked or disliked it."""

    weights: Mapping[str, float] = field(default_factory=dict)
    liked: Mapping[str, float] = field(default_factory=dict)
    disliked: Mapping[str, float] = field(default_factory=dict)


def check_rewards(rewards: Rewards) -> None:
    """Raise BadData for a term or behaviour that is none, or a number out of its range."""
    asked = [("reward term", TERMS, rewards.weights, -LIMIT, LIMIT)]
    asked += [("behaviour", tuple(BEHAVIOURS), told, 0.0, 1.0) for told in (rewards.liked, rewards.disliked)]
    for what, known, numbers, low, high in asked:
        for name, value in numbers.items():
            if name not in known:
                raise BadData(f"no such {what}: {name!r} (there are {', '.join(known)})")
            if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
                raise BadData(f"{what} {name!r} is not a number from {low:g} to {high:g}: {value!r}")


@dataclass(frozen=True, slots=True)
class Marks:
    """What the terms compare from one decision to the next; (2, N) or (N,)."""

    health: Ints
    power: Ints
    near: Ints
    threat: Ints


def mark(s: State, senses: Senses) -> Marks:
    threat = senses.features[_THREAT].astype(np.int64)
    return Marks(np.maximum(s.health, 0), s.power[0].copy(), ONE - senses.features[_DISTANCE, 0], threat)


class Pay:
    """Rewards, ready to be reckoned with."""

    def __init__(self, rewards: Rewards) -> None:
        check_rewards(rewards)
        weights = {**DEFAULT, **rewards.weights}
        self.weights: Ints = np.rint([weights[name] * GRID for name in TERMS]).astype(np.int64)
        self.liked = np.zeros((2, len(BEHAVIOURS) + 1), dtype=np.int64)  # the last: no behaviour has acted yet
        for row, told in enumerate((rewards.liked, rewards.disliked)):
            self.liked[row, :-1] = np.rint([told.get(name, 0.0) * ONE for name in BEHAVIOURS])

    def values(self, before: Marks, after: Marks, ended: Flags, won: Ints, acted: tuple[Ints, Ints]) -> Ints:
        """(terms, N) in 256ths: `won` (2, N) by row 0 and row 1; `acted` the last behaviour (-1: none) and this one."""
        v = np.zeros((len(TERMS), ended.size), dtype=np.int64)
        on = ~ended
        v[:2] = won * ONE
        v[2] = (ended & (won[0] == won[1])) * ONE
        lost = (before.health - after.health) * (ONE // HEALTH)
        v[3:5] = np.maximum(lost[::-1], 0)
        v[5] = np.maximum(-lost[0], 0)
        v[6] = (after.power > before.power) * ONE
        v[7] = after.near * on - before.near
        v[8:10] = (after.threat * on - before.threat)[::-1]
        v[10:] = self.liked[:, acted[1]] * on - self.liked[:, acted[0]]
        return v

    def total(self, values: Ints) -> npt.NDArray[np.float32]:
        """(N,) rewards."""
        whole = (self.weights[:, None] * values).sum(axis=0)
        total: npt.NDArray[np.float32] = (whole * (1.0 / (GRID * ONE))).astype(np.float32)
        return total
