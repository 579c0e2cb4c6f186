"""fleet fsck: read all of the spool, change nothing, and say what is wrong with it.

A living fleet moves while it is read: what looks wrong is looked at once more before it is told.
"""

import argparse
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from fleetd.cli_fsck_ledger import Finding, Known, check_ledger
from fleetd.cli_state import read_beats
from fleetd.cli_talk import Talk
from fleetd.cli_text import clean, count
from fleetd.errors import BadData, IOFailed
from fleetd.files import look, read_json
from fleetd.job import MAX_BYTES, decode_job
from fleetd.lease import boot_id, host_name, lives
from fleetd.spool import DIRECTORIES, Spool, find_spool, job_id

SETTLE_S = 10.0  # a file that somebody is just writing
AGAIN_S = 2.0  # what a daemon is just doing
DAY_S = 86400.0
_ENDED = re.compile(r"(?P<job>[^~]+)~(?P<attempt>\d+)(?:~\w+)?")
_LINKS_MAY_BE = ("fleet.toml", "plan.toml", "space.toml")


def fsck(args: argparse.Namespace, talk: Talk) -> int:
    """One line for each finding: 0 none, 1 some, 74 something could not be read."""
    spool, me = find_spool(args.spool, talk.environ), host_name(talk.environ)
    findings = list(check(spool, me))
    for one in findings:
        _show(one, talk)
    wrong = sum(not one.note for one in findings)
    talk.say(f"{count(wrong, 'finding')}" if wrong else "nothing is wrong")
    if any(one.unreadable for one in findings):
        return IOFailed.exit_code
    return 1 if wrong else 0


def check(spool: Spool, me: str) -> Iterator[Finding]:
    """Everything that is found; ended/ is listed before the ledger is read, for a row comes before the move."""
    moved = list(_ended_names(spool))
    known, findings = check_ledger(spool)
    yield from findings
    yield from _check_running(spool, me)
    yield from _check_queue(spool)
    yield from _check_rejected(spool)
    yield from _check_ended(spool, moved, known)
    yield from _check_tmp(spool)
    yield from _check_links(spool)


def _show(one: Finding, talk: Talk) -> None:
    if talk.json:
        about = {"path": str(one.path), "what": one.what, "todo": one.todo, "note": one.note}
        talk.emit({"schema": "fleet.fsck/1", **about})
        return
    line = clean(f"{one.path}: {one.what}; {one.todo}")
    if one.note:
        talk.say(f"note: {line}")
    else:
        talk.data(line)


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    """What is in it, in order; nothing where it is gone."""
    try:
        with os.scandir(directory) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return []


def _age_s(path: Path) -> float:
    """Seconds since the last change of the file or of its name; 0 when it is gone."""
    try:
        return time.time() - path.lstat().st_ctime
    except OSError:
        return 0.0


def _check_running(spool: Spool, me: str) -> Iterator[Finding]:
    """What nobody owns, and still nobody a while later if a daemon is there to take care of it."""
    live = {beat.host for beat in read_beats(spool, me, time.time()) if beat.live}
    first = dict(_ownerless(spool, me))
    if any(path.parent.name in live for path in first):
        time.sleep(AGAIN_S)
        first = {path: what for path, what in _ownerless(spool, me) if first.get(path) == what}
    for path, what in first.items():
        host = path.parent.name
        todo = f"the fleetd of {host} should have seen to it: its log says why not"
        if host not in live:
            todo = f"start fleetd on {host}: it brings it to its end, or queues it again"
        yield Finding(path=path, what=what, todo=todo)


def _ownerless(spool: Spool, me: str) -> Iterator[tuple[Path, str]]:
    held = _held_inodes()
    for host in _entries(spool.running):
        for entry in _entries(Path(host.path)) if host.is_dir(follow_symlinks=False) else ():
            path = Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                if what := _attempt(path, held, is_mine=host.name == me):
                    yield path, what
            elif entry.name.count("~") == 2 and entry.name.endswith(".json"):
                yield path, "claimed, but its attempt has no directory yet"


def _held_inodes() -> frozenset[int]:
    """The inodes that a process of this machine has a flock(2) on; none to see where there is no /proc/locks."""
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return frozenset()
    return frozenset(int(line.split()[-3].rpartition(":")[2]) for line in lines if " FLOCK " in line)


