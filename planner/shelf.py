"""The shelf: trials that were decided long ago, each as one line of what the standing takes from it.

A line names the rows that it was made of, so that a trial is opened again, from the ledger itself, where more than the line is
asked for, or where a new row is about it. What is on the shelf no void row names, and no verdict but one that keeps the best.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fleetd import Row
from planner.seeds import Draw, Purpose, Span
from planner.stats import Paired, told
from planner.trial import Change, Key, Trial

Place = tuple[str, int, int, int]  # a row: host, seq, and the offsets in its segment, newline not included


class Line(NamedTuple):
    """One trial; lines sort in the order in which trials were queued."""

    job: str  # the first, without its priority
    id: str
    pass_: int
    defaults: str
    seconds: float
    of: str | None
    variable: str  # "": many
    from_: float
    to: float
    event: str  # "adopt", "keep", "replaced", or "" before any
    low: int  # of the search's seeds
    high: int  # 0: no search
    read: bool  # whether any of it came
    read_at: str
    looks: int  # of the held-out that decided; 0: none has
    plays: int = 0  # of the search
    held_plays: int = 0
    busy_s: Sequence[float] = ()
    held: Sequence[Sequence[int]] = ()  # held-out seeds: the draw, then each job's
    rows: Sequence[Place] = ()  # the last is the verdict's
    n: int = 0  # what its search read, or its held-out where it had none
    mean: float = 0.0
    se: float = 0.0
    hosts: Sequence[tuple[str, str, int, float, float]] = ()  # purpose, host, n, mean, se: where several read it

    @property
    def trial(self) -> Trial:
        change = Change(variable=self.variable, from_=self.from_, to=self.to)
        return Trial(
            id=self.id, changes=(change,), defaults=self.defaults, pass_=self.pass_, seconds=self.seconds, of=self.of
        )


def no_rows(_: Sequence[Place]) -> list[Row]:
    """For a shelf that holds nothing."""
    return []


@dataclass(slots=True)
class Shelf:
    """Lines by trial, and how to read the rows behind them."""

    lines: dict[str, Line] = field(default_factory=dict)
    fetch: Callable[[Sequence[Place]], list[Row]] = no_rows
    _by_key: dict[Key, str] | None = None

    def trial_of(self, key: Key) -> str | None:
        """Whose row that is."""
        if not self.lines:
            return None
        if self._by_key is None:
            self._by_key = {(host, seq): line.id for line in self.lines.values() for host, seq, _, _ in line.rows}
        return self._by_key.get(key)

    def rows(self, line: Line) -> list[Row]:
        return self.fetch(line.rows)

    def take(self, ids: Iterable[str]) -> list[Row]:
        """The rows of these trials, which are on the shelf no more."""
        return [row for id_ in ids if (line := self.lines.pop(id_, None)) for row in self.rows(line)]

    def plays(self) -> dict[Purpose, int]:
        lines = self.lines.values()
        return {
            Purpose.SEARCH: sum(line.plays for line in lines),
            Purpose.HELDOUT: sum(line.held_plays for line in lines),
        }

    def busy_s(self) -> list[float]:
        """Of each job."""
        return [busy for line in self.lines.values() for busy in line.busy_s]

    def read_rows(self) -> Iterator[Key]:
        """The rows with reads."""
        return ((host, seq) for line in self.lines.values() for host, seq, _, _ in line.rows[:-1])

    def by_host(self) -> Iterator[dict[str, Paired]]:
        """What hosts read of the trials that they shared, by trial and purpose."""
        for line in (line for line in self.lines.values() if line.hosts):
            for purpose in {of for of, *_ in line.hosts}:
                yield {host: told(n, mean, se) for of, host, n, mean, se in line.hosts if of == purpose}

    def draws(self) -> list[Draw]:
        """What was drawn for held-out."""
        return [_held(line, line.held[0]) for line in self.lines.values() if line.held]

    def asked(self) -> list[Draw]:
        """The held-out seeds of each job."""
        return [_held(line, seeds) for line in self.lines.values() for seeds in line.held[1:]]


def _held(line: Line, seeds: Sequence[int]) -> Draw:
    return Draw(Span(*seeds), Purpose.HELDOUT, line.id)
