"""Words for a terminal: nothing of a stranger's unescaped, no line too wide, numbers and times as one says them."""

import os
import re
import shlex
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TextIO

COLOR = re.compile(r"(\033\[\d*m)")


def clean(text: str) -> str:
    """Text from a stranger on one line: control characters and lone bytes shown, not sent to the terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _shown(c) for c in text)


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


def terminal_width(environ: Mapping[str, str], stream: TextIO) -> int:
    """Columns of the terminal that the stream goes to; 100 where there is none."""
    try:
        return int(environ["COLUMNS"]) if "COLUMNS" in environ else os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 100


def wrapped(text: str, width: int) -> str:
    """The lines broken between words; what continues a line is indented by four more."""
    return "\n".join(_wrapped(line, width) for line in text.split("\n"))


def _wrapped(line: str, width: int) -> str:
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def as_called(command: str, environ: Mapping[str, str]) -> str:
    """A command of this project as the reader can type it: FLEET_CALLED is `bin/` where bin/ is not on their PATH."""
    return f"{environ.get('FLEET_CALLED', '')}{command}"


def count(number: int, noun: str) -> str:
    """1 job, 2 jobs, 36,000 plays."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def clock(at: float, now: float) -> str:
    """A local time of day, with the day where it isn't today."""
    moment, today = datetime.fromtimestamp(at).astimezone(), datetime.fromtimestamp(now).astimezone()
    return f"{moment:%H:%M:%S}" if moment.date() == today.date() else f"{moment:%Y-%m-%d %H:%M}"


def columns(rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines with their cells aligned; the last cell is left as it is."""
    table = [tuple(row) for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    return ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in table]
