"""Who decides in a row of tanks: weights or a net, and what they choose."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from planner.arena.observe import OBS
from planner.arena.senses import FEATURES
from planner.brain.net import Player, choose
from planner.brain.scripted import Whole, strongest
from planner.brain.weights import BEHAVIOURS

Brain = Whole | Player  # (11, 10) weights of weights.whole_weights, or a net as it is played
HEADS: Final = (len(BEHAVIOURS),)  # what a net that plays the duel decides by
SCALE: Final = np.float32(2.0**-8)  # of an observation, for a net


@dataclass(frozen=True, slots=True)
class Seats:
    """Brains of N tanks: `weights` (11, 10, N), 0 where a net sits; each net with the numbers of its tanks."""

    weights: Whole
    nets: tuple[tuple[Player, npt.NDArray[np.intp]], ...]


def seat(brains: Sequence[Brain]) -> Seats:
    """A tank for each of `brains`; the same net in many seats is asked once for them all."""
    nets: dict[int, tuple[Player, list[int]]] = {}
    weights = np.zeros((len(FEATURES), len(BEHAVIOURS), len(brains)), dtype=np.int32)
    for i, brain in enumerate(brains):
        if isinstance(brain, Player):
            nets.setdefault(id(brain), (brain, []))[1].append(i)
        else:
            weights[:, :, i] = brain
    return Seats(weights, tuple((net, np.array(at, dtype=np.intp)) for net, at in nets.values()))


def decide(seats: Seats, features: Whole, seen: npt.NDArray[np.int32]) -> npt.NDArray[np.intp]:
    """(N,) behaviours by features (11, N) and observations (N, OBS), which no weights look at."""
    behaviour = strongest(seats.weights, features)
    for net, at in seats.nets:
        behaviour[at] = choose(net, seen[at] * SCALE)[:, 0]
    return behaviour


def fits(player: Player) -> bool:
    """Whether a net sees what there is to see here, and chooses among the behaviours."""
    return player.shape.obs == OBS and player.shape.heads == HEADS
