"""What the commands say about a spool, gathered by reading it once: who lives, what waits and why, runs, has ended."""

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleetd.cli_text import clean, span
from fleetd.errors import NotFound, Usage
from fleetd.job import Job, Outcome, seconds, utc
from fleetd.lane import Fate, Offer, blocked, not_yet, offer_of, short_of_gpus
from fleetd.lease import boot_id, born
from fleetd.ledger import Ledger, Row, decode_head, decode_row
from fleetd.spool import Running, Spool, job_id

OPEN = "breaker open"
_STAMP = re.compile(r"\b\d\d-\d{8}T\d{6}\.\d{6}Z-")  # what an id loses when it is shown in short
BEAT_LIMIT_S = 30.0  # three heartbeats
APART = (Outcome.STOPPED, Outcome.CANCELLED, Outcome.REJECTED)
BAD = frozenset(set(Outcome) - {Outcome.OK, Outcome.SUPERSEDED, *APART})
RATE_WINDOW_S = 1800.0
_WHERE = ("needs", "cores", "gpus", "away")  # the fields of a job that say where it may run


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """A host as its heartbeat shows it; `age_s` by the two clocks' times of day.

    Where the heartbeat cannot be read, `body` is empty and `age_s` infinite.
    """

    host: str
    live: bool
    age_s: float
    drained: bool
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A spool at one moment: a job that moves on meanwhile is in two places rather than in none.

    `claimed` is what is on its way from waiting to running, `last` each ended job's newest result row, `refused` the newest
    rejection of those that had ended ok before, `lately` the seconds that attempts of each kind took which ended just now.
    """

    waiting: list[str]
    claimed: Mapping[str, Job]
    running: list[Running]
    beats: list[Beat]
    stops: Mapping[str, float]
    last: Mapping[str, Row]
    refused: Mapping[str, Row]
    lately: Mapping[str, list[float]]
    rate: float
    skipped: int

    def final(self, outcomes: Iterable[str]) -> list[Row]:
        """The jobs that ended so and do not go again, newest last."""
        wanted, open_ = frozenset(outcomes), {*self.waiting, *(r.id for r in self.running)}
        rows = [r for j, r in self.last.items() if j not in open_ and r.body.get("outcome") in wanted]
        return sorted(rows, key=lambda row: row.at)

    def ids(self, spool: Spool) -> set[str]:
        """Every id that waits, runs, has ended or was rejected."""
        return {*self.waiting, *self.claimed, *(run.id for run in self.running), *self.last, *_rejected(spool)}

    def counts(self) -> dict[str, int]:
        """queued, running, done, failed, stopped, cancelled, rejected: jobs, not attempts."""
        open_ = {*self.waiting, *(r.id for r in self.running)}
        ended = Counter(row.body.get("outcome") for job, row in self.last.items() if job not in open_)
        return {
            "queued": len(self.waiting),
            "running": len(self.running),
            "done": ended[Outcome.OK],
            "failed": sum(ended[outcome] for outcome in BAD),
            **{str(outcome): ended[outcome] for outcome in APART},
        }


def read_state(spool: Spool, me: str, now: float) -> State:
    """Everything `fleet` and `fleet ls` show; raises what the spool raises."""
    waiting, claimed, running = spool.waiting(), spool.claimed(), spool.attempts()
    ledger, since = Ledger(spool.ledger_d), utc(now - RATE_WINDOW_S)
    last: dict[str, Row] = {}
    rejected: dict[str, Row] = {}
    recent: list[Row] = []
    for row in ledger.heads():
        keep_newest(last, row)
        if row.body["outcome"] == Outcome.REJECTED:
            rejected[row.body["job"]] = max(row, rejected.get(row.body["job"], row), key=lambda row: row.at)
        if row.at > since:
            recent.append(row)
    return State(
        waiting=waiting,
        claimed=claimed,
        running=running,
        beats=read_beats(spool, me, now),
        stops={name: _mtime(spool.root / name) for name in sorted(spool.stops())},
        last=last,
        refused={job: row for job, row in rejected.items() if _was_ok(last[job], row.at)},
        lately=_lengths(recent),
        rate=rate([row.at for row in recent], now),
        skipped=ledger.skipped,
    )


def _was_ok(last: Row, at: str) -> bool:
    return last.body["outcome"] == Outcome.OK and last.at < at


def _lengths(rows: Iterable[Row]) -> dict[str, list[float]]:
    lengths: dict[str, list[float]] = {}
    for row in rows:
        if isinstance(took := row.body.get("wall_s"), int | float):
            lengths.setdefault(str(row.body.get("kind")), []).append(took)
    return lengths


def rows_of(ledger: Ledger, jobs: Collection[str]) -> list[Row]:
    """The whole result rows of these jobs, in order of attempts; of the others only the heads are decoded."""
    lines = [line for row, line in ledger.lines(decode_head) if row.event == "result" and row.body["job"] in jobs]
    return sorted(filter(None, map(decode_row, lines)), key=lambda row: (row.body["attempt"], row.at))


def keep_newest(last: dict[str, Row], row: Row) -> None:
    """Keep per job the row that counts: the lowest attempt that is `ok`, else the highest attempt."""
    old = last.get(row.body["job"])
    if old is None or _rank(row) >= _rank(old):
        last[row.body["job"]] = row


def _rank(row: Row) -> tuple[bool, int]:
    ok, attempt = row.body.get("outcome") == Outcome.OK, row.body.get("attempt", 0)
    return ok, -attempt if ok else attempt


def rate(ends: Sequence[str], now: float) -> float:
    """Jobs per second that ended at these times, from the first until now; 0 when there are too few to say."""
    return len(ends) / max(now - seconds(min(ends)), 1.0) if len(ends) > 1 else 0.0


def read_beats(spool: Spool, me: str, now: float) -> list[Beat]:
    """The hosts that ever had a daemon here, in order."""
    beats, names = spool.heartbeats(), filter(None, map(job_id, os.listdir(spool.hosts)))
    return [_beat(spool, host, beats.get(host, {}), me, now) for host in sorted({*beats, *names})]


def _beat(spool: Spool, host: str, body: Mapping[str, Any], me: str, now: float) -> Beat:
    try:
        age_s = max(now - seconds(body.get("at", "")), 0.0)
    except (ValueError, OverflowError):
        age_s = float("inf")
    live = age_s < BEAT_LIMIT_S and not body.get("ended")
    if host == me:
        live = live and body.get("boot") == boot_id() and born(body["pid"]) is not None
        live = live or _is_held(spool.hosts / f"{host}.lock")  # a full disk takes no heartbeat
    drained = (spool.hosts / f"{host}.drain").exists()
    return Beat(host=host, live=live, age_s=age_s, drained=drained, body=body)


def _is_held(lock: Path) -> bool:
    """Whether a process of this machine holds the lock, without taking it: a daemon that starts now must find it free."""
    try:
        inode = os.stat(lock).st_ino
        locks = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return False
    return any(" FLOCK " in line and f":{inode} " in line for line in locks)


def taken_lanes(running: Iterable[Running]) -> Counter[str]:
    """How many lanes of each host its attempts take, or would: some wait at a lane's door."""
    taken: Counter[str] = Counter()
    for run in running:
        taken[run.host] += run.job.cores if run.job else 1
    return taken


