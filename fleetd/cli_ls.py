"""fleet ls: what runs and what waits, a hundred thousand jobs in a second or two."""

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from fleetd.cli_shares import in_shares
from fleetd.cli_state import Reasons, State, read_state, short, started_at
from fleetd.cli_status import because, cut_line, running_json, what
from fleetd.cli_talk import Talk
from fleetd.cli_text import as_called, clean, span
from fleetd.cores import allowed_cores
from fleetd.errors import BadData
from fleetd.files import read_plain
from fleetd.job import decode_fields, encode_json
from fleetd.lease import host_name
from fleetd.spool import Running, Spool, find_spool

Line = tuple[str, str, str, str]  # id, the same in short, what it does or waits for, what it is; fit for a terminal


def ls(args: argparse.Namespace, talk: Talk) -> int:
    """What runs, then what waits in the order of claims, each with the reason."""
    spool, now = find_spool(args.spool, talk.environ), time.time()
    state = read_state(spool, host_name(talk.environ), now)
    share = partial(_json_share if talk.json else _share, spool, state, Reasons(state, now))
    waiting = in_shares(share, len(state.waiting), allowed_cores().cores)
    if talk.json:
        lines = [encode_json(running_json(run, now)).decode() for run in state.running] + waiting
    else:
        lines = _table([_running(run, now) for run in state.running] + waiting)
    if lines:
        talk.data("\n".join(map(partial(cut_line, talk=talk), lines) if talk.out.isatty() and not talk.json else lines))
    elif not talk.json:
        submit = as_called("fleet submit -- COMMAND", talk.environ)
        talk.say(f"nothing waits and nothing runs; {submit} queues something")
    return 0


def _fields(spool: Spool, state: State, share: range) -> Iterator[tuple[int, str, Mapping[str, Any] | None]]:
    """The waiting jobs of a share: how many wait before it, its id, its fields less those at their defaults.

    None: the file is gone, half-written or unusable.
    """
    queue = str(spool.queue)
    for before in share:
        id_ = state.waiting[before]
        try:
            found = read_plain(f"{queue}/{id_}.json")
            yield before, id_, decode_fields(found[0], id_) if found else None
        except (OSError, BadData):
            yield before, id_, None


def _share(spool: Spool, state: State, reasons: Reasons, share: range) -> list[Line]:
    return [
        _line(
            id_, because(reasons.of(id_, fields, before)), (fields.get("payload"), fields["argv"]) if fields else None
        )
        for before, id_, fields in _fields(spool, state, share)
    ]


def _line(id_: str, how: str, is_: tuple[Any, Sequence[str]] | None) -> Line:
    return clean(id_), clean(short(id_)), clean(how), what(*is_) if is_ else ""


def _json_share(spool: Spool, state: State, reasons: Reasons, share: range) -> list[str]:
    lines = []
    for before, id_, fields in _fields(spool, state, share):
        body: dict[str, Any] = {"schema": "fleet.ls/1", "job": id_, "state": "queued", "host": None}
        body |= {"attempt": None, "kind": None, "argv": None}
        if fields is not None:
            body |= {"attempt": fields.get("attempt", 1), "kind": fields.get("kind", "job"), "argv": fields["argv"]}
        body |= {"for_s": None, "why": reasons.of(id_, fields, before)}
        lines.append(encode_json(body).decode())
    return lines


def _running(run: Running, now: float) -> Line:
    at = started_at(run)
    how = f"runs on {run.host}" + (f" for {span(now - at)}" if at else "")
    return _line(run.id, how, (run.job.payload, run.job.argv) if run.job else None)


def _table(known: list[Line]) -> list[str]:
    """Aligned lines under their head; an id is cut short where no other is cut to the same."""
    if not known:
        return []
    times = Counter(name for _, name, _, _ in known)
    rows = [(name if times[name] == 1 else id_, how, what_) for id_, name, how, what_ in known]
    rows.insert(0, ("JOB", "STATE", "WHAT"))
    wide, wider = (max(len(row[cell]) for row in rows) for cell in (0, 1))
    return [f"{job:<{wide}}  {how:<{wider}}  {text}".rstrip() for job, how, text in rows]
