"""One pass: stops → reap → breaker → claim → start. The pass that reaps is the pass that recovers; there is no other."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from fleetd import claim, order, reap, shelter
from fleetd.books import Books
from fleetd.breaker import Limits, failure, fleet_trips, reason, trips
from fleetd.cores import allowed_cores
from fleetd.crew import Crew, Lane
from fleetd.errors import FleetError, IOFailed
from fleetd.files import Stamp, scan, stamp_of, write_file
from fleetd.halt import Halt
from fleetd.job import Job, Outcome, utc
from fleetd.lane import Offer, Until, choose, until
from fleetd.machine import Machine
from fleetd.peers import Peers
from fleetd.pulse import Pulse
from fleetd.queue import Queue
from fleetd.settings import Settings
from fleetd.spool import Spool, free_mb, job_id
from fleetd.stops import Mode, mode
from fleetd.sweep import DAY_S, Sweeper
from fleetd.ward import RECALL_S, Ward

_SMALL = 4096  # bytes of a job file: what stands at a door has to fit into a socket's buffer
REFUSED_AT_ONCE = 50
_HOLD_S = 2.0
_WARNING = 4  # syslog's level


class Keeper:
    """The daemon of one host on one spool: all it knows is on disk, so that it may be killed at any moment."""

    def __init__(
        self,
        spool: Spool,
        settings: Settings,
        offer: Offer,
        me: Machine,
        environ: Mapping[str, str],
        log: Callable[..., None],
    ) -> None:
        self.spool, self.settings, self.offer, self.log = spool, settings, offer, log
        self.host, self.by = offer.host, f"fleetd@{offer.host}"
        (spool.running / self.host).mkdir(exist_ok=True)
        self.crew = Crew(environ)
        self._books = Books(spool, self.host, Limits(failures=settings.failures, rest_s=settings.rest_s))
        self._shelters = shelter.shelters(environ)
        self.ward = Ward(spool, self._books.ledger, self.host, self.crew, self._books.history, settings, self._shelters)
        self.queue = Queue(spool, os.getuid(), self._books.history.fate)
        self._books.awaited = self.queue.parking
        self.halt = Halt(self._books.stops, spool.heartbeats().get(self.host, {}).get("stops", {}))
        self._peers, self._pulse = Peers(spool, self.host), Pulse(spool, self.host, me)
        self._sweeper = Sweeper(spool.ended, self._books.named)
        self._cores = allowed_cores().cores
        self.events = self.draining = self.ending = self._drained = False
        self._poked = self._look_again = self._untidy = True
        self._look_at = self._hosts_at = self._cancel_at = self._hold_until = float("-inf")
        self._aside: list[tuple[Path, str]] = []
        self.claims: str | None = None
        self._reset: Stamp | None = None
        self._said: dict[str, frozenset[str]] = {}

    def renew(self, settings: Settings, offer: Offer) -> None:
        """Take new settings."""
        self.settings, self.offer, self.ward.settings = settings, offer, settings
        self._books.limits = Limits(failures=settings.failures, rest_s=settings.rest_s)
        self.queue.offer_changed()

    def told(self, path: Path) -> None:
        """A file event: what has come or changed."""
        if path.parent.name == "queue":
            self.queue.tell(path.name)
        if path == self.spool.root:
            self.queue.forget()  # events were lost
        if not job_id(path.name):
            self._poked = True

    def run_pass(self) -> float:
        """Do what is due; gives back in how many seconds to come again at the latest.

        A step that the disk or the share refuses is tried again later, and keeps no other step from being done.
        """
        now = time.monotonic()
        try:
            stops = self.spool.stops()
        except OSError as error:
            self._hold(f"{self.spool.root}: {error.strerror}", now)
            self._say_anew("claims", [self.claims or ""], "claims nothing: {}")
            return _HOLD_S
        asked = mode(stops)
        if self.halt.see(stops, utc(time.time())):
            self._beat(now, stops)
        if self._untidy:
            self._try(self._tidy, now)
        self._try(partial(self._reap, now), now)
        self._end_what_must(now, asked)
        self._try(partial(self._tell_stops, stops), now)
        self._try(self._mind_breakers, now)
        self._try(partial(self._claim, now, asked), now)
        self._try(partial(self._sweeper.step, now, self.settings.keep_ended_days), now)
        self._beat(now, stops)
        return self._pause(now)

    def _try(self, step: Callable[[], None], now: float) -> None:
        try:
            step()
        except OSError as error:
            self._hold(f"{error.filename or self.spool.root}: {error.strerror}", now)
        except FleetError as error:
            self._hold(str(error), now)

    def _say_anew(self, about: str, lines: Sequence[str], text: str) -> None:
        """Log what wasn't so the last time; what has healed and comes back is said again."""
        for line in lines:
            if line not in self._said.get(about, ()):
                self.log(text.format(line))
        self._said[about] = frozenset(lines)

    def _reap(self, now: float) -> None:
        if self._look_again:
            self._books.take_in(now)  # a row may have been written before what failed failed
        answers, died = self.crew.hear()
        look = self._look_again or self._poked or died or now >= self._look_at or bool(self.ward.found)
        look |= self.ward.has_ends
        self._look_again = True  # whatever goes wrong from here on is found by listing
        ends = [self.ward.heard(answer) for answer in answers if answer.started]
        for answer in answers:
            look |= not answer.started
            if not answer.started and not answer.said.get("held"):
                self._hold(f"not started: {answer.said['reason']}", now)
        if look:
            first = self._look_at == float("-inf")
            self._look_at = now + self.settings.poll_s
            ends += self.ward.look(now, {str(end.path) for end in ends})
            if self.crew.stillborn and self.ward.returned:
                why = f"a lane's parent ({sys.executable}) died before it could start anything"
                self._hold(f"{why}: {' '.join(self.ward.returned)}", now)
            self.crew.stillborn = False
            if first and self.ward.found:
                self.log(f"adopted {len(self.ward.found)} running: {' '.join(a.id for a in self.ward.found)}")
            sheltered = shelter.waiting(self._shelters, self.spool.running / self.host)
            self._say_anew("sheltered", sheltered, "{} has ended; its row waits until the spool takes how")
        self._say_anew("unknown", self.ward.unknown, "cannot tell what became of {}; looking again")
        if ends:
            reap.finish(self.spool, self._books.ledger, self.host, ends)
            self.ward.returned += [end.path.name for end in ends if end.following or end.done_before]
            for line in filter(None, (failure(end.row) for end in ends if not end.done_before)):
                self.log(line, _WARNING)
        self._look_again = False
        self._books.take_in(now)
        self._merge(now)

    def _merge(self, now: float) -> None:
        """ledger.jsonl is this host's to write, if it is home or no home is alive."""
        home = self.settings.home
        troubles = self._books.merge(now, lambda: home in (None, self.host) or home not in self._peers.living(now))
        self._say_anew("merge", troubles, f"{{}}; until that is mended {self.spool.ledger} lags behind")

    def _hold(self, why: str, now: float) -> None:
        """Claim nothing for a moment: what just failed would fail again."""
        self._hold_until, self.claims = now + _HOLD_S, why
        self._look_again = True
        self.queue.forget()

    def _end_what_must(self, now: float, asked: Mode) -> None:
        halting = asked is Mode.HALT or self.halt.halting()
        if self._poked or self.ward.cancelling or now >= self._cancel_at:
            self._cancel_at = now + self.settings.poll_s
            self.ward.heed(now)
        self.ward.stand_in(now)
        for attempt in self.ward.running if halting or self.ending else ():
            if self.ward.end(attempt, Outcome.STOPPED, now) and halting:
                self.halt.ended(attempt.id)
        unfinished = len(self.ward.running) + self._look_again  # what could not be brought to its end is not over
        self.halt.left(unfinished if halting else 0, self.ward.unkillable if halting else ())
        self._say_anew("unkillable", self.ward.outlived(), "{}; its lanes stay taken")

    def _tell_stops(self, stops: frozenset[str]) -> None:
        if rows := self.halt.rows(stops, self.by):
            self._append(rows)
            self.halt.written(rows)
            for row in rows:
                still = f", {', '.join(row['unkillable'])} cannot be ended" if row.get("unkillable") else ""
                ended = f", {len(row['ended'])} ended by it" if "ended" in row else ""
                self.log(f"{row['event']}: {row['reason']}{ended}{still}")

    def _append(self, rows: list[dict[str, Any]]) -> None:
        now = time.monotonic()
        self._books.append(rows, now)
        self._merge(now)

    def _mind_breakers(self) -> None:
        now = time.monotonic()
        if self._poked or now >= self._hosts_at:
            self._hosts_at = now + self.settings.poll_s
            self._look_at_hosts()
        fleet, limits = self._books.fleet, self._books.limits
        rows: list[dict[str, Any]] = []
        if trips(self._books.breaker.streak, limits):
            until = utc(time.time() + limits.rest_s)
            why = reason(self._books.breaker.streak)
            rows += [{"event": "breaker", "scope": "host", "by": self.by, "until": until, "reason": why}]
        if fleet_trips(fleet, limits, len(self._books.hosts)):
            rows += [{"event": "breaker", "scope": "fleet", "by": self.by, "until": None, "reason": reason(fleet)}]
            with contextlib.suppress(FileExistsError):
                write_file(self.spool.root / "STOP_ADDING", f"{self.by}: {reason(fleet)}\n".encode())
        if rows:
            self._append(rows)
            self.log(f"breaker: {rows[0]['reason']}")

    def _look_at_hosts(self) -> None:
        """What was left for this host in hosts/: a reset of its breaker, a drain."""
        asked = self.spool.hosts / f"{self.host}.reset"
        if (stamp := stamp_of(asked)) not in (None, self._reset):  # one that cannot be removed is heeded once
            self._append([{"event": "note", "note": "reset", "by": self.by, "reason": "the breaker was reset by hand"}])
            self._reset = stamp
        with contextlib.suppress(OSError):
            asked.unlink(missing_ok=True)
        self._drained = (self.spool.hosts / f"{self.host}.drain").exists()
        self._poked = False

    def _claims_nothing(self, now: float, asked: Mode) -> str | None:
        """Why this host claims nothing at all now, or None."""
        if asked is Mode.HALT or self.halt.halting():
            return "STOP_NOW"
        if self.draining:
            return "draining: it ends as soon as nothing runs here"
        if self._drained:
            return f"drained; fleet hosts undrain {self.host}"
        breaker = self._books.breaker
        if breaker.open and (time.time() < breaker.until or self.ward.running):
            return f"breaker open until {utc(breaker.until)}: {breaker.reason}; fleet hosts reset {self.host}"
        if (free := free_mb(self.spool)) < self.settings.min_free_mb:
            return f"{free:.1f} MiB free on {self.spool.root}, min_free_mb is {self.settings.min_free_mb:g}"
        return self.ward.all_held(self.offer.lanes) or (self.claims if now < self._hold_until else None)

    def _claim(self, now: float, asked: Mode) -> None:
        self.ward.recall(now)
        self.claims = self._claims_nothing(now, asked)
        if self.claims is not None:
            return
        while self.ward.returned:
            self.queue.tell(f"{self.ward.returned.pop()}.json")
        self.queue.refresh(now, events=self.events)
        ended, self._books.ended[:] = self._books.ended[:], []
        self.queue.wake(now, time.time(), ended, self._peers.offers(now))
        free = self.offer.lanes - sum(attempt.cores for attempt in self.ward.running)
        why_not = partial(self._why_not, others=self._peers.offers(now))
        eligible = self._eligible(now)
        for job in islice(choose(eligible, free, why_not), 1 if self._books.breaker.open else None):
            self._start(job, self.crew.idle, now)
            if now < self._hold_until:
                break
        if not self._books.breaker.open and now >= self._hold_until:
            self._start_ahead(eligible, why_not, now)
        self._say_anew("queue", sorted(self.queue.intake.unknown.values()), "cannot read {}; looking again")
        refused, self.queue.refused[:] = self.queue.refused[:REFUSED_AT_ONCE], self.queue.refused[REFUSED_AT_ONCE:]
        self._reject(refused)

    def _start_ahead(self, eligible: Iterator[Job], why_not: Callable[[Job], object], now: float) -> None:
        """Put the next jobs at the doors of lanes whose jobs end in no time; a job of several lanes is waited for."""
        while (lane := self.crew.quick()) is not None and now >= self._hold_until:
            job = next((job for job in eligible if why_not(job) is None), None)
            if job is None or job.cores > 1 or job.gpus or self.queue.stamp(job.id)[1] > _SMALL:
                return
            self._start(job, partial(_same, lane), now)

    def _running_ids(self, now: float) -> frozenset[str]:
        """The ids in running/, on any host."""
        own = {path.rpartition("/")[2] for path in self.crew.ordered()}
        return self._peers.running(now) | own | {attempt.id for attempt in self.ward.found}

    def _eligible(self, now: float) -> Iterator[Job]:
        """The waiting jobs that could be this host's, in order."""
        running = self._running_ids(now)
        return (job for job in self.queue.jobs(now, lambda: len(self._free_gpus())) if job.id not in running)

    def _why_not(self, job: Job, others: list[Offer]) -> Until | None:
        """What must change before the job may start here; it is parked until then."""
        why = self._until(job, others, time.time())
        if why:
            self.queue.park(job, why)
        return why

    def _until(self, job: Job, others: list[Offer], at: float) -> Until | None:
        return until(job, self.offer, others, self._books.history.fate, at, len(self._free_gpus()) if job.gpus else 0)

    def _free_gpus(self) -> list[int]:
        used = frozenset[int]().union(*(attempt.gpus for attempt in self.ward.running))
        return [number for number in range(self.offer.gpus) if number not in used]

    def _start(self, job: Job, lane_for: Callable[[], Lane], now: float) -> None:
        try:
            attempt = max(job.attempt, self._books.history.attempt(job.id) + 1)
            stamp = self.queue.stamp(job.id)
            self.queue.taken(job.id)
            taken = claim.claim(self.spool, self.host, job, attempt, stamp)
            if taken is None:
                self.queue.forget()  # another host's by now, or not to be moved just now
                return
            lane = lane_for()
            gpus = self._free_gpus()[: job.gpus] if job.gpus else ()
            lane.order(taken, order.order(self.spool, self.settings, self.host, taken, lane.number, gpus))
        except (OSError, IOFailed) as error:
            self._hold(f"{job.id}: not started: {error}", now)

    def _reject(self, refused: list[tuple[str, str]]) -> None:
        """Aside first, then the rows, then the reasons beside them: what a kill leaves undone, the next start does."""
        for id_, why in refused:
            self.queue.taken(id_)
            if (path := claim.set_aside(self.spool, f"{id_}.json")) is not None:
                self._aside.append((path, why))
        if self._aside:
            self._append([order.rejected_row(path.name.partition(".json")[0], why) for path, why in self._aside])
        while self._aside:
            path, why = self._aside[-1]
            claim.say_why(path, why)
            self._aside.pop()
            self.log(f"rejected {path.name}: {why}")

    def _tidy(self) -> None:
        """Once a start: finish rejections that were cut short, sweep what kills have left half-written. Raises OSError."""
        names = {entry.name for entry in scan(self.spool.rejected)}
        odd = [n for n in names if not n.endswith(".why") and not n.startswith(".") and f"{n}.why" not in names]
        why = "it cannot be run; fleetd was killed before it could say why"
        self._aside += [(self.spool.rejected / name, why) for name in odd]
        self._reject([])
        for entry in scan(self.spool.running / self.host):
            if entry.name.startswith(".") and entry.is_file(follow_symlinks=False):
                os.unlink(entry.path)
        for entry in scan(self.spool.hosts):
            if entry.name.startswith(f".{self.host}.json."):
                os.unlink(entry.path)
        for entry in scan(self.spool.tmp):
            if entry.is_file(follow_symlinks=False) and entry.stat().st_mtime < time.time() - DAY_S:
                os.unlink(entry.path)
        shelter.sweep(self._shelters, self.spool.running / self.host)
        self._untidy = False

    def _beat(self, now: float, stops: frozenset[str]) -> None:
        breaker = self._books.breaker
        until = utc(breaker.until) if breaker.open else None
        body = {
            "lanes": self.offer.lanes,
            "busy": [attempt.id for attempt in self.ward.running],
            "tags": sorted(self.offer.tags),
            "cores": self._cores,
            "gpus": self.offer.gpus,
            "breaker": {"open": breaker.open, "until": until, "reason": breaker.reason or None},
            "stops": self.halt.heartbeat(stops),
            "unkillable": self.ward.unkillable,
            "claims": self.claims,
        }
        self._say_anew("claims", [self.claims] if self.claims else [], "claims nothing: {}")
        self._pulse.beat(now, body)

    def _pause(self, now: float) -> float:
        pause = min(self.settings.poll_s, self._pulse.due_in(now))
        if self.claims is None:
            pause = 0.0 if self.queue.refused or self.queue.cut else min(pause, self.queue.parking.due_in(time.time()))
        if self._sweeper.is_at_work():
            return 0.0
        pause = min(pause, self.ward.due_in(now))
        if any(len(lane.orders) > 1 for lane in self.crew.lanes):
            pause = min(pause, RECALL_S)
        if self.ward.unknown or self.queue.intake.unknown or self.queue.intake.half_written() or now < self._hold_until:
            pause = min(pause, 0.5)
        return pause

    def idle(self) -> bool:
        """Whether nothing runs here and nothing waits that this host could ever start by itself."""
        busy = self.ward.running or self.crew.ordered() or self.queue.intake.half_written()
        return not busy and not self._startable() and not self.queue.refused

    def _startable(self) -> bool:
        """Whether a waiting job will become this host's without anybody doing anything: only time is in its way."""
        now = time.monotonic()
        others, jobs = self._peers.offers(now), chain(self._eligible(now), self.queue.soon())
        return any(self._until(job, others, float("inf")) is None for job in jobs) or self.queue.cut

    def close(self) -> None:
        """Let go: the running jobs go on, the next daemon adopts them."""
        self.crew.close()
        self._pulse.end()


def _same(lane: Lane) -> Lane:
    return lane
