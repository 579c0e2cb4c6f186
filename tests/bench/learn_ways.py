"""Ways to train a net for the duel: the defaults of `treadcore train`, and what else was tried, by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from planner.arena.observe import OBS
from planner.brain.net import load_net, save_net
from planner.brain.shape import views
from planner.train.clone import Cloning
from planner.train.duel import Duels
from planner.train.pool import Opponent, pool_of
from planner.train.recipe import settings_for
from planner.train.rewards import Rewards
from planner.treadcore import ENVS, TICKS

SOFT = Cloning().soft  # what the clone's pulls have been taken times


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """What differs from `treadcore train --from CLONE`."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    rewards: Mapping[str, float] = field(default_factory=dict)
    ticks: int = TICKS  # of all rounds together
    envs: int = ENVS
    pool: str = "best"  # and the scripted brain, or: "scripted" it alone, "earlier" all nets before as well
    rounds: int = 1  # each from the net of the one before
    later: Mapping[str, Any] = field(default_factory=dict)  # settings of all rounds but the first
    hidden: tuple[int, ...] = (64, 64)
    soft: float = SOFT
    nothing: bool = False  # begin with first weights, not with the clone
    sees: int = OBS  # numbers of the observation, the rest being 0


class Dim:
    """A world in which only the first numbers are seen."""

    def __init__(self, world, sees):
        self._world, self._sees = world, sees
        self.arrays = world.arrays

    def reset(self, lo, hi, seed, obs):
        self._world.reset(lo, hi, seed, obs)
        obs[:, self._sees :] = 0

    def step(self, lo, hi, action, seed, tick, out):
        self._world.step(lo, hi, action, seed, tick, out)
        out.obs[:, self._sees :] = 0
        out.final_obs[:, self._sees :] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DimDuels(Duels):
    sees: int

    def make(self, buffer, offset):
        return Dim(Duels.make(self, buffer, offset), self.sees)


def dim(net, sees):
    """The net, deaf to all but the first `sees` numbers."""
    views(net.shape, net.flat).hidden[0].weight[:, sees:] = 0
    return net


def begin(way, clone, folder):
    """The net that the way begins with, as a file; None for first weights."""
    if way.nothing:
        return None
    net = dim(load_net(clone), way.sees)
    last = views(net.shape, net.flat).policy
    last.weight[...] *= way.soft / SOFT
    last.bias[...] *= way.soft / SOFT
    save_net(path := folder / "begin.net", net)
    return path


def lesson(way, nets, number, seed):
    """Making and settings of round `number`, that begins with the last of `nets` (path, sha256), if there is one."""
    known = {"scripted": [], "earlier": nets}.get(way.pool, nets[-1:])
    pool = pool_of([Opponent(net=str(path), sha256=sha256) for path, sha256 in known])
    face = {"envs": way.envs, "pool": pool, "rewards": Rewards(weights=way.rewards), "kernel": "numba"}
    making = Duels(**face) if way.sees == OBS else DimDuels(**face, sees=way.sees)
    settings = settings_for(seed, load_net(nets[-1][0]) if nets else None)
    return making, replace(settings, **{**way.settings, **(way.later if number else {})})


def small(*, envs: int = 256, settings: Mapping[str, Any] | None = None, **other: Any) -> Way:
    """A way of the trail's first leg, walked in small steps, few for each decision."""
    return Way(settings={"lr": 1e-3} | dict(settings or {}), envs=envs, **other)


def large(*, envs: int = 256, settings: Mapping[str, Any] | None = None, **other: Any) -> Way:
    """A way of its second leg, in large steps."""
    return Way(settings={"lr": 4e-3} | dict(settings or {}), envs=envs, **other)


TRAIL = {
    "as it is": Way(),
    "lr 5e-4": small(settings={"lr": 5e-4}),
    "lr 1e-3": small(),
    "lr 2e-3": small(settings={"lr": 2e-3}),
    "lr 4e-3": large(),
    "lr 8e-3": large(settings={"lr": 8e-3}),
    "no kl_stop": small(settings={"kl_stop": None}),
    "lr 4e-3, no kl_stop": large(settings={"kl_stop": None}),
    "entropy 0.02": small(settings={"entropy": 0.02}),
    "gamma 0.99": small(settings={"gamma": 0.99}),
    "no damage terms": small(rewards={"damage_dealt": 0.0, "damage_taken": 0.0}),
    "clone not softened": small(soft=1.0),
    "from nothing": small(nothing=True),
    "from nothing, 1 M": small(nothing=True, ticks=1_000_000),
    "from nothing, entropy 0.03": small(settings={"entropy": 0.03}, nothing=True),
    "the scripted's ten features": small(sees=10),
    "scripted alone": small(pool="scripted"),
    "two rounds": small(rounds=2),
    "two rounds, earlier nets": small(rounds=2, pool="earlier"),
    "128, 128": small(hidden=(128, 128)),
    "lr 4e-3, entropy 0.01": large(settings={"entropy": 0.01}),
    "lr 4e-3, ten features": large(sees=10),
    "lr 4e-3, 1024 envs": large(envs=1024),
    "lr 4e-3, 16 minibatches": large(settings={"minibatches": 16}),
    "lr 4e-3, steps 32": large(settings={"steps": 32}),
    "lr 4e-3, 32 envs": large(envs=32),
    "lr 2e-3, 64 envs": large(envs=64, settings={"lr": 2e-3}),
    "lr 4e-3, 64 envs": large(envs=64),
    "lr 8e-3, 64 envs": large(envs=64, settings={"lr": 8e-3}),
    "64 envs, no kl_stop": large(envs=64, settings={"kl_stop": None}),
    "64 envs, no damage terms": large(envs=64, rewards={"damage_dealt": 0.0, "damage_taken": 0.0}),
    "64 envs, scripted alone": large(envs=64, pool="scripted"),
    "64 envs, from nothing": large(envs=64, nothing=True),
    "lr 4e-3, 64 envs, ten features": large(envs=64, sees=10),
    "64 envs, two rounds": large(envs=64, rounds=2, ticks=2 * TICKS),
    "64 envs, two rounds, earlier nets": large(envs=64, rounds=2, ticks=2 * TICKS, pool="earlier"),
    "two rounds, then lr 5e-4": large(envs=64, rounds=2, ticks=2 * TICKS, later={"lr": 5e-4}),
    "two rounds, then lr 1e-3": large(envs=64, rounds=2, ticks=2 * TICKS, later={"lr": 1e-3}),
    "two rounds, then lr 2e-3": large(envs=64, rounds=2, ticks=2 * TICKS, later={"lr": 2e-3}),
    "lr 4e-3, 64 envs, 16 M": large(envs=64, ticks=16_000_000),
    "two rounds of 16 M": large(envs=64, rounds=2, ticks=32_000_000),
    "two rounds of 16 M, then lr 1e-3": large(envs=64, rounds=2, ticks=32_000_000, later={"lr": 1e-3}),
}
