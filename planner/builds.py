"""Builds of the game that are one game: those that have made the same plays with the same scores. Pure.

A commit that changes a comment is another build, and so is one commit on two hosts; kept apart, each would have to learn
everything anew. Two that have made the same plays, LEAST of them or more, agree when no score differs: their reads are
pooled, under one name. One score that differs parts them for good. Where the game names its rules, other rules are another game.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final, TypeVar

from planner.facts import Facts
from planner.rows import Attempt, ScreenRow
from planner.sheaf import Rules

LEAST: Final = 20  # plays that both have made

Build = tuple[str, str | None, tuple[str, ...]]  # under which rules, its name, and the command that played
Play = tuple[str, str, int, int]  # a trial's id, its purpose, the seed, the side
Names = Mapping[Build, Build]  # of those that agree with another: the first of them in order
Scores = Mapping[Play, float | None]  # None: more than one, so that nothing agrees with it
_Row = TypeVar("_Row", Attempt, ScreenRow)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two builds that have plays in common."""

    one: Build
    other: Build
    plays: int
    differs: str | None  # the first play that scored differently, in words

    @property
    def agree(self) -> bool:
        return self.differs is None and self.plays >= LEAST


def compared(attempts: Iterable[Attempt], screens: Iterable[ScreenRow]) -> list[Compared]:
    """Each two builds of the same rules that have made any play in common, in the order of their names."""
    rows: dict[tuple[str, str], list[Attempt | ScreenRow]] = {}
    builds: dict[tuple[str, str], set[Build]] = {}
    for row in (row for many in (attempts, screens) for row in many if row.reads.scores):
        rows.setdefault(_whose(row), []).append(row)
        builds.setdefault(_whose(row), set()).add(_build(row))
    played: dict[Build, dict[Play, float | None]] = {}
    for row in (row for whose, several in builds.items() if len(several) > 1 for row in rows[whose]):
        of = played.setdefault(_build(row), {})
        for play, score in _plays(row):
            of[play] = score if of.get(play, score) == score else None
    pairs = combinations(sorted(played, key=str), 2)
    found = (_beside(one, other, played) for one, other in pairs if one[0] == other[0])
    return [pair for pair in found if pair.plays]


def pooled(facts: Facts) -> tuple[Sequence[Attempt], Sequence[ScreenRow], Names]:
    """The trials' and the screens' rows that are not on the shelf, under the names of their builds, and those names.

    What several builds have read is never on the shelf.
    """
    attempts, screens = facts.attempts(), facts.screens()
    if not (names := _names(compared(attempts, screens))):
        return attempts, screens, names
    return [_named(row, names) for row in attempts], [_named(row, names) for row in screens], names


def renamed(names: Names) -> Mapping[Rules, Rules]:
    """The same in words."""
    return {_told_rules(build): _told_rules(name) for build, name in names.items()}


def rules_of(row: Attempt | ScreenRow) -> Rules:
    """What its scores hold under: rules, build and census, in words."""
    return _told_rules(_build(row))


def _told_rules(build: Build) -> Rules:
    rules, name, census = build
    return rules, str(name), str(census)


def _build(row: Attempt | ScreenRow) -> Build:
    return str(row.reads.rules), row.reads.build, row.reads.census


def _whose(row: Attempt | ScreenRow) -> tuple[str, str]:
    return (row.trial.id, str(row.purpose)) if isinstance(row, Attempt) else (row.screen.id, "")


def _plays(row: Attempt | ScreenRow) -> Iterable[tuple[Play, float]]:
    whose = _whose(row)
    for seed, scores in row.reads.scores.items():
        for side, score in enumerate(scores):
            if score is not None:
                yield (*whose, seed, side), score


def _beside(one: Build, other: Build, played: Mapping[Build, Scores]) -> Compared:
    """One side of a screen or a trial on one seed is one play."""
    here, there = played[one], played[other]
    both = sorted(here.keys() & there)
    apart = next((play for play in both if here[play] is None or here[play] != there[play]), None)
    said = f"{apart[0]} on seed {apart[2]}: {_told(here[apart])}, {_told(there[apart])}" if apart else None
    return Compared(one=one, other=other, plays=len(both), differs=said)


def _told(score: float | None) -> str:
    return "more than one score" if score is None else repr(score)


def _names(pairs: Sequence[Compared]) -> Names:
    """A build joins those that it agrees with, unless one of them differs from it."""
    differ = {frozenset((pair.one, pair.other)) for pair in pairs if pair.differs}
    groups: dict[Build, frozenset[Build]] = {}
    for pair in (pair for pair in pairs if pair.agree):
        one, other = (groups.get(build, frozenset([build])) for build in (pair.one, pair.other))
        if one != other and not any(frozenset((a, b)) in differ for a in one for b in other):
            groups |= dict.fromkeys(one | other, one | other)
    return {build: min(group, key=str) for build, group in groups.items()}


def _named(row: _Row, names: Names) -> _Row:
    build = _build(row)
    _, name, census = names.get(build, build)
    return row if (name, census) == build[1:] else replace(row, reads=replace(row.reads, build=name, census=census))
