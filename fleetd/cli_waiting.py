"""Why each waiting job waits: one reason a job, from what the hosts say and what the ledger knows."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from fleetd.cli_common import count
from fleetd.cli_state import Beat, State
from fleetd.job import Job, Outcome
from fleetd.lane import Fate, blocked, offer_of
from fleetd.ledger import Row


def reasons(state: State, waiting: Iterable[tuple[str, Job | None]], now: float) -> dict[str, str]:
    """By id, in words that end a sentence beginning with `waits:`. `now`: seconds since the epoch."""
    if "STOP_NOW" in state.stops:
        return {id_: "STOP_NOW stands" for id_, _ in waiting}
    living = [beat for beat in state.beats if beat.live]
    if not living:
        return {id_: "no daemon runs" for id_, _ in waiting}
    fate, ahead, why = _fates(state.last), 0, {}
    for id_, job in waiting:
        why[id_] = "cannot be read (yet)" if job is None else _reason(job, living, fate, now, ahead)
        ahead += job is not None
    return why


def _fates(last: Mapping[str, Row]) -> Callable[[str], Fate]:
    def fate(id_: str) -> Fate:
        row = last.get(id_)
        if row is None:
            return Fate.OPEN
        return Fate.OK if row.body.get("outcome") == Outcome.OK else Fate.FAILED

    return fate


def _reason(job: Job, living: Sequence[Beat], fate: Callable[[str], Fate], now: float, ahead: int) -> str:
    offers = [offer_of(beat.host, beat.body) for beat in living]
    barred = []
    for beat, offer in zip(living, offers, strict=True):
        others = [other for other in offers if other is not offer]
        why = blocked(job, offer, others, fate, now) or _rests(beat)
        if why is None:
            return "for a free lane" if not ahead else f"for a free lane, {count(ahead, 'job')} before it"
        barred.append(why)
    return barred[0]


def _rests(beat: Beat) -> str | None:
    if (beat.body.get("breaker") or {}).get("open"):
        return f"the breaker of {beat.host} is open"
    if beat.drained:
        return f"{beat.host} is drained"
    return f"{beat.host} claims nothing: {beat.body['claims']}" if beat.body.get("claims") else None
