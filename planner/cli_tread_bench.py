"""treadcore bench: what more shards bring here, and what `train` would choose."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from fleetd import StatusLine, Talk, Terminated, TryLater
from planner.cli_tread_cores import cores_here
from planner.cli_tread_follow import Stop
from planner.cli_tread_train import warm

if TYPE_CHECKING:
    from planner.train.race import Pace
    from planner.train.settings import Settings

SHARDS: Final = (1, 2, 3, 4, 8)
ROUNDS: Final = 25
LIMIT_S: Final = 30.0
Paces = Mapping[int, "Pace"]
Told = Callable[[int, Paces], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is measured, and what `train` would choose: all that is told beside the speeds."""

    envs: int
    chunks: int
    settings: "Settings"
    kernel: str
    shards: int
    why: str


def bench(args: argparse.Namespace, talk: Talk) -> None:
    """Train in turns on each number of shards, whatever the cores allow; interrupted, tell what was measured so far."""
    from planner.arena.compiled import choose_kernel
    from planner.train.race import race
    from planner.train.recipe import duels_for, settings_for
    from planner.train.rewards import Rewards
    from planner.train.settings import ENV_CHUNK
    from planner.train.shards import choose_shards
    from planner.train.trainer import plot_of

    kernel = choose_kernel(args.kernel, talk.environ)
    making, settings = duels_for(args.envs, None, (), Rewards(), kernel.name), settings_for(1, None)
    chunks, cores = plot_of(making, settings).chunks, cores_here(talk.environ)
    shards, why = choose_shards(cores, args.envs, chunks)
    asked = Asked(envs=args.envs, chunks=chunks, settings=settings, kernel=kernel.name, shards=shards, why=why)
    counts = [count for count in SHARDS if count <= min(-(-args.envs // ENV_CHUNK), chunks)]
    talk.say(f"treadcore: {kernel.why}")
    for said in settings_told(asked):
        talk.say(f"treadcore: {said}")
    warm(making)
    with Stop() as stop:
        paces = _watched(
            lambda told: race(making, settings, counts, rounds=ROUNDS, limit_s=LIMIT_S, told=told), stop, talk
        )
    _tell(asked, paces, talk)
    if stop.is_term:
        raise Terminated("ended by SIGTERM: these are the rounds until then")
    if stop():
        raise KeyboardInterrupt


def _watched(run: Callable[[Told], Paces], stop: Stop, talk: Talk) -> Paces:
    """What `run` measures, with a line on the terminal meanwhile; cut off by `stop`."""
    line = StatusLine(talk)

    def told(rounds: int, paces: Paces) -> bool:
        if line.is_wanted:
            line.draw(_progress(rounds, paces))
        return stop()

    try:
        return run(told)
    except TryLater as error:
        if stop.is_term:  # it went to the whole group, and a shard was quicker to end
            raise Terminated("ended by SIGTERM") from error
        raise
    finally:
        line.erase()


def _tell(asked: Asked, paces: Paces, talk: Talk) -> None:
    if talk.json:
        talk.emit(result(asked, paces))
        return
    for row in table(asked, paces):
        talk.data(row)
    talk.data(f"train would choose {asked.why}")
    if better := fewer_is_faster(asked, paces):
        talk.data(better)


def settings_told(asked: Asked) -> tuple[str, str]:
    """What is trained, and how it is measured."""
    settings = asked.settings
    rollout = f"{asked.envs} env{'s' * (asked.envs != 1)}, {settings.steps} steps of each in an iteration"
    update = f"{settings.epochs} epochs of {settings.minibatches} minibatches"
    layers = " and ".join(map(str, settings.hidden))
    turns = f"an iteration on each number of shards in turn, {ROUNDS} rounds or {LIMIT_S:.0f} s"
    return f"{rollout}, {update}, layers of {layers}", turns


def table(asked: Asked, paces: Paces) -> list[str]:
    """Thousand ticks a second and the ratio to one shard, for people."""
    rounds = len(paces[1].speeds)
    if not rounds:
        return ["no round was whole"]
    title = "shards   thousand ticks/s    × one shard"
    rows = [f"{title}    {rounds} round{'s' * (rounds != 1)}: median ± half the distance between the quartiles"]
    for count in SHARDS:
        if count in paces:
            mark = "   chosen here" * (count == asked.shards)
            rows.append(f"{count:6}   {_speed(paces[count])}    {_ratio(paces[count], paces[1])}{mark}".rstrip())
        else:
            rows.append(f"{count:6}   no work for so many: {asked.envs} envs, {asked.chunks} chunks in a minibatch")
    return rows


def fewer_is_faster(asked: Asked, paces: Paces) -> str | None:
    """That fewer shards did more than those chosen, beyond the spread of these rounds."""
    chosen = paces.get(asked.shards)
    if chosen is None or not chosen.speeds:
        return None
    found = {n: (p.ratio(chosen), p.ratio_spread(chosen)) for n, p in paces.items() if n < asked.shards}
    beyond = [n for n, (ratio, spread) in found.items() if spread is not None and ratio - spread > 1]
    if not beyond:
        return None
    best = max(beyond, key=lambda n: found[n][0])
    return (
        f"{best} shard{'s' * (best != 1)} did × {found[best][0]:.2f} of that in these rounds: where other work always "
        f"takes its part of the cores, train --shards {best}"
    )


def result(asked: Asked, paces: Paces) -> dict[str, Any]:
    """The same for programs; null where there was no work or no whole round."""
    found = {n: paces[n] if n in paces and paces[n].speeds else None for n in SHARDS}
    base, settings = found[1], asked.settings
    return {
        "ticks_per_s": {str(n): p and round(p.middle) for n, p in found.items()},
        "spread": {str(n): None if p is None or p.spread is None else round(p.spread) for n, p in found.items()},
        "to_one": {str(n): p and base and round(p.ratio(base), 3) for n, p in found.items()},
        "rounds": len(paces[1].speeds),
        "shards": asked.shards,
        "why": asked.why,
        "envs": asked.envs,
        "kernel": asked.kernel,
        "steps": settings.steps,
        "epochs": settings.epochs,
        "minibatches": settings.minibatches,
        "hidden": list(settings.hidden),
    }


def _progress(rounds: int, paces: Paces) -> str:
    speeds = "".join(f"  {n}: {p.middle / 1e3:.0f}" for n, p in paces.items() if p.speeds)
    return f"{rounds} of {ROUNDS} rounds{f', thousand ticks/s at{speeds}' if speeds else ': the shards start'}"


def _speed(pace: "Pace") -> str:
    spread = "" if pace.spread is None else f" ± {pace.spread / 1e3:4.1f}"
    return f"{f'{pace.middle / 1e3:.1f}{spread}':>16}"


def _ratio(pace: "Pace", base: "Pace") -> str:
    if pace is base:
        return "1          "
    spread = pace.ratio_spread(base)
    return f"{f'{pace.ratio(base):.2f}' + ('' if spread is None else f' ± {spread:.2f}'):<11}"
