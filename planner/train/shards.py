"""Shards: this process and n-1 workers over one shared buffer, told what to do by a pipe each.

A worker reads commands and answers None, or the error that it met. End of file on a pipe means that the other side is
dead: a worker then ends, and this process raises TryLater with the worker's pid and what ended it. Workers are started
by a forkserver (or spawned, where there is none), never forked: they share no lock and no thread with this process. The
buffer has no name in any file system, so nothing is left of it once the last process is gone, however it went.
"""

import contextlib
import ctypes
import os
import select
import signal
import tempfile
import traceback
from collections.abc import Callable
from multiprocessing import get_all_start_methods, get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeVar

from fleetd import FleetError, IOFailed, TryLater, Usage
from planner.train.settings import ENV_CHUNK
from planner.train.slab import ALIGN
from planner.train.threads import one_blas_thread
from planner.train.world import Buffer

LOOK_S: Final = 0.5  # how often a waiting shard looks whether the others live
END_S: Final = 2.0  # what a worker is given to end by itself
MEGA: Final = 1 << 20
PLACES: Final = ("/dev/shm", tempfile.gettempdir())  # noqa: S108 - what multiprocessing itself tries, in its order

Beat = Callable[[], None]  # raises if a process that this one depends on is dead
Run = Callable[[str], None]
T = TypeVar("T")


class Allowed(Protocol):
    """What `fleetd.allowed_cores` answers."""

    @property
    def cores(self) -> int: ...
    @property
    def why(self) -> str: ...


class MakeShard(Protocol):
    """Picklable; called in each process once, for the shard `index` of `count`."""

    def __call__(self, index: int, count: int, beat: Beat) -> Run: ...


def shared_buffer(size: int, places: tuple[str, ...] = PLACES) -> tuple[Buffer, int]:
    """A nameless buffer that shards can share, and where in it `size` bytes begin on a 64-byte boundary."""
    free = {place: stat.f_bavail * stat.f_frsize for place in places if (stat := _stat(place))}
    if not any(size + ALIGN <= room for room in free.values()):
        found = ", ".join(f"{place} has {room / MEGA:.0f} MB free" for place, room in free.items())
        raise IOFailed(
            f"the trainer's shared memory takes {size / MEGA:.0f} MB: {found}; fewer envs or steps take less"
        )
    raw = get_context("spawn").RawArray(ctypes.c_byte, size + ALIGN)
    return raw, -ctypes.addressof(raw) % ALIGN


def _stat(place: str) -> os.statvfs_result | None:
    try:
        return os.statvfs(place)
    except OSError:
        return None


def choose_shards(cores: Allowed, envs: int, chunks: int, wanted: int | None = None) -> tuple[int, str]:
    """How many shards to run and why: no more than the cores allowed, nor than there are chunks for; Usage for 0.

    `chunks` are those of a minibatch's gradient; envs go forward in chunks too, and a shard with no chunk only waits.
    """
    if wanted is not None and wanted < 1:
        raise Usage(f"--shards must be at least 1, not {wanted}")
    limits = (
        [(cores.cores, cores.why)] if wanted is None else [(wanted, f"{wanted} asked for"), (cores.cores, cores.why)]
    )
    limits.append((-(-envs // ENV_CHUNK), f"{envs} env{'s' * (envs != 1)}, {ENV_CHUNK} at least to a shard"))
    limits.append((chunks, f"a minibatch of {chunks} chunk{'s' * (chunks != 1)}"))
    count, told = limits[0][0], [limits[0][1]]
    for limit, why in limits[1:]:
        if limit < count:
            count = limit
            told.append(why)
    return count, f"{count} shard{'s' * (count != 1)}: {'; '.join(told)}"


class Shards:
    """`count` shards; as a context manager, since its workers must end with it."""

    def __init__(self, count: int, make: MakeShard) -> None:
        self._count, self._make = count, make
        self._workers: list[tuple[Any, Connection, select.poll]] = []
        self._run: Run | None = None

    def __enter__(self) -> Self:
        one_blas_thread()
        try:
            for index in range(1, self._count):
                self._start(index)
            self._run = self._make(0, self._count, self._beat)
            self._answers()  # each worker's first: it stands ready
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    @property
    def pids(self) -> list[int]:
        """The workers' process ids; this process is shard 0."""
        return [process.pid for process, _, _ in self._workers]

    def run(self, command: str) -> None:
        """Have every shard do `command`, this process its own part; returns when all are done."""
        assert self._run is not None  # noqa: S101 - entered
        for process, pipe, _ in self._workers:
            try:
                pipe.send(command)
            except OSError:
                raise self._death(process) from None
        self._run(command)
        self._answers()

    def _start(self, index: int) -> None:
        context: Any = get_context("forkserver" if "forkserver" in get_all_start_methods() else "spawn")
        ours, theirs = context.Pipe()
        arguments = (self._make, index, self._count, theirs)
        process = context.Process(target=work, args=arguments, daemon=True, name=f"shard-{index}")
        resource_tracker.ensure_running()  # it unblocks SIGINT when it starts
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()  # which inherits it: Ctrl-C reaches all of a terminal, and the first process decides
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        poll = select.poll()
        poll.register(ours.fileno(), select.POLLIN)
        self._workers.append((process, ours, poll))

    def _answers(self) -> None:
        for process, pipe, poll in self._workers:
            while not poll.poll(LOOK_S * 1000):
                self._beat()
            try:
                answer = pipe.recv()
            except (EOFError, OSError):
                raise self._death(process) from None
            if isinstance(answer, FleetError):
                raise answer
            if answer is not None:
                raise FleetError(f"{process.name} (pid {process.pid}) failed:\n{answer}")

    def _beat(self) -> None:
        dead = wait([process.sentinel for process, _, _ in self._workers], 0)
        for process, _, _ in self._workers:
            if process.sentinel in dead:
                raise self._death(process)

    def _death(self, process: Any) -> FleetError:
        process.join(END_S)
        code = process.exitcode
        by = f"ended by {signal.Signals(-code).name}" if code is not None and code < 0 else f"gone, exit code {code}"
        return TryLater(f"{process.name} (pid {process.pid}) was {by}")

    def _end(self) -> None:
        for _, pipe, _ in self._workers:
            pipe.close()
        for process, _, _ in self._workers:
            process.join(END_S)
            if process.is_alive():
                process.kill()
                process.join()
        self._workers.clear()


def work(make: MakeShard, index: int, count: int, pipe: Connection) -> None:
    """A worker's life: do what the pipe says until it ends."""
    one_blas_thread()

    def beat() -> None:
        if pipe.poll():  # nothing is sent to a shard at work: this is the end of the file
            raise EOFError

    with contextlib.suppress(EOFError, OSError):
        run, trouble = _attempt(lambda: make(index, count, beat))
        pipe.send(trouble)
        while run:
            command = pipe.recv()
            pipe.send(_attempt(lambda: run(command))[1])  # noqa: B023 - called at once


def _attempt(act: Callable[[], T]) -> tuple[T | None, FleetError | str | None]:
    """What `act` returns, or the error that it met: a stranger's as the text of its traceback."""
    try:
        return act(), None
    except (EOFError, BrokenPipeError):
        raise
    except FleetError as error:
        return None, error
    except Exception:  # noqa: BLE001 - whatever a world does wrong is told where the trainer runs
        return None, traceback.format_exc()
