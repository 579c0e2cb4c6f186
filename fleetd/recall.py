"""Calling a job back, and sending one out again: what `fleet cancel` and `fleet retry` do to the spool."""

import contextlib
import os
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from fleetd import claim, reap
from fleetd.errors import BadData, IOFailed, NotFound, TryLater
from fleetd.files import look, write_file
from fleetd.history import History
from fleetd.job import Outcome, decode_job, utc
from fleetd.lane import Fate
from fleetd.lease import boot_id, only_one
from fleetd.ledger import Ledger, Row
from fleetd.reap import State
from fleetd.spool import Spool


def cancel(spool: Spool, host: str, id_: str) -> str:
    """Cancel a job: "queued" when it has ended by that already, "running" when its host has been asked to end it.

    Raises NotFound when it neither waits nor runs, IOFailed when the disk refuses.
    """
    try:
        here = next((name for name, beat in spool.heartbeats().items() if beat.get("boot") == boot_id()), host)
        if _carried_on(spool, here, id_):
            return "queued"
        if (spool.queue / f"{id_}.json").exists():
            taken = claim.take_aside(spool, here, id_)  # where a daemon looks, should this process be killed
            if taken is not None:
                path, lease = taken
                try:
                    _end_cancelled(spool, here, path)
                finally:
                    os.close(lease)
                return "queued"
        for attempt in spool.attempts():
            if attempt.id == id_:
                with contextlib.suppress(FileExistsError):
                    write_file(attempt.path / "cancel", b"")
                _wake(spool)
                return "running"
    except FileExistsError as error:
        raise IOFailed(f"{id_}: it is being taken by another process just now; try again") from error
    except OSError as error:
        raise IOFailed(f"{error.filename or id_}: not cancelled: {error.strerror}") from error
    raise NotFound(f"{id_}: neither waiting nor running; fleet show {id_} says what became of it")


def _end_cancelled(spool: Spool, host: str, path: Path) -> None:
    """The caller holds the lease. Raises OSError."""
    reap.write_exit(path, reap.cancelled())
    ledger, job = Ledger(spool.ledger_d), reap.read_job(path, {})
    before = max((row.body["attempt"] for row in ledger.heads() if row.body.get("job") == job.id), default=0)
    job = replace(job, attempt=max(job.attempt, before + 1))  # whoever put it in again has not counted
    end = reap.ended(path, host, reap.read_exit(path), {}, utc(time.time()), job)
    reap.finish(spool, ledger, host, [end])


def _carried_on(spool: Spool, host: str, id_: str) -> bool:
    """Bring to its end what was taken on this machine and never started, where no daemon does: a cancel that was killed.

    False when there is nothing to end. Raises OSError.
    """
    path = spool.running / host / id_
    if not path.is_dir():
        return False
    try:
        with only_one(spool.hosts / f"{host}.lock", "fleetd"):
            return not reap.was_started(path) and _end_taken(spool, host, path)
    except TryLater:
        return False


def _end_taken(spool: Spool, host: str, path: Path) -> bool:
    verdict, ledger = reap.judge(path), Ledger(spool.ledger_d)
    try:
        if verdict.state is State.EMPTY:
            claim.clear(path)  # it came no further than that: its job is still in the queue
        if verdict.state in (State.EMPTY, State.RUNNING):
            return False
        row = reap.recorded(ledger, path, host, reap.read_job(path, {}).attempt)
        if row is not None and row["outcome"] == Outcome.CANCELLED:
            reap.finish(spool, ledger, host, [reap.End(path=path, row=row, following=None, done_before=True)])
        else:
            _end_cancelled(spool, host, path)
        return True
    finally:
        if verdict.lease is not None:
            os.close(verdict.lease)


def _wake(spool: Spool) -> None:
    """Make something happen in queue/ that daemons with file events notice."""
    with contextlib.suppress(OSError):
        write_file(spool.queue / ".wake", b"")
        os.unlink(spool.queue / ".wake")


def retry(spool: Spool, id_: str, rows: Iterable[Row]) -> int:
    """Queue an ended job again as its next attempt; gives that attempt's number.

    `rows` are the ledger's. Raises NotFound, BadData when it may not run again, TryLater while a stop stands.
    """
    history, last = History(), None
    for row in rows:
        history.add(row.body)
        if row.event == "result" and row.body["job"] == id_ and row.body.get("log"):
            last = row.body if last is None or row.body["attempt"] >= last["attempt"] else last
    if last is None:
        raise NotFound(f"{id_}: it has never run; fleet show {id_} says where it is")
    if history.fate(id_) is Fate.OK:
        raise BadData(f"{id_}: ended ok; submit it under another name to run it again")
    path = spool.root / Path(last["log"]).with_name("job.json")
    found = look(path)
    if found is None:
        raise NotFound(f"{path}: gone; submit the job anew")
    attempt = history.attempt(id_) + 1
    spool.publish(replace(decode_job(found.data, id_), attempt=attempt, failed=0, lost=0, away=()))
    return attempt
