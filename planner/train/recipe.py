"""How the duel is learned: the settings that did best, whom a net duels, and the first net."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from planner.arena.observe import OBS
from planner.brain.decide import HEADS
from planner.brain.net import Net, load_net
from planner.train.duel import Duels
from planner.train.pool import Opponent, pool_of
from planner.train.rewards import Rewards
from planner.train.settings import Settings

TRAINED: Final = "train"  # what such a net's notes say of who made it
LR: Final = 4e-3
LR_ON: Final = 1e-3  # of a net that has been trained: larger steps lose what it can


def settings_for(seed: int, begin: Net | None) -> Settings:
    """PPO's settings for the duel; a net to begin with says how large the net is, and whether it was trained before."""
    learned: dict[str, Any] = {"gamma": 0.995, "entropy": 0.005, "lr": LR, "kl_stop": 0.03}
    if begin is not None:
        learned["hidden"] = begin.shape.hidden
        learned["lr"] = LR_ON if begin.notes.get("made_by") == TRAINED else LR
    return Settings(seed=seed, **learned)


def duels_for(
    envs: int, begin: tuple[Path, str] | None, rivals: Sequence[Opponent], rewards: Rewards, kernel: str
) -> Duels:
    """The world: duels against the scripted brain, the net that the run begins with (if any), and its rivals."""
    first = (Opponent(net=str(begin[0]), sha256=begin[1]),) if begin else ()
    return Duels(envs=envs, pool=pool_of([*first, *rivals]), rewards=rewards, kernel=kernel)


def load_duellist(path: Path, sha256: str | None = None) -> Net:
    """A net that can play the duel; BadData for any other."""
    return load_net(path, sha256, obs=OBS, heads=HEADS)
