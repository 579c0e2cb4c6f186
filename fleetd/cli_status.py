"""fleet status."""

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from fleetd import shelter
from fleetd.breaker import describe
from fleetd.cli_guess import seconds_to_empty
from fleetd.cli_state import (
    APART,
    Beat,
    State,
    lanes_of,
    presence,
    read_state,
    rests,
    short,
    started_at,
    taken_lanes,
    unkillable,
)
from fleetd.cli_talk import Talk
from fleetd.cli_text import (
    as_called,
    clean,
    clock,
    columns,
    command_line,
    count,
    cut,
    cut_shown,
    span,
    terminal_width,
    wrapped,
)
from fleetd.halt import outlived
from fleetd.job import Outcome, seconds
from fleetd.lease import host_name
from fleetd.ledger import Row
from fleetd.spool import Running, find_spool

RECENT_FAILURES = 3


def status(args: argparse.Namespace, talk: Talk) -> int:
    """One sentence of counts, a line for each host, the newest failures, and what to do next."""
    spool, now = find_spool(args.spool, talk.environ), time.time()
    state = read_state(spool, host_name(talk.environ), now)
    if talk.json:
        talk.emit(_as_json(state, str(spool.root), now))
        return 0
    talk.data(_sentence(state, seconds_to_empty(spool, state, now), now, talk))
    for line in _host_lines(state, now, talk):
        talk.data(line)
    for line in _unkillable(state, talk):
        talk.data(line)
    for id_ in shelter.waiting(shelter.shelters(talk.environ), spool.running / host_name(talk.environ)):
        text = f"{clean(short(id_))} has ended; its row waits until the spool takes how"
        talk.data(cut_line(f"{talk.paint('yellow', '!')} {text}", talk))
    for line in _failures(state, now, talk):
        talk.data(line)
    if state.skipped:
        talk.data(f"{count(state.skipped, 'damaged ledger line')} skipped")
    for hint in _hints(state, partial(as_called, environ=talk.environ)):
        text = f"hint: {hint}"
        talk.say(wrapped(text, terminal_width(talk.environ, talk.err)) if talk.err.isatty() else text)
    return 0


def _sentence(state: State, to_empty_s: float | None, now: float, talk: Talk) -> str:
    c = state.counts()
    text = f"{c['queued']} queued, {c['running']} running, {c['done']} done, {c['failed']} failed"
    text += "".join(f", {c[outcome]} {outcome}" for outcome in APART if c[outcome])
    if to_empty_s is not None and "STOP_NOW" not in state.stops and any(beat.live for beat in state.beats):
        text += f"; about {span(to_empty_s)} to empty"
    stops = [f"{name} set {clock(at, now)}" for name, at in state.stops.items()]
    return f"{talk.paint('bold', text)}    {talk.paint('yellow', '  '.join(stops))}".rstrip() if stops else text


def _host_lines(state: State, now: float, talk: Talk) -> list[str]:
    if not state.beats:
        return []
    taken = taken_lanes(state.running)
    table = columns([_host_cells(beat, taken[beat.host]) for beat in state.beats])
    runs: dict[str, list[str]] = {}
    for run in state.running:
        runs.setdefault(run.host, []).append(_running(run, now))
    return [
        cut_line(f"{talk.dot(_kind(b))} {line}  {'  '.join(runs.get(b.host, []))}".rstrip(), talk)
        for b, line in zip(state.beats, table, strict=True)
    ]


def cut_line(line: str, talk: Talk) -> str:
    """The line cut to a terminal's width; whole where it goes elsewhere."""
    return cut_shown(line, terminal_width(talk.environ, talk.out)) if talk.out.isatty() else line


def _kind(beat: Beat) -> str:
    if not beat.live:
        return "dead"
    return "open" if rests(beat) else "live"


def _host_cells(beat: Beat, taken: int) -> tuple[str, ...]:
    last = "last beat " if beat.body else ""
    state = (rests(beat) or f"beat {presence(beat)}") if beat.live else f"no daemon, {last}{presence(beat)}"
    return beat.host, f"{lanes_of(beat, taken)} lanes", state


def _running(run: Running, now: float) -> str:
    at = started_at(run)
    return f"{short(run.id)} {span(now - at) if at else ''}".rstrip()


def _unkillable(state: State, talk: Talk) -> list[str]:
    """A line for each job that cannot be ended."""
    return [
        cut_line(f"{talk.paint('red', '✗')} {clean(short(id_))} cannot be ended on {beat.host}: {outlived(pids)}", talk)
        for beat in state.beats
        for id_, pids in unkillable(beat).items()
    ]


