"""Rings among waiting jobs, each after the next: none of them would ever start."""

import time
from collections.abc import Callable, Iterable, Iterator


class Rings:
    """Looks for the rings that are reached from those that are told, a few steps at a time."""

    def __init__(self, after: Callable[[str], Iterable[str]]) -> None:
        """What a job comes after; nothing for one that is not to be considered."""
        self._after = after
        self._told: set[str] = set()
        self._at_work: Iterator[tuple[str, ...] | None] | None = None

    def tell(self, id_: str) -> None:
        """This one may have closed a ring."""
        self._told.add(id_)

    def is_at_work(self) -> bool:
        """Whether there is more to look at."""
        return self._at_work is not None or bool(self._told)

    def found(self, until: float) -> Iterator[tuple[str, ...]]:
        """The rings, as far as they are found by then (monotonic seconds); the next call goes on.

        What is told meanwhile is looked at afterwards, all of it at once: so a chain that grows is not walked for each job.
        """
        while self.is_at_work() and time.monotonic() < until:
            if self._at_work is None:
                self._at_work, self._told = rings_from(self._told, self._after), set()
            step = next(self._at_work, ())
            if step:
                yield step
            elif step is not None:
                self._at_work = None


def rings_from(starts: Iterable[str], after: Callable[[str], Iterable[str]]) -> Iterator[tuple[str, ...] | None]:
    """Rings of jobs, each after the next and the lowest id first; None for each step that finds none.

    Each job is asked once what it comes after. Of rings that hang together at least one is found: those of the others come
    after its jobs as well.
    """
    seen: set[str] = set()
    for start in starts:
        path: dict[str, Iterator[str]] = {}
        following: str | None = start
        while following is not None or path:
            if following in path:
                yield _lowest_first(list(path), following)
            elif following is not None and following not in seen:
                seen.add(following)
                path[following] = iter(after(following))
            elif following is None:
                path.popitem()
            following = next(path[next(reversed(path))], None) if path else None
            yield None


def _lowest_first(path: list[str], first: str) -> tuple[str, ...]:
    """The ring that begins with `first`, which stands on the path, and ends with the path."""
    ring = path[path.index(first) :]
    at = ring.index(min(ring))
    return tuple(ring[at:] + ring[:at])
