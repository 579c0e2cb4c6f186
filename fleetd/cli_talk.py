"""A command's voice: data to stdout, talk to stderr, JSON and colour where they are wanted."""

import argparse
import contextlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TextIO

from fleetd.errors import IOFailed

STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}
DOTS = {"live": ("●", "green"), "open": ("○", "yellow"), "dead": ("○", "red")}


@dataclass(frozen=True, slots=True)
class Talk:
    """Where a command's words go: data to stdout, talk to stderr, colour where it is wanted."""

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


class StatusLine:
    """A line on stderr's terminal that is drawn over again and again; the terminal may go: the work goes on."""

    def __init__(self, talk: Talk) -> None:
        self._talk, self._drawn = talk, False

    @property
    def is_wanted(self) -> bool:
        """Whether somebody is at a terminal that can redraw a line, and -q was not given."""
        talk = self._talk
        return talk.err.isatty() and talk.environ.get("TERM") != "dumb" and not talk.quiet

    def draw(self, text: str) -> None:
        """Put `text` in the place of what stood there."""
        self._put(text)
        self._drawn = True

    def erase(self) -> None:
        """Leave nothing of it."""
        if self._drawn:
            self._put("")
            self._drawn = False

    def _put(self, text: str) -> None:
        with contextlib.suppress(OSError):
            print(f"\r\033[K{text}", end="", file=self._talk.err, flush=True)


def open_talk(args: argparse.Namespace, environ: Mapping[str, str]) -> Talk:
    """The process's own streams; what they cannot show is replaced rather than fatal. Raises IOFailed without a stdout."""
    if sys.stdout is None:
        raise IOFailed("no standard output: it was closed before the start")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    return Talk(sys.stdout, sys.stderr, args.json, args.quiet, args.verbose, args.color, environ)
