"""Which waiting jobs start now, given what runs; and for each that doesn't, the one reason why."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from fleetd.job import Job, seconds


class Fate(Enum):
    """What the ledger says of a job id: not final yet, ended ok, or ended otherwise for good."""

    OPEN = "open"
    OK = "ok"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a host offers: lanes and GPUs in all, and its tags."""

    host: str
    lanes: int
    tags: frozenset[str] = frozenset()
    gpus: int = 0


def offer_of(host: str, beat: Mapping[str, Any]) -> Offer:
    """What a host's heartbeat says it offers; what it doesn't say it doesn't have."""
    lanes, gpus = (int(beat.get(key) or 0) for key in ("lanes", "gpus"))
    return Offer(host=host, lanes=lanes, tags=frozenset(beat.get("tags") or ()), gpus=gpus)


def misfit(job: Job, offer: Offer) -> str | None:
    """Why this job can never run on that host, or None."""
    if missing := [tag for tag in job.needs if tag not in offer.tags]:
        return f"needs the tag {missing[0]}, which {offer.host} does not have"
    if job.cores > offer.lanes:
        return f"needs {job.cores} lanes, {offer.host} has {offer.lanes}"
    if job.gpus > offer.gpus:
        return f"needs {job.gpus} GPUs, {offer.host} has {offer.gpus}"
    return None


def blocked(job: Job, offer: Offer, others: Iterable[Offer], fate: Callable[[str], Fate], now: float) -> str | None:
    """Why the job may not start on this host even with every lane free, or None. `now`: seconds since the epoch."""
    if job.not_before is not None and seconds(job.not_before) > now:
        return f"not before {job.not_before}"
    if waits := [id_ for id_ in job.after if fate(id_) is not Fate.OK]:
        return f"waits for {waits[0]}" + (f" and {len(waits) - 1} more" if len(waits) > 1 else "")
    if why := misfit(job, offer):
        return why
    if offer.host in job.away:
        for other in others:
            if other.host not in job.away and not misfit(job, other):
                return f"{offer.host} said not here; waits for {other.host}"
    return None


def short_of_gpus(job: Job, free: Collection[int]) -> str | None:
    """Why the job waits for GPUs that others use, or None; one that does holds up nobody."""
    return f"waits for {job.gpus} free GPUs, {len(free)} are" if job.gpus > len(free) else None


def ring(after: Mapping[str, tuple[str, ...]]) -> tuple[str, ...] | None:
    """The first ring among jobs that wait for each other, each after the next, or None; linear in their number."""
    done: set[str] = set()
    for start in after:
        path: dict[str, Iterator[str]] = {}
        here: str | None = start
        while here is not None:
            if here in path:
                names = list(path)
                return tuple(names[names.index(here) :])
            if here not in done:
                path[here] = iter(after.get(here, ()))
            here = _step(path, done)
    return None


def _step(path: dict[str, Iterator[str]], done: set[str]) -> str | None:
    """The next job to look at: one that the last of the path comes after, or else back along the path."""
    while path:
        last = next(reversed(path))
        if (found := next((id_ for id_ in path[last] if id_ not in done), None)) is not None:
            return found
        done.add(last)
        del path[last]
    return None


def choose(waiting: Iterable[Job], free_lanes: int, why: Callable[[Job], str | None]) -> Iterator[Job]:
    """The jobs to start now, in order. One short only of lanes keeps those that are free for itself."""
    if free_lanes <= 0:
        return
    for job in waiting:
        if why(job) is None:
            if job.cores <= free_lanes:
                yield job
            free_lanes -= job.cores
        if free_lanes <= 0:
            return
