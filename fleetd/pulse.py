"""The heartbeat: hosts/<host>.json, written at each change and every ten seconds."""

import contextlib
import os
import time
from collections.abc import Mapping
from typing import Any

from fleetd.job import encode_json, utc
from fleetd.lease import boot_id
from fleetd.spool import Spool, beat

HEARTBEAT_S = 10.0
BUSY_S = 0.25  # no more often than that while only the running jobs change


class Pulse:
    """Writes the heartbeat of one host when it is due; a disk that refuses is no reason to stop."""

    def __init__(self, spool: Spool, host: str) -> None:
        self._spool, self._host = spool, host
        self._counter, self._at = 0, float("-inf")
        self._told: tuple[bytes, object] = (b"", None)

    def beat(self, now: float, body: Mapping[str, Any]) -> None:
        """Tell `body`, if it is news or time. `now`: monotonic seconds."""
        news = (encode_json({**body, "busy": []}), body["busy"])
        only_busy = news[0] == self._told[0]
        rest = 0.0 if not only_busy else HEARTBEAT_S if news == self._told else BUSY_S
        if now < self._at + rest:
            return
        self._counter += 1
        head = {"host": self._host, "boot": boot_id(), "pid": os.getpid()}
        with contextlib.suppress(OSError):
            beat(self._spool, self._host, {**head, **body, "counter": self._counter, "at": utc(time.time())})
            self._told, self._at = news, now

    def due_in(self, now: float) -> float:
        """Seconds until the next one is due, sooner just after one, when a change may have been held back."""
        return BUSY_S if now < self._at + BUSY_S else max(0.0, self._at + HEARTBEAT_S - now)
