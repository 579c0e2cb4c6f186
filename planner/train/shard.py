"""One shard: its envs, its chunks, and the three things that it is told to do with them."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from planner.train.collect import Collector
from planner.train.settings import Settings, chunk_height, env_share, share
from planner.train.shards import Beat, Run
from planner.train.slab import Plot, Slab
from planner.train.update import Minibatch, Work, accumulate, rows_of
from planner.train.world import Buffer


class Do(StrEnum):
    RESET = "reset"
    COLLECT = "collect"
    ACCUMULATE = "accumulate"


def minibatch(slab: Slab, settings: Settings, heads: tuple[int, ...]) -> Minibatch:
    """The minibatch that the slab's `at` and `norm` speak of."""
    rows = rows_of(slab.rollout)
    _, first, last = (int(number) for number in slab.sums.at)
    mean, inverse = (float(number) for number in slab.sums.norm)
    height = chunk_height(len(slab.sums.order), settings)
    order = slab.sums.order[first:last]
    return Minibatch(rows, order, height, settings.chunk_rows, mean, inverse, heads)


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
            else:
                batch = minibatch(slab, settings, plot.shape.heads)
                span = share(batch.chunks, index, count)
                with np.errstate(over="ignore", invalid="ignore"):  # what is not finite, the trainer tells
                    accumulate(slab.policy, batch, span, settings, (slab.sums.grads, slab.sums.stats), work)

        return run
