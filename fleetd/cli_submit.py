"""fleet submit: a command line, or the jobs in a file, made jobs in the queue."""

import argparse
import getpass
import os
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fleetd.cli_state import find_job, known_ids, read_beats
from fleetd.cli_talk import Talk
from fleetd.cli_text import clean, count
from fleetd.errors import BadData, NotFound, Usage
from fleetd.job import Job, decode_json, job_of, new_id, utc
from fleetd.lane import misfit, offer_of
from fleetd.lease import host_name
from fleetd.spool import Spool, find_spool


def submit(args: argparse.Namespace, talk: Talk) -> int:
    """Queue one command or all jobs of a file; prints their ids."""
    spool, now = find_spool(args.spool, talk.environ), datetime.now(UTC)
    by = f"{_user()}@{host_name(talk.environ)}"
    head = {"created": utc(now), "by": by}
    jobs = [_job(where, head | value, args.priority, now) for where, value in _values(args, spool)]
    for job in jobs:
        id_ = spool.publish(job)
        if talk.json:
            talk.emit({"schema": "fleet.submit/1", "job": id_})
        else:
            talk.data(id_)
    _say_what_next(spool, jobs, talk)
    for line in _doubts(spool, jobs, host_name(talk.environ)):
        talk.say(line)
    return 0


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _values(args: argparse.Namespace, spool: Spool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Where each job object comes from, and the object as given. Raises Usage and BadData."""
    if args.words:
        raise Usage("the command stands after `--`: fleet submit [options] -- ARGV…")
    if (args.source is None) == (not args.tail):
        raise Usage("what to run? fleet submit [options] -- ARGV…, or fleet submit --from FILE")
    given = _given(args)
    if args.after:
        given["after"] = _ids(spool, args.after)
    if args.source is None:
        yield "this command line", given | {"argv": args.tail}
    else:
        yield from ((where, given | value) for where, value in _objects(args.source))


def _given(args: argparse.Namespace) -> dict[str, Any]:
    keys = {
        "kind": args.kind,
        "cwd": str(Path(args.cwd).absolute()) if args.cwd else None,
        "env": _env(args.env) if args.env else None,
        "needs": args.needs,
        "cores": args.cores,
        "gpus": args.gpus,
        "timeout_s": args.timeout,
        "retries": args.retries,
        "rerun_safe": args.rerun_safe or None,
        "not_before": args.not_before,
    }
    return {key: value for key, value in keys.items() if value is not None}


def _ids(spool: Spool, names: list[str]) -> list[str]:
    """The ids meant; a name that nobody knows yet is taken as the id of a job to come."""
    known, ids = known_ids(spool), []
    for name in names:
        try:
            ids.append(find_job(name, known))
        except NotFound:
            ids.append(name)
    return ids


def _env(pairs: list[str]) -> dict[str, str]:
    if wrong := [pair for pair in pairs if "=" not in pair]:
        raise Usage(f"--env {wrong[0]}: expected K=V")
    return dict(pair.split("=", 1) for pair in pairs)


def _objects(source: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects in a file: one, however it is laid out, or one a line. Raises NotFound and BadData."""
    name = "standard input" if source == "-" else source
    try:
        data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise NotFound(f"{name}: {error.strerror}") from error
    lines = [(f"{name}:{number}", line) for number, line in enumerate(data.splitlines(), 1) if line.strip()]
    if not lines:
        raise BadData(f"{name}: empty; expected a job object, or one a line")
    if len(lines) > 1 and _is_object(data):
        lines = [(name, data)]
    for where, line in lines:
        try:
            value = decode_json(line)
        except ValueError as error:
            raise BadData(f"{where}: not JSON: {error}") from error
        if not isinstance(value, dict):
            raise BadData(f"{where}: a job is a JSON object")
        yield where, value


def _is_object(data: bytes) -> bool:
    try:
        return isinstance(decode_json(data), dict)
    except ValueError:
        return False


def _job(where: str, value: dict[str, Any], priority: int, now: datetime) -> Job:
    kind = value.get("kind", "job")
    id_ = value.get("id") or new_id(kind if isinstance(kind, str) else "job", priority, now)
    try:
        return job_of(value, str(id_))
    except BadData as error:
        raise BadData(f"{where}: {error}") from error


def _say_what_next(spool: Spool, jobs: list[Job], talk: Talk) -> None:
    waiting = spool.waiting()
    first = min((job.id for job in jobs), default="")
    ahead = sum(id_ < first for id_ in waiting)
    talk.say(
        f"queued {count(len(jobs), 'job')}"
        + (f", {ahead} before {'it' if len(jobs) == 1 else 'them'}" if ahead else "")
    )
    if not any(beat.live for beat in read_beats(spool, host_name(talk.environ), time.time())):
        talk.say("no daemon runs on this spool; start one: fleetd")


def _doubts(spool: Spool, jobs: list[Job], me: str) -> Iterator[str]:
    """What may keep the jobs waiting for ever: an `after` that nobody has queued, more than any living host has."""
    if named := {name for job in jobs for name in job.after} - {job.id for job in jobs}:
        for name in sorted(named - known_ids(spool)):
            yield f"warning: {clean(name)}: no such job yet; what comes after it waits until one of that id has ended ok"
    offers = [offer_of(beat.host, beat.body) for beat in read_beats(spool, me, time.time()) if beat.live]
    for job in jobs if offers else ():
        why = [misfit(job, offer) for offer in offers]
        if all(why):
            more = "" if len(jobs) == 1 else f"{clean(job.id)} "
            yield f"warning: {more}{clean(str(why[0]))}{' (nor does another host)' if len(why) > 1 else ''}: it waits"
            return
