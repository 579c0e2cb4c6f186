"""exit.json as a lane's parent writes it: by rename, into a block that was taken before the job started."""

import contextlib
import json
import os
import stat
import time
from pathlib import Path

from fleetd import shelter

_WRITE = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def write_exit(places: tuple[Path, ...], path: str, mark: str, reserved: int, data: bytes) -> None:
    """Try until disk or share is back; meanwhile it is kept in one of `places`, where a kill doesn't take it.

    `reserved` is exit.part opened before the start; it is closed.
    """
    fd, pause, kept = reserved, 0.1, False
    while not _stands(path, fd, data):
        fd, kept = -1, kept or shelter.keep(places, mark, path, json.loads(data))
        time.sleep(pause)
        pause = min(pause * 2, 5.0)
    if kept:
        shelter.drop(places, mark)


def _stands(path: str, fd: int, data: bytes) -> bool:
    """Try once; `fd` is exit.part opened before, and closed in any case, or -1. True when there is nothing left to do."""
    try:
        if fd < 0:
            fd = os.open(f"{path}/exit.part", _WRITE, 0o644)
        try:
            wrote = os.pwrite(fd, data, 0)
            os.ftruncate(fd, wrote)
            ours = os.path.samestat(os.fstat(fd), os.lstat(f"{path}/exit.part"))
        finally:
            os.close(fd)
        if ours and wrote == len(data):
            os.rename(f"{path}/exit.part", f"{path}/exit.json")
            return True
    except PermissionError:
        with contextlib.suppress(OSError):
            os.chmod(path, 0o700)  # the job has locked its own directory
    except OSError:
        # the job has deleted its own directory: the answer says how it ended
        if not os.path.exists(path) and os.path.exists(os.path.dirname(path)):
            return True
    _clear_way(path)
    return False


def _clear_way(path: str) -> None:
    """Move aside what a job has put in the place of these files: a directory, a link, a FIFO."""
    for at in (f"{path}/exit.part", f"{path}/exit.json"):
        with contextlib.suppress(OSError):
            if not stat.S_ISREG(os.lstat(at).st_mode):
                os.rename(at, f"{at}~{time.time_ns():x}")
