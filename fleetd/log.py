"""An attempt's log, held within its cap while the job goes on writing to it: the head and the tail are kept.

The job writes straight to the file (O_APPEND). While it grows past the cap, a hole is punched between head and tail; where
holes cannot be punched, the tail is copied aside and the file cut back to its head, which may lose what is written at that
moment: hence "about". At the end the file becomes head + "[N bytes cut]" + tail. All that is known of a cut is in the files, so
that whoever comes after a killed process goes on: log.tail begins with a line that says how many bytes are in no file any more.
"""

import contextlib
import ctypes
import errno
import os
import shutil
import stat
import sys
from pathlib import Path
from typing import BinaryIO

_KEEP_SIZE, _PUNCH_HOLE = 1, 2
_SOONEST_S = 0.005
_LATEST_S = 0.25  # `yes` writes 500 MB a second: what it writes in this time is less than a host keeps free


class CappedLog:
    """The log at `path`, at most `cap` bytes of it kept: a quarter as head, half as tail, a quarter to grow in."""

    def __init__(self, path: Path, fd: int, cap: int) -> None:
        self._path, self._fd = path, fd
        self._cap, self._head, self._tail = cap, cap // 4, cap // 2
        self._cut_to = 0
        self._aside = path.with_name("log.tail")
        self._cut_back = False  # where holes cannot be punched
        self._size, self._at, self._look_at = 0, 0.0, 0.0

    def tend(self, now: float) -> float:
        """Cut if it is due; gives back when to look again (monotonic seconds), sooner the faster the log grows."""
        if now < self._look_at:
            return self._look_at
        size = os.fstat(self._fd).st_size
        rate = max(0, size - self._size) / max(now - self._at, 1e-3) if self._at else 0.0
        if size > self._cap:
            size = self._cut(size)
        quiet = 2 * (now - self._at) if self._at else 0.0
        self._size, self._at = size, now
        due = self._cap / 8 / rate if rate else quiet
        self._look_at = now + min(max(due, _SOONEST_S), _LATEST_S)
        return self._look_at

    def _cut(self, size: int) -> int:
        end = size - self._tail
        if end <= max(self._head, self._cut_to):
            return size
        if not self._cut_back and _punch(self._fd, self._head, end - self._head):
            self._cut_to = end
            return size
        return self._set_aside(size)

    def _set_aside(self, size: int) -> int:
        """Keep the newest half cap of bytes in log.tail and cut the file back to its head."""
        if os.lstat(self._path).st_ino != os.fstat(self._fd).st_ino:
            return size
        dropped, old = self._read_aside()
        with open(self._path, "rb") as log:
            log.seek(max(self._head, size - self._tail))
            tail = (old + log.read(self._tail))[-self._tail :]
        dropped += len(old) + size - self._head - len(tail)
        with open(self._aside, "wb", opener=_not_following) as aside:
            aside.write(b"%d\n" % dropped + tail)
        os.ftruncate(self._fd, self._head)
        self._cut_back = True
        return self._head

    def _read_aside(self) -> tuple[int, bytes]:
        """How many bytes are gone, and the tail that was set aside."""
        try:
            with open(self._aside, "rb", opener=_not_following) as aside:
                dropped, _, tail = aside.read().partition(b"\n")
        except FileNotFoundError:
            return 0, b""
        return (int(dropped), tail) if dropped.isdigit() else (0, b"")

    def go_on(self) -> None:
        """Go on where another process that was killed has left off. Raises OSError."""
        self._cut_back = any(self._read_aside())

    def finish(self) -> None:
        """Leave head + "[N bytes cut]" + tail. Raises OSError; then the log stays as it is, with a hole."""
        at = os.fstat(self._fd)
        size = at.st_size
        if (not self._cut_back and size <= self._cap) or os.lstat(self._path).st_ino != at.st_ino:
            return  # within its cap, or the job has put something else in its place
        with contextlib.suppress(FileNotFoundError):
            self._path.with_name("log.whole").unlink()
        with open(self._path, "rb") as log, open(self._path.with_name("log.whole"), "xb") as whole:
            if self._cut_back:
                self._assemble(log, whole, size)
            else:
                start = max(self._cut_to, size - self._tail)
                _copy(log, whole, self._head)
                whole.write(b"\n[%d bytes cut]\n" % (start - self._head))
                log.seek(start)
                shutil.copyfileobj(log, whole)
        os.rename(self._path.with_name("log.whole"), self._path)

    def _assemble(self, log: BinaryIO, whole: BinaryIO, size: int) -> None:
        new = size - self._head
        dropped, aside = self._read_aside()
        keep = aside[-max(0, self._tail - new) :] if new < self._tail else b""
        start = max(self._head, size - self._tail)
        cut = dropped + len(aside) - len(keep) + start - self._head
        _copy(log, whole, self._head)
        whole.write(b"\n[about %d bytes cut]\n" % cut)
        whole.write(keep)
        log.seek(start)
        shutil.copyfileobj(log, whole)
        self._aside.unlink()


def open_log(path: Path) -> int | None:
    """A descriptor of the log that a job writes to; None where there is no such file, or none for us. Raises OSError."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None
        raise
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    return None


def _not_following(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)


def _copy(source: BinaryIO, target: BinaryIO, count: int) -> None:
    while count > 0 and (piece := source.read(min(count, 1 << 20))):
        target.write(piece)
        count -= len(piece)


def _punch(fd: int, at: int, count: int) -> bool:
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.fallocate(fd, _KEEP_SIZE | _PUNCH_HOLE, ctypes.c_int64(at), ctypes.c_int64(count)) == 0)
