"""The shelf: trials that were decided long ago and screens that were read, each as one line of what the standing takes from it.

A line names the rows that it was made of, so that it is opened again, from the ledger itself, where more than the line is
asked for, or where a new row is about it. What is on the shelf no void row names, and no verdict but one that keeps the best.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from fleetd import Row
from planner.seeds import Draw, Purpose, Span, joined
from planner.sheaf import Filed, Opened, Sheaf, read_again
from planner.stats import Paired, told
from planner.trial import Change, Key, Place, Trial


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
    """Lines by trial and by screen, and how to read the rows behind them."""

    lines: dict[str, Line] = field(default_factory=dict)
    screens: dict[str, Filed] = field(default_factory=dict)
    fetch: Callable[[Sequence[Place]], list[Row]] = no_rows
    _by_key: dict[Key, str] | None = None
    _sheaves: list[Sheaf] | None = None
    _searched: list[Span] | None = None

    def whose(self, key: Key) -> str | None:
        """The id of the trial or screen whose row that is."""
        if self._by_key is None:
            of = [(id_, line.rows) for id_, line in self.lines.items()]
            of += [(id_, filed.rows) for id_, filed in self.screens.items()]
            self._by_key = {(host, seq): id_ for id_, rows in of for host, seq, _, _ in rows}
        return self._by_key.get(key)

    def has(self, id_: str) -> bool:
        return id_ in self.lines or id_ in self.screens

    def take(self, ids: Iterable[str]) -> list[Row]:
        """The rows of these trials and screens, which are on the shelf no more."""
        rows: list[Row] = []
        for id_ in ids:
            self._by_key = None
            if filed := self.screens.pop(id_, None):
                self._sheaves = self._searched = None
            if line := self.lines.pop(id_, None) or filed:
                rows += self.fetch(line.rows)
        return rows

    def sheaves(self) -> list[Sheaf]:
        """What the screens have read, in order."""
        if self._sheaves is None:
            filed = sorted(self.screens.values())
            self._sheaves = [Sheaf(of.told, partial(self._opened, of.rows)) for of in filed]
        return self._sheaves

    def _opened(self, rows: Sequence[Place]) -> Opened:
        return read_again(self.fetch(rows))

    def plays(self) -> dict[Purpose, int]:
        """Of trials."""
        lines = self.lines.values()
        return {
            Purpose.SEARCH: sum(line.plays for line in lines),
            Purpose.HELDOUT: sum(line.held_plays for line in lines),
        }

    def busy_s(self) -> list[float]:
        """Of each job, or of all of a screen's."""
        of_trials = [busy for line in self.lines.values() for busy in line.busy_s]
        return [*of_trials, *(filed.busy_s for filed in self.screens.values())]

    def read_rows(self) -> Iterator[Key]:
        """The rows with reads."""
        yield from ((host, seq) for line in self.lines.values() for host, seq, _, _ in line.rows[:-1])
        yield from ((host, seq) for filed in self.screens.values() for host, seq, _, _ in filed.rows)

    def by_host(self) -> Iterator[dict[str, Paired]]:
        """What hosts read of the trials that they shared, by trial and purpose."""
        for line in (line for line in self.lines.values() if line.hosts):
            for purpose in {of for of, *_ in line.hosts}:
                yield {host: told(n, mean, se) for of, host, n, mean, se in line.hosts if of == purpose}

    def searched(self) -> list[Span]:
        """What screens drew."""
        if self._searched is None:
            self._searched = joined(Span(of.told.low, of.told.high) for of in self.screens.values())
        return self._searched

    def draws(self) -> list[Draw]:
        """What was drawn for held-out."""
        return [_held(line, line.held[0]) for line in self.lines.values() if line.held]

    def asked(self) -> list[Draw]:
        """The held-out seeds of each job."""
        return [_held(line, seeds) for line in self.lines.values() for seeds in line.held[1:]]


def _held(line: Line, seeds: Sequence[int]) -> Draw:
    return Draw(Span(*seeds), Purpose.HELDOUT, line.id)
