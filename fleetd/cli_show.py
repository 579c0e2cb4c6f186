"""fleet show and fleet log: one job, and what it has printed."""

import argparse
import contextlib
import os
import sys
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from fleetd.cli_results import gist
from fleetd.cli_state import Reasons, State, find_job, read_state, rows_of, started_at
from fleetd.cli_status import because, how_ended, title_of
from fleetd.cli_talk import Talk
from fleetd.cli_text import as_called, clean, clock, command_line, span
from fleetd.errors import NotFound
from fleetd.files import read_json
from fleetd.job import Job, Outcome, seconds
from fleetd.lease import host_name
from fleetd.ledger import Ledger, Row
from fleetd.spool import Running, Spool, find_spool

TAIL_BYTES = 64 * 1024
TAIL_LINES = 8
POLL_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """All that the spool has about one job: its rows in order of attempts, and where it waits or runs."""

    id: str
    rows: list[Row]
    waiting: Job | None
    running: Running | None
    rejected: str | None
    why: str | None

    @property
    def state(self) -> str:
        if self.running:
            return "running"
        if self.waiting:
            return "queued"
        return str(self.rows[-1].body.get("outcome")) if self.rows else "rejected" if self.rejected else "unknown"


def _subject(spool: Spool, name: str, talk: Talk) -> Subject:
    now = time.time()
    state = read_state(spool, host_name(talk.environ), now)
    id_ = find_job(name, state.ids(spool))
    waiting = spool.read_waiting(id_) or state.claimed.get(id_)
    return Subject(
        id=id_,
        rows=rows_of(Ledger(spool.ledger_d), {id_}),
        waiting=waiting,
        running=next((run for run in state.running if run.id == id_), None),
        rejected=_why_rejected(spool, id_),
        why=_why(state, id_, waiting, now),
    )


def _why(state: State, id_: str, job: Job | None, now: float) -> str | None:
    if job is None:
        return None
    before = bisect_left(state.waiting, id_) if id_ in state.waiting else 0
    return Reasons(state, now).of_job(job, before)


def _why_rejected(spool: Spool, id_: str) -> str | None:
    try:
        return (spool.rejected / f"{id_}.json.why").read_text(errors="replace").strip()
    except OSError:
        return None


def show(args: argparse.Namespace, talk: Talk) -> int:
    """What the job is, what became of each attempt, its last lines, and how to run it again."""
    spool = find_spool(args.spool, talk.environ)
    job = _subject(spool, args.job, talk)
    log = _log_path(spool, job)
    if talk.json:
        talk.emit(_as_json(job, log))
        return 0
    talk.data(f"{talk.paint('bold', clean(job.id))}   {_headline(job, talk)}")
    for label, text in _facts(spool, job):
        talk.data(f"  {label:<8} {text}")
    if log and (lines := _last_lines(log)):
        talk.data(f"  last lines ({as_called('fleet log', talk.environ)} {job.id}):")
        for line in lines:
            talk.data(f"    {clean(line)}")
    if job.rows and not job.waiting and not job.running and job.state not in ("ok", "rejected"):
        talk.data(f"  again    {as_called('fleet retry', talk.environ)} {job.id}")
    return 0


def _headline(job: Subject, talk: Talk) -> str:
    now = time.time()
    if job.running:
        at = started_at(job.running)
        return f"runs on {job.running.host}, attempt {job.running.attempt}, for {span(now - at) if at else '?'}"
    if job.waiting:
        return clean(because(job.why or ""))
    if not job.rows:
        return talk.paint("red", f"rejected: {clean(job.rejected or '')}")
    body = job.rows[-1].body
    style = "green" if body.get("outcome") == "ok" else "red"
    when = clock(seconds(job.rows[-1].at), now)
    took = f", {span(body['wall_s'])}" if body.get("wall_s") is not None else ""
    return f"{talk.paint(style, how_ended(body))} on {job.rows[-1].host} at {when}, attempt {body['attempt']}{took}"


