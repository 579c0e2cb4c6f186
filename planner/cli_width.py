"""What fits a terminal: tables that are cut rather than wrapped, sentences that are wrapped between words."""

import os
import textwrap
from collections.abc import Mapping, Sequence
from typing import TextIO

from fleetd import Talk, columns
from planner.stats import Paired
from planner.trial import Trial
from planner.verdict import decimals, signed

PIPED = 100  # columns of a table that goes to no terminal
HANG = " " * 8


def table_width(talk: Talk) -> int:
    """Columns for a table on stdout."""
    return _columns(talk.out, talk.environ) or PIPED


def _columns(stream: TextIO, environ: Mapping[str, str]) -> int | None:
    """COLUMNS where that is set, else those of the terminal; None where the stream is none."""
    try:
        return int(environ["COLUMNS"]) if "COLUMNS" in environ else os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return None


def wrapped(text: str, stream: TextIO, talk: Talk, hang: str = HANG) -> str:
    """The text in lines that fit the stream's terminal, those after the first behind `hang`; else in one line, for grep."""
    width = _columns(stream, talk.environ) if stream.isatty() else None
    if not width or len(text) <= width:
        return text
    return "\n".join(
        textwrap.wrap(
            text, max(width, len(hang) + 20), subsequent_indent=hang, break_long_words=False, break_on_hyphens=False
        )
    )


def say_wrapped(text: str, talk: Talk) -> None:
    """The same as talk."""
    talk.say(wrapped(text, talk.err, talk))


def plain(value: float, digits: int = 6) -> str:
    """A variable's value, with so many digits that tell something."""
    told = f"{value:.{digits}g}"
    return "−" + told[1:] if told.startswith("-") else told


def widest(rows: Sequence[Sequence[str]]) -> int:
    """Columns that the table takes."""
    return max(map(len, columns(rows)), default=0)


def short_effect(read: Paired, *, counted: bool) -> str:
    """+0.016 ± 0.016 (55), or without the seeds."""
    digits = decimals([read.se or read.mean])
    return f"{signed(read.mean, digits)} ± {read.se:.{digits}f}" + (f" ({read.n})" if counted else "")


def short_change(trial: Trial, room: int) -> str:
    """The change in at most `room` columns: numbers are rounded where they stay apart, then the name is cut."""
    if len(trial.change) <= room:
        return trial.change
    if (change := trial.single) is None:
        return short_name(trial.change, room)
    numbers = f" {short_number(change.from_)} → {short_number(change.to)}"
    if short_number(change.from_) == short_number(change.to):
        numbers = trial.change[len(change.variable) :]
    return short_name(change.variable, room - len(numbers)) + numbers


def short_number(number: float) -> str:
    """Three digits of it: what a leap adopts has six and more."""
    return f"{number:.3g}".replace("-", "−")


def short_name(name: str, room: int) -> str:
    """The name, or its beginning with an ellipsis."""
    return name if len(name) <= room else name[: max(1, room - 1)] + "…"
