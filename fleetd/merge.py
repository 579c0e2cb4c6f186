"""The merged view: ledger.jsonl, the lines of all segments for `tail -F`. The segments are the truth; nothing reads this."""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from fleetd.errors import IOFailed
from fleetd.lease import take_lease
from fleetd.ledger import Ledger, Row, decode_head, write_line


@dataclass(slots=True)
class _Had:
    """Which seqs of one host the view has: all up to one, and few beyond, so that a long ledger costs no memory."""

    upto: int = 0
    beyond: set[int] = field(default_factory=set)

    def __contains__(self, seq: int) -> bool:
        return seq <= self.upto or seq in self.beyond

    def add(self, seq: int) -> None:
        self.beyond.add(seq)
        while self.upto + 1 in self.beyond:
            self.upto += 1
            self.beyond.remove(self.upto)


class Merger:
    """Adds to ledger.jsonl what is missing there, by the set of (host, seq). One process runs it: who holds its lock."""

    def __init__(self, ledger: Ledger, view: Path, lock: int) -> None:
        self._ledger, self._view, self._lock = ledger, view, lock
        self._have: dict[str, _Had] = {}
        self._new: dict[tuple[str, int], bytes] = {}
        self._stamp = (0, 0)
        self._load()

    def _load(self) -> None:
        """Know what the view has, and what all segments have more. Raises IOFailed."""
        self._have.clear()
        self._new.clear()
        self._stamp = _stamp(self._view)
        for line in _view_lines(self._view):
            if row := decode_head(line):
                self._have.setdefault(row.host, _Had()).add(row.seq)
        self.take(Ledger(self._ledger.root).poll_lines(decode_head))

    @classmethod
    def alone(cls, ledger: Ledger, view: Path) -> Self | None:
        """A merger, or None while another process on this machine merges. Raises OSError."""
        lock = ledger.root / ".merge.lock"
        # to write alone would wait for ever at a FIFO that somebody put there
        os.close(os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644))
        held = take_lease(lock)
        if held is None:
            return None
        try:
            return cls(ledger, view, held)
        except (OSError, IOFailed):
            os.close(held)
            raise

    def close(self) -> None:
        """Let another merge."""
        os.close(self._lock)

    def take(self, lines: Iterable[tuple[Row, bytes]]) -> None:
        """Rows that may be missing."""
        for row, line in lines:
            if row.seq not in self._have.setdefault(row.host, _Had()):
                self._new[row.host, row.seq] = line

    def merge(self) -> int:
        """Add what was taken and is missing; how many lines. Raises IOFailed; the next call tries again."""
        if self._new:
            self.check()
        added = len(self._new)
        if added:
            for host in {host for host, seq in self._new if seq > self._ledger.synced.get(host, 0)}:
                self._ledger.sync(host)
            self._add(b"\n".join(self._new.values()) + b"\n")
            for host, seq in self._new:
                self._have[host].add(seq)
            self._new.clear()
        return added

    def check(self) -> None:
        """See whether somebody has removed the view, or put another in its place: then begin anew. Raises IOFailed."""
        if _stamp(self._view) != self._stamp:
            self._load()

    def _add(self, data: bytes) -> None:
        try:
            fd = os.open(self._view, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise IOFailed(f"{self._view}: cannot merge: {error.strerror}") from error
        try:
            at = os.fstat(fd)
            if at.st_size and os.pread(fd, 1, at.st_size - 1) != b"\n":
                data = b"\n" + data
            wrote = write_line(fd, self._view, data, at.st_size)
            self._stamp = (at.st_ino, at.st_size + wrote)
        except OSError as error:
            raise IOFailed(f"{self._view}: cannot merge: {error.strerror}") from error
        finally:
            os.close(fd)


def _stamp(path: Path) -> tuple[int, int]:
    """Inode and size: what nobody else changes in a view that is ours to write."""
    try:
        at = os.lstat(path)
    except FileNotFoundError:
        return 0, 0
    except OSError as error:
        raise IOFailed(f"{path}: cannot merge: {error.strerror}") from error
    return at.st_ino, at.st_size


def _view_lines(view: Path) -> Iterator[bytes]:
    """The lines that are there; an error is no empty view, or all would be added once more. Raises IOFailed."""
    try:
        fd = os.open(view, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as error:
        why = "no regular file; move it away" if error.errno == errno.ELOOP else f"cannot merge: {error.strerror}"
        raise IOFailed(f"{view}: {why}") from error
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise IOFailed(f"{view}: no regular file; move it away")
        yield from (line.rstrip(b"\n") for line in file)