def _failures(state: State, now: float, talk: Talk) -> list[str]:
    """The newest, and how many there are besides."""
    rows = [*state.final(("failed", "timeout", "lost", "rejected", "build_failed")), *state.refused.values()]
    rows.sort(key=lambda row: row.at)
    lines = [_failure(row, now, talk) for row in rows[-RECENT_FAILURES:]]
    more = len(rows) - len(lines)
    return [f"  and {more:,} more before: {as_called('fleet results', talk.environ)}", *lines] if more else lines


def _failure(row: Row, now: float, talk: Talk) -> str:
    text = f"{short(row.body['job'])} {how_ended(row.body)} on {row.host}, {span(now - seconds(row.at))} ago"
    return cut_line(f"{talk.paint('red', '✗')} {text}", talk)


def how_ended(body: Mapping[str, Any]) -> str:
    """The outcome with its exit code or signal, and the reason where one stands."""
    return describe(body) + (f" ({clean(str(body['reason']))})" if body.get("reason") else "")


def _hints(state: State, typed: Callable[[str], str]) -> list[str]:
    """What helps, in commands as the reader can type them."""
    c, hints = state.counts(), []
    if state.stops:
        hints.append(f"{typed('fleet resume')} lifts the stop")
    if not any(beat.live for beat in state.beats):
        hints.append(f"no daemon runs on this spool: {typed('fleetd')} runs jobs; {typed('fleet up')} starts all of it")
    if failed := state.final(("failed", "timeout", "lost")):
        job, more = short(failed[-1].body["job"]), len(failed) - 1
        every = f"    or all {len(failed):,} that failed: {typed('fleet retry --failed')}" if more else ""
        hints.append(f"{typed('fleet show')} {job}    {typed('fleet retry')} {job}{every}")
    if rejected := state.final((Outcome.REJECTED,)):
        show = f"{typed('fleet show')} {short(rejected[-1].body['job'])}"
        hints.append(f"what was rejected never ran: {show} says why, and where it is")
    if state.refused:
        hints.append("a name is used up once its job has ended ok: queue the job under another")
    if c["stopped"]:
        hints.append(f"{count(c['stopped'], 'job')} ended by a stop: {typed('fleet retry --stopped')}")
    hints += [typed(f"fleet hosts reset {b.host}") for b in state.beats if b.body.get("breaker", {}).get("open")]
    hints += [typed(f"fleet hosts undrain {b.host}") for b in state.beats if b.drained]
    return hints


def _as_json(state: State, root: str, now: float) -> dict[str, Any]:
    return {
        "schema": "fleet.status/1",
        "spool": root,
        **state.counts(),
        "rate_per_s": round(state.rate, 6),
        "stops": sorted(state.stops),
        "hosts": [host_json(beat) for beat in state.beats],
        "jobs": [running_json(run, now) for run in state.running],
        "skipped": state.skipped,
    }


def host_json(beat: Beat) -> dict[str, Any]:
    """A host for a program: the heartbeat as it stands, and what is concluded from it."""
    return {
        "schema": "fleet.hosts/1",
        "host": beat.host,
        "live": beat.live,
        "age_s": round(beat.age_s, 3) if beat.age_s < float("inf") else None,
        "drained": beat.drained,
        "heartbeat": dict(beat.body),
    }


def running_json(run: Running, now: float) -> dict[str, Any]:
    """An attempt that is claimed or runs."""
    at = started_at(run)
    return {
        "schema": "fleet.ls/1",
        "job": run.id,
        "state": "running",
        "host": run.host,
        "attempt": run.attempt,
        "kind": run.job.kind if run.job else None,
        "argv": list(run.job.argv) if run.job else None,
        "for_s": round(now - at, 3) if at else None,
        "why": None,
    }


def because(why: str) -> str:
    """A waiting job's state: waits for a free lane; waits: no daemon runs."""
    return why if why.startswith("waits ") else f"waits {why}" if why.startswith("for ") else f"waits: {why}"


def title_of(payload: Any) -> str | None:
    """What the payload calls the job, in the queuer's words: its `title`, a string."""
    title = payload.get("title") if isinstance(payload, Mapping) else None
    return clean(title) if isinstance(title, str) and title.strip() else None


def what(payload: Any, argv: Sequence[str], width: int = 60) -> str:
    """What a job is: its title, or else its command."""
    return cut(title_of(payload) or command_line(argv, width), width)
