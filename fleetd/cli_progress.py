"""Progress of `fleet up`: one line redrawn on a terminal, elsewhere one every ten seconds; what is learned stays."""

import contextlib
import time
from types import TracebackType
from typing import Self

from fleetd.cli_talk import StatusLine, Talk
from fleetd.cli_text import as_called, clean, count, cut, span, terminal_width, wrapped
from fleetd.job import Outcome
from fleetd.ledger import Ledger, Row
from fleetd.spool import Spool

REDRAW_S = 0.25
LINE_S = 10.0
LEARNED = {"adopt": "adopted", "keep": "kept"}
APART = ("stopped", "cancelled", "rejected")
KINDS: dict[str, str] = {Outcome.OK: "done", **{kind: kind for kind in APART}}


class Progress:
    """Counts what this run brought. Rows from before it are read once and not counted."""

    def __init__(self, spool: Spool, host: str, talk: Talk) -> None:
        self._spool = spool
        self._host = host
        self._talk = talk
        self._ledger = Ledger(spool.ledger_d)
        self._ledger.poll()
        self._began = time.monotonic()
        self._first: float | None = None
        self._shown = 0.0
        self._line = StatusLine(talk)
        self.running: list[str] = []
        self._queued = 0
        self._rests = ""
        self._learned = ""
        self._gone = 0  # of the stopped, those that are not queued again
        self.draining = False
        self.counts = dict.fromkeys(("done", "failed", *APART, "adopted", "kept"), 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.erase()

    @property
    def has_begun(self) -> bool:
        """Whether anything runs or has ended since this began."""
        return self._first is not None

    def look(self) -> None:
        """Read what is new and show it."""
        for row in self._ledger.poll():
            self._count(row)
        self.running = [run.id for run in self._spool.attempts()]
        self._queued = len(self._spool.waiting())
        self._rests = self._why_it_rests()
        if self._first is None and (self.running or any(self.counts.values())):
            self._first = time.monotonic()
        if time.monotonic() >= self._shown + (REDRAW_S if self._is_drawn else LINE_S):
            self._show()

    def _why_it_rests(self) -> str:
        if stops := sorted(self._spool.stops()):
            lift = as_called("fleet resume", self._talk.environ)
            return f"{' and '.join(stops)} stands: nothing is added; {lift} lifts it"
        claims = self._spool.heartbeats().get(self._host, {}).get("claims")
        return f"claims nothing: {clean(str(claims))}" if claims and not self.draining else ""

    def is_empty(self) -> bool:
        """Whether nothing waits and nothing runs."""
        return not self.running and not self._queued

    def _count(self, row: Row) -> None:
        if row.event in LEARNED:
            self.counts[LEARNED[row.event]] += 1
            self._learned = clean(str(row.body.get("sentence") or row.body.get("reason") or ""))
            if row.event == "adopt" or self._talk.verbose:
                self.note(f"{LEARNED[row.event]}: {self._learned}")
        if row.event != "result":
            return
        kind, final = KINDS.get(row.body.get("outcome", ""), "failed"), row.body.get("next") is None
        self.counts[kind] += final or kind == "stopped"
        self._gone += final and kind == "stopped"

    @property
    def _is_drawn(self) -> bool:
        """Whether this is for the eyes of somebody at a terminal that can redraw a line."""
        return self._line.is_wanted and not self._talk.json

    def line(self) -> str:
        """The state of this run in one line: what matters most comes first, where no terminal is too narrow for it."""
        c, elapsed = self.counts, time.monotonic() - (self._first or self._began)
        counts = [f"{c['done']} done", f"{len(self.running)} running", f"{self._queued} queued"]
        if self.draining:
            counts = [f"draining: {counts[1]}", counts[0], counts[2]]
        counts += [f"{c[kind]} {kind}" for kind in ("failed", *APART) if c[kind]]
        if c["done"] and elapsed > 1 and not self.draining:
            counts.append(f"{60 * c['done'] / elapsed:.3g} a minute")
        learned = f"{c['adopted']} adopted, {c['kept']} kept" if c["adopted"] or c["kept"] else ""
        return f"{span(elapsed)}  {' · '.join(filter(None, (', '.join(counts), self._rests, learned, self._learned)))}"

    @property
    def _width(self) -> int:
        return terminal_width(self._talk.environ, self._talk.err)

    def _show(self) -> None:
        self._shown = time.monotonic()
        if self._talk.json:
            self._talk.emit(self._as_json())
        elif self._is_drawn:
            self._line.draw(cut(self.line(), self._width - 3))  # room for ^C
        else:
            self.note(cut(self.line(), self._width))

    def _as_json(self) -> dict[str, object]:
        elapsed = round(time.monotonic() - self._began, 3)
        return {
            "schema": "fleet.up/1",
            "elapsed_s": elapsed,
            "queued": self._queued,
            "running": self.running,
            **self.counts,
        }

    def note(self, text: str) -> None:
        """A line that stays."""
        self._line.erase()
        with contextlib.suppress(OSError):
            self._talk.say(wrapped(text, self._width) if self._is_drawn else text)

    def finish(self) -> None:
        """The last word on this run."""
        self._line.erase()
        if self._talk.json:
            self._talk.emit(self._as_json())
            return
        c, elapsed = self.counts, time.monotonic() - (self._first or self._began)
        seldom = "".join(f", {c[kind]} {kind}" for kind in APART if c[kind])
        self._talk.say(
            f"{count(c['done'], 'job')} done in {span(elapsed)}, {c['failed']} failed{seldom}, "
            f"{c['adopted']} adopted, {c['kept']} kept, {self._queued} still queued"
        )
        if again := c["stopped"] - self._gone:
            self._talk.say(
                f"{count(again, 'stopped job')} may run twice and wait{'s' * (again == 1)} in the queue again"
            )
        if self._gone:
            command = as_called("fleet retry --stopped", self._talk.environ)
            selves = "itself" if self._gone == 1 else "themselves"
            self._talk.say(f"{count(self._gone, 'stopped job')} will not run again by {selves}: {command}")
