"""The loop round the pass: sleep until something changes, an attempt ends, a signal comes, or it is time to look again."""

import contextlib
import os
import select
import signal
import socket
from collections.abc import Callable, Mapping

from fleetd.keeper import Keeper
from fleetd.watch import Watch, is_remote, watch

_BLIND_S = 0.5  # how often to look on a local file system that gives no events: a stop is seen within a second


class Wakes:
    """What ends the daemon's sleep: its own pipe (signals, file events), its lanes, the parents that it adopted."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        for fd in (self._read, self._write):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._adopted: dict[int, int] = {}

    def wake(self) -> None:
        """End the sleep; may be called from any thread."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._write, b"\0")

    def adopt(self, parents: set[int]) -> None:
        """Watch these processes' ends, where the system can; elsewhere the daemon looks every poll_s."""
        for pid in set(self._adopted) - parents:
            os.close(self._adopted.pop(pid))
        for pid in parents - set(self._adopted) if hasattr(os, "pidfd_open") else ():
            with contextlib.suppress(OSError):
                self._adopted[pid] = os.pidfd_open(pid)

    def sleep(self, keeper: Keeper, seconds: float) -> None:
        """Until something happens, at most `seconds`."""
        waited = select.poll()
        for fd in (self._read, *(lane.fileno() for lane in keeper.crew.lanes), *self._adopted.values()):
            waited.register(fd, select.POLLIN)
        waited.poll(seconds * 1000)
        with contextlib.suppress(BlockingIOError):
            os.read(self._read, 65536)


def notify(environ: Mapping[str, str], state: str) -> None:
    """Tell the service manager, if there is one (sd_notify's protocol: a datagram to NOTIFY_SOCKET)."""
    address = environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)


class Signals:
    """SIGTERM: let go. SIGINT: drain, a second one ends the jobs. SIGHUP: read the settings again."""

    def __init__(self) -> None:
        self.terminated = self.reload = False
        self.interrupts = 0
        signal.signal(signal.SIGTERM, self._terminate)
        signal.signal(signal.SIGINT, self._interrupt)
        signal.signal(signal.SIGHUP, self._reload)

    def _terminate(self, *_: object) -> None:
        self.terminated = True

    def _interrupt(self, *_: object) -> None:
        self.interrupts += 1

    def _reload(self, *_: object) -> None:
        self.reload = True


def run(
    keeper: Keeper, environ: Mapping[str, str], log: Callable[[str], None], reload: Callable[[], None], *, once: bool
) -> bool:
    """Pass after pass until told to end; with `once`, until nothing is left for this host. False when ended by force."""
    wakes, signals = Wakes(), Signals()
    watching, why = watch(keeper.spool, wakes.wake)
    if why:
        log(why)
    blind = watching is None and not is_remote(keeper.spool.root)
    notify(environ, "READY=1")
    try:
        while not signals.terminated:
            if signals.reload:
                signals.reload = False
                reload()
            _mind_interrupts(keeper, signals, log)
            pause = keeper.run_pass()
            if _over(keeper, once=once):
                break
            wakes.adopt(_adopted(keeper))
            wakes.sleep(keeper, min(pause, _BLIND_S) if blind else pause)
    finally:
        notify(environ, "STOPPING=1")
        _close(keeper, watching)
    return not keeper.ending


def _mind_interrupts(keeper: Keeper, signals: Signals, log: Callable[[str], None]) -> None:
    if signals.interrupts and not keeper.draining:
        keeper.draining = True
        log(f"draining: {len(keeper.ward.running)} running jobs may finish; interrupt again to end them")
    if signals.interrupts > 1 and not keeper.ending:
        keeper.ending = True
        log("ending the running jobs")


def _over(keeper: Keeper, *, once: bool) -> bool:
    if keeper.draining:
        return not keeper.ward.running and not keeper.crew.starting()
    return (
        once and (keeper.claims is not None or keeper.idle()) and not keeper.ward.running and not keeper.crew.starting()
    )


def _adopted(keeper: Keeper) -> set[int]:
    own = {lane.pid for lane in keeper.crew.lanes}
    return {attempt.parent for attempt in keeper.ward.running if attempt.parent is not None} - own


def _close(keeper: Keeper, watching: Watch | None) -> None:
    keeper.close()
    if watching is not None:
        watching.stop()