def lanes_of(beat: Beat, taken: int) -> str:
    """How many of the host's lanes are busy, and how many it has: 1/2; -/2 where no daemon lives."""
    lanes = beat.body.get("lanes", "?")
    return f"{min(taken, lanes) if beat.live and beat.body else '-'}/{lanes}"


def unkillable(beat: Beat) -> dict[str, list[int]]:
    """What on a living host has outlived SIGKILL, by the job's id."""
    said = beat.body.get("unkillable") if beat.live else None
    return {id_: pids for id_, pids in said.items() if isinstance(pids, list)} if isinstance(said, dict) else {}


def presence(beat: Beat) -> str:
    """How fresh the heartbeat is."""
    return f"{span(beat.age_s)} ago" if beat.age_s < float("inf") else "unreadable heartbeat"


def _mtime(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


def started_at(run: Running) -> float | None:
    """When the attempt was claimed, seconds since the epoch: its lock is made then."""
    return _mtime(run.path / "lock") or None


def find_job(name: str, known: Iterable[str]) -> str:
    """The one id that is `name`, begins with it or ends with it. Raises NotFound, or Usage when several do."""
    ids = set(known)
    if name in ids:
        return name
    found = sorted(i for i in ids if i.startswith(name) or i.endswith(f"-{name}"))
    if not found:
        raise NotFound(f"{name}: no such job; fleet ls shows what waits and runs, fleet results what has ended")
    if len(found) > 1:
        raise Usage(f"{name}: {len(found)} jobs are called so: {', '.join(found[:5])}{', …' if len(found) > 5 else ''}")
    return found[0]


def short(id_: str) -> str:
    """trial-9f3a2c for 50-20261130T165200.123456Z-trial-9f3a2c; other ids as they are."""
    priority, _, rest = id_.partition("-")
    stamp, _, name = rest.partition("-")
    made = len(priority) == 2 and priority.isdigit() and len(stamp) == 23 and stamp.endswith("Z")
    return name if made and name else id_


def known_ids(spool: Spool) -> set[str]:
    """Every id that waits, runs, has ended or was rejected."""
    open_ = {*spool.waiting(), *spool.claimed(), *(run.id for run in spool.attempts())}
    return open_ | {row.body["job"] for row in Ledger(spool.ledger_d).heads()} | {*_rejected(spool)}


def _rejected(spool: Spool) -> list[str]:
    return [path.stem for path in spool.rejected.iterdir() if path.suffix == ".json"]


_RANKED = re.compile(r"\d\d-", re.ASCII)


class Reasons:
    """Why each waiting job waits, in words that end a sentence beginning with `waits:`."""

    NEXT = "for a free lane"  # with nothing before it

    def __init__(self, state: State, now: float) -> None:
        living = [beat for beat in state.beats if beat.live]
        in_use: Counter[str] = Counter()
        for run in state.running:
            in_use[run.host] += run.job.gpus if run.job else 0
        self._of_all = "STOP_NOW stands" if "STOP_NOW" in state.stops else None if living else "no daemon runs"
        self._hosts = [_Host(offer_of(b.host, b.body), in_use[b.host], _claims_nothing(b)) for b in living]
        self._fate, self._now = _fates(state.last), now
        self._known: dict[tuple[Any, ...], str | None] = {}
        self._ranked = bool(state.waiting) and _RANKED.match(state.waiting[0])

    def of(self, id_: str, fields: Mapping[str, Any] | None, before: int) -> str:
        """A job's, given its fields less those at their defaults (None: it can't be read) and how many wait before it."""
        if self._of_all:
            return self._of_all
        if fields is None:
            return "cannot be read (yet)"
        if why := not_yet(fields.get("not_before"), fields.get("after", ()), self._fate, self._now):
            return why
        asked = tuple(map(fields.get, _WHERE))
        if asked not in self._known:
            self._known[asked] = self._barred(Job(**fields))
        return self._known[asked] or self._in_line(id_, before)

    def of_job(self, job: Job, before: int) -> str:
        """The same of a whole job."""
        return self._of_all or self._barred(job) or self._in_line(job.id, before)

    def _in_line(self, id_: str, before: int) -> str:
        """A name without a priority comes after all that have one, and never where a planner keeps the queue full."""
        later = "; names with a priority (50-…) come first" if self._ranked and not _RANKED.match(id_) else ""
        return f"{self.NEXT}, {before} before it{later}" if before else self.NEXT

    def _barred(self, job: Job) -> str | None:
        """The first host's reason, or None when there is a host where only lanes are missing."""
        barred = []
        for host in self._hosts:
            others = [other.offer for other in self._hosts if other is not host]
            why = blocked(job, host.offer, others, self._fate, self._now)
            why = why or short_of_gpus(job, range(host.offer.gpus - host.gpus_in_use)) or host.claims_nothing
            if why is None:
                return None
            barred.append(why)
        return barred[0]


@dataclass(frozen=True, slots=True)
class _Host:
    """A living host: what it has, what of it is in use, and why it claims nothing if it doesn't."""

    offer: Offer
    gpus_in_use: int
    claims_nothing: str | None


def _fates(last: Mapping[str, Row]) -> Callable[[str], Fate]:
    def fate(id_: str) -> Fate:
        row = last.get(id_)
        if row is None:
            return Fate.OPEN
        return Fate.OK if row.body.get("outcome") == Outcome.OK else Fate.FAILED

    return fate


def _claims_nothing(beat: Beat) -> str | None:
    why = rests(beat)
    return f"{beat.host} claims nothing: {why}" if why else None


def rests(beat: Beat) -> str | None:
    """Why a living host claims nothing, or None."""
    breaker = beat.body.get("breaker", {})
    if breaker.get("open"):
        return f"{OPEN}: {_STAMP.sub('', clean(str(breaker.get('reason'))))}"
    if beat.drained:
        return "drained"
    claims = beat.body.get("claims")
    return clean(str(claims)) if claims else None
