"""The scripted brain's 110 weights: ten behaviours by eleven features; what each means, its range, its start.

A behaviour's pull is the sum of its eleven weights, each times its feature; the behaviour that pulls most acts. Weights
are played on a grid of 2⁻¹², and every start and step is on it, so what is recorded is what was played.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from planner.arena.senses import FEATURES

BEHAVIOURS: Final = {
    "charge": "go straight for the enemy",
    "flank": "go round to the enemy's rear",
    "circle": "go round the enemy, now this way, now that",
    "hold": "stand, front to the enemy, and fire only when the gun is dead on",
    "back": "reverse away with the front to the enemy",
    "cover": "go where the enemy cannot see it",
    "heal": "fetch the health pack; while none lies there, stand",
    "boost": "fetch the power-up; while none lies there, stand",
    "dodge": "go across the course of the shell that comes",
    "hunt": "go for the enemy until it is in sight, then stand",
}
MEANINGS: Final = {
    "bias": "always",
    "my_health": "the healthier it is",
    "enemy_health": "the healthier the enemy is",
    "distance": "the further off the enemy is (1 from 16 cells on)",
    "sight": "when the two see each other",
    "loaded": "the nearer its gun is to being loaded",
    "enemy_loaded": "the nearer the enemy's gun is to being loaded",
    "threat": "the nearer the enemy's gun points at it",
    "shell": "the nearer a shell is that may hit it",
    "pack": "the nearer the health pack is, while it lies there",
    "power": "the nearer the power-up is, while it lies there",
}
LOW: Final = -4.0
HIGH: Final = 4.0
STEP: Final = 0.25
GRID: Final = 4096
LIMIT: Final = 64.0  # beyond this a sum might not be exact

_START: Final = {
    #          bias my_h en_h dist sight load eload threat shell pack power
    "charge": (0.75, 0.5, -1.0, 0.5, 0.0, 0.25, -0.25, 0.0, 0.0, 0.0, 0.0),
    "flank": (0.75, 0.25, 0.25, -0.25, 0.5, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0),
    "circle": (0.25, 0.0, 0.0, -0.25, 1.0, -0.5, 0.25, 0.25, 0.0, 0.0, 0.0),
    "hold": (-0.25, 0.0, 0.0, 0.5, 0.75, 1.0, -0.25, 0.0, -0.25, 0.0, 0.0),
    "back": (0.5, -0.25, 0.25, -1.75, 0.75, 0.0, 0.25, 0.0, 0.0, 0.0, 0.0),
    "cover": (0.5, -1.0, 0.25, 0.0, 0.75, -0.75, 0.75, 0.25, 0.0, 0.0, 0.0),
    "heal": (0.25, -1.5, 0.0, 0.0, 0.0, -0.25, 0.0, 0.0, 0.0, 2.25, 0.0),
    "boost": (0.0, 0.25, 0.0, 0.25, -0.25, -0.25, 0.0, 0.0, 0.0, 0.0, 1.5),
    "dodge": (-0.25, 0.0, 0.0, 0.25, 0.0, -0.25, 0.0, 0.25, 2.0, 0.0, 0.0),
    "hunt": (1.0, 0.0, 0.0, 0.0, -0.75, 0.25, 0.0, 0.0, 0.0, 0.0, 0.0),
}

NAMES: Final = tuple(f"{behaviour}.{feature}" for behaviour in BEHAVIOURS for feature in FEATURES)
_KNOWN: Final = frozenset(NAMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """One weight of the table."""

    name: str
    meaning: str
    start: float
    low: float
    high: float
    step: float  # the smallest change worth trying


def _table() -> tuple[Weight, ...]:
    return tuple(
        Weight(
            name=f"{behaviour}.{feature}",
            meaning=f"{does}: {MEANINGS[feature]}",
            start=_START[behaviour][i],
            low=LOW,
            high=HIGH,
            step=STEP,
        )
        for behaviour, does in BEHAVIOURS.items()
        for i, feature in enumerate(FEATURES)
    )


TABLE: Final = _table()
DEFAULT: Final[Mapping[str, float]] = {w.name: w.start for w in TABLE}


def whole_weights(weights: Mapping[str, float]) -> npt.NDArray[np.int32]:
    """(11, 10) weights in 2⁻¹², feature first. Raises ValueError that names the unknown, missing or unfit one."""
    if unknown := sorted(weights.keys() - _KNOWN):
        raise ValueError(f"no such weight: {unknown[0]!r} (treadcore weights lists them)")
    if missing := [name for name in NAMES if name not in weights]:
        raise ValueError(f"{len(missing)} of 110 weights missing, the first: {missing[0]!r}")
    for name, value in weights.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"weight {name!r} is not a number: {value!r}")  # noqa: TRY004 - the caller answers for a player, not for a type
        if not abs(value) <= LIMIT:  # NaN is not either
            raise ValueError(f"weight {name!r} is not within {-LIMIT:g} .. {LIMIT:g}: {value!r}")
    values = np.array([weights[name] for name in NAMES], dtype=np.float64)
    return np.rint(values * GRID).astype(np.int32).reshape(len(BEHAVIOURS), len(FEATURES)).T.copy()
