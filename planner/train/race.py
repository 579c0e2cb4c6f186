"""Trainings on different numbers of shards that take turns, so that whatever slows the machine slows all of them."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Final

from planner.train.settings import Settings
from planner.train.trainer import begin, iterate, plot_of, sharded
from planner.train.world import Making

COLD: Final = 2  # turns of each that are not counted: memory is met for the first time
LEAST: Final = 3  # rounds, however long they take
Turn = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Pace:
    """Ticks a second on one number of shards, a number for each round."""

    speeds: list[float] = field(default_factory=list)

    @property
    def middle(self) -> float:
        return median(self.speeds)

    @property
    def spread(self) -> float | None:
        """Half the distance between the quartiles; None of fewer than two rounds."""
        return _half(self.speeds)

    def ratio(self, base: "Pace") -> float:
        """To `base`, round by round: what a round was slowed by falls out."""
        return median(self._to(base))

    def ratio_spread(self, base: "Pace") -> float | None:
        return _half(self._to(base))

    def _to(self, base: "Pace") -> list[float]:
        return [mine / its for mine, its in zip(self.speeds, base.speeds, strict=True)]


def race(
    making: Making,
    settings: Settings,
    counts: Sequence[int],
    *,
    rounds: int,
    limit_s: float,
    told: Callable[[int, Mapping[int, Pace]], bool],
    clock: Callable[[], float] = time.perf_counter,
) -> dict[int, Pace]:
    """An iteration on each of `counts` shards in each round, every other round from the last to the first.

    Ends after `rounds`, or after `limit_s` once there are LEAST, or when `told` (called before each turn, with the
    rounds that are whole) is true. A round cut off is not counted.
    """
    paces = {count: Pace() for count in counts}
    with ExitStack() as stack:
        turns = {}
        for count in counts:
            if told(0, paces):
                return paces
            turns[count] = stack.enter_context(training(making, settings, count, clock))
        began = clock()
        for number in range(-COLD, rounds):
            if number >= LEAST and clock() - began > limit_s:
                break
            speeds = {}
            for count in counts if number % 2 else reversed(counts):
                if told(max(0, number), paces):
                    return paces
                speeds[count] = turns[count]()
            if number >= 0:
                for count, speed in speeds.items():
                    paces[count].speeds.append(speed)
    return paces


@contextmanager
def training(making: Making, settings: Settings, shards: int, clock: Callable[[], float]) -> Iterator[Turn]:
    """A training that waits for its turns: each does one iteration, and answers with its ticks a second."""
    with sharded(plot_of(making, settings), settings, shards) as (slab, crew):
        iteration, updates = begin(slab, settings, crew, None, None, {})

        def turn() -> float:
            nonlocal iteration, updates
            began = clock()
            done, _ = iterate(slab, settings, crew, (iteration, updates), settings.lr, making.kernel)
            iteration, updates = iteration + 1, updates + done
            return making.envs * settings.steps / (clock() - began)

        yield turn


def _half(values: list[float]) -> float | None:
    if len(values) <= 1:
        return None
    low, _, high = quantiles(values, n=4, method="inclusive")
    return (high - low) / 2
