"""The other hosts of the spool, as this one sees them: who lives, what they offer, what runs there."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fleetd.files import scan
from fleetd.lane import Offer, offer_of
from fleetd.spool import Spool

SUSPECT_S = 180.0
_FRESH_S = 1.0


class Peers:
    """All but `host`. What they offer and run is as of a second ago at most. `now` is monotonic seconds throughout."""

    def __init__(self, spool: Spool, host: str) -> None:
        self._spool, self._host = spool, host
        self._moved: dict[str, tuple[object, float]] = {}
        self._offers: list[Offer] = []
        self._running: frozenset[str] = frozenset()
        self._offers_until = self._running_until = float("-inf")

    def living(self, now: float) -> dict[str, Mapping[str, Any]]:
        """The heartbeats of those that aren't suspect: their counter has moved within 180 s of our own clock, and none ended."""
        beats = {host: body for host, body in self._spool.heartbeats().items() if host != self._host}
        for host, body in beats.items():
            mark = (body.get("boot"), body.get("counter"))
            if self._moved.get(host, (None, 0.0))[0] != mark:
                self._moved[host] = (mark, now)
        return {h: body for h, body in beats.items() if now - self._moved[h][1] < SUSPECT_S and not body.get("ended")}

    def offers(self, now: float) -> list[Offer]:
        """What those that live and claim have to offer."""
        if now >= self._offers_until:
            self._offers_until = now + _FRESH_S
            self._offers = [offer_of(host, body) for host, body in self.living(now).items() if body["claims"] is None]
        return self._offers

    def running(self, now: float) -> frozenset[str]:
        """The ids in their running/, dead hosts' too."""
        if now >= self._running_until:
            self._running_until = now + _FRESH_S
            hosts = [entry for entry in scan(self._spool.running) if entry.name != self._host and entry.is_dir()]
            entries = [entry for host in hosts for entry in scan(Path(host.path))]
            self._running = frozenset(e.name for e in entries if os.path.exists(f"{e.path}/job.json"))
        return self._running