def _facts(spool: Spool, job: Subject) -> Iterator[tuple[str, str]]:
    known = job.running.job if job.running else job.waiting
    body: Mapping[str, Any] = job.rows[-1].body if job.rows and not known else {}
    if title := title_of(known.payload if known else body.get("payload")):
        yield "what", title
    argv = known.argv if known else body.get("argv") or ()
    if argv:
        yield "command", command_line(argv, 400)
    if known:
        yield from _wants(known)
    if job.running and (so_far := read_json(job.running.path / "result.json")) is not None:
        yield "so far", gist({"result": so_far}, 400)
    if body.get("outcome") == Outcome.REJECTED:
        yield "file", f"{spool.rejected / job.id}.json: mend it and move it to {spool.queue}"
    elif body:
        yield "result", gist(body, 400) or ("none written" if body.get("result") is None else "in result.json")
    if body.get("cpu_s") is not None:
        yield "used", f"{span(body['cpu_s'])} of CPU, {body.get('max_rss_mb') or 0:.0f} MB at most"
    for row in job.rows if known else job.rows[:-1]:
        yield "before", f"attempt {row.body['attempt']}: {how_ended(row.body)} on {row.host}"
    if (log := _log_path(spool, job)) is not None:
        yield "files", clean(str(log.parent))


def _wants(job: Job) -> Iterator[tuple[str, str]]:
    """What the job asks for beyond its command."""
    asked = {
        "in": job.cwd,
        "env": " ".join(f"{key}={value}" for key, value in job.env.items()),
        "needs": " ".join(job.needs),
        "after": " ".join(job.after),
    }
    yield from ((label, clean(text)) for label, text in asked.items() if text)


def _as_json(job: Subject, log: Path | None) -> dict[str, Any]:
    known = job.running.job if job.running else job.waiting
    return {
        "schema": "fleet.show/1",
        "job": job.id,
        "state": job.state,
        "why": job.why or job.rejected,
        "host": job.running.host if job.running else job.rows[-1].host if job.rows else None,
        "argv": list(known.argv) if known else job.rows[-1].body.get("argv") if job.rows else None,
        "log": str(log) if log else None,
        "rows": [dict(row.body) for row in job.rows],
    }


def _log_path(spool: Spool, job: Subject) -> Path | None:
    """Where the newest attempt's output is, if it has begun."""
    if job.running:
        return job.running.path / "log"
    named = [row.body["log"] for row in job.rows if row.body.get("log")]
    return spool.root / named[-1] if named else None


def _last_lines(path: Path) -> list[str]:
    try:
        with _open_log(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            text = file.read(TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return []
    return text.splitlines()[-TAIL_LINES:]


def _open_log(path: Path) -> BinaryIO:
    """The log, never by way of a symbolic link."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")


def log(args: argparse.Namespace, talk: Talk) -> int:
    """The newest attempt's output; what is not UTF-8 is shown with replacement. With -f until the attempt ends."""
    spool = find_spool(args.spool, talk.environ)
    job, path, file = _opened(spool, args.job, talk, follow=args.follow)
    with file:
        _print(file, path, job.running if args.follow else None, talk)
    return 0


def _opened(spool: Spool, name: str, talk: Talk, *, follow: bool) -> tuple[Subject, Path, BinaryIO]:
    """The newest attempt's log; with `follow`, as soon as it is there. Raises NotFound."""
    before, told = None, False
    while True:
        job = _subject(spool, name, talk)
        if follow and job.waiting and not told:
            talk.say(f"{job.id}: {_headline(job, talk)}")
            told = True
        while follow and (spool.queue / f"{job.id}.json").exists():
            time.sleep(POLL_S)
        path = _log_path(spool, job)
        if path is not None and not (follow and job.waiting):
            with contextlib.suppress(FileNotFoundError):
                return job, path, _open_log(path)
        if follow and (job.waiting or job.running):
            time.sleep(POLL_S)
        elif path == before:
            raise NotFound(f"{job.id}: has printed nothing ({_headline(job, talk)})")
        else:
            before = path  # it may just have gone to ended/


def _print(file: BinaryIO, path: Path, until: Running | None, talk: Talk) -> None:
    import codecs

    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while True:
        over = until is None or not _still_runs(until)
        while data := file.read(1 << 16):
            _write(decoder.decode(data), path, talk)
        if over:
            _write(decoder.decode(b"", final=True), path, talk)
            return
        talk.out.flush()
        time.sleep(POLL_S)


def _write(text: str, path: Path, talk: Talk) -> None:
    if talk.json and text:
        talk.emit({"schema": "fleet.log/1", "path": str(path), "text": text})
    elif text:
        sys.stdout.write(text)


def _still_runs(run: Running) -> bool:
    """Whether that very attempt is in running/ still."""
    value = read_json(run.path / "job.json")
    return isinstance(value, dict) and value.get("attempt", 1) == run.attempt
