"""One shard: its envs, its epochs, its chunks, and the four things that it is told to do with them."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from planner.train.collect import Collector
from planner.train.rng import shuffle
from planner.train.settings import Settings, chunk_height, env_share, minibatch_bounds, share
from planner.train.shards import Beat, Run
from planner.train.slab import Plot, Slab
from planner.train.update import Minibatch, Work, accumulate, add_within, norm_of, rows_of
from planner.train.world import Buffer


class Do(StrEnum):
    RESET = "reset"
    COLLECT = "collect"
    SHUFFLE = "shuffle"
    ACCUMULATE = "accumulate"


def minibatch(slab: Slab, settings: Settings, heads: tuple[int, ...]) -> Minibatch:
    """The minibatch that the slab's `at` speaks of."""
    _, epoch, number = (int(number) for number in slab.sums.at)
    order = slab.sums.order[epoch]
    mean, inverse = (float(number) for number in slab.sums.norm[epoch, number])
    first, last = minibatch_bounds(len(order), settings.minibatches)[number]
    height = chunk_height(len(order), settings)
    return Minibatch(rows_of(slab.rollout), order[first:last], height, settings.chunk_rows, mean, inverse, heads)


def shuffle_epoch(slab: Slab, settings: Settings, epoch: int) -> None:
    """The order of an epoch's rows, and how the advantages of its minibatches are scaled."""
    order, advantage = slab.sums.order[epoch], slab.rollout.advantage.reshape(-1)
    order[:] = shuffle(settings.seed, int(slab.sums.at[0]), epoch, len(order))
    for number, (first, last) in enumerate(minibatch_bounds(len(order), settings.minibatches)):
        slab.sums.norm[epoch, number] = norm_of(advantage[order[first:last]])


@dataclass(frozen=True, slots=True)
class MakeShard:
    """What travels to a worker: the buffer, and where all lies in it."""

    plot: Plot
    settings: Settings
    buffer: Buffer
    offset: int

    def __call__(self, index: int, count: int, beat: Beat) -> Run:
        slab, plot, settings = self.plot.over(self.buffer, self.offset), self.plot, self.settings
        envs = env_share(plot.making.envs, index, count)
        collector = Collector(plot.shape, slab.world, slab.rollout, *envs, plot.making.kernel)
        work = Work(plot.shape, kernel=plot.making.kernel)

        def run(command: str) -> None:
            if command == Do.RESET:
                collector.reset(settings.seed)
            elif command == Do.COLLECT:
                collector.collect(slab.policy, settings, int(slab.sums.at[0]) * settings.steps, beat)
            elif command == Do.SHUFFLE:
                for epoch in range(index, settings.epochs, count):
                    shuffle_epoch(slab, settings, epoch)
            else:
                batch = minibatch(slab, settings, plot.shape.heads)
                span = share(batch.chunks, index, count)
                with np.errstate(over="ignore", invalid="ignore"):  # what is not finite, the trainer tells
                    accumulate(slab.policy, batch, span, settings, (slab.sums.grads, slab.sums.stats), work)
                    add_within(slab.sums.grads[: batch.chunks], span)

        return run
