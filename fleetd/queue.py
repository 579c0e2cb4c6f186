"""queue/ as one daemon sees it: names first, in order; a file is read when it might run, and again only when it changes.

A file that doesn't parse may be half-written: it is waited for until it has stood unchanged for ten seconds.
"""

import os
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from fleetd.errors import BadData
from fleetd.files import Mark, look
from fleetd.job import MAX_BYTES, Job, decode_json, encode_job, job_of
from fleetd.lane import ring
from fleetd.spool import Spool, job_id

SETTLE_S = 10.0
RELIST_S = 2.0  # events may be lost; listing a hundred thousand names takes a tenth of a second
_MANY = 20_000
_TICK_NS = 50_000_000  # file systems stamp a directory's changes with a clock that may stand still this long
_FORGET = 1000


@dataclass(frozen=True, slots=True)
class _Half:
    """A file that didn't parse: what it looked like, and since when (monotonic seconds)."""

    mark: Mark
    since: float


class Queue:
    """The waiting jobs of one spool. `refused` collects (id, why) of files that can't be run, for the keeper to reject."""

    def __init__(self, spool: Spool, uid: int) -> None:
        self._spool, self._uid = spool, uid
        self._listed: tuple[int, int] = (0, 0)
        self._list_at = 0.0
        self._ids: list[str] = []
        self._parsed: dict[str, tuple[Job, Mark]] = {}
        self._half: dict[str, _Half] = {}
        self._told: deque[str] = deque()
        self.unknown: dict[str, str] = {}  # what the disk would not give just now
        self._ring_sought = 0
        self.refused: list[tuple[str, str]] = []

    def __len__(self) -> int:
        return len(self._ids)

    def tell(self, name: str) -> None:
        """A file event names what has come to queue/ or changed there."""
        self._told.append(name)

    def refresh(self, now: float, *, events: bool) -> None:
        """Know what waits. With file events, queue/ is listed again only now and then. Raises OSError."""
        self.unknown.clear()
        while self._told:
            if id_ := job_id(self._told.popleft()):
                self._parsed.pop(id_, None)
                at = bisect_left(self._ids, id_)
                if self._ids[at : at + 1] != [id_]:
                    self._ids.insert(at, id_)
        if not events or now >= self._list_at:
            self._list(now)

    def _list(self, now: float) -> None:
        at = os.stat(self._spool.queue)
        mark = (at.st_ino, at.st_mtime_ns)
        if mark == self._listed:
            return
        self._list_at = now + RELIST_S * (1 + len(self._ids) // _MANY)
        self._ids = self._spool.waiting()
        self._listed = mark if time.time_ns() - at.st_mtime_ns > _TICK_NS else (0, 0)
        if len(self._parsed) <= _FORGET:
            self._parsed.clear()
            self._ring_sought = -1
        waiting = set(self._ids) if self._half else set()
        self._half = {id_: half for id_, half in self._half.items() if id_ in waiting}

    def jobs(self, now: float) -> Iterator[Job]:
        """The jobs in order, each read when its turn comes; `taken` may be called meanwhile. `now`: monotonic seconds."""
        at = 0
        while at < len(self._ids):
            id_ = self._ids[at]
            known = self._parsed.get(id_) or self._read(id_, now)
            if known is not None:
                self._parsed[id_] = known
                yield known[0]
            elif id_ not in self._half and id_ not in self.unknown:
                self._ids[at : at + 1] = []  # gone, or nothing that can run; it is listed again when it changes
            if self._ids[at : at + 1] == [id_]:
                at += 1

    def forget(self) -> None:
        """Something went wrong: list again."""
        self._listed, self._list_at = (0, 0), 0.0

    def mark(self, id_: str) -> Mark:
        """What the file looked like when the job was read from it."""
        return self._parsed[id_][1]

    def taken(self, id_: str) -> None:
        """The job has left queue/."""
        self._parsed.pop(id_, None)
        self._half.pop(id_, None)
        self._ring_sought = -1
        at = bisect_left(self._ids, id_)
        if self._ids[at : at + 1] == [id_]:
            del self._ids[at]

    def ring(self) -> tuple[str, ...] | None:
        """Jobs read so far that wait for each other in a ring, looked for once after each change."""
        if self._ring_sought == len(self._parsed):
            return None
        self._ring_sought = len(self._parsed)
        return ring({id_: job.after for id_, (job, _) in self._parsed.items() if job.after})

    def half_written(self) -> bool:
        """Whether a file is being waited for."""
        return bool(self._half)

    def _read(self, id_: str, now: float) -> tuple[Job, Mark] | None:
        try:
            found = look(self._spool.queue / f"{id_}.json")
        except OSError as error:
            self.unknown[id_] = f"{self._spool.queue}/{id_}.json: {error.strerror}"
            return None
        if found is None:
            self._half.pop(id_, None)
            return None
        if found.owner not in (self._uid, 0):
            self.refused.append((id_, f"owned by uid {found.owner}, neither this daemon's user ({self._uid}) nor root"))
        elif len(found.data) > MAX_BYTES:
            self.refused.append((id_, f"over {MAX_BYTES} bytes"))
        else:
            job = self._decode(id_, found.data, found.mark, now)
            return (job, found.mark) if job else None
        return None

    def _decode(self, id_: str, data: bytes, mark: Mark, now: float) -> Job | None:
        try:
            value = decode_json(data)
        except ValueError as error:
            half = self._half.get(id_)
            if half is None or half.mark != mark:
                self._half[id_] = _Half(mark, now)
            elif now - half.since >= SETTLE_S:
                self.refused.append((id_, f"not JSON, and unchanged for {SETTLE_S:g} s: {error}" if data else "empty"))
            return None
        self._half.pop(id_, None)
        try:
            job = job_of(value, id_)
        except BadData as error:
            self.refused.append((id_, str(error)))
            return None
        if len(data) > MAX_BYTES // 6 and len(encode_job(job)) > MAX_BYTES - 1024:
            self.refused.append((id_, f"over {MAX_BYTES} bytes as the engine writes it, every character in ASCII"))
            return None
        return job
