"""treadcore train: PPO from a net or from nothing, to a net, with a checkpoint on the way.

Of a run in DIR there are train.checkpoint while it is unfinished, metrics.jsonl, and train.net when it has ended.
"""

import argparse
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fleetd import BadData, CannotCreate, Talk, Terminated, TryLater, replace_file
from planner.cli_tread_cores import cores_here
from planner.cli_tread_follow import Follow, Stop
from planner.cli_tread_given import read_net, read_rewards, read_rivals
from planner.cli_tread_out import alone_in, open_out, tell

if TYPE_CHECKING:
    from planner.train.duel import Duels
    from planner.train.settings import Settings
    from planner.train.trainer import Keep, Trained

NET: Final = "train.net"
CHECKPOINT: Final = "train.checkpoint"
METRICS: Final = "metrics.jsonl"
EVERY: Final = 10  # iterations from one checkpoint to the next


def train(args: argparse.Namespace, talk: Talk) -> None:
    """Train, and write the net; interrupted, keep the checkpoint and say how to go on."""
    from planner.arena.compiled import choose_kernel
    from planner.brain.net import Net, save_net
    from planner.train.recipe import duels_for, settings_for
    from planner.train.shards import choose_shards
    from planner.train.trainer import Talk as Telling
    from planner.train.trainer import plot_of
    from planner.train.trainer import train as run

    begin, rewards, rivals = read_net(args.from_), read_rewards(args.rewards, args.feedback), read_rivals(args.rivals)
    kernel = choose_kernel(args.kernel, talk.environ)
    making = duels_for(args.envs, begin and begin[:2], rivals, rewards, kernel.name)
    settings = settings_for(args.seed, begin[2] if begin else None)
    shards, why = choose_shards(cores_here(talk.environ), args.envs, plot_of(making, settings).chunks, args.shards)
    out = open_out(args, talk.environ)
    with alone_in(out):
        keep = _keep(args, out, talk)
        talk.say(f"treadcore: {why}; {kernel.why}")
        warm(making)
        with Stop() as stop, Follow(out / METRICS, args.ticks, keep.resume, talk) as follow:
            telling = Telling(report=follow.take, stop=stop)
            began = time.monotonic()
            start = begin[2].flat if begin else None
            try:
                ended = run(making, settings, args.ticks, shards=shards, start=start, keep=keep, talk=telling)
            except TryLater as error:
                raise _died(error, stop, keep.path, out) from error
            follow.finish()
        if stop.by and ended.ticks < args.ticks:
            raise _stopped(stop, ended, out, talk)
        notes = _notes(making, settings) | {"ticks": ended.ticks, "from": begin[1] if begin else None}
        notes["rivals"] = [[rival.sha256, rival.share] for rival in rivals]
        sha256 = save_net(out / NET, Net(shape=ended.shape, flat=ended.flat, notes=notes))
        speed = round(follow.speed(time.monotonic() - began))
        told = {"net": str(out / NET), "sha256": sha256, "ticks": ended.ticks, "ticks_per_s": speed}
        tell(told | {"shards": shards, "why": why, "kernel": kernel.name, "score": follow.score}, talk)
        keep.path.unlink(missing_ok=True)  # after it is told: killed before, the next attempt has no more to do


def _notes(making: "Duels", settings: "Settings") -> dict[str, Any]:
    """What a net's file says of how it was made."""
    from planner.train.recipe import TRAINED

    rewards = making.rewards
    taught = {"rewards": dict(rewards.weights), "liked": dict(rewards.liked), "disliked": dict(rewards.disliked)}
    how = asdict(settings) | {"hidden": list(settings.hidden)}
    return {"made_by": TRAINED, "envs": making.envs, "settings": how, **taught}


def _keep(args: argparse.Namespace, out: Path, talk: Talk) -> "Keep":
    """Where the checkpoint stands, and whether to go on from it: also from what a job's last attempt left."""
    from planner.train.trainer import Keep

    path, previous = out / CHECKPOINT, talk.environ.get("FLEET_PREVIOUS")
    if previous and not path.exists():
        _fetch(Path(previous), out, talk)
    resume = args.resume or bool(previous)
    if path.exists() and not resume:
        raise CannotCreate(f"{path}: an unfinished run is there: --resume goes on with it; removed, another can begin")
    if resume and not path.exists():
        talk.say(f"treadcore: no checkpoint in {out}: the run begins at its beginning")
    return Keep(path=path, every=EVERY, resume=resume)


def _fetch(previous: Path, out: Path, talk: Talk) -> None:
    """What the last attempt left; nothing of it where its checkpoint is damaged, as no retry would ever mend that."""
    from planner.train.checkpoint import read_checkpoint

    try:
        if (found := previous / CHECKPOINT).is_file():
            read_checkpoint(found)
    except BadData as error:
        talk.say(f"treadcore: {error}; nothing of it is used")
        return
    for name in (METRICS, CHECKPOINT):
        try:
            if (previous / name).is_file():
                replace_file(out / name, (previous / name).read_bytes(), durable=True)
        except OSError as error:
            raise CannotCreate(f"{out / name}: cannot be copied from {previous}: {error.strerror}") from error


def warm(making: "Duels") -> None:
    """Have machine code compiled and kept before there are shards that would each compile it."""
    from planner.train.settings import LEAST_ROWS, Settings
    from planner.train.trainer import train

    if making.kernel == "numba":
        small = type(making)(envs=1, pool=making.pool, rewards=making.rewards, kernel=making.kernel)
        train(small, Settings(steps=LEAST_ROWS, epochs=1, minibatches=1), LEAST_ROWS)


def _died(error: TryLater, stop: Stop, checkpoint: Path, out: Path) -> BaseException:
    """A shard did: what it was, and what can be done about the run."""
    then = "there was no checkpoint yet: the run has to begin again"
    if checkpoint.exists():
        then = f"the last checkpoint stands: --resume --out {out} goes on from it"
    if stop.is_term:  # it went to the whole group, and a shard was quicker to end
        return Terminated(f"ended by SIGTERM; {then}")
    return TryLater(f"{error}; {then}")


def _stopped(stop: Stop, ended: "Trained", out: Path, talk: Talk) -> BaseException:
    said = f"stopped after {ended.ticks:,} ticks; --resume --out {out} goes on from there"
    if stop.is_term:
        return Terminated(said)
    talk.say(f"treadcore: {said}")
    return KeyboardInterrupt()
