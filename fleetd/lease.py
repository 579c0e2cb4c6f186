"""Who holds what, on this host: leases of attempts, locks that are one per host, and whether a process is still that process.

A lease is a plain flock(2) on the attempt's `lock`, held by a descriptor that the attempt's parent and the job's leader
inherit. It is only ever closed, never unlocked: an unlock would free it under a live child. filelock's locks, which do
unlock, serve for what one process holds alone. A pid is only ever tested on its own host and boot.
"""

import contextlib
import fcntl
import functools
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from fleetd.errors import CannotCreate, TryLater, Usage
from fleetd.job import NAME
from fleetd.table import HAS_PROC, by_ps


def host_name(environ: Mapping[str, str]) -> str:
    """FLEET_HOST, or the first label of this machine's name; raises Usage when it cannot name a file."""
    name = environ.get("FLEET_HOST") or socket.gethostname().split(".")[0]
    if not NAME.fullmatch(name):
        raise Usage(
            f"{name!r} cannot be a host's name in the spool; set FLEET_HOST to letters, digits, dots and dashes"
        )
    return name


@functools.cache
def boot_id() -> str:
    """What changes with each start of the machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        with contextlib.suppress(OSError):
            asked = subprocess.run(
                ["sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, text=True, check=False
            )
            return asked.stdout.strip().lower() or "unknown"
        return "unknown"


def born(pid: int) -> str | None:
    """When the process began, in the system's own words; None when there is no such process or only its zombie.

    Raises OSError where there is no /proc and ps(1) does not tell.
    """
    if not HAS_PROC:
        return next((process.born for process in by_ps(pid) if process.pid == pid and not process.zombie), None)
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            state, *rest = file.read().rpartition(b")")[2].split()
        return None if state in (b"Z", b"X") else rest[18].decode()
    except OSError:
        return None


def boot_ticks() -> int | None:
    """The present moment as the kernel would write it for a process born now; None where it doesn't tell time that way."""
    if not HAS_PROC or not hasattr(time, "CLOCK_BOOTTIME"):
        return None
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK") // 1_000_000_000


def born_between(pid: int, before: int | None, after: int | None) -> str | None:
    """`born` of a child that was started between two `boot_ticks`: when they agree, without asking.

    Asking /proc for a process that is just calling exec takes a quarter of a millisecond.
    """
    return str(before) if before is not None and before == after else born(pid)


def lives(pid: int | None, began: str | None) -> bool:
    """Whether that very process still runs here: same pid and same start."""
    return pid is not None and pid > 0 and began is not None and born(pid) == began


def take_lease(lock: Path | str) -> int | None:
    """A descriptor that holds the lease, to be closed and never unlocked; None when another holds it. Raises OSError."""
    fd = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    except OSError:
        os.close(fd)
        raise
    return fd


class Turn:
    """A lock that is taken and given back for each row: flock(2) on one descriptor, which filelock's locks exclude too.

    Raises TryLater saying that `whose` holds it, CannotCreate when the file can't be made.
    """

    def __init__(self, path: Path, whose: str, timeout_s: float) -> None:
        self._path, self._whose, self._timeout_s = path, whose, timeout_s
        self._fd = -1

    def __enter__(self) -> None:
        try:
            if self._fd < 0:
                self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            self._await()
        except OSError as error:
            raise CannotCreate(f"{self._path}: cannot lock: {error.strerror}") from error

    def _await(self) -> None:
        end = time.monotonic() + self._timeout_s
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() > end:
                    raise TryLater(f"{self._path}: locked: {self._whose}") from error
                time.sleep(0.002)
            else:
                return

    def __exit__(self, *_: object) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_UN)

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)


@contextmanager
def only_one(path: Path, whose: str, timeout_s: float = 0.0) -> Iterator[None]:
    """Hold the lock at `path` for the block, by filelock; raises TryLater saying that `whose` holds it."""
    from filelock import FileLock, Timeout  # noqa: PLC0415 - 90 ms that readers of a spool need not pay

    lock = FileLock(path)
    try:
        lock.acquire(timeout=timeout_s)
    except Timeout as error:
        raise TryLater(f"{path}: locked: {whose}") from error
    except OSError as error:
        raise CannotCreate(f"{path}: cannot make the lock: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()
