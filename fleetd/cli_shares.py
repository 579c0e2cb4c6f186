"""Much reading shared out among processes: a command that lists a hundred thousand files uses the cores it has."""

import marshal
import os
from collections.abc import Callable
from typing import Any

_WORTH = 5_000  # so many items take longer than a process


def in_shares(work: Callable[[range], list[Any]], count: int, cores: int) -> list[Any]:
    """What `work` makes of the items from 0 to `count`, in order, done by as many processes as are worth it.

    It is given a share at a time; what it makes must be of built-in types. A share whose process fails is done here.
    """
    size = max(-(-count // max(cores, 1)), _WORTH)
    mine, *others = [range(at, min(at + size, count)) for at in range(0, count, size)] or [range(0)]
    started = [(share, *_begin(work, share)) for share in others]
    done = work(mine)
    for share, pid, pipe in started:
        done += _collect(pid, pipe) or work(share)
    return done


def _begin(work: Callable[[range], list[Any]], share: range) -> tuple[int, int]:
    """A process that does it, and the pipe that its work comes out of."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    try:
        with open(writer, "wb") as pipe:
            marshal.dump(work(share), pipe)
    finally:
        os._exit(0)  # whatever went wrong: nothing of the parent's is to be written or undone here


def _collect(pid: int, reader: int) -> list[Any]:
    """What the process made; nothing if it failed."""
    with open(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    try:
        done: list[Any] = marshal.loads(data)  # noqa: S302 - from our own process
    except (EOFError, ValueError, TypeError):
        return []
    return done
