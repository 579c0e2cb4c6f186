"""Waiting jobs that may not start now, by what must change before they are worth another look: ids only, each found at once.

What leaves queue/ otherwise is not taken out, so whoever gets an id from here asks whether it still waits.
"""

from collections.abc import Container, Iterable, Sequence
from heapq import heappop, heappush

AT_ONCE = 10_000  # as many as a pass may find due without holding up anything
_Ids = str | set[str]  # a hundred thousand sets of one would take 20 MB


class Parking:
    """What is parked by one daemon. As a container it has the ids that something parked comes after."""

    def __init__(self) -> None:
        # by the hash of the last of those a job comes after that has not ended ok, and by those of the others: as a key it
        # takes a third of an id's memory, and two ids that have it in common only cause a look too many
        self._by_ok: dict[int, _Ids] = {}
        self._by_failure: dict[int, _Ids] = {}
        self._times: list[tuple[float, str]] = []
        self._gpus: dict[int, list[str]] = {}
        self._offer: list[str] = []
        self._others: list[str] = []

    def __contains__(self, id_: object) -> bool:
        return hash(id_) in self._by_ok or hash(id_) in self._by_failure

    def after(self, id_: str, awaited: Sequence[str]) -> None:
        """Until all of these have ended ok, or one of them otherwise."""
        *others, last = awaited
        _add(self._by_ok, last, id_)
        for other in others:
            _add(self._by_failure, other, id_)

    def ended(self, awaited: str, *, ok: bool) -> Iterable[str]:
        """Those to look at now that this one has ended."""
        last, others = (_ids(by.pop(hash(awaited), None)) for by in (self._by_ok, self._by_failure))
        return last if ok else last | others

    def at(self, id_: str, when: float) -> None:
        """Until that time, seconds since the epoch."""
        heappush(self._times, (when, id_))

    def due(self, now: float) -> list[str]:
        """Those whose time has come, AT_ONCE of them at most."""
        found: list[str] = []
        while self._times and self._times[0][0] <= now and len(found) < AT_ONCE:
            found.append(heappop(self._times)[1])
        return found

    def due_in(self, now: float) -> float:
        """Seconds until the next time; infinite without any."""
        return max(self._times[0][0] - now, 0.0) if self._times else float("inf")

    def gpus(self, id_: str, number: int) -> None:
        """Until so many are free."""
        heappush(self._gpus.setdefault(number, []), id_)

    def first_for(self, free_gpus: int) -> str | None:
        """The lowest id of those that so many are enough for; it stays parked."""
        return min((ids[0] for number, ids in self._gpus.items() if ids and number <= free_gpus), default=None)

    def take(self, id_: str) -> None:
        """Take away what `first_for` gave."""
        heappop(next(ids for ids in self._gpus.values() if ids and ids[0] == id_))

    def wants_gpus(self) -> bool:
        """Whether any waits for GPUs."""
        return any(self._gpus.values())

    def offer(self, id_: str) -> None:
        """Until this host's settings change."""
        self._offer.append(id_)

    def others(self, id_: str) -> None:
        """Until other hosts, or what they offer, change."""
        self._others.append(id_)

    def offer_changed(self) -> list[str]:
        """All that waited for that."""
        found, self._offer = self._offer, []
        return found

    def others_changed(self) -> list[str]:
        """All that waited for that."""
        found, self._others = self._others, []
        return found

    def by_themselves(self) -> list[str]:
        """Those that will start without anybody doing anything, as far as is known here: time goes on, GPUs come free."""
        return [id_ for _, id_ in self._times] + [id_ for ids in self._gpus.values() for id_ in ids]

    def keep_only(self, waiting: Container[str]) -> None:
        """Forget all that no longer waits."""
        for by in (self._by_ok, self._by_failure):
            for awaited, known in list(by.items()):
                left = {id_ for id_ in _ids(known) if id_ in waiting}
                if not left:
                    del by[awaited]
                elif isinstance(known, set):
                    by[awaited] = left
        for ids in (self._offer, self._others, *self._gpus.values()):
            ids[:] = sorted(id_ for id_ in ids if id_ in waiting)
        self._times = sorted(entry for entry in self._times if entry[1] in waiting)


def _add(by: dict[int, _Ids], awaited: str, id_: str) -> None:
    known = by.setdefault(hash(awaited), id_)
    if isinstance(known, set):
        known.add(id_)
    elif known != id_:
        by[hash(awaited)] = {known, id_}


def _ids(known: _Ids | None) -> set[str]:
    return known if isinstance(known, set) else {known} if known is not None else set()
