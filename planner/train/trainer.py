"""PPO over a world, on any number of shards: the same weights to the bit for all of them."""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fleetd import BadData, Usage
from planner.brain.shape import Shape
from planner.train.adam import adam, clip_norm
from planner.train.checkpoint import load_checkpoint, save_checkpoint
from planner.train.init import first_weights
from planner.train.passes import passes
from planner.train.settings import ENV_CHUNK, Settings, check, chunk_count, share
from planner.train.shard import Do, MakeShard, minibatch
from planner.train.shards import Shards, shared_buffer
from planner.train.slab import Plot, Slab
from planner.train.update import Stat, add_grads
from planner.train.world import F32, Making


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What one iteration did: means over its rows, and of the losses over its minibatches."""

    iteration: int  # from 1 on
    ticks: int  # steps of all envs since the run's start
    ticks_per_s: float
    reward: float  # a step
    plays: int  # that ended
    score: float | None  # their mean; None where none ended
    kl: float
    clipped: float  # the fraction of ratios that were
    policy_loss: float
    value_loss: float
    entropy: float
    explained: float | None  # of the returns' variance, by the values; None where the returns are all equal
    lr: float
    updates: int  # steps of the optimiser: fewer than epochs × minibatches where the KL divergence stopped them


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """Where a run stands: its weights, Adam's moments, and how far it came."""

    shape: Shape
    flat: F32
    m: F32
    v: F32
    iteration: int
    ticks: int
    shards: int

    @property
    def sha256(self) -> str:
        """Over weights and optimiser state."""
        return hashlib.sha256(b"".join(part.tobytes() for part in (self.flat, self.m, self.v))).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """Where a run's checkpoint stands, how often it is written, and whether to go on from it (if it is there)."""

    path: Path
    every: int = 10  # iterations; the last one is kept in any case
    resume: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """How a run is followed and stopped: a record after each iteration; `stop` is asked before each."""

    report: Callable[[Record], None] = lambda _: None
    stop: Callable[[], bool] = lambda: False
    clock: Callable[[], float] = time.perf_counter


QUIET: Final = Talk()


def plot_of(making: Making, settings: Settings) -> Plot:
    """What the run needs in shared memory; Usage for settings that no training can have."""
    check(settings)
    shape = Shape(obs=making.obs, heads=making.heads, hidden=settings.hidden)
    rows = making.envs * settings.steps
    chunks, cut = chunk_count(rows, settings), (settings.epochs, min(settings.minibatches, rows))
    return Plot(making=making, shape=shape, steps=settings.steps, cut=cut, chunks=chunks, stats=len(Stat))


