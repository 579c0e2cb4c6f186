"""fleet ensure: this host's daemon is alive afterwards. What a timer runs each minute; other hosts see to themselves.

It starts what [host.NAME].start in fleet.toml says, by `sh -c`, else `fleetd`, detached: in a session of its own, its
stderr appended to $XDG_STATE_HOME/fleet/<host>.log.
"""

import argparse
import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fleetd.cli_programs import find_program, path_of
from fleetd.cli_state import Beat, read_beats
from fleetd.cli_talk import Talk
from fleetd.errors import CannotCreate, NoDaemon
from fleetd.lease import born, host_name, only_one
from fleetd.settings import Host, Settings, read_settings
from fleetd.spool import Spool, find_spool
from fleetd.xdg import state_home

READY_S = 20.0
POLL_S = 0.05
LAST_LINES = 8
OURS = ("NOTIFY_SOCKET", "INVOCATION_ID", "JOURNAL_STREAM", "WATCHDOG_PID", "WATCHDOG_USEC")  # of the unit that runs us


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What is started, where its words go, and how much stood there before."""

    command: tuple[str, ...]
    process: "subprocess.Popen[bytes]"
    log: Path
    size: int

    def last_lines(self) -> str:
        """The end of what it said, each line indented."""
        with self.log.open("rb") as file:
            file.seek(self.size)
            lines = file.read()[-8192:].decode("utf-8", "replace").splitlines()[-LAST_LINES:]
        return "\n".join(f"    {line}" for line in lines)


def ensure(args: argparse.Namespace, talk: Talk) -> int:
    """Start the daemon unless it lives. Raises NoDaemon with its last lines when it could not be started."""
    spool, me = find_spool(args.spool, talk.environ), host_name(talk.environ)
    settings, log = read_settings(spool.settings), log_path(me, talk.environ)
    beat, started = _living(spool, me), False
    if beat is None:
        _make(log.parent)
        with only_one(log.with_suffix(".ensure.lock"), "another fleet ensure is starting the daemon", READY_S + 5):
            beat = _living(spool, me)
            if beat is None:
                started, beat = True, _await(_start(spool, me, settings.host(me), log, talk.environ), spool, me)
    pid = _pid(beat)
    if talk.json:
        about = {"host": me, "pid": pid, "started": started, "log": str(log) if started else None}
        talk.emit({"schema": "fleet.ensure/1", **about})
    else:
        talk.say(
            f"{me}: started (PID {pid or '?'}); its words go to {log}" if started else f"{me}: alive (PID {pid or '?'})"
        )
    _say_others(settings, me, talk)
    return 0


def log_path(host: str, environ: Mapping[str, str]) -> Path:
    """Where a daemon that was started here writes its words: outside of the spool, which holds no host's private files."""
    return state_home(environ) / "fleet" / f"{host}.log"


def _living(spool: Spool, me: str) -> Beat | None:
    return next((beat for beat in read_beats(spool, me, time.time()) if beat.live and beat.host == me), None)


def _pid(beat: Beat) -> int | None:
    """The daemon's pid; None while the heartbeat is still that of one before it."""
    pid = beat.body.get("pid")
    return pid if isinstance(pid, int) and born(pid) is not None else None


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotCreate(f"{directory}: cannot make it for the daemon's log: {error.strerror}") from error


def _start(spool: Spool, me: str, host: Host, log: Path, environ: Mapping[str, str]) -> Start:
    command = ("sh", "-c", host.start) if host.start else (find_program("fleetd", environ),)
    env = {key: value for key, value in environ.items() if key not in OURS}
    env |= {"PATH": path_of(environ), "FLEET_SPOOL": str(spool.root), "FLEET_HOST": me}
    try:
        fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise CannotCreate(f"{log}: cannot write the daemon's log: {error.strerror}") from error
    try:
        size = os.fstat(fd).st_size
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=fd, stderr=fd, env=env, cwd="/", start_new_session=True
        )
    finally:
        os.close(fd)
    return Start(command=command, process=process, log=log, size=size)


def _await(start: Start, spool: Spool, me: str) -> Beat:
    """Until the daemon lives. A command that has ended well may have left it to another to start it."""
    end = time.monotonic() + READY_S
    while (beat := _living(spool, me)) is None or (_pid(beat) is None and time.monotonic() < end):
        code = start.process.poll()
        if code or time.monotonic() > end:
            how = f"ended with exit {code if code > 0 else 128 - code}" if code else f"no heartbeat in {READY_S:.0f} s"
            said = start.last_lines()
            what = (
                f"{' '.join(start.command)}: {how}; its last lines:\n{said}" if said else f"{start.command[-1]}: {how}"
            )
            raise NoDaemon(f"{me}: not started: {what}")
        time.sleep(POLL_S)
    return beat


def _say_others(settings: Settings, me: str, talk: Talk) -> None:
    if others := sorted(name for name, host in settings.hosts.items() if host.ssh and name != me):
        talk.say(f"this version starts nothing over ssh: run fleet ensure on {', '.join(others)} as well")
