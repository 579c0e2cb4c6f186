"""Files as the spool needs them: read without following links or blocking, made whole or not at all.

Every function raises OSError as the system gives it; the caller knows the path's meaning and says it.
"""

import contextlib
import itertools
import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleetd.job import MAX_BYTES, decode_json

_COUNTER = itertools.count(time.time_ns())  # drafts' names: none that a killed process of this pid has left
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


Stamp = tuple[int, int, int]  # inode, size, time of the last change in ns


@dataclass(frozen=True, slots=True)
class Found:
    """A file in queue/ as read: its bytes, who owns it, and what changes when it does."""

    data: bytes
    owner: int
    stamp: Stamp


def look(path: Path | str, limit: int = MAX_BYTES) -> Found | None:
    """A regular file's bytes (one more than `limit` at most), or None when it's no such file. Raises OSError."""
    if (read := read_plain(path, limit)) is None:
        return None
    data, at = read
    return Found(data, at.st_uid, (at.st_ino, at.st_size, at.st_mtime_ns))


def read_plain(path: Path | str, limit: int = MAX_BYTES) -> tuple[bytes, os.stat_result] | None:
    """The same bytes with all that the system says of the file."""
    try:
        fd = os.open(path, _READ)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        if os.path.islink(path) or not os.path.isfile(path):
            return None
        raise
    try:
        at = os.fstat(fd)
        return (_read(fd, at.st_size, limit + 1), at) if stat.S_ISREG(at.st_mode) else None
    finally:
        os.close(fd)


def stamp_of(path: Path | str) -> Stamp | None:
    """What `look` would say of a regular file's stamp, without reading it; None when there is no such file. Raises OSError."""
    try:
        at = os.lstat(path)
    except FileNotFoundError:
        return None
    return (at.st_ino, at.st_size, at.st_mtime_ns) if stat.S_ISREG(at.st_mode) else None


def _read(fd: int, size: int, limit: int) -> bytes:
    """As much as there was when it was looked at: one read for a small file."""
    want = min(size, limit)
    data = os.read(fd, want)
    while len(data) < want and (more := os.read(fd, min(want - len(data), 1 << 20))):
        data += more
    return data


def read_json(path: Path) -> Any:
    """The JSON value in a file, or None when it's missing, unreadable or torn."""
    try:
        found = look(path)
        return decode_json(found.data) if found else None
    except (OSError, ValueError):
        return None


def write_file(path: Path | str, data: bytes, *, durable: bool = False) -> None:
    """Make a new file with these bytes; raises OSError, FileExistsError included."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)


def replace_file(path: Path | str, data: bytes, *, durable: bool = False) -> None:
    """Put these bytes at `path` by rename. Raises OSError; then the old file stands as it was."""
    directory, name = os.path.split(path)
    draft = os.path.join(directory, f".{name}.{os.getpid():x}.{next(_COUNTER):x}")
    try:
        write_file(draft, data, durable=durable)
        os.rename(draft, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise


def place(draft: Path, final: Path) -> None:
    """Move without replacing: link and unlink, or where links are not to be had, look and rename. Raises OSError.

    What the link says may be wrong on a share: what stands there is looked at. A draft that stays is swept some day.
    """
    try:
        os.link(draft, final)
    except FileExistsError:
        if not os.path.samefile(draft, final):
            raise
    except OSError as error:
        if not final.exists():
            os.rename(draft, final)
        elif not os.path.samefile(draft, final):
            raise FileExistsError(error.errno, "exists", str(final)) from error
    with contextlib.suppress(OSError):
        os.unlink(draft)


def fsync_directory(directory: Path) -> None:
    """Make the names in it durable; raises OSError."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def scan(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