def train(
    making: Making,
    settings: Settings,
    ticks: int,
    *,
    shards: int = 1,
    start: F32 | None = None,
    keep: Keep | None = None,
    talk: Talk = QUIET,
) -> Trained:
    """Train for `ticks` steps of all envs, filled up to whole iterations, from the weights `start` or from new ones.

    Raises BadData for a checkpoint that is not this run's or not whole, and for a run whose gradient is not finite;
    TryLater when a shard dies; IOFailed when the shared memory has no room.
    """
    plot, rows = plot_of(making, settings), making.envs * settings.steps
    _check_shards(shards, making.envs, plot.chunks)
    last = -(-ticks // rows)
    run = run_of(making, settings, last, start)
    with sharded(plot, settings, shards) as (slab, crew):
        iteration, updates = begin(slab, settings, crew, start, keep, run)
        while iteration < last and not talk.stop():
            began = talk.clock()
            lr = settings.lr * (1 - iteration / last) if settings.anneal else settings.lr
            done, stats = iterate(slab, settings, crew, (iteration, updates), lr, making.kernel)
            iteration, updates, seconds = iteration + 1, updates + done, talk.clock() - began
            talk.report(record(slab, stats, iteration=iteration, lr=lr, updates=done, seconds=seconds))
            if keep and iteration % keep.every == 0:  # after the report: a run that goes on from it has had that
                save(keep, run, slab, iteration, updates)
        if keep:
            save(keep, run, slab, iteration, updates)
        parts = {"flat": slab.policy.flat.copy(), "m": slab.sums.m.copy(), "v": slab.sums.v.copy()}
        return Trained(shape=slab.policy.shape, **parts, iteration=iteration, ticks=iteration * rows, shards=shards)


@contextmanager
def sharded(plot: Plot, settings: Settings, shards: int) -> Iterator[tuple[Slab, Shards]]:
    """The slab, in shared memory, and the processes that work on it."""
    buffer, offset = shared_buffer(plot.size())
    plot.fill_absurd(buffer, offset)
    with Shards(shards, MakeShard(plot, settings, buffer, offset)) as crew:
        yield plot.over(buffer, offset), crew


def begin(
    slab: Slab, settings: Settings, crew: Shards, start: F32 | None, keep: Keep | None, run: Mapping[str, Any]
) -> tuple[int, int]:
    """Fill the slab with where the run stands: iterations and updates done, both 0 of a new one."""
    if keep and keep.resume and keep.path.exists():
        state = load_checkpoint(keep.path, run, kept_arrays(slab))
        return state["iteration"], state["updates"]
    if start is not None and start.shape != slab.policy.flat.shape:
        raise Usage(
            f"the net to begin with has {start.size} weights, and {slab.policy.shape} takes {slab.policy.flat.size}"
        )
    slab.policy.flat[:] = first_weights(slab.policy.shape, settings.seed) if start is None else start
    slab.sums.m[:], slab.sums.v[:] = 0, 0
    crew.run(Do.RESET)
    return 0, 0


def save(keep: Keep, run: Mapping[str, Any], slab: Slab, iteration: int, updates: int) -> None:
    save_checkpoint(keep.path, run, {"iteration": iteration, "updates": updates}, kept_arrays(slab))


def run_of(making: Making, settings: Settings, iterations: int, start: F32 | None) -> Mapping[str, Any]:
    """All that a run depends on, as a checkpoint tells it."""
    begun = None if start is None else hashlib.sha256(start.tobytes()).hexdigest()
    told = {"making": repr(making), "settings": asdict(settings), "iterations": iterations, "start": begun}
    decoded: Mapping[str, Any] = json.loads(json.dumps(told))
    return decoded


def iterate(
    slab: Slab, settings: Settings, crew: Shards, came: tuple[int, int], lr: float, kernel: str
) -> tuple[int, npt.NDArray[np.float64]]:
    """The iteration after `came`, iterations and updates done: how many updates it took, and the mean stats."""
    slab.sums.at[0], updates = came
    crew.run(Do.COLLECT)
    return improve(slab, settings, crew, updates, lr, kernel)


def improve(
    slab: Slab, settings: Settings, crew: Shards, updates: int, lr: float, kernel: str = "numpy"
) -> tuple[int, npt.NDArray[np.float64]]:
    """The epochs of one iteration after `updates` steps of the optimiser: how many were taken, and the mean stats."""
    sums, descend, shards = slab.sums, passes(kernel).descend, len(crew.pids) + 1
    total, seen, done = np.zeros(len(Stat)), 0, 0
    crew.run(Do.SHUFFLE)
    for at in np.ndindex(*sums.norm.shape[:2]):
        sums.at[1:] = at
        crew.run(Do.ACCUMULATE)
        chunks = minibatch(slab, settings, slab.policy.shape.heads).chunks
        stats = sums.stats[:chunks].sum(axis=0)
        total, seen = total + stats, seen + 1
        if settings.kl_stop is not None and stats[Stat.KL] > settings.kl_stop:
            break
        grad = add_grads(sums.grads[:chunks], [share(chunks, index, shards) for index in range(shards)])
        if not np.isfinite(clip_norm(grad, settings.grad_limit)):
            raise BadData(
                f"iteration {sums.at[0] + 1}: the gradient is not finite: a reward or observation is not, or lr is too high"
            )
        done += 1
        adam(slab.policy.flat, (sums.m, sums.v), grad, updates + done, lr, descend)
    return done, total / seen


def kept_arrays(slab: Slab) -> Mapping[str, npt.NDArray[Any]]:
    """All that the next iteration depends on."""
    own = {"weights": slab.policy.flat, "m": slab.sums.m, "v": slab.sums.v, "last_obs": slab.rollout.last_obs}
    return own | {f"world.{name}": array for name, array in slab.world.arrays().items()}


def record(
    slab: Slab, stats: npt.NDArray[np.float64], *, iteration: int, lr: float, updates: int, seconds: float
) -> Record:
    kept = slab.rollout
    plays, rows = int(kept.ended.sum()), kept.reward.size
    spread = float(kept.ret.var(dtype=np.float64))
    missed = float((kept.ret - kept.value).var(dtype=np.float64))
    return Record(
        iteration=iteration,
        ticks=iteration * rows,
        ticks_per_s=rows / seconds if seconds > 0 else 0.0,
        reward=float(kept.reward.mean(dtype=np.float64)),
        plays=plays,
        score=float(kept.score.sum()) / plays if plays else None,
        **{stat.name.lower(): float(stats[stat]) for stat in Stat},
        explained=1 - missed / spread if spread > 0 else None,
        lr=lr,
        updates=updates,
    )


def _check_shards(shards: int, envs: int, chunks: int) -> None:
    most = min(-(-envs // ENV_CHUNK), chunks)
    if not 1 <= shards <= most:
        raise Usage(f"{shards} shards: {envs} envs and a minibatch of {chunks} chunks are work for 1 to {most}")
