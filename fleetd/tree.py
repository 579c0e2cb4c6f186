"""A job's processes: who belongs to it, and how all of them are ended.

Who belongs: the process group, the descendants of the attempt's parent (on Linux a child subreaper, so that nobody gets
away by forking twice), and whoever bears the mark FLEET_CLAIM in its environment. A group is only trusted while its leader
is unreaped or known by its start time, so that a recycled one is never signalled.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class Process:
    """One line of the process table."""

    pid: int
    parent: int
    group: int
    zombie: bool


def become_subreaper() -> bool:
    """Orphans below this process become its children instead of init's; False where the system has no such thing."""
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def processes() -> list[Process]:
    """Every process there is to see."""
    try:
        pids = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return _by_ps()
    return [process for pid in pids if (process := _by_proc(pid))]


def _by_proc(pid: str) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, parent, group, *_ = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return Process(int(pid), int(parent), int(group), state in (b"Z", b"X"))


def _by_ps() -> list[Process]:
    asked = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,pgid=,stat="], capture_output=True, text=True, check=False)
    rows = [line.split(None, 3) for line in asked.stdout.splitlines()]
    return [Process(int(pid), int(parent), int(group), state.startswith("Z")) for pid, parent, group, state in rows]


def bears(pid: int, mark: str) -> bool:
    """Whether the process has FLEET_CLAIM=mark in its environment."""
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return f"FLEET_CLAIM={mark}".encode() in environ.split(b"\0")


def below(root: int, table: list[Process]) -> set[int]:
    """The descendants of `root`."""
    children: dict[int, list[int]] = {}
    for process in table:
        children.setdefault(process.parent, []).append(process.pid)
    found, todo = set(), [root]
    while todo:
        new = children.get(todo.pop(), [])
        found.update(new)
        todo += new
    return found


def members(*, root: int | None, group: int | None, mark: str) -> set[int]:
    """The living processes of one attempt, without `root` and this process themselves."""
    table = processes()
    under = below(root, table) if root is not None else set()
    return {
        p.pid
        for p in table
        if not p.zombie
        and p.pid not in (root, os.getpid())
        and (p.pid in under or (group is not None and p.group == group) or (mark and bears(p.pid, mark)))
    }


def send(pids: set[int], *signals: signal.Signals) -> None:
    """Signal each; one that is gone or not ours is passed over."""
    for pid in pids:
        for number in signals:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


class Ending:
    """The ending of one tree: TERM and CONT at once, KILL after the grace, until none is left. Never blocks."""

    def __init__(self, find: Callable[[], set[int]], grace_s: float) -> None:
        self._find = find
        self._grace_s = grace_s
        self._kill_at: float | None = None
        self._told: set[int] = set()
        self.left = 0

    def step(self, now: float) -> bool:
        """Do what is due at `now` (monotonic seconds); True when nothing of the tree is alive."""
        alive = self._find()
        self.left = len(alive)
        if self._kill_at is None:
            self._kill_at = now + self._grace_s
        if now >= self._kill_at:
            send(alive, signal.SIGKILL)
        else:
            send(alive - self._told, signal.SIGTERM, signal.SIGCONT)
            self._told |= alive
        return not alive
