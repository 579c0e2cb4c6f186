"""Files in queue/ read as jobs. One that doesn't parse may be half-written: it has ten seconds to become whole."""

from dataclasses import dataclass
from enum import Enum

from fleetd.errors import BadData
from fleetd.files import Stamp, look
from fleetd.job import MAX_BYTES, Job, decode_json, encode_job, job_of
from fleetd.spool import Spool

SETTLE_S = 10.0


class Not(Enum):
    """Why there is no job to be had now."""

    THERE = "the file is gone, or no regular file"
    YET = "it is half-written, or the disk doesn't give it: look again"


@dataclass(frozen=True, slots=True)
class _Half:
    """A file that didn't parse: what it looked like, and since when (monotonic seconds)."""

    stamp: Stamp
    since: float


class Intake:
    """Reads waiting jobs for one daemon's user. `unknown` says by id what the disk would not give just now."""

    def __init__(self, spool: Spool, uid: int) -> None:
        self._queue, self._uid = str(spool.queue), uid
        self._half: dict[str, _Half] = {}
        self.unknown: dict[str, str] = {}

    def read(self, id_: str, now: float) -> tuple[Job, Stamp] | Not:
        """The job, and its file's stamp. Raises BadData for what can never run. `now`: monotonic seconds."""
        try:
            found = look(f"{self._queue}/{id_}.json")
        except OSError as error:
            self.unknown[id_] = f"{self._queue}/{id_}.json: {error.strerror}"
            return Not.YET
        before = self._half.get(id_)
        self.forget(id_)
        if found is None:
            return Not.THERE
        if found.owner not in (self._uid, 0):
            raise BadData(f"owned by uid {found.owner}, neither this daemon's user ({self._uid}) nor root")
        if len(found.data) > MAX_BYTES:
            raise BadData(f"over {MAX_BYTES} bytes")
        try:
            value = decode_json(found.data)
        except ValueError as error:
            self._half[id_] = self._settled(found.data, found.stamp, before, error, now)
            return Not.YET
        return _fitting(job_of(value, id_), len(found.data)), found.stamp

    def _settled(self, data: bytes, stamp: Stamp, before: _Half | None, error: ValueError, now: float) -> _Half:
        if before is None or before.stamp != stamp:
            return _Half(stamp, now)
        if now - before.since >= SETTLE_S:
            raise BadData(f"not JSON, and unchanged for {SETTLE_S:g} s: {error}" if data else "empty")
        return before

    def half_written(self) -> bool:
        """Whether a file is being waited for."""
        return bool(self._half)

    def forget(self, id_: str) -> None:
        """Nothing is known of it."""
        self._half.pop(id_, None)
        self.unknown.pop(id_, None)


def _fitting(job: Job, size: int) -> Job:
    if size > MAX_BYTES // 6 and len(encode_job(job)) > MAX_BYTES - 1024:
        raise BadData(f"over {MAX_BYTES} bytes as the engine writes it, every character in ASCII")
    return job
