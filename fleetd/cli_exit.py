"""A command's way out: its exit code and the one line that says why, whatever ends it."""

import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress

from fleetd.cli_tied import end_when_alone
from fleetd.errors import FleetError, IOFailed, NotPermitted

INTERRUPTED = 130
CRITICAL, ERROR = 2, 3  # levels of syslog(3)


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
