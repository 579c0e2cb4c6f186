"""What the daemon does for an attempt whose parent has died: keeps its log within the cap, and ends what is left of it."""

import contextlib
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from fleetd import reap, shelter
from fleetd.files import look
from fleetd.job import Result
from fleetd.log import CappedLog, open_log
from fleetd.tree import Ending, Strays, say_unkillable

LOOK_S = 1.0


class Orphan:
    """One such attempt. Its leader, or what bears its mark, may be alive."""

    def __init__(self, path: Path, pid: Mapping[str, Any], cap: int, places: tuple[Path, ...]) -> None:
        """`pid` is what pid.json says, `cap` that of the log in bytes, `places` the shelters. Raises OSError."""
        lock = look(path / "lock")
        mark = lock.data.decode("ascii", "replace") if lock else ""
        self._mark = mark if shelter.is_token(mark) else shelter.token_for(places, path) or ""
        self._path, self._places = path, places
        self._strays = Strays(leader=pid.get("pid"), born=pid.get("born"), mark=self._mark)
        self._ending: Ending | None = None
        self._step_at = self._log_at = float("-inf")
        self._fd = open_log(path / "log")
        self._log = CappedLog(path / "log", self._fd, cap) if self._fd is not None else None
        if self._log is not None:
            self._log.go_on()

    def keep_log(self, now: float) -> None:
        """Look after the log's cap, at most once a second; a share that errors is looked at again then."""
        if self._log is not None and now >= self._log_at:
            self._log_at = now + LOOK_S
            with contextlib.suppress(OSError):
                self._log.tend(now)

    def end(self, result: Result, grace_s: float, now: float) -> None:
        """End what is left of it, a step each call, then say how it ended: as its parent has left word, or `result`.

        Of several calls the first one's result counts.
        """
        if self._ending is None:
            self._ending = Ending(self._strays.find, grace_s, partial(say_unkillable, self._path))
            self._result = self._left_word() or result
        if now >= self._step_at:
            over = self._ending.step(now)
            self._step_at = now + (LOOK_S if over else self._ending.pause_s)
            if over:
                self._say()

    def _left_word(self) -> Result | None:
        record = shelter.find(self._places, self._mark)
        with contextlib.suppress(KeyError, TypeError, ValueError):
            return reap.result_of(record) if record else None
        return None

    def _say(self) -> None:
        with contextlib.suppress(OSError):
            if self._log is not None:
                self._log.finish()
        with contextlib.suppress(OSError):
            reap.write_exit(self._path, self._result)
            shelter.drop(self._places, self._mark)

    def due_in(self, now: float) -> float:
        """Seconds until there is something to do for it again."""
        log = self._log_at if self._log is not None else float("inf")
        step = self._step_at if self._ending is not None else float("inf")
        return max(0.0, min(log, step) - now)

    def close(self) -> None:
        """Let go of it: it has ended."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
