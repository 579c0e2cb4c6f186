"""How long until a spool is empty, where that can be told: everything that waits is like what has ended lately."""

from collections.abc import Sequence

from fleetd.cli_state import Reasons, State
from fleetd.errors import BadData
from fleetd.files import read_plain
from fleetd.job import decode_fields
from fleetd.spool import Spool

LOOKED_AT = 16  # of the waiting jobs, from all over the queue
ENOUGH = 5  # of a kind that have ended lately
ALIKE = 4  # times the median's length that nine in ten of them keep below


def seconds_to_empty(spool: Spool, state: State, now: float) -> float | None:
    """Seconds until nothing waits or runs; None where jobs are unlike what has ended, or wait for more than a lane."""
    left = len(state.waiting) + len(state.running)
    known = {kind for kind, lengths in state.lately.items() if _are_alike(lengths)}
    if not left or not state.rate or any(run.job is None or run.job.kind not in known for run in state.running):
        return None
    reasons = Reasons(state, now)
    sample = state.waiting[:: max(len(state.waiting) // LOOKED_AT, 1)]
    return left / state.rate if all(_will_go(spool, id_, reasons, known) for id_ in sample) else None


def _are_alike(lengths: Sequence[float]) -> bool:
    ordered = sorted(lengths)
    return len(ordered) >= ENOUGH and ordered[len(ordered) * 9 // 10] <= ALIKE * ordered[len(ordered) // 2]


def _will_go(spool: Spool, id_: str, reasons: Reasons, known: set[str]) -> bool:
    try:
        found = read_plain(f"{spool.queue}/{id_}.json")
        fields = decode_fields(found[0], id_) if found else None
    except (OSError, BadData):
        return False
    return fields is None or (fields.get("kind", "job") in known and reasons.of("", fields, 0) == reasons.NEXT)
