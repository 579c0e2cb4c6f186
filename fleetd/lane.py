"""Which waiting jobs start now, given what runs; for each that doesn't, the one reason why, and what must change first."""

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
    return Offer(host=host, lanes=beat.get("lanes", 0), tags=frozenset(beat.get("tags", ())), gpus=beat.get("gpus", 0))


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
    if why := not_yet(job.not_before, job.after, fate, now) or misfit(job, offer):
        return why
    if other := _goes_first(job, offer, others):
        return f"{offer.host} said not here; waits for {other.host}"
    return None


def not_yet(not_before: str | None, after: Iterable[str], fate: Callable[[str], Fate], now: float) -> str | None:
    """Why a job may not start on any host, or None."""
    if not_before is not None and seconds(not_before) > now:
        return f"not before {not_before}"
    if waits := [id_ for id_ in after if fate(id_) is not Fate.OK]:
        return f"waits for {waits[0]}" + (f" and {len(waits) - 1} more" if len(waits) > 1 else "")
    return None


def _goes_first(job: Job, offer: Offer, others: Iterable[Offer]) -> Offer | None:
    """After this host said 75: another that fits and has not said so yet."""
    if offer.host not in job.away:
        return None
    return next((other for other in others if other.host not in job.away and not misfit(job, other)), None)


def short_of_gpus(job: Job, free: Collection[int]) -> str | None:
    """Why the job waits for GPUs that others use, or None; one that does holds up nobody."""
    return f"waits for {job.gpus} free GPUs, {len(free)} are" if job.gpus > len(free) else None


class Until(Enum):
    """What must change before it is worth asking again whether a job may start."""

    ROW = "one of those it comes after ends"
    OFFER = "this host's settings change"
    OTHERS = "the other hosts, or what they offer, change"
    TIME = "its not_before comes"
    GPUS = "GPUs come free"


def until(
    job: Job, offer: Offer, others: Iterable[Offer], fate: Callable[[str], Fate], now: float, free_gpus: int
) -> Until | None:
    """The same for who waits for it: None where neither `blocked` nor `short_of_gpus` has a reason.

    Of several things the one that time alone won't bring comes first.
    """
    if any(fate(id_) is not Fate.OK for id_ in job.after):
        return Until.ROW
    if misfit(job, offer):
        return Until.OFFER
    if _goes_first(job, offer, others):
        return Until.OTHERS
    if job.not_before is not None and seconds(job.not_before) > now:
        return Until.TIME
    return Until.GPUS if job.gpus > free_gpus else None


def choose(waiting: Iterable[Job], free_lanes: int, why: Callable[[Job], object]) -> Iterator[Job]:
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
