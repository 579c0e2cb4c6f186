"""fleet cancel and fleet retry."""

import argparse
import time
from collections.abc import Callable, Iterable

from fleetd.cli_state import State, find_job, known_ids, read_state, rows_of, short
from fleetd.cli_talk import Talk
from fleetd.cli_text import count
from fleetd.errors import BadData, FleetError, TryLater, Usage
from fleetd.job import Outcome
from fleetd.lease import host_name
from fleetd.ledger import Ledger
from fleetd.recall import cancel as cancel_job
from fleetd.recall import retry as retry_job
from fleetd.spool import Spool, find_spool

FAILED = (Outcome.FAILED, Outcome.TIMEOUT, Outcome.LOST, Outcome.BUILD_FAILED)


def cancel(args: argparse.Namespace, talk: Talk) -> int:
    """Each job leaves the queue, or its host is asked to end it."""
    spool, me = find_spool(args.spool, talk.environ), host_name(talk.environ)
    known = known_ids(spool)

    def act(name: str) -> None:
        id_ = find_job(name, known)
        was = cancel_job(spool, me, id_)
        if talk.json:
            talk.emit({"schema": "fleet.cancel/1", "job": id_, "was": was})
        else:
            talk.say(f"{short(id_)}: {'taken out of the queue' if was == 'queued' else 'is being ended'}")

    return _each(args.jobs, act, talk)


def retry(args: argparse.Namespace, talk: Talk) -> int:
    """Each job is queued as its next attempt."""
    if bool(args.jobs) == (args.failed or args.stopped):
        raise Usage("which jobs? fleet retry JOB…, or --failed, or --stopped")
    spool = find_spool(args.spool, talk.environ)
    if args.jobs:
        known = known_ids(spool)
        jobs = [find_job(name, known) for name in args.jobs]
    else:
        state = read_state(spool, host_name(talk.environ), time.time())
        jobs = _ended(state, failed=args.failed, stopped=args.stopped)
    rows = rows_of(Ledger(spool.ledger_d), set(jobs))

    def act(id_: str) -> None:
        if open_ := _is_open(spool, id_):
            raise BadData(f"{id_}: {open_}")
        attempt = retry_job(spool, id_, rows)
        if talk.json:
            talk.emit({"schema": "fleet.retry/1", "job": id_, "attempt": attempt})
        else:
            talk.say(f"{short(id_)}: queued as attempt {attempt}")

    code = _each(jobs, act, talk)
    if not jobs:
        words = " or ".join(word for word, asked in (("failed", args.failed), ("was stopped", args.stopped)) if asked)
        talk.say(f"no job {words}: nothing to queue again")
    elif len(jobs) > 1:
        talk.say(f"{count(len(jobs), 'job')} in all")
    return code


def _is_open(spool: Spool, id_: str) -> str | None:
    """Why a job that has not ended cannot be queued again, or None."""
    if id_ in spool.waiting():
        return "waits in the queue already"
    if id_ in spool.claimed() or any(run.id == id_ for run in spool.attempts()):
        return f"is running; to begin it anew: fleet cancel {short(id_)}, then retry"
    return None


def _ended(state: State, *, failed: bool, stopped: bool) -> list[str]:
    wanted = (*(FAILED if failed else ()), *((Outcome.STOPPED,) if stopped else ()))
    return [row.body["job"] for row in state.final(wanted)]


def _each(names: Iterable[str], act: Callable[[str], None], talk: Talk) -> int:
    """Do it to all; one that can't be done doesn't keep the others from it. The first error's exit code."""
    code = 0
    for name in names:
        try:
            act(name)
        except TryLater:
            raise
        except FleetError as error:
            print(f"fleet: {error}", file=talk.err)
            code = code or error.exit_code
    return code
