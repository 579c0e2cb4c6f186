"""The heartbeat: hosts/<host>.json, written at each change and every ten seconds."""

import contextlib
import os
import time
from collections.abc import Mapping
from typing import Any

from fleetd.errors import TryLater
from fleetd.files import read_json
from fleetd.job import encode_json, utc
from fleetd.machine import Machine, refusal
from fleetd.spool import Spool, beat

HEARTBEAT_S = 10.0
BUSY_S = 0.25  # no more often than that while only the running jobs change


class Pulse:
    """Writes the heartbeat of one host when it is due; a disk that refuses is no reason to stop."""

    def __init__(self, spool: Spool, host: str, me: Machine) -> None:
        self._spool, self._host, self._me = spool, host, me
        self._head = {"host": host, "boot": me.boot, "pid": os.getpid(), "machine": me.id}
        self._counter, self._at = 0, float("-inf")
        self._told: tuple[bytes, object] = (b"", None)
        self._body: Mapping[str, Any] | None = None
        self._stranger: tuple[object, ...] | None = None

    def beat(self, now: float, body: Mapping[str, Any]) -> None:
        """Tell `body`, if it is news or time. `now`: monotonic seconds. Raises TryLater where another machine has the name."""
        self._body = body
        news = (encode_json({**body, "busy": []}), body["busy"])
        only_busy = news[0] == self._told[0]
        rest = 0.0 if not only_busy else HEARTBEAT_S if news == self._told else BUSY_S
        if now < self._at + rest:
            return
        self._give_way()
        with contextlib.suppress(OSError):
            self._write(body, ended=None)
            self._told, self._at = news, now

    def end(self) -> None:
        """The last word: that this daemon has ended, and what it leaves running."""
        if self._body is not None and self._standing().get("pid") == os.getpid():
            with contextlib.suppress(OSError):
                self._write({**self._body, "claims": "its daemon has ended"}, ended=utc(time.time()))

    def _write(self, body: Mapping[str, Any], ended: str | None) -> None:
        self._counter += 1
        said = {**self._head, **body, "counter": self._counter, "at": utc(time.time()), "ended": ended}
        beat(self._spool, self._host, said)

    def _standing(self) -> Mapping[str, Any]:
        found = read_json(self._spool.hosts / f"{self._host}.json")
        return found if isinstance(found, dict) else {}

    def _give_way(self) -> None:
        """Of two machines that write one heartbeat in turn, one stays: that of the lower id. One heartbeat may be old."""
        found = self._standing()
        whose = (str(found.get("machine")), str(found.get("boot")))
        mine = (str(self._me.id), self._me.boot)
        if not found or found.get("ended") or whose == mine:
            return
        before, self._stranger = self._stranger, (*whose, found.get("pid"), found.get("counter"))
        if before not in (None, self._stranger) and whose < mine:
            raise TryLater(refusal(self._host, found))

    def due_in(self, now: float) -> float:
        """Seconds until the next one is due, sooner just after one, when a change may have been held back."""
        return BUSY_S if now < self._at + BUSY_S else max(0.0, self._at + HEARTBEAT_S - now)
