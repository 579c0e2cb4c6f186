"""Waking early when something changes. Correctness never depends on it: the daemon looks every poll_s anyway.

Events are only used on local file systems; elsewhere they tell nothing of what other hosts do.
"""

import contextlib
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from fleetd.spool import STOPS, Spool

_REMOTE = ("nfs", "cifs", "smb", "fuse", "9p", "ceph", "lustre", "gpfs", "glusterfs", "afs", "ncp", "beegfs")
_TOLD = ("created", "moved", "deleted", "closed")


class Watch(Protocol):
    """Something that can be stopped."""

    def stop(self) -> None:
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


def watch(spool: Spool, wake: Callable[[], None]) -> tuple[Watch | None, str]:
    """Call `wake` when queue/, hosts/ or a stop file changes; (None, why) where that cannot be had."""
    if is_remote(spool.root):
        return None, f"{spool.root} is a share ({file_system(spool.root.resolve())}): looking every poll_s instead"
    logging.getLogger("watchdog").addHandler(logging.NullHandler())
    from watchdog.events import FileSystemEvent, FileSystemEventHandler  # noqa: PLC0415 - half of a start is this import
    from watchdog.observers import Observer  # noqa: PLC0415

    class Handler(FileSystemEventHandler):
        def on_any_event(self, event: FileSystemEvent) -> None:
            if event.event_type in _TOLD and _matters(event, spool):
                wake()

    try:
        observer = Observer()
        for directory in (spool.root, spool.queue, spool.hosts):
            observer.schedule(Handler(), str(directory), recursive=False)
        observer.start()
    except OSError as error:
        return None, f"no file events ({error.strerror or error}): looking every poll_s instead"
    return observer, ""


def _matters(event: object, spool: Spool) -> bool:
    for at in (getattr(event, "src_path", ""), getattr(event, "dest_path", "")):
        path = Path(os.fsdecode(at))
        if path.parent == spool.queue or (path.parent == spool.root and path.name in STOPS):
            return True
        if path.parent == spool.hosts and path.suffix in (".drain", ".reset"):
            return True
    return False
