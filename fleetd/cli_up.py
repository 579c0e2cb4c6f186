"""fleet up: spool, daemon and planner on this machine, all at once, until Ctrl-C; and fleet init, its first step.

It holds no state: killed, the daemon and the jobs go on, and the next `fleet up` finds them; the planner, a program like
any other here (`fleet-plan`), ends with it.
"""

import argparse
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from fleetd.cli_programs import Program, ask, start
from fleetd.cli_progress import Progress
from fleetd.cli_state import Beat, read_beats
from fleetd.cli_talk import Talk
from fleetd.cli_text import as_called, count
from fleetd.errors import FleetError, NoDaemon, NotFound, TryLater
from fleetd.lease import host_name
from fleetd.ledger import Ledger
from fleetd.merge import Merger
from fleetd.settings import read_settings
from fleetd.spool import Spool, find_spool, init_spool, spool_path

POLL_S = 0.25
READY_S = 20.0


@dataclass(slots=True)
class Asked:
    """How often we were asked to end: once, what runs may finish; twice, it is ended too."""

    times: int = 0

    def note(self, *_: object) -> None:
        self.times += 1


@dataclass(slots=True)
class Started:
    """What `up` started. `daemon` None: one that was there already does the work and stays."""

    grace_s: float
    daemon: Program | None = None
    fill: Program | None = None


def up(args: argparse.Namespace, talk: Talk) -> int:
    """Begin, work, drain, and say what was learned."""
    spool = _spool(args.spool, talk)
    me = host_name(talk.environ)
    environ = {**talk.environ, "FLEET_SPOOL": str(spool.root)}
    if stops := sorted(spool.stops()):
        raise TryLater(
            f"{spool.root / stops[0]} stands: nothing is added; {as_called('fleet resume', environ)} lifts it"
        )
    _plan(spool, environ, talk)
    started = Started(grace_s=read_settings(spool.settings).grace_s)
    with _asking() as asked, Progress(spool, me, talk) as progress:
        try:
            _begin(started, spool, me, environ, talk)
            _work(started, spool, me, args.seconds, asked, progress)
        finally:
            _drain(started, asked, progress, talk)
    _sum_up(progress, environ, talk)
    if started.daemon is not None and read_settings(spool.settings).home in (None, me):
        _merge(spool, talk)
    return 0


def init(args: argparse.Namespace, talk: Talk) -> int:
    """Make the spool where --spool, FLEET_SPOOL or the default says; what is there stays."""
    root = spool_path(args.spool, talk.environ)
    new = not (root / "fleet.toml").exists()
    spool = init_spool(root, home=host_name(talk.environ))
    find_spool(str(root), talk.environ)
    if talk.json:
        talk.emit({"schema": "fleet.init/1", "spool": str(spool.root), "new": new})
        return 0
    talk.data(str(spool.root))
    talk.say(f"{'made' if new else 'was there already'}; settings: {spool.settings}")
    fleetd, fleet = (as_called(name, talk.environ) for name in ("fleetd", "fleet"))
    talk.say(f"next: {fleetd} runs what is queued; {fleet} submit -- COMMAND queues something; {fleet} up does it all")
    return 0


def _spool(flag: str | None, talk: Talk) -> Spool:
    try:
        return find_spool(flag, talk.environ)
    except NotFound:
        root = spool_path(flag, talk.environ)
        init_spool(root, home=host_name(talk.environ))
        talk.say(f"made the spool {root}")
        return find_spool(flag, talk.environ)


def _plan(spool: Spool, environ: Mapping[str, str], talk: Talk) -> None:
    if spool.plan.exists():
        return
    made = ask("fleet-plan", ["init"], environ)
    if made.returncode:
        raise _failure(f"fleet-plan init failed: {made.stderr.strip() or made.stdout.strip()}", made.returncode)
    talk.say(f"made the plan {spool.plan}")


def _failure(message: str, code: int, instead: type[FleetError] = FleetError) -> FleetError:
    """An error that passes another program's exit code on; `instead` gives the code where it has none to pass."""
    error = FleetError(message)
    error.exit_code = code if 0 < code < 128 else instead.exit_code
    return error


@contextmanager
def _asking() -> Iterator[Asked]:
    """Ctrl-C, SIGTERM and, without nohup, a closed terminal only leave a note while this lasts."""
    asked = Asked()
    signals = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    before = [signal.signal(number, asked.note) for number in signals]
    try:
        yield asked
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


def _begin(started: Started, spool: Spool, me: str, environ: Mapping[str, str], talk: Talk) -> None:
    if beat := _living(spool, me):
        pid = beat.body.get("pid", "?")
        talk.say(
            f"a daemon (PID {pid}) runs on {me} already, started by hand or left by a fleet up that was killed: "
            f"it does the work, and stays when this ends; kill -INT {pid} ends it once its jobs have ended"
        )
    else:
        started.daemon = start("fleetd", [], environ, aloud=talk.verbose)
        _await_daemon(started.daemon, spool, me)
    started.fill = start("fleet-plan", ["fill", "--watch"], environ, aloud=talk.verbose, tied=True)


