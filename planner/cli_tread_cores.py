"""treadcore cores, and treadcore bench: how many cores there are to train on, and what more shards would bring."""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from fleetd import Talk, Usage, allowed_cores

if TYPE_CHECKING:
    from planner.train.duel import Duels
    from planner.train.settings import Settings

SHARDS: Final = (1, 2, 3, 4, 8)
ITERATIONS: Final = 12  # of each count; the first is not timed


def cores_here(environ: Mapping[str, str]) -> Any:
    """What fleetd says, and no more than FLEET_CORES: what a job was given. Usage where that is no number."""
    cores = allowed_cores()
    if given := environ.get("FLEET_CORES"):
        if not (given.isascii() and given.isdecimal() and len(given) < 10 and int(given)):
            raise Usage(f"FLEET_CORES is no whole number from 1: {given[:40]!r}")
        if int(given) < cores.cores:
            return replace(cores, cores=int(given), why=f"{cores.machine} in the machine; {given} by FLEET_CORES")
    return cores


def cores(_: argparse.Namespace, talk: Talk) -> None:
    """What is allowed here and why."""
    found = cores_here(talk.environ)
    talk.emit({"cores": found.cores, "why": found.why, "machine": found.machine})


def bench(args: argparse.Namespace, talk: Talk) -> None:
    """Train a little on each number of shards, whatever the cores allow."""
    from planner.arena.compiled import choose_kernel
    from planner.train.recipe import duels_for, settings_for
    from planner.train.rewards import Rewards
    from planner.train.settings import ENV_CHUNK
    from planner.train.shards import choose_shards
    from planner.train.trainer import plot_of

    kernel = choose_kernel(args.kernel, talk.environ)
    making, settings = duels_for(args.envs, None, (), Rewards(), kernel.name), settings_for(1, None)
    chunks = plot_of(making, settings).chunks
    shards, why = choose_shards(cores_here(talk.environ), args.envs, chunks)
    talk.say(f"treadcore: {kernel.why}; {args.envs} envs, ticks a second:")
    speeds: dict[str, float | None] = {}
    for count in SHARDS:
        fits = count <= min(-(-args.envs // ENV_CHUNK), chunks)
        speeds[str(count)] = round(_speed(making, settings, count)) if fits else None
        speed = f"{speeds[str(count)]:9,}" if fits else f"no work for so many: {args.envs} envs, {chunks} chunks"
        talk.say(f"{count:2} shard{'s' * (count != 1):1}  {speed}{'   chosen here' * (count == shards)}")
    talk.say(why)
    talk.emit({"ticks_per_s": speeds, "shards": shards, "why": why, "envs": args.envs, "kernel": kernel.name})


def _speed(making: "Duels", settings: "Settings", shards: int) -> float:
    """Median ticks a second over the iterations but the first."""
    from statistics import median

    from planner.train.trainer import Record, train
    from planner.train.trainer import Talk as Follow

    records: list[Record] = []
    ticks = making.envs * settings.steps * ITERATIONS
    train(making, settings, ticks, shards=shards, talk=Follow(report=records.append))
    return median(record.ticks_per_s for record in records[1:])
