"""A job's processes: who belongs to it, and how all of them are ended.

Who belongs: the process group, the descendants of the attempt's parent (on Linux a child subreaper, so that nobody gets
away by forking twice), and whoever bears the mark FLEET_CLAIM in its environment. A group is only trusted while its leader
is unreaped or known by its start time, or while one that belongs lives in it: its number is in use as long as that, so that a
recycled one is never signalled.
"""

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from fleetd.files import read_json, replace_file
from fleetd.job import encode_json, utc
from fleetd.table import Process, bearers, processes

_PR_SET_CHILD_SUBREAPER = 36
_SOONEST_S, _LATEST_S = 0.01, 0.1
_PATIENCE_S = 5.0  # after KILL: what is alive then does not die of it
_REST_S = 1.0


def become_subreaper() -> bool:
    """Orphans below this process become its children instead of init's; False where the system has no such thing."""
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def reap_inherited(own: Collection[int]) -> None:
    """Reap what others left to this process, which is init (of a container); the ends of `own` are for who started them."""
    with contextlib.suppress(ChildProcessError):
        while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if found.si_pid in own:
                return
            os.waitpid(found.si_pid, 0)


def below(roots: Iterable[int], table: Iterable[Process]) -> set[int]:
    """The descendants of these processes."""
    children: dict[int, list[int]] = {}
    for process in table:
        children.setdefault(process.parent, []).append(process.pid)
    found: set[int] = set()
    todo = list(roots)
    while todo:
        new = [pid for pid in children.get(todo.pop(), ()) if pid not in found]
        found.update(new)
        todo += new
    return found


def members(*, root: int, group: int | None, mark: str) -> set[int]:
    """The living processes of the attempt whose parent is `root`, without this process. Raises OSError.

    The leader of `group` is an unreaped child of `root`: nobody else can have its number.
    """
    table = processes()
    found = below([root], table) | bearers(mark, table) | {p.pid for p in table if p.group == group}
    return _living(found, table) - {root, os.getpid()}


def _living(pids: set[int], table: Iterable[Process]) -> set[int]:
    return {process.pid for process in table if process.pid in pids and not process.zombie}


class Strays:
    """The processes of an attempt whose parent has died: what can be known of them without it."""

    def __init__(self, *, leader: int | None, born: str | None, mark: str) -> None:
        """The leader of the group as it was written down: its pid and when it began."""
        self._leader, self._mark = (leader, born), mark
        self._seen: dict[int, str] = {}

    def find(self) -> set[int]:
        """Those alive. Raises OSError."""
        table, me = processes(), os.getpid()
        found = {p.pid for p in table if self._seen.get(p.pid) == p.born} | bearers(self._mark, table)
        group = self._leader[0]
        if any((p.pid, p.born) == self._leader or (p.pid in found and p.group == group) for p in table):
            found |= {p.pid for p in table if p.group == group}
        under = below(found - {me}, table)
        if me not in under:  # or else the job has started this daemon, and all its jobs are below
            found |= under
        found = _living(found, table) - {me}
        self._seen = {p.pid: p.born for p in table if p.pid in found}
        return found


def send(pids: Iterable[int], *signals: signal.Signals) -> None:
    """Signal each; one that is gone or not ours is passed over."""
    for pid in pids:
        for number in signals:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


class Ending:
    """The ending of one tree: TERM and CONT at once, KILL after the grace, until none is left. Never blocks.

    What KILL does not end (in a system call that doesn't come back, traced, another user's) is told to `say` whenever
    that changes, and from then on looked for once a second.
    """

    def __init__(self, find: Callable[[], set[int]], grace_s: float, say: Callable[[set[int]], None]) -> None:
        self._find, self._grace_s, self._say = find, grace_s, say
        self._kill_at: float | None = None
        self._told: set[int] = set()
        self._said: set[int] = set()
        self.left = 0
        self.pause_s = _SOONEST_S  # until the next step is due, if nothing happens before

    def step(self, now: float) -> bool:
        """Do what is due at `now` (monotonic seconds); True when nothing of the tree is alive."""
        if self._kill_at is None:
            self._kill_at = now + self._grace_s
        self.pause_s = min(2 * self.pause_s, _LATEST_S)
        try:
            alive = self._find()
        except OSError:
            return False  # what cannot be seen now may be alive
        self.left = len(alive)
        if now < self._kill_at:
            send(alive - self._told, signal.SIGTERM, signal.SIGCONT)
            self._told |= alive
        else:
            send(alive, signal.SIGKILL)
        if now >= self._kill_at + _PATIENCE_S:
            self.pause_s = _REST_S
            self._complain(alive)
        return not alive

    def _complain(self, alive: set[int]) -> None:
        if alive != self._said:
            with contextlib.suppress(OSError):
                self._say(alive)
                self._said = alive


def say_unkillable(path: Path | str, pids: Collection[int]) -> None:
    """Leave word in the attempt's directory of what KILL does not end. Raises OSError."""
    replace_file(f"{path}/unkillable.json", encode_json({"pids": sorted(pids), "at": utc(time.time())}))


def unkillable(path: Path) -> tuple[int, ...]:
    """What of the attempt KILL does not end, as its parent has left word."""
    said = read_json(path / "unkillable.json")
    pids = said.get("pids") if isinstance(said, dict) else None
    return tuple(pid for pid in pids if type(pid) is int) if isinstance(pids, list) else ()