def _living(spool: Spool, me: str) -> Beat | None:
    return next((beat for beat in read_beats(spool, me, time.time()) if beat.live and beat.host == me), None)


def _await_daemon(daemon: Program, spool: Spool, me: str) -> None:
    end = time.monotonic() + READY_S
    while spool.heartbeats().get(me, {}).get("pid") != daemon.process.pid:
        _check_daemon(daemon)
        if time.monotonic() > end:
            raise NoDaemon(f"fleetd shows no heartbeat after {READY_S:.0f} s; it said:\n{daemon.last_lines()}")
        time.sleep(0.02)


def _check_daemon(daemon: Program) -> None:
    if (code := daemon.ended()) is not None:
        raise _failure(
            f"fleetd ended with exit {code}; what runs goes on, and the next fleetd or fleet up adopts it; "
            f"its last lines:\n{daemon.last_lines()}",
            code,
            NoDaemon,
        )


def _check_fill(started: Started, progress: Progress) -> None:
    """A `fill` that has reached its budget leaves the queue to run dry."""
    if started.fill is None or (code := started.fill.ended()) is None:
        return
    if code:
        raise _failure(f"fleet-plan fill ended with exit {code}; its last lines:\n{started.fill.last_lines()}", code)
    progress.note(f"fleet-plan fill adds nothing more:\n{started.fill.last_lines()}".rstrip(":\n"))
    started.fill = None


def _work(started: Started, spool: Spool, me: str, seconds: float | None, asked: Asked, progress: Progress) -> None:
    """Until asked to end, `seconds` after the first claim, or nothing is left to do."""
    first: float | None = None
    while not asked.times:
        progress.look()
        if first is None and progress.has_begun:
            first = time.monotonic()
        if first is not None and seconds is not None and time.monotonic() >= first + seconds:
            return
        if started.daemon is not None:
            _check_daemon(started.daemon)
        elif not _living(spool, me):
            raise NoDaemon(f"the daemon on {me} is gone; what runs goes on, and the next fleetd or fleet up adopts it")
        _check_fill(started, progress)
        if started.fill is None and progress.is_empty():
            return
        time.sleep(POLL_S)


def _drain(started: Started, asked: Asked, progress: Progress, talk: Talk) -> None:
    """No more is added or claimed; what runs finishes, or is ended when we are asked a second time."""
    if started.fill is not None:
        started.fill.end()
    if started.daemon is None or started.daemon.ended() is not None:
        return
    hurried, progress.draining = False, True
    started.daemon.interrupt()
    time.sleep(0.1)  # two signals at once would be one
    progress.look()
    if progress.running and asked.times < 2:
        progress.note("draining: what runs may finish; Ctrl-C again ends it, and keeps what it wrote")
    while started.daemon.ended() is None:
        progress.look()
        if asked.times > 1 and not hurried:
            hurried = True
            progress.note(f"ending {count(len(progress.running), 'job')}, up to {started.grace_s:g} s")
            started.daemon.interrupt()
        time.sleep(POLL_S)
    progress.look()
    if not hurried and (code := started.daemon.ended()):
        talk.say(f"fleetd ended with exit {code}; its last lines:\n{started.daemon.last_lines()}")


def _merge(spool: Spool, talk: Talk) -> None:
    """The last verdicts came after the daemon, which adds rows to ledger.jsonl, had ended; another may have begun by now."""
    try:
        if merger := Merger.alone(Ledger(spool.ledger_d), spool.ledger):
            merger.merge()
            merger.close()
    except (OSError, FleetError) as error:
        talk.say(f"{spool.ledger}: the last rows are not in it ({error}); the next fleetd adds them")


def _sum_up(progress: Progress, environ: Mapping[str, str], talk: Talk) -> None:
    judged = ask("fleet-plan", ["fill", "--count", "0"], environ)  # the last jobs ended after the planner did
    if judged.returncode:
        talk.say(f"fleet-plan fill --count 0 failed: {judged.stderr.strip()}")
    progress.look()
    progress.finish()
    if talk.json:
        return
    said = ask("fleet-plan", ["suggest", "--top", "3"], environ)
    if text := said.stdout.strip():
        talk.data(f"\n$ fleet-plan suggest --top 3\n{text}")
    elif said.stderr.strip():
        talk.say(f"\n$ fleet-plan suggest --top 3\n{said.stderr.strip()}")
    up, *look = (as_called(c, environ) for c in ("fleet up", "fleet results", "fleet-plan log", "fleet-plan best"))
    talk.say(f"\ngo on: {up}    look: {', '.join(look)}")
