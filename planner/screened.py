"""What screens have read: differences by screen and seed. Any pair counts, whatever became of its job. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.facts import ScreenRow
from planner.screen import Screen
from planner.seeds import Draw


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheaf:
    """One screen's reads under one build and set of rules."""

    screen: Screen
    differences: Mapping[int, float]  # seed → one side's score less the other's
    rules: tuple[str, ...]  # build, rules and census
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """All screens, in the order in which they were made."""

    sheaves: tuple[Sheaf, ...] = ()
    alive: Mapping[str, Screen] = field(default_factory=dict)  # job → what it reads
    draws: tuple[Draw, ...] = ()
    plays: int = 0

    @property
    def waiting(self) -> int:
        """Pairs that are to come."""
        return sum(len(screen.seeds) for screen in self.alive.values())


def screened(rows: Iterable[ScreenRow], alive: Mapping[str, Screen]) -> Screened:
    """The same for the rows in any order; of a pair that was read twice, what stands first by host and seq counts."""
    ordered = sorted(rows, key=lambda row: row.key)
    found: dict[tuple[str, tuple[str, ...]], dict[str, Any]] = {}
    for row in ordered:
        rules = str(row.reads.build), str(row.reads.rules), str(row.reads.census)
        told = found.setdefault(
            (row.screen.id, rules), {"screen": row.screen, "rules": rules, "at": "", "differences": {}}
        )
        told["at"] = max(told["at"], row.at)
        told["differences"] = {**row.differences, **told["differences"]} if told["differences"] else row.differences
    sheaves = [Sheaf(**told) for told in found.values() if told["differences"]]
    known = {row.screen.id: row.screen for row in ordered} | {screen.id: screen for screen in alive.values()}
    return Screened(
        sheaves=tuple(sorted(sheaves, key=lambda sheaf: (sheaf.screen.pairs, sheaf.screen.id, sheaf.rules))),
        alive=dict(alive),
        draws=tuple(screen.draw for screen in known.values()),
        plays=sum(row.reads.plays for row in ordered),
    )
