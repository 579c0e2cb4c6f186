"""What the ledger says of each job id: its last attempt and its fate. A fold, kept small: one integer a job."""

from collections.abc import Mapping
from typing import Any

from fleetd.job import Outcome
from fleetd.lane import Fate

_FATES = (Fate.OPEN, Fate.OK, Fate.FAILED)


class History:
    """Last attempt and fate by job id, from result rows in any order."""

    def __init__(self) -> None:
        self._of: dict[str, int] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """Take in one row; rows that are no results don't matter."""
        if row["event"] != "result":
            return
        attempt, fate = int(row["attempt"]), _fate(row)
        if self.fate(row["job"]) is Fate.OK:
            fate = Fate.OK
        elif fate is not Fate.OK and attempt < self.attempt(row["job"]) and row["outcome"] != Outcome.REJECTED:
            return
        self._of[row["job"]] = max(attempt, self.attempt(row["job"])) * len(_FATES) + _FATES.index(fate)

    def attempt(self, job: str) -> int:
        """The highest attempt that has a row; 0 where there is none."""
        return self._of.get(job, 0) // len(_FATES)

    def fate(self, job: str) -> Fate:
        """OPEN also for an id that nobody has published."""
        return _FATES[self._of.get(job, 0) % len(_FATES)]


def _fate(row: Mapping[str, Any]) -> Fate:
    if row.get("outcome") == Outcome.OK:
        return Fate.OK
    return Fate.OPEN if row.get("next") is not None or row.get("outcome") == Outcome.SUPERSEDED else Fate.FAILED
