"""fleet results: the result rows, from the segments, which are the truth."""

import argparse
import json
import time
from collections.abc import Iterable, Mapping
from typing import Any

from fleetd.cli_common import Talk, clock, count
from fleetd.cli_state import short
from fleetd.cli_status import cut_line, how_ended
from fleetd.cli_talk import clean, cut, span
from fleetd.job import Outcome, seconds
from fleetd.ledger import Ledger, Row
from fleetd.spool import find_spool

POLL_S = 0.2
STYLE = {Outcome.OK: "green", Outcome.STOPPED: "yellow", Outcome.CANCELLED: "yellow", Outcome.DECLINED: "yellow"}


def results(args: argparse.Namespace, talk: Talk) -> int:
    """All result rows, oldest first; with -f each new one as it comes."""
    ledger, shown = Ledger(find_spool(args.spool, talk.environ).ledger_d), 0
    rows: Iterable[Row] = (row for row in ledger.rows() if row.event == "result")
    for row in rows if len(ledger.hosts()) < 2 else sorted(rows, key=lambda row: (row.at, row.host, row.seq)):
        _show(row, talk)
        shown += 1
    if ledger.skipped:
        talk.say(f"{count(ledger.skipped, 'damaged line')} skipped")
    if not shown and not args.follow:
        talk.say("no job has ended yet")
    while args.follow:
        talk.out.flush()
        time.sleep(POLL_S)
        for row in ledger.poll():
            if row.event == "result":
                _show(row, talk)
    return 0


def _show(row: Row, talk: Talk) -> None:
    if talk.json:
        talk.emit(dict(row.body))
        return
    outcome = row.body.get("outcome", "")
    took = span(row.body.get("wall_s")).rjust(8)
    head = f"{clock(seconds(row.at), time.time())}  {clean(row.host)}  {short(clean(row.body['job']))}"
    ended = talk.paint(STYLE.get(outcome, "red"), how_ended(row.body))
    talk.data(cut_line(f"{head}  {took}  {ended}  {gist(row.body)}".rstrip(), talk))


def gist(body: Mapping[str, Any], width: int = 60) -> str:
    """The result in a few words: a small one whole, of a large one the names of its parts."""
    result = body.get("result")
    if result is None:
        return str(body.get("result_file") or "")
    text = json.dumps(result, ensure_ascii=False)
    if len(text) > width and isinstance(result, dict):
        text = ", ".join(f"{key}: {_part(value)}" for key, value in result.items())
    return cut(clean(text), width)


def _part(value: Any) -> str:
    if isinstance(value, list | dict):
        return count(len(value), "value")
    return json.dumps(value, ensure_ascii=False)
