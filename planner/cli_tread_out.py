"""Where a command of `treadcore` puts its files, and how it tells what came of it: on stdout, and to a job's row."""

import argparse
import contextlib
import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fleetd import CannotCreate, IOFailed, Talk, TryLater, encode_json, replace_file


def open_out(args: argparse.Namespace, environ: Mapping[str, str]) -> Path:
    """The directory of --out, else FLEET_OUT, else the current one; CannotCreate where nothing can be written to it."""
    out = Path(args.out or environ.get("FLEET_OUT") or ".")
    try:
        out.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=out).close()
    except OSError as error:
        why = "there is a file of that name" if error.errno == errno.EEXIST else error.strerror
        raise CannotCreate(f"{out}: nothing can be written there: {why}; --out DIR names another place") from error
    return out


@contextlib.contextmanager
def alone_in(out: Path) -> Iterator[None]:
    """No other run in this directory meanwhile; TryLater where there is one. A share without locks is taken on trust."""
    fd = os.open(out, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TryLater(f"{out}: another training is at work there; --out DIR names another place") from None
        except OSError:
            pass
        yield
    finally:
        os.close(fd)


def tell(told: Mapping[str, Any], talk: Talk) -> None:
    """One JSON object on stdout; a job's row gets the same, its net named from the job's own directory."""
    environ = talk.environ
    if result := environ.get("FLEET_RESULT"):
        row = {**told, "net": _from_job(str(told["net"]), environ)} if "net" in told else told
        try:
            replace_file(result, encode_json(row) + b"\n")
        except OSError as error:
            raise IOFailed(f"{result}: the result cannot be written: {error.strerror}") from error
    talk.emit(told)


def _from_job(net: str, environ: Mapping[str, str]) -> str:
    """A path from FLEET_OUT, for the directory is moved when the job has ended; of what lies elsewhere the whole path."""
    whole, out = Path(os.path.abspath(net)), environ.get("FLEET_OUT")
    return str(whole.relative_to(out)) if out and whole.is_relative_to(out) else str(whole)
