"""The loop round the pass: sleep until something changes, an attempt ends, a signal comes, or it is time to look again."""

import contextlib
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path

from fleetd.keeper import Keeper
from fleetd.tree import reap_inherited
from fleetd.watch import Watch, is_remote, watch

_GATHER_S = 0.03  # what has ended meanwhile is brought to its end together, with one fsync
_BLIND_S = 0.5  # how often to look on a local file system that gives no events: a stop is seen within a second


class Wakes:
    """What ends the daemon's sleep: signals, its lanes, file events, the parents that it adopted."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        for fd in (self._read, self._write):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._adopted: dict[int, int] = {}

    def adopt(self, parents: set[int]) -> None:
        """Watch these processes' ends, where the system can; elsewhere the daemon looks every poll_s."""
        for pid in set(self._adopted) - parents:
            os.close(self._adopted.pop(pid))
        for pid in parents - set(self._adopted) if hasattr(os, "pidfd_open") else ():
            with contextlib.suppress(OSError):
                self._adopted[pid] = os.pidfd_open(pid)

    def sleep(self, keeper: Keeper, watching: Watch | None, seconds: float) -> None:
        """Until something happens, at most `seconds`; while the lanes have enough to do, what they say can wait a little."""
        stocked_s = min(keeper.crew.stocked_s(), seconds, _GATHER_S)
        waited = select.poll()
        for fd in (self._read, *self._adopted.values()):
            waited.register(fd, select.POLLIN)
        if watching is not None:
            waited.register(watching, select.POLLIN)
        for lane in keeper.crew.lanes:
            if lane.has_unsent:
                waited.register(lane, select.POLLIN | select.POLLOUT)
            elif stocked_s <= 0:
                waited.register(lane, select.POLLIN)
        waited.poll((stocked_s if stocked_s > 0 else seconds) * 1000)
        with contextlib.suppress(BlockingIOError):
            os.read(self._read, 65536)


class Watchdog:
    """Tells systemd that the loop turns, or waits: on its own sleep or on a share that hangs; only one that spins is not fed."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ, self._main = environ, threading.get_native_id()
        self._turned = time.monotonic()
        self._limit_s = int(environ.get("WATCHDOG_USEC") or 0) / 1e6
        if self._limit_s > 0 and environ.get("WATCHDOG_PID") in (None, str(os.getpid())):
            threading.Thread(target=self._feed, name="watchdog", daemon=True).start()

    def turned(self) -> None:
        """The loop has come round."""
        self._turned = time.monotonic()

    def _feed(self) -> None:
        while True:
            if time.monotonic() - self._turned < self._limit_s / 2 or self._waits():
                notify(self._environ, "WATCHDOG=1")
            time.sleep(self._limit_s / 4)

    def _waits(self) -> bool:
        """Whether the loop's thread is inside a system call that has not come back."""
        with contextlib.suppress(OSError, IndexError):
            stat = Path(f"/proc/self/task/{self._main}/stat").read_bytes()
            return stat.rpartition(b")")[2].split()[0] != b"R"
        return False


def notify(environ: Mapping[str, str], state: str) -> None:
    """Tell the service manager, if there is one (sd_notify's protocol: a datagram to NOTIFY_SOCKET)."""
    address = environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)


class Signals:
    """SIGTERM: let go. SIGINT: drain, a second one ends the jobs. SIGHUP: read the settings again.

    To init, the first process of a container, SIGCHLD says that an orphan may have ended.
    """

    def __init__(self) -> None:
        self.terminated = self.reload = False
        self.interrupts = 0
        signal.signal(signal.SIGTERM, self._terminate)
        signal.signal(signal.SIGINT, self._interrupt)
        signal.signal(signal.SIGHUP, self._reload)
        self.is_init = os.getpid() == 1
        if self.is_init:
            signal.signal(signal.SIGCHLD, lambda *_: None)

    def _terminate(self, *_: object) -> None:
        self.terminated = True

    def _interrupt(self, *_: object) -> None:
        self.interrupts += 1

    def _reload(self, *_: object) -> None:
        self.reload = True


class Cause(Enum):
    """Why the loop came to its end."""

    RELEASED = "released"  # SIGTERM: the running jobs go on
    DRAINED = "drained"  # SIGINT: they have ended by themselves
    FORCED = "forced"  # SIGINT twice: they were ended
    ONCE = "once"  # nothing was left to do, or nothing may be claimed


def run(
    keeper: Keeper, environ: Mapping[str, str], log: Callable[[str], None], reload: Callable[[], None], *, once: bool
) -> Cause:
    """Pass after pass until told to end; with `once`, until nothing is left for this host."""
    wakes, signals = Wakes(), Signals()
    watching, why = watch(keeper.spool)
    keeper.events = watching is not None
    if why:
        log(why)
    blind = watching is None and not is_remote(keeper.spool.root)
    watchdog = Watchdog(environ)
    notify(environ, "READY=1")
    try:
        while not signals.terminated:
            if signals.reload:
                signals.reload = False
                reload()
            _mind_interrupts(keeper, signals, log)
            for path in watching.read() if watching else ():
                keeper.told(path)
            pause = keeper.run_pass()
            if signals.is_init:
                reap_inherited(keeper.crew.pids())
            watchdog.turned()
            if cause := _over(keeper, once=once):
                return cause
            wakes.adopt(_adopted(keeper))
            wakes.sleep(keeper, watching, min(pause, _BLIND_S) if blind else pause)
        return Cause.RELEASED
    finally:
        notify(environ, "STOPPING=1")
        _close(keeper, watching)


def _mind_interrupts(keeper: Keeper, signals: Signals, log: Callable[[str], None]) -> None:
    if signals.interrupts and not keeper.draining:
        keeper.draining = True
        jobs = "job" if len(keeper.ward.running) == 1 else "jobs"
        log(f"draining: {len(keeper.ward.running)} running {jobs} may finish; interrupt again to end what runs")
    if signals.interrupts > 1 and not keeper.ending:
        keeper.ending = True
        log("ending the running jobs")


def _over(keeper: Keeper, *, once: bool) -> Cause | None:
    if keeper.ending and keeper.ward.running and all(a.id in keeper.ward.unkillable for a in keeper.ward.running):
        return Cause.FORCED  # what is left will not end; its parent, or the next daemon, sees to it
    if keeper.ward.running or keeper.crew.ordered():
        return None
    if keeper.draining:
        return Cause.FORCED if keeper.ending else Cause.DRAINED
    return Cause.ONCE if once and (keeper.claims is not None or keeper.idle()) else None


def _adopted(keeper: Keeper) -> set[int]:
    own = {lane.pid for lane in keeper.crew.lanes}
    return {attempt.parent for attempt in keeper.ward.running if attempt.parent is not None} - own


def _close(keeper: Keeper, watching: Watch | None) -> None:
    keeper.close()
    if watching is not None:
        watching.close()
