"""fleet stop, resume and hosts: files whose existence is the message, and who has heeded them."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from fleetd.cli_clock import clock_offsets
from fleetd.cli_state import OPEN, Beat, lanes_of, presence, read_beats, rests, short, unkillable
from fleetd.cli_status import cut_line, host_json
from fleetd.cli_talk import Talk
from fleetd.cli_text import as_called, clean, columns, count
from fleetd.errors import CannotCreate, IOFailed, No, NoDaemon, NotFound, Usage
from fleetd.files import write_file
from fleetd.halt import outlived
from fleetd.job import utc
from fleetd.lease import host_name
from fleetd.settings import read_settings
from fleetd.spool import Spool, find_spool

FILES = {"adding": "STOP_ADDING", "now": "STOP_NOW"}
POLL_S = 0.1


def stop(args: argparse.Namespace, talk: Talk) -> int:
    """Make the stop file; with --wait, until it has done its work on every living host."""
    spool, name = find_spool(args.spool, talk.environ), FILES[args.what]
    running, queued = len(spool.attempts()), len(spool.waiting())
    if args.what == "now" and not _confirmed(running, talk):
        talk.say("nothing was stopped")
        return 1
    touch(spool.root / name, f"set by fleet stop on {host_name(talk.environ)} at {utc(time.time())}\n")
    if talk.json:
        talk.emit({"schema": "fleet.stop/1", "stop": name, "running": running, "queued": queued})
    elif args.what == "now":
        talk.say(f"{count(running, 'running job')} will be ended, {queued} stay queued.")
    else:
        talk.say(f"{running} running and {queued} queued go on to their end.")
    talk.say(f"{spool.root / name} stands: nothing is added; fleet resume lifts it")
    if args.wait:
        _wait(spool, name, talk)
    return 0


def _confirmed(running: int, talk: Talk) -> bool:
    """A person at a terminal is asked; a script never is."""
    if not running or talk.quiet or talk.json or not (sys.stdin.isatty() and talk.err.isatty()):
        return True
    print(
        f"This sends TERM to {count(running, 'running job')}; results already written are kept, and jobs that may run\n"
        "again are queued again.\nStop now? [y/N] ",
        end="",
        file=talk.err,
        flush=True,
    )
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def touch(path: Path, text: str) -> None:
    """Make a file whose existence is the message; one that stands already is left alone. Raises CannotCreate."""
    try:
        write_file(path, text.encode())
    except FileExistsError:
        return
    except OSError as error:
        raise CannotCreate(f"{path}: not made: {error.strerror}") from error


def _wait(spool: Spool, name: str, talk: Talk) -> None:
    """Until nothing runs (for STOP_ADDING: and nothing is queued).

    Raises NoDaemon when nobody is there to do it, No when what is left will not end.
    """
    me, began = host_name(talk.environ), time.monotonic()
    while True:
        attempts, beats = spool.attempts(), read_beats(spool, me, time.time())
        queued = spool.waiting() if name == "STOP_ADDING" else []
        if not attempts and not queued and all(_has_seen(beat, name) for beat in beats if beat.live):
            talk.say(f"Nothing runs any more; {time.monotonic() - began:.1f} s.")
            return
        if not any(beat.live for beat in beats):
            raise NoDaemon(
                f"{name} stands, but no daemon runs to act on it; {len(attempts)} running, {len(queued)} queued"
            )
        if attempts and not queued and {attempt.id for attempt in attempts} <= (stuck := _stuck(beats)).keys():
            raise No("; ".join(f"{short(id_)} cannot be ended: {outlived(pids)}" for id_, pids in stuck.items()))
        if name not in spool.stops():
            raise IOFailed(f"{spool.root / name}: somebody has lifted the stop")
        time.sleep(POLL_S)


def _stuck(beats: Sequence[Beat]) -> dict[str, list[int]]:
    return {id_: pids for beat in beats for id_, pids in unkillable(beat).items()}


def _has_seen(beat: Beat, name: str) -> bool:
    return name in beat.body.get("stops", {})


def resume(args: argparse.Namespace, talk: Talk) -> int:
    """Remove the stop files, and name what still rests."""
    spool = find_spool(args.spool, talk.environ)
    lifted = sorted(spool.stops())
    for name in lifted:
        (spool.root / name).unlink(missing_ok=True)
    beats = read_beats(spool, host_name(talk.environ), time.time())
    open_ = [beat.host for beat in beats if beat.body.get("breaker", {}).get("open")]
    if talk.json:
        talk.emit({"schema": "fleet.resume/1", "lifted": lifted, "breakers_open": open_})
        return 0
    talk.say(f"lifted: {', '.join(lifted)}" if lifted else "no stop stood")
    for host in open_:
        talk.say(f"the breaker of {host} is still open: fleet hosts reset {host}")
    if lifted and not any(beat.live for beat in beats):
        talk.say("no daemon runs on this spool; start one: fleetd")
    return 0


def hosts(args: argparse.Namespace, talk: Talk) -> int:
    """The table, or with an action what it asks for."""
    spool = find_spool(args.spool, talk.environ)
    if args.action and not args.host:
        raise Usage(f"fleet hosts {args.action} HOST: which host?")
    if args.action:
        return _act(spool, args.action, args.host, talk)
    beats = read_beats(spool, host_name(talk.environ), time.time())
    ahead = clock_offsets(spool, beats)
    if talk.json:
        for beat in beats:
            offset = ahead.get(beat.host)
            talk.emit(host_json(beat) | {"clock_offset_s": offset if offset is None else round(offset, 3)})
        return 0
    head = ("HOST", "STATE", "PID", "LANES", "BEAT", "CLOCK", "TAGS", "RUNS")
    rows = [head, *(_cells(beat, ahead.get(beat.host)) for beat in beats)]
    for line in columns(rows) if beats else ():
        talk.data(cut_line(line, talk))
    for beat in beats:
        if beat.live and (why := rests(beat)) and why.startswith(OPEN):
            reset = as_called(f"fleet hosts reset {beat.host}", talk.environ)
            talk.say(f"{beat.host}: {why}; once that is mended: {reset}")
    if not beats:
        talk.say("no daemon has run on this spool yet; start one: fleetd")
    return 0


def _cells(beat: Beat, ahead: float | None) -> tuple[str, ...]:
    busy, tags = ([clean(short(word)) for word in beat.body.get(key, ())] for key in ("busy", "tags"))
    state = (rests(beat) or "works") if beat.live else "no daemon"
    state = OPEN if state.startswith(OPEN) else state
    pid = str(beat.body["pid"]) if beat.live and beat.body else "-"
    clock = "?" if ahead is None else f"{ahead:+.1f} s"
    return (
        beat.host,
        state,
        pid,
        lanes_of(beat, len(busy)),
        presence(beat),
        clock,
        ",".join(tags) or "-",
        " ".join(busy),
    )


def _act(spool: Spool, action: str, host: str, talk: Talk) -> int:
    beats = read_beats(spool, host_name(talk.environ), time.time())
    known = {*(beat.host for beat in beats), *read_settings(spool.settings).hosts}
    if host not in known:
        raise NotFound(f"{host}: no such host on {spool.root}; known: {', '.join(sorted(known)) or 'none yet'}")
    drain = spool.hosts / f"{host}.drain"
    if action == "undrain":
        drain.unlink(missing_ok=True)
        talk.say(_undrained(host, beats, talk))
    elif action == "drain":
        touch(drain, "")
        talk.say(f"{host} claims nothing more, what runs there goes on. Undo: fleet hosts undrain {host}")
    else:
        touch(spool.hosts / f"{host}.reset", "")
        live = any(beat.live for beat in beats if beat.host == host)
        talk.say(f"{host}'s daemon closes its breaker and counts anew{'' if live else ', once it runs'}")
    if talk.json:
        talk.emit({"schema": "fleet.hosts-action/1", "host": host, "action": action})
    return 0


def _undrained(host: str, beats: Sequence[Beat], talk: Talk) -> str:
    beat = next((beat for beat in beats if beat.host == host and beat.live), None)
    if beat is None:
        return f"{host} is drained no longer, but no daemon runs there: {as_called('fleetd', talk.environ)} starts one"
    if beat.body.get("breaker", {}).get("open"):
        reset = as_called(f"fleet hosts reset {host}", talk.environ)
        return f"{host} is drained no longer, but its breaker is open: {reset}"
    return f"{host} claims jobs again"
