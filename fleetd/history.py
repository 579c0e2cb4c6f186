"""What the ledger says of each job id: its last attempt and its fate. A fold, kept small: about ten bytes a job.

An id is kept as 76 bits of its hash, 64 of them beside one byte in one of 4,096 buckets that grow without a pause. That two
of a million ids have them in common happens in one of a hundred billion spools.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from fleetd.job import Outcome
from fleetd.lane import Fate

_FATES = (Fate.OPEN, Fate.OK, Fate.FAILED)
_KEY = 8
_ENTRY = _KEY + 1
_BUCKETS = 1 << 12
_MANY = 0xFF


class History:
    """Last attempt and fate by job id, from result rows in any order."""

    def __init__(self) -> None:
        self._buckets = [bytearray() for _ in range(_BUCKETS)]
        self._many: dict[bytes, int] = {}  # what is more than a byte holds: 85 attempts and up

    def add(self, row: Mapping[str, Any]) -> None:
        """Take in one row; rows that are no results don't matter."""
        if row["event"] != "result":
            return
        key, bucket, at = self._find(row["job"])
        known = self._at(key, bucket, at)
        attempt, fate = int(row["attempt"]), _fate(row)
        if known % len(_FATES) == _FATES.index(Fate.OK):
            fate = Fate.OK
        elif fate is not Fate.OK and attempt < known // len(_FATES) and row["outcome"] != Outcome.REJECTED:
            return
        self._put(key, bucket, at, max(attempt, known // len(_FATES)) * len(_FATES) + _FATES.index(fate))

    def attempt(self, job: str) -> int:
        """The highest attempt that has a row; 0 where there is none."""
        return self._at(*self._find(job)) // len(_FATES)

    def fate(self, job: str) -> Fate:
        """OPEN also for an id that nobody has published."""
        return _FATES[self._at(*self._find(job)) % len(_FATES)]

    def _find(self, job: str) -> tuple[bytes, bytearray, int]:
        """The id's key, its bucket, and where in it the entry begins: -1 when there is none."""
        digest = blake2b(job.encode("utf-8", "surrogatepass"), digest_size=_KEY + 2).digest()
        key, bucket = digest[2:], self._buckets[int.from_bytes(digest[:2], "big") % _BUCKETS]
        at = bucket.find(key)
        while at % _ENTRY and at >= 0:
            at = bucket.find(key, at + 1)
        return key, bucket, at

    def _at(self, key: bytes, bucket: bytearray, at: int) -> int:
        if at < 0:
            return 0
        value = bucket[at + _KEY]
        return self._many[key] if value == _MANY else value

    def _put(self, key: bytes, bucket: bytearray, at: int, value: int) -> None:
        if value >= _MANY:
            self._many[key] = value
        byte = min(value, _MANY)
        if at < 0:
            bucket += key + bytes((byte,))
        else:
            bucket[at + _KEY] = byte


def _fate(row: Mapping[str, Any]) -> Fate:
    if row.get("outcome") == Outcome.OK:
        return Fate.OK
    return Fate.OPEN if row.get("next") is not None or row.get("outcome") == Outcome.SUPERSEDED else Fate.FAILED
