"""fleet top: the fleet at work, redrawn each second on the whole terminal; with -b as lines, for scripts."""

import argparse
import signal
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fleetd.cli_state import (
    BAD,
    OPEN,
    Beat,
    lanes_of,
    presence,
    rate,
    read_beats,
    rests,
    short,
    started_at,
    taken_lanes,
)
from fleetd.cli_status import how_ended, what
from fleetd.cli_talk import Talk
from fleetd.cli_text import clean, clock, columns, cut, span, terminal_width
from fleetd.errors import Terminated, Usage
from fleetd.job import Outcome, utc
from fleetd.lease import host_name
from fleetd.ledger import Ledger, Row, decode_head, decode_row
from fleetd.spool import Running, Spool, find_spool

if TYPE_CHECKING:
    import curses

EVERY_S = 1.0
RATE_WINDOW_S = 1800.0
LAST = 10
METER = 20
HOW = 40  # columns of how a job ended: why one was rejected is a sentence
QUIT = (ord("q"), ord("Q"), 27)
COLORS = {"red": 1, "green": 2, "yellow": 3}  # numbers of curses' colours and of our pairs alike


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the view and its style, one of Talk's."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The fleet at one moment; `last` are result rows, the newest first."""

    now: float
    beats: list[Beat]
    running: list[Running]
    waiting: int
    ended: Mapping[str, int]
    rate: float
    stops: list[str]
    last: list[Row]


class Eye:
    """Looks at the spool again and again; of the ledger it reads only what is new."""

    def __init__(self, spool: Spool, me: str) -> None:
        self._spool, self._me, self._ledger = spool, me, Ledger(spool.ledger_d)
        self._final: dict[str, tuple[bool, int, str]] = {}
        self._ended: Counter[str] = Counter()
        self._recent: deque[str] = deque()
        self._last: deque[Row] = deque(maxlen=LAST)

    def look(self, now: float) -> Picture:
        """The picture at `now`, seconds since the epoch."""
        waiting, running = self._spool.waiting(), self._spool.attempts()
        fresh = [(row, line) for row, line in self._ledger.poll_lines(decode_head) if row.event == "result"]
        fresh.sort(key=lambda pair: pair[0].at)
        for row, _ in fresh:
            self._take(row)
        self._last.extend(decode_row(line) or row for row, line in fresh[-LAST:])
        since = utc(now - RATE_WINDOW_S)
        while self._recent and self._recent[0] < since:
            self._recent.popleft()
        open_ = {*waiting, *(run.id for run in running)} & self._final.keys()
        return Picture(
            now=now,
            beats=read_beats(self._spool, self._me, now),
            running=sorted(running, key=lambda run: started_at(run) or now),
            waiting=len(waiting),
            ended=self._ended - Counter(self._final[id_][2] for id_ in open_),
            rate=rate(self._recent, now),
            stops=sorted(self._spool.stops()),
            last=list(reversed(self._last)),
        )

    def _take(self, row: Row) -> None:
        """Count each job once: by its ok row, else by its highest attempt's."""
        job, outcome = row.body["job"], row.body["outcome"]
        rank = outcome == Outcome.OK, row.body["attempt"], outcome
        old = self._final.get(job)
        if old is None or rank[:2] >= old[:2]:
            if old:
                self._ended[old[2]] -= 1
            self._ended[outcome] += 1
            self._final[job] = rank
        self._recent.append(row.at)


def top(args: argparse.Namespace, talk: Talk) -> int:
    """Draw until q or Ctrl-C, or --count times. Raises Usage where there is no terminal to draw on."""
    eye = Eye(find_spool(args.spool, talk.environ), host_name(talk.environ))
    if args.batch or talk.json:
        _print(eye, args.count, talk)
    elif talk.out.isatty():
        _draw(eye, args.count, talk)
    else:
        raise Usage("fleet top: stdout is no terminal; fleet top -b prints lines, -n 1 once")
    return 0


def _print(eye: Eye, times: int | None, talk: Talk) -> None:
    width = terminal_width(talk.environ, talk.out) if talk.out.isatty() else 1000
    done = 0
    while True:
        picture = eye.look(time.time())
        if talk.json:
            talk.emit(_as_json(picture))
        else:
            for line in view(picture, width):
                talk.data(talk.paint(line.style, line.text) if line.style else line.text)
            talk.out.flush()
        done += 1
        if done == times:
            return
        if not talk.json:
            talk.data("")
        time.sleep(EVERY_S)


def view(picture: Picture, width: int) -> Iterator[Line]:
    """What the terminal shows, no line longer than `width`."""
    for line in (*_head(picture, width), *_hosts(picture), *_running(picture), *_ended(picture)):
        yield Line(cut(line.text, width), line.style)


