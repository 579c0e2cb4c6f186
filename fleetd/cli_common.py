"""What every command of this project has in common: its options, its voice, its ways out."""

import argparse
import json
import os
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TextIO

from fleetd.cli_tied import end_when_alone
from fleetd.errors import FleetError, IOFailed, NotPermitted

STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}
DOTS = {"live": ("●", "green"), "open": ("○", "yellow"), "dead": ("○", "red")}
INTERRUPTED = 130
CRITICAL, ERROR = 2, 3  # levels of syslog(3)


class Parser(argparse.ArgumentParser):
    """No option may be abbreviated, and nobody's help wraps the examples."""

    def __init__(self, **settings: object) -> None:
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **settings)  # type: ignore[arg-type]


class Version(argparse.Action):
    """Looks the version up only when it is asked for: that costs as much as the rest of the start."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"{parser.prog} {version('fleetd-spool')}")
        parser.exit()


def common_options(*, first: bool, leave_out: Collection[str] = ()) -> Parser:
    """The options that may stand before and after a command's name; only those before (`first`) have defaults."""
    off = False if first else argparse.SUPPRESS
    auto = "auto" if first else argparse.SUPPRESS
    parser = Parser(add_help=False)
    group = parser.add_argument_group("everywhere")
    if "spool" not in leave_out:
        group.add_argument("--spool", metavar="DIR", default=None if first else off, help="default: $FLEET_SPOOL")
    if "json" not in leave_out:
        group.add_argument("--json", action="store_true", default=off, help="JSON on stdout, for programs")
    group.add_argument("-q", "--quiet", action="store_true", default=off, help="no talk on stderr")
    group.add_argument("-v", "--verbose", action="store_true", default=off, help="say more")
    group.add_argument("--color", choices=("auto", "always", "never"), default=auto, help="default: auto")
    group.add_argument("--version", action=Version, nargs=0, default=argparse.SUPPRESS, help="the version, and exit")
    return parser


def whole_number(low: int, high: int = sys.maxsize) -> Callable[[str], int]:
    """The type of an option's value: a whole number in decimal digits, from `low` (0 or more) to `high`."""
    bounds = f"from {low}" + ("" if high == sys.maxsize else f" to {high}")

    def read(text: str) -> int:
        if text.isascii() and text.isdecimal() and len(text) < 20 and low <= int(text) <= high:
            return int(text)
        raise argparse.ArgumentTypeError(f"expected a whole number {bounds}, got {text[:40]!r}")

    return read


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


def open_talk(args: argparse.Namespace, environ: Mapping[str, str]) -> Talk:
    """The process's own streams; what they cannot show is replaced rather than fatal. Raises IOFailed without a stdout."""
    if sys.stdout is None:
        raise IOFailed("no standard output: it was closed before the start")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    return Talk(sys.stdout, sys.stderr, args.json, args.quiet, args.verbose, args.color, environ)


def way_out(
    prog: str,
    call: Callable[[], int],
    *,
    verbose: bool,
    say: Callable[[str, int], None] | None = None,
) -> int:
    """Run the command; its exit code, whatever ends it. Every failure is one line of `say` (line, syslog level).

    A reader that went away (head(1)) is no failure. A bug shows its traceback when `verbose` or FLEET_DEBUG is set.
    """
    tell = say or (lambda line, _level: print(f"{prog}: {line}", file=sys.stderr))
    _hold_streams()
    end_when_alone(os.environ)
    try:
        code = call()
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except BaseException as error:
        if not isinstance(error, Exception | KeyboardInterrupt):
            raise
        with suppress(OSError):
            _tell(error, tell, verbose=verbose)
        _give_up_output()
        return _code_of(error)


def _code_of(error: BaseException) -> int:
    match error:
        case FleetError():
            return error.exit_code
        case KeyboardInterrupt():
            return INTERRUPTED
        case BrokenPipeError():
            return 0
        case PermissionError():
            return NotPermitted.exit_code
        case OSError():
            return IOFailed.exit_code
    return FleetError.exit_code


def _tell(error: BaseException, tell: Callable[[str, int], None], *, verbose: bool) -> None:
    match error:
        case FleetError():
            tell(str(error), ERROR)
        case KeyboardInterrupt() | BrokenPipeError():
            pass
        case OSError():
            tell(f"{error.filename or 'input or output'}: {error.strerror or error}", ERROR)
        case _:
            if verbose or os.environ.get("FLEET_DEBUG"):
                traceback.print_exception(error)
            tell(f"a bug: {type(error).__name__}: {error}; -v shows where", CRITICAL)


def _hold_streams() -> None:
    """Take the numbers 0 to 2 where they are free: the next file opened would be what stray words are written into."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(fd)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - as long as the process


def _give_up_output() -> None:
    """Write what can be written; what cannot would fail once more at the interpreter's end, and change the exit code."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


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
