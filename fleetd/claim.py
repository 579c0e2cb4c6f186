"""Taking a job for a host, and giving it back: the protocol at the head of spool.py, without any lock across hosts."""

import contextlib
import os
import secrets
from dataclasses import dataclass, replace
from pathlib import Path

from fleetd.errors import BadData, IOFailed
from fleetd.files import Stamp, fsync_directory, look, replace_file, stamp_of, write_file
from fleetd.job import Job, decode_job, encode_job
from fleetd.lease import boot_id, take_lease
from fleetd.spool import Spool


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A job that a host has taken: its directory under running/ and the token by which its processes are known."""

    job: Job
    path: Path
    token: str


def new_token() -> str:
    """A claim's token: eight digits of the boot, then what nobody can guess."""
    return boot_id().replace("-", "")[:8] + secrets.token_hex(8)


def claim(spool: Spool, host: str, job: Job, attempt: int, stamp: Stamp | None = None) -> Claim | None:
    """Take the waiting job for `host`; None when another got it. Raises IOFailed when it can't be known: look again later.

    `stamp` is that of the file when `job` was read from it: unchanged, it need not be decoded again.
    """
    token = new_token()
    taken = f"{spool.root}/running/{host}/{job.id}~{attempt}~{token}.json"
    with contextlib.suppress(OSError):
        os.rename(f"{spool.root}/queue/{job.id}.json", taken)
    try:
        if stamp is not None and stamp_of(taken) == stamp:
            mine = job
        elif found := look(taken):
            mine = decode_job(found.data, job.id)
        else:
            return None
        if mine.attempt != attempt:
            mine = replace(mine, attempt=attempt)
            replace_file(taken, encode_job(mine))
        return enter(taken, mine, token)
    except (OSError, BadData) as error:
        raise IOFailed(f"{taken}: claimed, but cannot be read back: {error}") from error


def enter(taken: Path | str, job: Job, token: str) -> Claim:
    """Make the attempt's directory of a claimed file. Raises OSError."""
    at = f"{os.path.dirname(taken)}/{job.id}"
    for directory in (at, f"{at}/out"):
        with contextlib.suppress(FileExistsError):
            os.mkdir(directory)
    write_file(f"{at}/lock", token.encode())
    os.rename(taken, f"{at}/job.json")
    path = Path(at)
    if not job.rerun_safe:
        fsync_directory(path)
        fsync_directory(path.parent)
    return Claim(job=job, path=path, token=token)


def token_of(path: Path) -> str:
    """The token of the claim in the attempt's directory `path`; empty when a power cut took it."""
    try:
        found = look(path / "lock")
    except OSError:
        return ""
    return found.data.decode("ascii", "replace") if found else ""


def unclaim(spool: Spool, path: Path) -> None:
    """Back to queue/, same attempt, no row: for a claim that was never started. The caller holds its lease. Raises OSError."""
    requeue(spool, path / "job.json", path.name)
    clear(path)


def requeue(spool: Spool, source: Path, id_: str) -> None:
    """Move a job's file into queue/; one that somebody put there meanwhile under its name is set aside. Raises OSError."""
    final = spool.queue / f"{id_}.json"
    if os.path.lexists(final) and (aside := set_aside(spool, final.name)):
        say_why(aside, f"{id_} was running when this was put in the queue; use another name")
    os.rename(source, final)


def clear(path: Path) -> None:
    """Remove an attempt's directory that has no job in it; raises OSError."""
    for directory, names, files in os.walk(path, topdown=False):
        for name in files:
            os.unlink(Path(directory) / name)
        for name in names:
            entry = Path(directory) / name
            entry.unlink() if entry.is_symlink() else entry.rmdir()
    path.rmdir()


def set_aside(spool: Spool, name: str) -> Path | None:
    """Move queue/<name> to rejected/, replacing nothing there; None when it is gone. Raises OSError."""
    final = spool.rejected / name
    while os.path.lexists(final):
        final = spool.rejected / f"{name}.{secrets.token_hex(2)}"
    try:
        os.rename(spool.queue / name, final)
    except FileNotFoundError:
        return None
    return final


def say_why(rejected: Path, why: str) -> None:
    """Write the one line beside a rejected file. Raises OSError."""
    replace_file(rejected.with_name(f"{rejected.name}.why"), (" ".join(why.split()) + "\n").encode("utf-8", "replace"))


def take_aside(spool: Spool, host: str, id_: str) -> tuple[Path, int] | None:
    """Take a waiting job without starting it, the lease held from before: (directory, lease); None when it's gone.

    This is how a job is cancelled: no daemon can mistake it for a claim nobody starts. Raises OSError.
    """
    path = spool.running / host / id_
    path.mkdir(parents=True)
    write_file(path / "lock", new_token().encode())
    lease = take_lease(path / "lock")
    with contextlib.suppress(OSError):
        os.rename(spool.queue / f"{id_}.json", path / "job.json")
    if lease is not None and look(path / "job.json") is not None:
        return path, lease
    clear(path)
    if lease is not None:
        os.close(lease)
    return None
