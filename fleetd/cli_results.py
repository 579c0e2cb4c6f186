"""fleet results: the result rows, from the segments, which are the truth."""

import argparse
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import NoneType
from typing import Any

from fleetd.breaker import describe
from fleetd.cli_state import short
from fleetd.cli_status import cut_line, what
from fleetd.cli_talk import Talk
from fleetd.cli_text import clean, clock, count, cut, span
from fleetd.job import Outcome, seconds
from fleetd.ledger import Ledger, Row
from fleetd.spool import find_spool

POLL_S = 0.2
WIDEST = 24
STYLE = {Outcome.OK: "green", Outcome.STOPPED: "yellow", Outcome.CANCELLED: "yellow", Outcome.DECLINED: "yellow"}


@dataclass(slots=True)
class Columns:
    """Cells under each other in lines that come one by one: a column grows with what it has seen, up to a limit."""

    widths: list[int]

    def line(self, cells: Sequence[str], styles: Sequence[Callable[[str], str]]) -> str:
        """The cells in one line, each padded, then styled."""
        for at, cell in enumerate(cells):
            self.widths[at] = max(self.widths[at], len(cell) if len(cell) <= WIDEST else 0)
        padded = (cell.ljust(width) for cell, width in zip(cells, self.widths, strict=True))
        return "  ".join(style(cell) for style, cell in zip(styles, padded, strict=True)).rstrip()


def results(args: argparse.Namespace, talk: Talk) -> int:
    """All result rows, oldest first; with -f each new one as it comes."""
    ledger, shown = Ledger(find_spool(args.spool, talk.environ).ledger_d), 0
    hosts = ledger.hosts()
    table = Columns(
        [len("23:59:59"), max(map(len, hosts), default=0), len("trial-9f3a2c"), len("12m34s"), len("ok"), 0]
    )
    rows: Iterable[Row] = (row for row in ledger.rows() if row.event == "result")
    for row in rows if len(hosts) < 2 else sorted(rows, key=lambda row: (row.at, row.host, row.seq)):
        _show(row, table, talk)
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
                _show(row, table, talk)
    return 0


def _show(row: Row, table: Columns, talk: Talk) -> None:
    if talk.json:
        talk.emit(dict(row.body))
        return
    body, room = row.body, 60 if talk.out.isatty() else 1000
    about = [what(body.get("payload"), body.get("argv") or (), room), clean(str(body.get("reason") or "")), gist(body)]
    cells = (
        clock(seconds(row.at), time.time()),
        clean(row.host),
        short(clean(body["job"])),
        ("-" if body.get("wall_s") is None else span(body["wall_s"])).rjust(table.widths[3]),
        describe(body),
        "  ".join(filter(None, about)),
    )
    plain: list[Callable[[str], str]] = [str] * len(cells)
    plain[4] = partial(talk.paint, STYLE.get(body.get("outcome", ""), "red"))
    talk.data(cut_line(table.line(cells, plain), talk))


def gist(body: Mapping[str, Any], width: int = 1000) -> str:
    """The plain values of the result in a few words: what is nothing (null, false, 0) or nested is left out.

    Where that leaves nothing, the plain values as they are; a nested result stays in result.json and in `--json`.
    """
    result = body.get("result")
    if result is None:
        return str(body.get("result_file") or "")
    if not isinstance(result, dict):
        values = result if isinstance(result, list) else [result]
        return cut(", ".join(_plain(value) for value in values if not isinstance(value, list | dict)), width)
    flat = {k: v for k, v in result.items() if k != "schema" and not isinstance(v, list | dict | NoneType)}
    told = {k: v for k, v in flat.items() if v} or flat
    return cut(", ".join(clean(k) if v is True else f"{clean(k)} {_plain(v)}" for k, v in told.items()), width)


def _plain(value: Any) -> str:
    return clean(value) if isinstance(value, str) else json.dumps(value)