def _head(picture: Picture, width: int) -> Iterator[Line]:
    lanes = {beat.host: beat.body.get("lanes", 0) for beat in picture.beats if beat.live}
    taken = taken_lanes(picture.running)
    busy, all_ = sum(min(taken[host], n) for host, n in lanes.items()), sum(lanes.values())
    ended = picture.ended
    counts = f"{picture.waiting} waiting  {len(picture.running)} running  {ended.get(Outcome.OK, 0)} done"
    bad = sum(ended.get(outcome, 0) for outcome in BAD)
    pace = f"{60 * picture.rate:.1f} a minute" if picture.rate else "no rate yet"
    rest = f"   {counts}  {bad} failed   {pace}", f"   {clock(picture.now, picture.now)}"
    heads = (_meter(busy, all_, room) + "".join(rest[:parts]) for room, parts in ((METER, 2), (METER // 2, 2), (0, 1)))
    yield Line(next((head for head in heads if len(head) <= width), _meter(busy, all_, 0) + rest[0]), "bold")
    if picture.stops:
        yield Line(f"{' and '.join(picture.stops)} stands: fleet resume lifts it", "yellow")


def _meter(busy: int, all_: int, room: int) -> str:
    """How many lanes are busy, drawn where there is room for it."""
    if not all_:
        return "no daemon"
    filled = min(round(room * busy / all_), room)
    bar = f"[{'|' * filled}{' ' * (room - filled)}] " if room else ""
    return f"lanes {bar}{busy}/{all_}"


def _hosts(picture: Picture) -> Iterator[Line]:
    yield Line("")
    if not picture.beats:
        yield Line("no daemon has run on this spool yet; start one: fleetd", "yellow")
        return
    cells, taken = [("HOST", "LANES", "STATE", "BEAT")], taken_lanes(picture.running)
    for beat in picture.beats:
        state = (rests(beat) or "works") if beat.live else "no daemon"
        cells.append(
            (beat.host, lanes_of(beat, taken[beat.host]), OPEN if state.startswith(OPEN) else state, presence(beat))
        )
    head, *rows = columns(cells)
    yield Line(head, "dim")
    for beat, row in zip(picture.beats, rows, strict=True):
        yield Line(row, "red" if not beat.live else "yellow" if rests(beat) else "green")


def _running(picture: Picture) -> Iterator[Line]:
    yield Line("")
    cells = [("RUNNING", "FOR", "HOST", "WHAT")]
    for run in picture.running:
        at = started_at(run)
        is_ = what(run.job.payload, run.job.argv) if run.job else "?"
        cells.append((clean(short(run.id)), span(picture.now - at) if at else "", run.host, is_))
    head, *rows = columns(cells)
    yield Line(head, "dim")
    yield from map(Line, rows)


def _ended(picture: Picture) -> Iterator[Line]:
    yield Line("")
    cells = [("ENDED", "TOOK", "HOST", "HOW", "WHAT")]
    for row in picture.last:
        took, argv = row.body.get("wall_s"), row.body.get("argv")
        is_ = what(row.body.get("payload"), list(map(str, argv)) if isinstance(argv, list) else [])
        cells.append((clean(short(row.body["job"])), span(took), clean(row.host), cut(how_ended(row.body), HOW), is_))
    head, *rows = columns(cells)
    yield Line(head, "dim")
    for row, text in zip(picture.last, rows, strict=True):
        yield Line(text, "red" if row.body["outcome"] in BAD else "")


def _as_json(picture: Picture) -> dict[str, Any]:
    return {
        "schema": "fleet.top/1",
        "at": utc(picture.now),
        "waiting": picture.waiting,
        "ended": dict(picture.ended),
        "rate_per_s": round(picture.rate, 6),
        "stops": picture.stops,
        "hosts": [
            {"host": b.host, "live": b.live, "lanes": b.body.get("lanes"), "rests": rests(b)} for b in picture.beats
        ],
        "running": [_run_json(run, picture.now) for run in picture.running],
        "last": [
            {"job": r.body["job"], "host": r.host, "at": r.at, "outcome": r.body["outcome"]} for r in picture.last
        ],
    }


def _run_json(run: Running, now: float) -> dict[str, Any]:
    at = started_at(run)
    return {"job": run.id, "host": run.host, "attempt": run.attempt, "for_s": round(now - at, 3) if at else None}


def _draw(eye: Eye, times: int | None, talk: Talk) -> None:
    """On the whole terminal, which is given back as it was, however this ends."""
    import curses

    def end(*_: object) -> None:
        raise Terminated("ended by SIGTERM")

    before = signal.signal(signal.SIGTERM, end)
    try:
        curses.wrapper(_loop, eye, times, colored=talk.colored)
    except curses.error as error:
        raise Usage(
            f"fleet top: TERM={talk.environ.get('TERM', '')} cannot be drawn on ({error}); fleet top -b prints lines"
        ) from error
    finally:
        signal.signal(signal.SIGTERM, before)


def _loop(window: "curses.window", eye: Eye, times: int | None, *, colored: bool) -> None:
    import curses

    styles = _styles(colored=colored)
    window.timeout(round(1000 * EVERY_S))
    done = 0
    while done != times:
        height, width = window.getmaxyx()
        window.erase()
        for number, line in enumerate(view(eye.look(time.time()), width - 1)):
            if number < height:
                with suppress(curses.error):  # letters of double width may not fit
                    window.addstr(number, 0, line.text, styles.get(line.style, curses.A_NORMAL))
        window.refresh()
        done += 1
        if window.getch() in QUIT:
            return


def _styles(*, colored: bool) -> dict[str, int]:
    """The attribute of each style; without colours only bold and dim."""
    import curses

    styles = {"bold": curses.A_BOLD, "dim": curses.A_DIM}
    if curses.tigetstr("civis"):
        curses.curs_set(0)
    if colored and curses.has_colors():
        curses.use_default_colors()
        for style, number in COLORS.items():
            curses.init_pair(number, number, -1)
            styles[style] = curses.color_pair(number)
    return styles
