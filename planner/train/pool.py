"""Whom a learner duels: opponents by share, and which of them, and which seed, each duel has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from fleetd import BadData
from planner.arena.observe import OBS
from planner.arena.state import Ints
from planner.brain.decide import HEADS, Brain
from planner.brain.net import load_net, player
from planner.brain.weights import DEFAULT, whole_weights
from planner.train.rng import bits

SEEDS: Final = range(1_500_000_000, 2_000_000_000)  # those that nothing else draws: Purpose.TRAINING
SEED_STREAM, OPPONENT_STREAM = 16, 17  # streams


@dataclass(frozen=True, slots=True, kw_only=True)
class Opponent:
    """Weights (those not named are the default's), or a net by its file and hash; `share` of the duels, by all shares."""

    share: int = 1
    weights: Mapping[str, float] = field(default_factory=dict)
    sha256: str | None = None
    net: str | None = field(default=None, repr=False)  # its hash says which it is, wherever it lies


SCRIPTED: Final = Opponent()
SCRIPTED_SHARE: Final = 2  # of three duels, where there are nets to duel besides


def pool_of(nets: Sequence[Opponent]) -> tuple[Opponent, ...]:
    """The scripted brain in two duels of three, these nets in the third by their shares; alone where there are none."""
    whole = sum(net.share for net in nets)
    return (Opponent(share=SCRIPTED_SHARE * whole), *nets) if whole else (SCRIPTED,)


def load(opponent: Opponent) -> Brain:
    """The brain to play against. Raises BadData for a net that is not the one named, or no net for this game."""
    if opponent.share < 1:
        raise BadData(f"an opponent's share is a whole number from 1, not {opponent.share}")
    if opponent.net is not None:
        return player(load_net(Path(opponent.net), opponent.sha256, obs=OBS, heads=HEADS))
    try:
        return whole_weights({**DEFAULT, **opponent.weights})
    except ValueError as error:
        raise BadData(f"an opponent's weights: {error}") from error


def draw_opponents(pool: Sequence[Opponent], seed: int, env: Ints, episode: Ints) -> Ints:
    """Number in the pool of each env's opponent in that episode."""
    ends = np.cumsum([opponent.share for opponent in pool])
    drawn = bits(seed, OPPONENT_STREAM, env, episode, 0) >> np.uint64(32)
    return np.searchsorted(ends, (drawn % np.uint64(ends[-1])).astype(np.int64), side="right").astype(np.int64)


def draw_seeds(seed: int, env: Ints, episode: Ints) -> Ints:
    """The seed of each env's duel in that episode: its map, side, places and chance."""
    drawn = bits(seed, SEED_STREAM, env, episode, 0) >> np.uint64(8)
    return SEEDS.start + (drawn % np.uint64(len(SEEDS))).astype(np.int64)
