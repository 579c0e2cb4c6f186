"""What a process has worked out of screens before. It changes no result: whatever differs is worked out anew.

How far the slopes were followed outlives the process where there is a store for it: else the first command after many screens
would follow them all again.
"""

import marshal
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import accumulate
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from planner.policy import slopes as s
from planner.policy.shaking import Shaken, shaken
from planner.policy.slopes import Slopes, Vector
from planner.policy.trail import Trail, marks, told_of
from planner.screen import frame_in_steps, in_steps
from planner.sheaf import Sheaf

FIRST: Final = 200  # mirrored pairs before the centre moves
GROWTH: Final = 1.5  # of the longest shake, each time that SILENT pairs show nothing
SILENT: Final = 440
SHOWN: Final = 2.0  # standard deviations of the slopes' sum of squares
READS: Final = 32  # screens whose points are kept: a screen is read for its slopes and soon again for the growth
STORED: Final = 64  # screens more than were stored: then the state is stored again
STORED_BACK: Final = (0, 16, 128)  # which states: the newest, and those before screens that may come late


class Read(NamedTuple):
    """What a screen tells of slopes."""

    half: Vector  # (n, D), in steps: half of what sets the two sides of each pair apart
    difference: Vector  # (n,) of scores
    centre: Vector  # (D,), in steps
    low: Vector
    high: Vector


class Store(Protocol):
    """Where bytes outlive the process. Neither call raises."""

    def recall(self) -> bytes | None:
        """What was stored last, if it is good."""

    def store(self, data: bytes) -> None:
        """In place of what is there."""


@dataclass(frozen=True, slots=True)
class Grown:
    """By how much the longest shake has grown, and the screens of the batch that is not full yet."""

    factor: float = 1.0
    batch: tuple[Sheaf, ...] = ()


class _Stored(NamedTuple):
    """What was worked out after some screens."""

    mark: bytes  # of them, and of all else that it comes from
    slopes: Slopes
    grown: tuple[float, int] | None  # the factor, and how many screens wait for the next; None: it was not asked for


class Memory:
    """Of one process."""

    def __init__(self, store: Store | None = None) -> None:
        self.store = store
        self._recalled = False
        self._stored = 0  # screens
        self._reads: dict[tuple[str, bytes], Read] = {}
        self._slopes: Trail[Slopes | None] = Trail()
        self._grown: Trail[Grown] = Trail()
        self._shaken: tuple[list[tuple[str, bytes]], Shaken | None] = ([], None)

    def read(self, sheaf: Sheaf) -> Read:
        """What it tells; of the last READS screens it is kept."""
        told = sheaf.told.id, sheaf.told.mark
        if (read := self._reads.get(told)) is None:
            opened = sheaf.opened()
            seeds = sorted(opened.differences)
            differences = np.array([opened.differences[seed] for seed in seeds])
            read = Read(in_steps(opened.screen, seeds), differences, *frame_in_steps(opened.screen))
            self._reads[told] = read
            if len(self._reads) > READS:
                del self._reads[next(iter(self._reads))]
        return read

    def shaken(self, beside: list[Sheaf]) -> Shaken | None:
        known, found = self._shaken
        if known != (told := told_of(beside)):
            found = shaken(beside)
            self._shaken = told, found
        return found

    def followed(self, mirrored: list[Sheaf], known: Shaken) -> Slopes | None:
        """The first FIRST pairs say how large slopes are; then each screen teaches in turn. None: no score differs."""
        early = mirrored[: _early(mirrored)]
        self._slopes.begins_with(known)
        self._recall(mirrored, known)
        state = self._slopes.followed(mirrored, lambda: self._begun(early, known), self._taught, len(early))
        self._keep(mirrored, known)
        return state

    def _taught(self, state: Slopes | None, sheaf: Sheaf) -> Slopes | None:
        if state is None:
            return None
        read = self.read(sheaf)
        return s.learned(s.moved(state, read.centre), read.half, read.difference)

    def _begun(self, early: list[Sheaf], known: Shaken) -> Slopes | None:
        reads = [self.read(sheaf) for sheaf in early]
        half, difference = joined(reads)
        variance, noise = spread_of(half, difference)
        if not noise:
            return None
        usual = max(known.curvature, 1e-3 * float(np.sqrt(noise)) / half.shape[1])
        return s.begun(reads[0].centre, variance, usual, noise)

    def growth(self, mirrored: list[Sheaf], known: Shaken | None) -> float:
        """Of the longest shake, as no slope showed."""
        if known:
            self._recall(mirrored, known)
        return self._grown.followed(mirrored, Grown, self._growing).factor

    def _growing(self, grown: Grown, sheaf: Sheaf) -> Grown:
        batch = (*grown.batch, sheaf)
        if sum(of.told.n for of in batch) < SILENT:
            return Grown(grown.factor, batch)
        return Grown(grown.factor * (1.0 if _shows(*joined([self.read(of) for of in batch])) else GROWTH))

    def _recall(self, mirrored: list[Sheaf], known: Shaken) -> None:
        """Once, and only where nothing was worked out yet."""
        if self._slopes.states or self._recalled or self.store is None:
            return
        self._recalled = True
        if (data := self.store.recall()) is None:
            return
        stored = {state.mark: state for state in _decoded(data)}
        self._slopes.rests_on, taught = known, told_of(mirrored)
        for n, state in [(n, stored[mark]) for n, mark in enumerate(marks(known, mirrored), 1) if mark in stored]:
            self._stored = n
            self._slopes.taught, self._slopes.states[n] = taught[:n], state.slopes
            if state.grown:
                factor, pending = state.grown
                self._grown.taught = taught[:n]
                self._grown.states[n] = Grown(factor, tuple(mirrored[n - pending : n]))

    def _keep(self, mirrored: list[Sheaf], known: Shaken) -> None:
        if self.store is None or abs(len(mirrored) - self._stored) < STORED:
            return
        self._stored = len(mirrored)
        kept = self._slopes.states
        wanted = {max((n for n in kept if n <= len(mirrored) - back), default=0) for back in STORED_BACK} - {0}
        told = []
        for n, mark in enumerate(marks(known, mirrored), 1):
            if n in wanted and (state := kept[n]):
                grown = self._grown.states.get(n)
                told.append((mark, [_plain(getattr(state, f.name)) for f in fields(state)], grown and _told(grown)))
        self.store.store(marshal.dumps(told))


