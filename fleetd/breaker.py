"""The breaker: a host whose jobs keep failing rests for a while; a fleet that does stops adding.

Pure folds over ledger rows. Failures count by different jobs; an ok, a breaker, a reset or a resume row starts the count
anew; other outcomes neither count nor break the run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fleetd.job import DECLINED_EXIT, Outcome, seconds

COUNTED = frozenset({Outcome.FAILED, Outcome.TIMEOUT, Outcome.BUILD_FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many failures in a row open the breaker, and for how many seconds the host then rests."""

    failures: int = 5
    rest_s: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Streak:
    """Failures in a row: (job, host), a job once; `last` describes the newest."""

    failed: tuple[tuple[str, str], ...] = ()
    last: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """One host's breaker. `until` is seconds since the epoch: from then on one probe job may run."""

    open: bool = False
    until: float = 0.0
    reason: str = ""
    streak: Streak = Streak()


def is_reset(row: Mapping[str, Any]) -> bool:
    """Whether this `note` row closes the host's breaker."""
    return row["event"] == "note" and row.get("note") == "reset"


def counts(row: Mapping[str, Any]) -> bool:
    """Whether this row is a failure that counts; the last of a job's refusals (exit 75) is nobody's fault."""
    return row["event"] == "result" and row.get("outcome") in COUNTED and row.get("exit") != DECLINED_EXIT


def matters(row: Mapping[str, Any]) -> bool:
    """Whether the row can change a streak."""
    return row["event"] in ("breaker", "resume") or is_reset(row) or counts(row) or row.get("outcome") == Outcome.OK


def fold_streak(streak: Streak, row: Mapping[str, Any]) -> Streak:
    """The streak after one more row."""
    if row["event"] in ("breaker", "resume") or is_reset(row) or row.get("outcome") == Outcome.OK:
        return Streak()
    if not counts(row):
        return streak
    seen = [f for f in streak.failed if f[0] != row["job"]]
    return Streak(failed=(*seen, (row["job"], row["host"])), last=f"{row['job']} ended {describe(row)}")


def describe(row: Mapping[str, Any]) -> str:
    """failed, exit 3 — timeout — failed, signal 11."""
    how = f", signal {row['signal']}" if row.get("signal") else f", exit {row['exit']}" if row.get("exit") else ""
    return f"{row.get('outcome')}{how}"


def failure(row: Mapping[str, Any]) -> str | None:
    """What the daemon says of a job that has failed for good; None of any other row."""
    if row["next"] is not None or row["outcome"] not in (*COUNTED, Outcome.LOST):
        return None
    why = f" ({row['reason']})" if row.get("reason") else ""
    return f"{row['job']} {describe(row)}{why}; fleet show {row['job']} says more"


def fold_breaker(breaker: Breaker, row: Mapping[str, Any], limits: Limits) -> Breaker:
    """One host's breaker after one more row of that host."""
    streak = fold_streak(breaker.streak, row)
    if row["event"] == "breaker" and row.get("scope") == "host":
        return Breaker(open=True, until=seconds(row["until"]), reason=str(row.get("reason") or ""))
    if is_reset(row):
        return Breaker()
    probed = breaker.open and row["event"] == "result" and _moment(row.get("started")) >= breaker.until
    if probed and row.get("outcome") == Outcome.OK:
        return Breaker()
    if probed and counts(row):
        return replace(breaker, until=max(breaker.until, _moment(row.get("ended")) + limits.rest_s), streak=streak)
    return replace(breaker, streak=streak)


def _moment(at: Any) -> float:
    """Seconds since the epoch; minus infinity for what is no time."""
    try:
        return seconds(at)
    except (TypeError, ValueError, OverflowError):
        return float("-inf")


def trips(streak: Streak, limits: Limits) -> bool:
    """Whether that many different jobs have failed in a row."""
    return len(streak.failed) >= limits.failures


def fleet_trips(streak: Streak, limits: Limits, hosts: int) -> bool:
    """Whether the whole fleet must stop adding: failures from two hosts or more, or from the only host there is."""
    return trips(streak, limits) and (hosts == 1 or len({host for _, host in streak.failed}) > 1)


def reason(streak: Streak) -> str:
    """One sentence for the row, the heartbeat and the stop file."""
    return f"{len(streak.failed)} different jobs failed in a row; the last: {streak.last}"
