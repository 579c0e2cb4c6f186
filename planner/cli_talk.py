"""How `fleet-plan` speaks: data to stdout, talk to stderr, colour where it is wanted."""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

STYLES = {"bold": "1", "dim": "2", "green": "32", "yellow": "33"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """Where a command's words go."""

    json: bool
    quiet: bool
    verbose: bool
    color: str
    environ: Mapping[str, str]

    def data(self, text: str) -> None:
        """One line that was asked for."""
        print(text)

    def emit(self, value: Any) -> None:
        """One JSON object on a line of its own, at once."""
        print(json.dumps(value, allow_nan=False, separators=(",", ":")), flush=True)

    def say(self, text: str) -> None:
        """What a person would like to know besides; -q silences it."""
        if not self.quiet:
            sys.stdout.flush()
            print(text, file=sys.stderr, flush=True)

    def paint(self, style: str, text: str) -> str:
        """`text` for stdout, coloured by --color, then NO_COLOR and TERM=dumb, then whether that is a terminal."""
        plain = self.environ.get("NO_COLOR") or self.environ.get("TERM") == "dumb"
        wanted = not plain and sys.stdout.isatty() if self.color == "auto" else self.color == "always"
        return f"\033[{STYLES[style]}m{text}\033[0m" if wanted else text


def open_talk(*, as_json: bool, quiet: bool, verbose: bool, color: str) -> Talk:
    """The process's own streams; what they cannot show is replaced rather than fatal."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    return Talk(json=as_json, quiet=quiet, verbose=verbose, color=color, environ=os.environ)


def columns(rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines with their cells aligned; the last cell is left as it is."""
    table = [tuple(row) for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    return ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in table]


def count(number: int, noun: str) -> str:
    """1 job, 2 jobs, 36,000 plays."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def clock(at: str) -> str:
    """A row's time on this machine's clock: 2026-11-30 20:14:02."""
    return f"{datetime.fromisoformat(at).astimezone():%Y-%m-%d %H:%M:%S}"
