"""How the commands speak: data to stdout, talk to stderr, colour where it is wanted, nothing from a job unescaped."""

import json
import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TextIO

STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34"}
COLOR = re.compile(r"(\033\[\d*m)")
DOTS = {"live": ("●", "green"), "open": ("○", "yellow"), "dead": ("○", "red"), "ended": ("●", "green")}


@dataclass(frozen=True, slots=True)
class Talk:
    """Where a command's words go. `now` is the wall clock in seconds; durations are never taken from it twice."""

    out: TextIO
    err: TextIO
    json: bool
    quiet: bool
    verbose: bool
    color: str
    environ: Mapping[str, str]

    def data(self, text: str) -> None:
        """One line that was asked for."""
        print(text, file=self.out)

    def emit(self, value: Any) -> None:
        """One JSON object on a line of its own, at once: a reader may be waiting."""
        print(json.dumps(value, allow_nan=False, separators=(",", ":")), file=self.out, flush=True)

    def say(self, text: str) -> None:
        """What a person would like to know besides; -q silences it."""
        if not self.quiet:
            self.out.flush()
            print(text, file=self.err, flush=True)

    def paint(self, style: str, text: str) -> str:
        """`text` for stdout, coloured when that is wanted."""
        return f"\033[{STYLES[style]}m{text}\033[0m" if self.colored else text

    @property
    def colored(self) -> bool:
        """--color, then NO_COLOR and TERM=dumb, then whether stdout is a terminal."""
        if self.color != "auto":
            return self.color == "always"
        plain = self.environ.get("NO_COLOR") or self.environ.get("TERM") == "dumb"
        return not plain and self.out.isatty()

    def dot(self, kind: str) -> str:
        """One mark at the head of a line."""
        mark, style = DOTS[kind]
        return self.paint(style, mark)


def open_talk(*, as_json: bool, quiet: bool, verbose: bool, color: str, environ: Mapping[str, str]) -> Talk:
    """The process's own streams; what they cannot show is replaced rather than fatal."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    return Talk(sys.stdout, sys.stderr, as_json, quiet, verbose, color, environ)


def clean(text: str) -> str:
    """Text from a stranger on one line: control characters and lone bytes shown, not sent to the terminal."""
    return "".join(c if c.isprintable() else _shown(c) for c in text)


def _shown(char: str) -> str:
    if "\udc80" <= char <= "\udcff":
        return "\N{REPLACEMENT CHARACTER}"
    return char.encode("unicode_escape").decode()


def command_line(argv: Sequence[str], width: int = 60) -> str:
    """A command as one would type it, cut to `width`."""
    return cut(clean(shlex.join(argv)), width)


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


def cut_shown(text: str, width: int) -> str:
    """The same for a line with colours in it, which take no room."""
    shown, pieces = 0, COLOR.split(text)
    for at, piece in enumerate(pieces):
        if COLOR.fullmatch(piece):
            continue
        if shown + len(piece) > width:
            return "".join(pieces[:at]) + cut(piece, width - shown) + "".join(filter(COLOR.fullmatch, pieces[at:]))
        shown += len(piece)
    return text


def span(seconds: float | None) -> str:
    """A duration in two units at most: 40 ms, 0.4 s, 12 s, 6m12s, 3 h 10 min, 2 d 4 h."""
    if seconds is None:
        return "?"
    if 0 < seconds < 0.095:
        return f"{1000 * seconds:.0f} ms"
    whole = round(max(seconds, 0))
    if whole < 60:
        return f"{seconds:.1f} s" if 0 < seconds < 9.95 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def count(number: int, noun: str) -> str:
    """1 job, 2 jobs."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def clock(at: float, now: float) -> str:
    """A local time of day, with the day where it isn't today."""
    moment, today = datetime.fromtimestamp(at).astimezone(), datetime.fromtimestamp(now).astimezone()
    return f"{moment:%H:%M:%S}" if moment.date() == today.date() else f"{moment:%Y-%m-%d %H:%M}"


def columns(rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines with their cells aligned; the last cell is left as it is."""
    table = [tuple(row) for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    return ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in table]


def terminal_width(environ: Mapping[str, str]) -> int:
    """Columns of the terminal; 100 where there is none."""
    try:
        return int(environ["COLUMNS"]) if "COLUMNS" in environ else os.get_terminal_size().columns
    except (OSError, ValueError):
        return 100
