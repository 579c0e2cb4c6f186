"""fleet wait: until jobs have ended for good. It wakes on the ledger: one look-up a segment, and only new rows are read."""

import argparse
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from fleetd.cli_state import Beat, find_job, known_ids, read_beats, short
from fleetd.cli_status import how_ended
from fleetd.cli_talk import Talk
from fleetd.cli_text import clean, count, span
from fleetd.errors import NoDaemon, TryLater
from fleetd.history import History
from fleetd.job import Job, Outcome
from fleetd.lane import Fate, misfit, offer_of
from fleetd.lease import host_name
from fleetd.ledger import Ledger, Row, decode_head
from fleetd.spool import Running, Spool, find_spool

POLL_S = 0.05
LOOK_S = 2.0
GRACE_S = 5.0  # a daemon that is being restarted is back by then
NAMED = 5


@dataclass(frozen=True, slots=True)
class Ended:
    """A job that is over: the row that says so, or None where it is nowhere any more and no row says why."""

    job: str
    row: Row | None

    @property
    def is_ok(self) -> bool:
        return self.row is not None and self.row.body.get("outcome") == Outcome.OK


def wait(args: argparse.Namespace, talk: Talk) -> int:
    """Until all have ended: 0 when all ended ok, else 1. Raises NoDaemon, and TryLater when the time is up."""
    spool, began = find_spool(args.spool, talk.environ), time.monotonic()
    watch = Watch(spool, _wanted(spool, args.jobs))
    guard = Guard(spool, host_name(talk.environ))
    total, bad = len(watch.left), 0
    while watch.left:
        now = time.monotonic()
        ends = watch.look()
        if guard.is_due(now):
            ends += guard.check(watch, now)
        for end in ends:
            bad += not end.is_ok
            _show(end, talk)
        if watch.left and args.timeout is not None and now >= began + args.timeout:
            raise TryLater(f"not ended within {args.timeout:g} s: {_names(watch.left)}")
        if watch.left:
            time.sleep(POLL_S)
    if total:
        talk.say(f"{total - bad} ok, {bad} otherwise; {span(time.monotonic() - began)}")
    else:
        talk.say("nothing waits and nothing runs")
    return 1 if bad else 0


def _wanted(spool: Spool, names: Sequence[str]) -> list[str]:
    if not names:
        return [*spool.waiting(), *spool.claimed(), *(run.id for run in spool.attempts())]
    known = known_ids(spool)
    return [find_job(name, known) for name in names]


def _names(ids: Collection[str]) -> str:
    shown = ", ".join(short(id_) for id_ in sorted(ids)[:NAMED])
    return f"{count(len(ids), 'job')} ({shown}{', …' if len(ids) > NAMED else ''})"


def _show(end: Ended, talk: Talk) -> None:
    body = end.row.body if end.row else {}
    if talk.json:
        about = {key: body.get(key) for key in ("outcome", "attempt", "exit", "signal", "reason")}
        talk.emit({"schema": "fleet.wait/1", "job": end.job, "host": end.row.host if end.row else None, **about})
    elif end.row is None:
        talk.data(f"{short(end.job)} is gone: it neither waits nor runs, and no row says how it ended")
    elif not end.is_ok or talk.verbose:
        talk.data(f"{short(end.job)} {how_ended(body)} on {clean(end.row.host)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where every job that has not ended is: one that moves on meanwhile is in two places rather than in none."""

    waiting: frozenset[str]
    claimed: Mapping[str, Job]
    running: Mapping[str, Running]


def read_places(spool: Spool) -> Places:
    """Listed in the order in which jobs move."""
    waiting, claimed = frozenset(spool.waiting()), spool.claimed()
    return Places(waiting=waiting, claimed=claimed, running={run.id: run for run in spool.attempts()})


class Watch:
    """The jobs in `left` have not ended for good yet, as far as `look` has seen."""

    def __init__(self, spool: Spool, ids: Collection[str]) -> None:
        self.left = set(ids)
        self._spool, self._ledger, self._history = spool, Ledger(spool.ledger_d), History()
        self._rows: dict[str, Row] = {}
        self._due = set(ids)
        self._astray: set[str] = set()

    def look(self) -> list[Ended]:
        """Those that have ended since the last look."""
        if any(self._ledger.behind(host) for host in self._ledger.hosts()):
            for row, _ in self._ledger.poll_lines(decode_head):
                self._take(row)
        return [end for id_ in sorted(self._due) if (end := self._ended(id_))]

    def _take(self, row: Row) -> None:
        if row.event != "result" or row.body["job"] not in self.left:
            return
        id_ = row.body["job"]
        self._history.add(row.body)
        self._due.add(id_)
        old = self._rows.get(id_)
        if old is None or (old.body["outcome"] != Outcome.OK and self._follows(row, old)):
            self._rows[id_] = row

    @staticmethod
    def _follows(row: Row, old: Row) -> bool:
        return row.body["outcome"] in (Outcome.OK, Outcome.REJECTED) or row.body["attempt"] >= old.body["attempt"]

    def _ended(self, id_: str) -> Ended | None:
        """A final row is not the end while the job waits again (`fleet retry`), or is just about to leave running/."""
        if self._history.fate(id_) is Fate.OPEN or self._waits(id_):
            self._due.discard(id_)
            return None
        if any(self._spool.running.glob(f"*/{id_}")):
            return None
        return self._end(id_)

    def _waits(self, id_: str) -> bool:
        return (self._spool.queue / f"{id_}.json").exists() or any(self._spool.running.glob(f"*/{id_}~*.json"))

    def _end(self, id_: str) -> Ended:
        self.left.discard(id_)
        self._due.discard(id_)
        return Ended(id_, self._rows.get(id_))

    def strays(self, places: Places) -> list[Ended]:
        """Those that were nowhere, twice running, and that no row will come for: somebody has removed them by hand."""
        nowhere = self.left - places.waiting - places.claimed.keys() - places.running.keys() - self._due
        gone, self._astray = nowhere & self._astray, nowhere
        return [self._end(id_) for id_ in sorted(gone)]


class Guard:
    """Sees now and then whether the jobs are still there, and somebody who could bring them to an end."""

    def __init__(self, spool: Spool, me: str) -> None:
        self._spool, self._me = spool, me
        self._next_at = float("-inf")
        self._alone_since: float | None = None

    def is_due(self, now: float) -> bool:
        """Whether it is time to look again. `now`: monotonic seconds, here as below."""
        return now >= self._next_at

    def check(self, watch: Watch, now: float) -> list[Ended]:
        """The jobs that are gone. Raises NoDaemon when nobody has been there for the others in the last GRACE_S."""
        self._next_at = now + LOOK_S
        places = read_places(self._spool)
        gone = watch.strays(places)
        living = [beat for beat in read_beats(self._spool, self._me, time.time()) if beat.live]
        if not watch.left or (living and any(self._could(id_, places, living) for id_ in watch.left)):
            self._alone_since = None
        elif self._alone_since is None:
            self._alone_since = now
        elif now >= self._alone_since + GRACE_S:
            what = "no daemon that could run them is alive" if living else "no daemon is alive"
            raise NoDaemon(f"{what}: {_names(watch.left)} left; fleetd starts one here, fleet ls says why each waits")
        return gone

    def _could(self, id_: str, places: Places, living: Sequence[Beat]) -> bool:
        if run := places.running.get(id_):
            return any(beat.host == run.host for beat in living)
        job = places.claimed.get(id_) or self._spool.read_waiting(id_)
        return job is None or any(misfit(job, offer_of(beat.host, beat.body)) is None for beat in living)
