"""queue/ as one daemon sees it: names first, in order; a file is read when it might run, and again when it has changed.

What may not start is parked until that changes which keeps it from starting: no pass looks at it again before, so that it
holds up nobody.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import islice, pairwise

from fleetd.errors import BadData
from fleetd.files import Stamp, scan, stamp_of
from fleetd.intake import Intake, Not
from fleetd.job import Job, seconds
from fleetd.lane import Fate, Offer, Until
from fleetd.parking import Parking
from fleetd.rings import Rings
from fleetd.spool import Spool, job_id

RELIST_S = 2.0  # events may be lost; listing a hundred thousand names takes a tenth of a second
STEP_S = 0.02  # what a pass may spend on listing and on reading before it sees to the rest
AGAIN_S = 0.5
_MANY = 20_000
_BREATH = 10  # where no events tell of queue/, so many times as long as it takes to list it goes by until the next time
_SETTLED_S = 2.5  # a file system's stamps may be whole seconds, on vfat two: what comes within them changes no stamp
_AGAIN = 1000  # parked files looked at again with each listing, in turn: events may be lost
_UNREAD, _READY, _REFUSED, _PARKED = 0, 1, 2, 4


class Queue:
    """The waiting jobs of one spool. `refused` collects (id, why) of files that can't be run, for the keeper to reject.

    `cut` says that the last pass had no time for all of them; `parking` has those that are not worth looking at.
    """

    def __init__(self, spool: Spool, uid: int, fate: Callable[[str], Fate]) -> None:
        self._spool, self._fate = spool, fate
        self._listed: tuple[int, int] = (0, 0)  # the stamp of queue/ when it was listed, once that is settled
        self._stamped: tuple[tuple[int, int], float] = ((0, 0), 0.0)  # and the newest one, with when it was first seen
        self._list_at = 0.0
        self._listing: Iterator[bool] | None = None
        self._missing: set[str] = set()  # what the listing under way has not come across
        self._state: dict[str, int] = {}  # of all that wait; of what is parked with some bits of its file's stamp
        self._unread: list[str] = []  # a heap; what is in it is looked at if it is _UNREAD
        self._ready: dict[str, tuple[Job, Stamp]] = {}
        self._again: deque[tuple[float, str]] = deque()
        self._told: deque[str] = deque(maxlen=_MANY)  # what is told too much is found by listing
        self._doomed: deque[str] = deque()
        self._offers: Sequence[Offer] = ()
        self._round = self._gone = 0
        self.intake, self.parking = Intake(spool, uid), Parking()
        self._rings = Rings(self._after)
        self.refused: list[tuple[str, str]] = []
        self.cut = False

    def tell(self, name: str) -> None:
        """A file event names what has come to queue/ or changed there."""
        self._told.append(name)

    def refresh(self, now: float, *, events: bool) -> None:
        """Know what waits. With file events, queue/ is listed again only now and then. Raises OSError."""
        while self._told:
            if id_ := job_id(self._told.popleft()):
                self._look_at([id_])
        while self._again and self._again[0][0] <= now:
            self._wake([self._again.popleft()[1]])
        if self._listing is None and now >= self._list_at:
            self._listing = self._list(now, events=events)
        if self._listing is not None and next(self._listing, None) is None:
            self._listing = None
        self.cut = self._listing is not None

    def wake(self, now: float, at: float, ended: Iterable[str], others: Sequence[Offer]) -> None:
        """Look again at what waited for this time `at` (seconds since the epoch), these ends, or a change of other hosts.

        What comes after a failure is refused even while no lane is free.
        """
        for id_ in ended:
            if (fate := self._fate(id_)) is not Fate.OPEN:
                found = list(self.parking.ended(id_, ok=fate is Fate.OK))
                self._wake(found)
                self._doomed += found if fate is Fate.FAILED else ()
        self._wake(self.parking.due(at))
        if others != self._offers:
            self._offers = others
            self._wake(self.parking.others_changed())
        end = time.monotonic() + STEP_S
        while self._doomed and time.monotonic() < end:
            if self._state.get(id_ := self._doomed.popleft()) == _UNREAD and (job := self._read(id_, now)):
                self._may_run(job)
        self.cut |= bool(self._doomed)
        self._refuse_rings()

    def offer_changed(self) -> None:
        """Look again at what this host could not run."""
        self._wake(self.parking.offer_changed())

    def _list(self, now: float, *, events: bool) -> Iterator[bool]:
        """List queue/ if it has changed, a step at a time; but all at once the first time, for the first goes first."""
        at = os.stat(self._spool.queue)
        stamp = (at.st_ino, at.st_mtime_ns)
        if stamp == self._listed:
            return
        if stamp != self._stamped[0]:
            self._stamped = (stamp, time.monotonic())
        still = now - self._stamped[1] > _SETTLED_S
        self._missing, end, new = set(self._state), time.monotonic() + STEP_S, []
        with os.scandir(self._spool.queue) as entries:
            for entry in entries:
                if (id_ := entry.name.removesuffix(".json")) in self._state and id_ != entry.name:
                    self._missing.discard(id_)
                elif job_id(entry.name):
                    new.append(id_)
                if self._list_at and time.monotonic() > end:
                    yield True
                    end = time.monotonic() + STEP_S
        self._look_at([*new, *self._ready])
        self._drop_missing()
        self._look_round()
        took_s = time.monotonic() - now
        self._list_at = now + (RELIST_S * (1 + len(self._state) // _MANY) if events else _BREATH * took_s)
        self._listed = stamp if still else (0, 0)

    def _drop_missing(self) -> None:
        for id_ in self._missing:
            self._gone += self._is_parked(id_)
            self.taken(id_)
        self._missing = set()
        if self._gone > max(_AGAIN, len(self._state)):
            self._gone = 0
            self.parking.keep_only(self._state)

    def _look_round(self) -> None:
        """See whether some of the parked files have changed."""
        end, done = time.monotonic() + STEP_S, 0
        for id_ in list(islice(self._state, self._round, self._round + _AGAIN)):
            if self._is_parked(id_) and self._state[id_] != _parked(self._stamp_now(id_)):
                self._look_at([id_])
            done += 1
            if time.monotonic() > end:
                break
        self._round = self._round + done if self._round + done < len(self._state) else 0

    def _stamp_now(self, id_: str) -> Stamp | None:
        try:
            return stamp_of(f"{self._spool.queue}/{id_}.json")
        except OSError:
            return None

    def _is_parked(self, id_: str) -> bool:
        return bool(self._state.get(id_, _UNREAD) & _PARKED)

    def _wake(self, ids: Iterable[str]) -> None:
        self._look_at([id_ for id_ in ids if self._is_parked(id_)])

    def _look_at(self, ids: list[str]) -> None:
        """Read these when their turn comes."""
        self._missing.difference_update(ids)
        new = [id_ for id_ in ids if self._state.get(id_) not in (_UNREAD, _REFUSED)]
        for id_ in new:
            self._state[id_] = _UNREAD
            self._ready.pop(id_, None)
        if len(new) == 1:
            heappush(self._unread, new[0])
        elif new:
            self._unread += new
            heapify(self._unread)

    def jobs(self, now: float, free_gpus: Callable[[], int]) -> Iterator[Job]:
        """The jobs that may be worth starting, in order, each read when its turn comes. `now`: monotonic seconds.

        `taken`, `park` and `refuse` may be called meanwhile; so that the rest of a pass gets its turn, it may end early.
        """
        spent_s, ready = 0.0, sorted(self._ready, reverse=True)
        while spent_s < STEP_S and (id_ := self._next(ready, free_gpus)) is not None:
            began = time.monotonic()
            job = self._ready[id_][0] if id_ in self._ready else self._read(id_, now)
            may_run = job is not None and self._may_run(job)
            spent_s += time.monotonic() - began
            if job is not None and may_run:
                yield job
        self.cut |= spent_s >= STEP_S
        self._refuse_rings()

    def _next(self, ready: list[str], free_gpus: Callable[[], int]) -> str | None:
        """The lowest id of what is ready, unread, or parked for no more GPUs than are free."""
        while True:
            gpus = self.parking.first_for(free_gpus()) if self.parking.wants_gpus() else None
            heads: list[str] = [*ready[-1:], *self._unread[:1], *([gpus] if gpus else ())]
            if not heads:
                return None
            id_ = min(heads)
            if id_ == gpus:
                self.parking.take(id_)
                self._wake([id_])
            elif ready[-1:] == [id_]:
                ready.pop()
                if id_ in self._ready:
                    return id_
            elif self._state.get(heappop(self._unread)) == _UNREAD:
                return id_

    def _may_run(self, job: Job) -> bool:
        """Whether it could ever run as far as the ledger says; what can't is refused."""
        dead = [id_ for id_ in job.after if self._fate(id_) is Fate.FAILED]
        if self._fate(job.id) is Fate.OK:
            self.refuse(job.id, f"ended ok on {self._day_of(job) or 'an earlier day'}; use another name")
        elif dead:
            self.refuse(job.id, f"it comes after {dead[0]}, which has ended without an ok")
        return job.id in self._ready

    def _day_of(self, job: Job) -> str | None:
        """The day under which ended/ has this attempt, one look-up a day: a day may have a million attempts."""
        ended, attempt = self._spool.ended, f"{job.id}~{job.attempt}"
        days = sorted((entry.name for entry in scan(ended)), reverse=True)
        return next((day for day in days if os.path.lexists(f"{ended}/{day}/{attempt}")), None)

    def park(self, job: Job, until: Until) -> None:
        """Don't give this one again until that has changed."""
        self._state[job.id] = _parked(self._ready.pop(job.id)[1])
        match until:
            case Until.ROW:
                self.parking.after(job.id, self._awaits(job))
                if job.id in self.parking:
                    self._rings.tell(job.id)
                    self.cut = True
            case Until.TIME if job.not_before:
                self.parking.at(job.id, seconds(job.not_before))
            case Until.GPUS:
                self.parking.gpus(job.id, job.gpus)
            case Until.OFFER:
                self.parking.offer(job.id)
            case Until.OTHERS:
                self.parking.others(job.id)

    def _awaits(self, job: Job) -> list[str]:
        return [id_ for id_ in job.after if self._fate(id_) is not Fate.OK]

    def _after(self, id_: str) -> list[str]:
        """What a parked job waits for, as its file says now."""
        job = self._spool.read_waiting(id_) if self._is_parked(id_) else None
        return self._awaits(job) if job else []

    def _refuse_rings(self) -> None:
        """Of each ring that is found in a step's time the lowest: the others come after it."""
        for ring in self._rings.found(time.monotonic() + STEP_S):
            closed = [*ring, ring[0]]
            if all(following in self._after(id_) for id_, following in pairwise(closed)):  # files change meanwhile
                self.refuse(ring[0], f"after: a ring, each waits for the next: {' → '.join(closed)}")
        self.cut |= self._rings.is_at_work()

    def soon(self) -> Iterator[Job]:
        """What waits for time or GPUs, read anew."""
        for id_ in self.parking.by_themselves():
            if self._is_parked(id_) and (job := self._spool.read_waiting(id_)):
                yield job

    def refuse(self, id_: str, why: str) -> None:
        """It can never run."""
        self.taken(id_)
        self._state[id_] = _REFUSED
        self.refused.append((id_, why))

    def taken(self, id_: str) -> None:
        """The job has left queue/."""
        self._state.pop(id_, None)
        self._ready.pop(id_, None)
        self.intake.forget(id_)

    def forget(self) -> None:
        """Something went wrong: list again."""
        self._listing, self._listed, self._list_at = None, (0, 0), float("-inf")

    def stamp(self, id_: str) -> Stamp:
        """What the file looked like when the job was read from it."""
        return self._ready[id_][1]

    def _read(self, id_: str, now: float) -> Job | None:
        """The job in the file, which is ready then; None when there is none to be had, now or ever."""
        try:
            found = self.intake.read(id_, now)
        except BadData as error:
            self.refuse(id_, str(error))
            return None
        if found is Not.THERE:
            self.taken(id_)  # it is listed again when it changes
        elif found is Not.YET:
            self._state[id_] = _PARKED
            self._again.append((now + AGAIN_S * (1 + len(self._again) // _AGAIN), id_))
        else:
            self._state[id_], self._ready[id_] = _READY, found
            return found[0]
        return None


def _parked(stamp: Stamp | None) -> int:
    return _PARKED if stamp is None else hash(stamp) & 0x3FFFFFF8 | _PARKED