MEMORY: Final = Memory()


def _early(mirrored: list[Sheaf]) -> int:
    """How many screens have the first FIRST pairs."""
    return next(i for i, n in enumerate(accumulate(x.told.n for x in mirrored), 1) if n >= FIRST)


def joined(reads: Sequence[Read]) -> tuple[Vector, Vector]:
    """Of all of them: half of what sets the sides apart, and the differences."""
    half, difference, *_ = zip(*reads, strict=True)
    return np.concatenate(half), np.concatenate(difference)


def spread_of(half: Vector, difference: Vector) -> tuple[float, float]:
    """The variance of true slopes, by moments, and that of a pair's noise."""
    weight = (half**2).sum(axis=0)
    moved = weight > 0  # what cannot move has no slope
    slope = (half.T @ difference)[moved] / (2 * weight[moved])
    error = float(np.var(difference)) / (4 * weight[moved])
    return max(float(np.mean(slope**2 - error)), 0.02 * float(np.mean(error))), 0.8 * float(np.var(difference))


def _shows(half: Vector, difference: Vector) -> bool:
    """Whether the slopes are larger together than chance has them (U statistic over pairs of pairs)."""
    n, signed = len(half), np.sign(half) * difference[:, None]
    energy = float((signed.sum(axis=0) ** 2 - (signed**2).sum(axis=0)).sum()) / (n * (n - 1))
    chance = float(np.sqrt(2 * half.shape[1])) * float(np.var(difference)) / n
    return energy > SHOWN * chance


def _plain(value: Vector | float) -> Any:
    return value.tobytes() if isinstance(value, np.ndarray) else float(value)


def _told(grown: Grown) -> tuple[float, int]:
    return grown.factor, len(grown.batch)


def _decoded(data: bytes) -> list[_Stored]:
    told = marshal.loads(data)  # noqa: S302 -- our own, by the store
    return [_Stored(mark, _slopes(*parts), grown) for mark, parts, grown in told]


def _slopes(centre: bytes, mean: bytes, covariance: bytes, *numbers: float) -> Slopes:
    noise, first_noise, usual = numbers
    at, means = np.frombuffer(centre), np.frombuffer(mean)
    return Slopes(
        centre=at,
        mean=means,
        covariance=np.frombuffer(covariance).reshape(len(means), len(means)),
        noise=noise,
        first_noise=first_noise,
        usual=usual,
    )
