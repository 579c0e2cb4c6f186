"""The process table: who runs, since when, in which group, below whom, and with which mark in its environment.

From /proc, or from ps(1) where there is none (macOS). A process is its pid together with when it began, in the system's own
words. Where the system doesn't tell, OSError is raised: "unknown" is not "none".
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass

HAS_PROC = os.path.isdir("/proc/self")
_EVERYBODY = "-A", "-ww"
_WITH_ENVIRONMENT = ("-A", "-E", "-ww") if sys.platform == "darwin" else ("axeww",)
_STANDARD_PATH = os.confstr("CS_PATH")
_ENDED = frozenset({1, 2, 3})  # si_code: exited, killed, dumped; macOS answers for a stopped process as well


@dataclass(frozen=True, slots=True)
class Process:
    """One line of the process table."""

    pid: int
    parent: int
    group: int
    zombie: bool
    born: str


def processes() -> list[Process]:
    """Every process there is to see. Raises OSError."""
    if not HAS_PROC:
        return by_ps()
    pids = [name for name in os.listdir("/proc") if name.isdigit()]
    return [process for pid in pids if (process := _by_proc(pid))]


def _by_proc(pid: str) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            state, parent, group, *rest = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return Process(int(pid), int(parent), int(group), state in (b"Z", b"X"), rest[16].decode())


def by_ps(pid: int | None = None) -> list[Process]:
    """All processes, or that one and this, as ps(1) shows them. Raises OSError."""
    which = _EVERYBODY if pid is None else ("-p", f"{pid},{os.getpid()}")
    rows = [line.split() for line in _ask_ps(*which, "-o", "pid=,ppid=,pgid=,stat=,lstart=")]
    if not rows:
        raise OSError("ps shows no processes")
    return [
        Process(int(own), int(parent), int(group), state.startswith(b"Z"), b"_".join(born).decode())
        for own, parent, group, state, *born in rows
    ]


def _ask_ps(*flags: str) -> list[bytes]:
    """What ps says, without the line of this very ps, which would be below whoever asks."""
    path = f"{_STANDARD_PATH}:{os.environ.get('PATH', '')}"  # this process's may be its job's
    environ = os.environ | {"LC_ALL": "C", "TZ": "UTC0", "PATH": path}
    with subprocess.Popen(["ps", *flags], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environ) as asked:
        said, _ = asked.communicate()
    return [line for line in said.splitlines() if line.split(None, 1)[:1] not in ([], [b"%d" % asked.pid])]


def bearers(mark: str, table: Iterable[Process]) -> set[int]:
    """Who of the table has FLEET_CLAIM=mark in its environment; nobody bears an empty mark. Raises OSError."""
    pids = {process.pid for process in table if mark and not process.zombie}
    return {pid for pid in pids if bears(pid, mark)} if HAS_PROC or not pids else pids & bearers_by_ps(mark)


def bears(pid: int, mark: str) -> bool:
    """Whether /proc shows the process with FLEET_CLAIM=mark in its environment."""
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            return f"FLEET_CLAIM={mark}".encode() in file.read().split(b"\0")
    except OSError:
        return False


def bearers_by_ps(mark: str) -> set[int]:
    """The same from ps(1), which prints the environment behind the arguments: what is among these is no mark."""
    found = _mentions(f"FLEET_CLAIM={mark}".encode(), _WITH_ENVIRONMENT)
    spoken = _mentions(f"FLEET_CLAIM={mark}".encode(), _EVERYBODY) if found else {}
    return {pid for pid, times in found.items() if times > spoken.get(pid, 0)}


def _mentions(word: bytes, flags: Iterable[str]) -> dict[int, int]:
    """How often the word is in a process's line, by pid."""
    lines = (line.split() for line in _ask_ps(*flags, "-o", "pid=,command="))
    return {int(words[0]): words.count(word) for words in lines if word in words}


def has_ended(child: int) -> bool:
    """Whether this child is known to have ended; it stays a zombie, so that nobody else gets its pid or its group."""
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        with contextlib.suppress(OSError):
            return any(process.pid == child and process.zombie for process in by_ps(child))
        return False
    found = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return found is not None and found.si_code in _ENDED
