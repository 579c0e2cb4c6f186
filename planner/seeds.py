"""Who may draw which seeds: four ranges that cannot meet, and the account of what was drawn.

The account is the jobs in the queue and the rows of the ledger; nothing else remembers a seed. Seeds stay under 2**31,
so that any program can take them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from fleetd import BadData


class Purpose(StrEnum):
    """What a seed is for: search proposes, heldout decides, judge compares nets, training teaches."""

    SEARCH = "search"
    HELDOUT = "heldout"
    JUDGE = "judge"
    TRAINING = "training"


RANGES: Mapping[Purpose, range] = {
    Purpose.SEARCH: range(1, 500_000_000),
    Purpose.HELDOUT: range(500_000_000, 1_000_000_000),
    Purpose.JUDGE: range(1_000_000_000, 1_500_000_000),
    Purpose.TRAINING: range(1_500_000_000, 2_000_000_000),
}


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """The seeds low, low + 1, …, high - 1."""

    low: int
    high: int

    def __len__(self) -> int:
        return self.high - self.low

    def meets(self, other: "Span") -> bool:
        return self.low < other.high and other.low < self.high

    def blocks(self, size: int) -> tuple["Span", ...]:
        """The span cut in pieces of about equal length, none over `size`."""
        count = -(-len(self) // size)
        cuts = [self.low + len(self) * k // count for k in range(count + 1)]
        return tuple(Span(a, b) for a, b in pairwise(cuts))


@dataclass(frozen=True, slots=True)
class Draw:
    """Seeds that somebody drew: what for, and whose they are in words for a message (a trial's id)."""

    span: Span
    purpose: Purpose
    whose: str

    def drawn_twice(self, other: "Draw") -> str:
        """What is wrong with held-out seeds that somebody else drew as well."""
        return f"its held-out seeds {self.span.low} to {self.span.high - 1} were drawn for {other.whose}, too"


def joined(spans: Iterable[Span]) -> list[Span]:
    """The same seeds in order, with those that lie side by side as one span."""
    found: list[Span] = []
    for span in sorted(spans):
        begun = found.pop() if found and span.low <= found[-1].high else span
        found.append(Span(begun.low, max(begun.high, span.high)))
    return found


def fresh(purpose: Purpose, count: int, draws: Iterable[Draw]) -> Span:
    """The next `count` seeds of that purpose which nobody drew; at its end, in a gap. Raises BadData when there are none."""
    allowed = RANGES[purpose]
    drawn = [draw.span for draw in draws if draw.purpose is purpose]
    low = max((span.high for span in drawn), default=allowed.start)
    if low + count > allowed.stop:
        low = _gap(joined(drawn), allowed.start, count)
    if low + count > allowed.stop:
        raise BadData(
            f"the {purpose} seeds are used up: there are no {count} side by side in {allowed.start} to {allowed.stop - 1}"
        )
    return Span(low, low + count)


def _gap(drawn: Iterable[Span], start: int, count: int) -> int:
    """The first seed of so many that nobody drew."""
    for span in drawn:
        if span.low - start >= count:
            break
        start = max(start, span.high)
    return start


def stray(draw: Draw) -> str | None:
    """What is wrong with seeds outside their purpose's range, or None."""
    allowed = RANGES[draw.purpose]
    if allowed.start <= draw.span.low < draw.span.high <= allowed.stop:
        return None
    others = [p for p, r in RANGES.items() if p is not draw.purpose and draw.span.meets(Span(r.start, r.stop))]
    meets = f"; they meet the {others[0]} seeds" if others else ""
    return (
        f"{draw.whose}: its {draw.purpose} seeds {draw.span.low} to {draw.span.high - 1} "
        f"are not all in {allowed.start} to {allowed.stop - 1}{meets}"
    )


def astray(draws: Iterable[Draw]) -> str | None:
    """The first reason not to trust reads: seeds outside their purpose's range."""
    return next((wrong for draw in draws if (wrong := stray(draw))), None)


def meetings(draws: Iterable[Draw]) -> Iterator[tuple[Draw, Draw]]:
    """Held-out draws of two owners that have seeds in common, in order of the seeds."""
    heldout = {draw for draw in draws if draw.purpose is Purpose.HELDOUT}
    ordered = sorted(heldout, key=lambda draw: (draw.span.low, draw.span.high, draw.whose))
    for at, one in enumerate(ordered):
        for k in range(at + 1, len(ordered)):
            if ordered[k].span.low >= one.span.high:
                break
            if ordered[k].whose != one.whose:
                yield one, ordered[k]
