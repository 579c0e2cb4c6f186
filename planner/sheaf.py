"""A sheaf: what one screen has read under one build and set of rules, known by one line. Its reads are opened when asked for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from marshal import dumps
from typing import NamedTuple

from fleetd import Row
from planner.screen import Screen, Shake, decode_screen
from planner.trial import Place, decode_reads

Differences = Mapping[int, float]  # seed → one side's score less the other's
Rules = tuple[str, str, str]  # rules, build and census, in words


class Told(NamedTuple):
    """The line; they sort in the order in which screens teach."""

    pairs: int  # read before it was made
    id: str
    rules: Rules
    at: str
    seconds: float
    shape: str  # of the space that it was made of (screen.shape_of)
    low: int  # of its seeds
    high: int
    n: int  # pairs
    mark: bytes  # mark_of the differences


class Filed(NamedTuple):
    """What the shelf keeps of one beside its line."""

    told: Told
    plays: int
    busy_s: float
    hosts: Sequence[tuple[str, int, float, float]]  # host, n, mean, se
    rows: Sequence[Place]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """All of it."""

    screen: Screen
    differences: Differences


@dataclass(frozen=True, slots=True)
class Sheaf:
    """One is as another when the lines are. `opened` raises BadData where its rows are no longer where they were."""

    told: Told
    opened: Callable[[], Opened] = field(compare=False, repr=False)
    is_beside: bool = False  # of a shaken brain beside the still one


def sheaf_of(told: Told, screen: Screen, differences: Differences) -> Sheaf:
    """One that is at hand."""
    opened = Opened(screen=screen, differences=differences)
    return Sheaf(told, lambda: opened, screen.shake is Shake.BESIDE)


def read_again(rows: Sequence[Row]) -> Opened:
    """Of mirrored pairs, from the rows of one screen in the order of their keys."""
    found: dict[int, float] = {}
    for row in rows:
        for seed, (one, other) in decode_reads(row.body["result"]).pairs().items():
            found.setdefault(seed, one - other)
    return Opened(screen=decode_screen(rows[0].body["payload"]), differences=found)


def mark_of(differences: Differences) -> bytes:
    """A digest: the same for the same differences in any order."""
    return sha256(dumps(sorted(differences.items()), 2)).digest()[
        :16
    ]  # version 2: no bytes that hang on what else there is
