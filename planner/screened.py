"""What screens have read, put together from their rows. Any pair counts, whatever became of its job. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Final

from planner.builds import Names, renamed, rules_of
from planner.rows import ScreenRow
from planner.screen import Screen
from planner.seeds import Draw, Purpose, astray, joined
from planner.sheaf import Differences, Rules, Sheaf, Told, mark_of, sheaf_of
from planner.shelf import Shelf

FAILING: Final = 5  # as many as open a host's breaker, which trials that are read between them keep shut


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """All screens, in the order in which they were made."""

    sheaves: tuple[Sheaf, ...] = ()
    alive: Mapping[str, Screen] = field(default_factory=dict)  # job → what it reads
    draws: tuple[Draw, ...] = ()
    stray: str | None = None  # what is wrong with the seeds of one
    failing: str | None = None  # why none of the newest FAILING was read
    plays: int = 0

    @property
    def waiting(self) -> int:
        """Pairs that are to come."""
        return sum(len(screen.seeds) for screen in self.alive.values())


def screened(rows: Iterable[ScreenRow], alive: Mapping[str, Screen], shelf: Shelf, names: Names) -> Screened:
    """The same for the rows in any order, builds under their common `names`; `rows` are those that are not on the shelf."""
    ordered = sorted(rows, key=lambda row: row.key)
    found: dict[tuple[str, Rules], list[ScreenRow]] = {}
    for row in ordered:
        found.setdefault((row.screen.id, rules_of(row)), []).append(row)
    own = [sheaf_of(told_of(of), of[0].screen, merged(of)) for of in found.values()]
    known = {row.screen.id: row.screen for row in ordered} | {screen.id: screen for screen in alive.values()}
    seeds = joined([*shelf.searched(), *(screen.seeds for screen in known.values())])
    return Screened(
        sheaves=tuple(sorted([*_named(shelf.sheaves(), names), *own], key=attrgetter("told"))),
        alive=dict(alive),
        draws=tuple(Draw(span, Purpose.SEARCH, "screens") for span in seeds),
        stray=astray(screen.draw for screen in known.values()),
        failing=_failing(ordered),
        plays=sum(row.reads.plays for row in ordered) + sum(filed.plays for filed in shelf.screens.values()),
    )


def _named(sheaves: Iterable[Sheaf], names: Names) -> Iterable[Sheaf]:
    common = renamed(names)
    return (
        (replace(s, told=s.told._replace(rules=common.get(s.told.rules, s.told.rules))) for s in sheaves)
        if common
        else sheaves
    )


def _failing(rows: Sequence[ScreenRow]) -> str | None:
    newest = sorted(rows, key=attrgetter("at", "key"))[-FAILING:]
    if len(newest) < FAILING or any(row.differences for row in newest):
        return None
    return (
        f"the last {FAILING} screens could not be read ({newest[-1].failure}): no slope is learned until one can; "
        f"fleet log {newest[-1].job} says more"
    )


def told_of(rows: Sequence[ScreenRow]) -> Told:
    """Of one screen's rows under one build and set of rules, in the order of their keys."""
    first, differences = rows[0], merged(rows)
    screen = first.screen
    return Told(
        pairs=screen.pairs,
        id=screen.id,
        rules=rules_of(first),
        at=max(row.at for row in rows),
        seconds=screen.seconds,
        shape=first.shape,
        low=screen.seeds.low,
        high=screen.seeds.high,
        n=len(differences),
        mark=first.mark if len(rows) == 1 else mark_of(differences),
    )


def merged(rows: Sequence[ScreenRow]) -> Differences:
    """Of a pair that was read twice, what stands first by host and seq counts."""
    if len(rows) == 1:
        return rows[0].differences
    return {seed: difference for row in reversed(rows) for seed, difference in row.differences.items()}
