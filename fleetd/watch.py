"""Waking early when something changes. Correctness never depends on it: the daemon looks every poll_s anyway.

Events are only used on local file systems; elsewhere they tell nothing of what other hosts do. On Linux inotify(7) is
read directly: watchdog holds back every event behind a rename out of a watched directory for half a second, and each
claim is one. Elsewhere watchdog tells.
"""

import contextlib
import ctypes
import logging
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from fleetd.spool import STOPS, Spool

_REMOTE = ("nfs", "cifs", "smb", "fuse", "9p", "ceph", "lustre", "gpfs", "glusterfs", "afs", "ncp", "beegfs")
_CLOSE_WRITE, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x8, 0x40, 0x80, 0x100, 0x200
_OVERFLOW = 0x4000
_COME = _CREATE | _MOVED_TO | _CLOSE_WRITE
_NAMES = _CREATE | _MOVED_TO | _DELETE | _MOVED_FROM  # that ledger.jsonl has grown is no news to its writer
_HEAD = struct.Struct("iIII")


class Watch(Protocol):
    """Events of one spool. `fileno` is readable when `read` has something to say."""

    def fileno(self) -> int:
        """To be polled."""

    def read(self) -> list[Path]:
        """What has come, changed or gone since the last call: files in queue/, marks in hosts/, stop files."""

    def close(self) -> None:
        """Watch no more."""


def file_system(path: Path, mountinfo: Path = Path("/proc/self/mountinfo")) -> str:
    """The type of the file system that `path` lies on; empty where the system doesn't say."""
    best, kind = "", ""
    with contextlib.suppress(OSError):
        for line in mountinfo.read_text().splitlines():
            left, _, right = line.partition(" - ")
            point = left.split(" ")[4].replace("\\040", " ")
            if path.is_relative_to(point) and len(point) >= len(best):
                best, kind = point, right.split(" ")[0]
    return kind


def is_remote(path: Path) -> bool:
    """Whether changes by other hosts can come to `path` without an event here."""
    return file_system(path.resolve()).startswith(_REMOTE)


def watch(spool: Spool) -> tuple[Watch | None, str]:
    """Events of queue/, hosts/ and the stop files; (None, why) where they cannot be had."""
    if is_remote(spool.root):
        return None, f"{spool.root} is a share ({file_system(spool.root.resolve())}): looking every poll_s instead"
    try:
        return (Inotify(spool) if sys.platform == "linux" else Watchdog(spool)), ""
    except OSError as error:
        return None, f"no file events ({error.strerror or error}): looking every poll_s instead"


def matters(path: Path, spool: Spool) -> bool:
    """Whether the daemon wants to know of a change at `path`."""
    if path.parent == spool.queue or (path.parent == spool.root and path.name in STOPS):
        return True
    return path.parent == spool.hosts and path.suffix in (".drain", ".reset")


class Inotify:
    """inotify(7) without threads. Raises OSError when there is no instance or watch to be had."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._call(self._libc.inotify_init1, os.O_NONBLOCK | os.O_CLOEXEC)
        self._directories: dict[int, Path] = {}
        try:
            for directory, mask in (
                (spool.queue, _COME),
                (spool.root, _NAMES),
                (spool.hosts, _NAMES),
            ):
                watch_id = self._call(self._libc.inotify_add_watch, self._fd, os.fsencode(directory), mask)
                self._directories[watch_id] = directory
        except OSError:
            os.close(self._fd)
            raise

    @staticmethod
    def _call(function: Callable[..., int], *arguments: int | bytes) -> int:
        got = function(*arguments)
        if got < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return got

    def fileno(self) -> int:
        """The inotify descriptor."""
        return self._fd

    def read(self) -> list[Path]:
        """The events that wait; after an overflow, the root: anything may have changed."""
        found: list[Path] = []
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._fd, 1 << 16):
                found += self._decode(data)
        return found

    def _decode(self, data: bytes) -> list[Path]:
        found, at = [], 0
        while at < len(data):
            watch_id, mask, _, length = _HEAD.unpack_from(data, at)
            name = data[at + _HEAD.size : at + _HEAD.size + length].rstrip(b"\0")
            at += _HEAD.size + length
            if mask & _OVERFLOW:
                found.append(self._spool.root)
            elif watch_id in self._directories and name:
                path = self._directories[watch_id] / os.fsdecode(name)
                if matters(path, self._spool):
                    found.append(path)
        return found

    def close(self) -> None:
        """Give the instance back."""
        os.close(self._fd)


class Watchdog:
    """The watchdog library's observer, whose thread tells through a pipe."""

    def __init__(self, spool: Spool) -> None:
        from watchdog.events import FileSystemEvent, FileSystemEventHandler  # noqa: PLC0415 - not needed on Linux
        from watchdog.observers import Observer  # noqa: PLC0415

        logging.getLogger("watchdog").addHandler(logging.NullHandler())
        self._found: list[Path] = []
        self._reader, self._writer = os.pipe()
        for fd in (self._reader, self._writer):
            os.set_blocking(fd, False)
        tell = self._tell

        class Handler(FileSystemEventHandler):
            def on_any_event(self, event: FileSystemEvent) -> None:
                for at in (event.src_path, event.dest_path):
                    if at and matters(Path(os.fsdecode(at)), spool):
                        tell(Path(os.fsdecode(at)))

        self._observer = Observer()
        for directory in (spool.queue, spool.root, spool.hosts):
            self._observer.schedule(Handler(), str(directory), recursive=False)
        self._observer.start()

    def _tell(self, path: Path) -> None:
        self._found.append(path)
        with contextlib.suppress(BlockingIOError):
            os.write(self._writer, b"\0")

    def fileno(self) -> int:
        """The pipe's end."""
        return self._reader

    def read(self) -> list[Path]:
        """What the observer has told."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader, 1 << 16)
        found, self._found = self._found, []
        return found

    def close(self) -> None:
        """End the observer."""
        self._observer.stop()
        self._observer.join()
        os.close(self._reader)
        os.close(self._writer)