def _attempt(path: Path, held: frozenset[int], *, is_mine: bool) -> str | None:
    """Why nobody owns the attempt, or None: it runs, or that can only be seen on its own machine."""
    pid = read_json(path / "pid.json")
    pid = pid if isinstance(pid, dict) else {}
    here = pid.get("boot", boot_id() if is_mine else None) == boot_id()
    if not here and not is_mine:
        return None
    try:
        if (path / "lock").lstat().st_ino in held:
            return None
    except FileNotFoundError:
        pass
    if here and any(lives(pid.get(p), pid.get(b)) for p, b in (("pid", "born"), ("parent", "parent_born"))):
        return None
    if isinstance(read_json(path / "exit.json"), dict):
        return "has ended, and nobody has written its row or moved it to ended/"
    return "nobody owns it: no lease is held" + (", and its processes are gone" if pid else ", and it never started")


def _check_queue(spool: Spool) -> Iterator[Finding]:
    for entry in _entries(spool.queue):
        path, id_ = Path(entry.path), job_id(entry.name)
        if id_ is None or not entry.is_file(follow_symlinks=False):
            if not entry.is_symlink():
                yield Finding(path=path, what="no job's name, or no file", todo="nothing: it is ignored", note=True)
        elif (what := _unfit(path, id_)) and _age_s(path) > SETTLE_S:
            yield Finding(path=path, what=what, todo="mend it; else a daemon rejects it when its turn comes")


def _unfit(path: Path, id_: str) -> str | None:
    """Why the file is no job, or None."""
    try:
        found = look(path)
        if found is None:
            return None
        decode_job(found.data, id_)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except BadData as error:
        return str(error)
    return f"over {MAX_BYTES} bytes" if len(found.data) > MAX_BYTES else None


def _check_rejected(spool: Spool) -> Iterator[Finding]:
    names = {entry.name for entry in _entries(spool.rejected)}
    files = {name for name in names if not name.startswith(".") and not name.endswith(".why")}
    for name in sorted(name for name in files if f"{name}.why" not in names):
        if _age_s(spool.rejected / name) > SETTLE_S:
            what, todo = f"no {name}.why beside it", "the next start of a fleetd writes it"
            yield Finding(path=spool.rejected / name, what=what, todo=todo)


def _ended_names(spool: Spool) -> Iterator[Path]:
    for day in _entries(spool.ended):
        if day.is_dir(follow_symlinks=False):
            yield from (Path(entry.path) for entry in _entries(Path(day.path)))


def _check_ended(spool: Spool, moved: list[Path], known: Known) -> Iterator[Finding]:
    there = set()
    for path in moved:
        found = _ENDED.fullmatch(path.name)
        attempt = (found["job"], int(found["attempt"])) if found else None
        there.add(attempt)
        if attempt is None:
            yield Finding(path=path, what="no attempt's name", todo="move it away: nothing here put it there")
        elif attempt not in known.attempts:
            yield Finding(
                path=path,
                what="no row says how it ended",
                todo="its exit.json says it; to run it again, submit it anew",
            )
    if gone := _without_directory(spool, {at for at in known.attempts if at not in there}):
        what = f"{count(gone, 'attempt')} with a row and no directory"
        yield Finding(path=spool.ended, what=what, todo="nothing: they were swept (keep_ended_days)", note=True)


def _without_directory(spool: Spool, missing: set[tuple[str, int]]) -> int:
    """How many of them are nowhere, looked for once more: a row is written before its directory moves to ended/."""
    if not missing:
        return 0
    leaving = {path.name for path in spool.running.glob("*/*")}
    found = (_ENDED.fullmatch(path.name) for path in _ended_names(spool))
    arrived = {(it["job"], int(it["attempt"])) for it in found if it}
    return sum(job not in leaving and (job, attempt) not in arrived for job, attempt in missing)


def _check_tmp(spool: Spool) -> Iterator[Finding]:
    for entry in _entries(spool.tmp):
        if _age_s(Path(entry.path)) > DAY_S:
            what = "half-written, more than a day ago"
            yield Finding(
                path=Path(entry.path), what=what, todo="nothing: the next start of a fleetd sweeps it", note=True
            )


def _check_links(spool: Spool) -> Iterator[Finding]:
    """Links where none should be; a job's own out/ is its own affair."""
    near = [spool.root, *(spool.root / name for name in DIRECTORIES)]
    below = [*spool.running.glob("*"), *spool.running.glob("*/*"), *spool.ended.glob("*"), *spool.ended.glob("*/*")]
    for directory in [*near, *below]:
        if stat.S_ISDIR(_mode(directory)):
            for entry in _entries(directory):
                if entry.is_symlink() and entry.name not in _LINKS_MAY_BE:
                    yield Finding(path=Path(entry.path), what="a symbolic link", todo="rm it: nothing here follows one")


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except OSError:
        return 0
