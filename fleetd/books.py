"""What a daemon knows from the ledger: folds of its rows, kept up to date, none of the rows kept; and the merged view."""

import os
from collections import deque
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from fleetd.breaker import Breaker, Limits, Streak, fold_breaker, fold_streak, matters
from fleetd.errors import FleetError
from fleetd.history import History
from fleetd.ledger import Ledger, Row, decode_head
from fleetd.merge import Merger
from fleetd.spool import Spool
from fleetd.sweep import Named

PATIENCE_S = 0.2  # for the ledger's lock: a stop must be seen within a second
_FRESH_S = 1.0
_HOME_S = 10.0


class Books:
    """The folds: each job's history, this host's breaker, the fleet's streak, what rows name, which hosts of it ran anything."""

    def __init__(self, spool: Spool, host: str, limits: Limits) -> None:
        self.ledger = Ledger(spool.ledger_d, patience_s=PATIENCE_S)
        self._spool, self._host, self.limits = spool, host, limits
        self.history, self.breaker, self.fleet, self.named = History(), Breaker(), Streak(), Named()
        self.hosts = {host}
        self.stops: list[Row] = []  # this host's own stop and resume rows, as of the start
        self.awaited: Container[str] = frozenset()
        self.ended: list[str] = []  # of the awaited jobs those that have new rows, for whoever awaits them to take away
        self._merger: Merger | None = None
        self._poll_at = self._home_at = float("-inf")
        self._read()

    def _read(self) -> None:
        recent: dict[str, deque[Row]] = {}
        for row, _ in self.ledger.lines(decode_head):
            self._fold(row)
            if row.host == self._host and row.event in ("stop", "resume"):
                self.stops.append(row)
            if matters(row.body) and self._is_ours(row.host):
                recent.setdefault(row.host, deque(maxlen=2 * self.limits.failures)).append(row)
        latest = (row for rows in recent.values() for row in rows)
        for row in sorted(latest, key=lambda row: (row.at, row.host, row.seq)):
            self.fleet = fold_streak(self.fleet, row.body)

    def _fold(self, row: Row) -> None:
        self.history.add(row.body)
        self.named.add(row)
        if row.body.get("started") and self._is_ours(row.host):
            self.hosts.add(row.host)
        if row.host == self._host:
            self.breaker = fold_breaker(self.breaker, row.body, self.limits)

    def _is_ours(self, host: str) -> bool:
        """Whether the host is of this fleet: rows that were merged from elsewhere are of hosts that never beat here."""
        return host in self.hosts or os.path.exists(self._spool.hosts / f"{host}.json")

    def take_in(self, now: float) -> None:
        """Fold the rows that are new: this host's own at once, others' as of a second ago at most. Raises OSError."""
        lines = self.ledger.own_lines()
        if now >= self._poll_at or self.ledger.behind(self._host):
            self._poll_at = now + _FRESH_S
            lines += self.ledger.poll_lines()
        for row, _ in lines:
            self._fold(row)
            if self._is_ours(row.host):
                self.fleet = fold_streak(self.fleet, row.body)
            if row.event == "result" and row.body["job"] in self.awaited:
                self.ended.append(row.body["job"])
        if self._merger:
            self._merger.take(lines)

    def append(self, rows: Sequence[Mapping[str, Any]], now: float) -> None:
        """Write rows of this host and fold them. Raises OSError and FleetError."""
        self.ledger.append(self._host, rows)
        self.take_in(now)

    def merge(self, now: float, may_merge: Callable[[], bool]) -> list[str]:
        """Bring ledger.jsonl up to date, if that is this host's to do; what stands in the way, in words."""
        try:
            if now >= self._home_at:
                self._home_at = now + _HOME_S
                self._choose_merger(mine=may_merge())
                if self._merger:
                    self._merger.check()
            if self._merger:
                self._merger.merge()
        except OSError as error:
            return [f"{error.filename or self._spool.ledger}: {error.strerror}"]
        except FleetError as error:
            return [str(error)]
        return []

    def _choose_merger(self, *, mine: bool) -> None:
        if mine and self._merger is None:
            self._merger = Merger.alone(self.ledger, self._spool.ledger)
        elif self._merger is not None and not mine:
            self._merger.close()
            self._merger = None
