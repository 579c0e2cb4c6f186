"""What became of a claim, and the end of an attempt: exit.json · next.json · the row · back to queue/ · to ended/.

Reaping and recovering are one: each step that is missing is done, whoever left it. First match wins: (1) exit.json parses:
done. (2) The lease is held, or the recorded pid lives with its start time: running. (3) Claimed under another boot: lost.
(4) No pid.json, nor what else a start leaves: never started. (5) Else lost. An error that leaves it open (EIO, ESTALE) is
raised: unknown is not lost.
"""

import contextlib
import errno
import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

from fleetd.claim import Claim, requeue, token_of
from fleetd.errors import BadData
from fleetd.files import fsync_directory, look, place, replace_file, write_file
from fleetd.job import (
    MAX_DECLINED,
    Job,
    Outcome,
    Result,
    decode_job,
    decode_json,
    encode_job,
    encode_json,
    next_attempt,
    utc,
)
from fleetd.lease import boot_id, lives, take_lease
from fleetd.ledger import Ledger
from fleetd.spool import Spool

RESULT_MAX = 1 << 16  # of a result in the row itself
RESULT_READ = 1 << 26


class State(Enum):
    """What an attempt's directory says of it."""

    DONE = "done"
    RUNNING = "running"
    LOST = "lost"
    UNSTARTED = "unstarted"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The state, what pid.json says, and the lease where it is now held by us (to be closed)."""

    state: State
    pid: Mapping[str, Any]
    lease: int | None = None


def judge(path: Path) -> Verdict:
    """Where the attempt at `path` stands. Raises OSError when that cannot be known now.

    What is read counts only once the lease is ours, or known to be another's: until then a parent may still act.
    """
    try:
        lease = take_lease(path / "lock")
    except FileNotFoundError:
        pid = _read_pid(path)
        return Verdict(state=_unleased(path, pid, started=was_started(path)), pid=pid, lease=None)
    try:
        pid = _read_pid(path)
        state = _state(path, pid, started=was_started(path), held=lease is None)
    except OSError:
        if lease is not None:
            os.close(lease)
        raise
    return Verdict(state=state, pid=pid, lease=lease)


def _unleased(path: Path, pid: Mapping[str, Any], *, started: bool) -> State:
    """Of an attempt without a `lock`: a claim on its way, or its job has removed that."""
    if has_exit(path):
        return State.DONE
    if _lives(pid):
        return State.RUNNING
    if not (path / "job.json").exists() and not started:
        return State.EMPTY
    return State.LOST if started else State.UNSTARTED


def _state(path: Path, pid: Mapping[str, Any], *, started: bool, held: bool) -> State:
    if has_exit(path) and (started or not held):  # held and never started: a cancel on its way
        return State.DONE
    if _lives(pid) or (held and not _both_died(pid)):
        return State.RUNNING
    if not started and not (path / "job.json").exists():
        return State.EMPTY
    return State.LOST if started or _other_boot(path) else State.UNSTARTED


def was_started(path: Path) -> bool:
    """Whether anything shows that the attempt's job was started: it may have removed most of that. Raises OSError."""
    return any(_stands(f"{path}/{name}") for name in ("pid.json", "exit.part", "log"))


def _stands(path: str) -> bool:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def restore(taken: Claim) -> None:
    """Make anew what a job whose parent has died removed of its attempt, or it would count as never started. Raises OSError."""
    os.makedirs(taken.path, exist_ok=True)
    ran = encode_json({"boot": boot_id(), "attempt": taken.job.attempt})
    missing = {"lock": taken.token.encode(), "job.json": encode_job(taken.job)}
    for name, data in (missing if was_started(taken.path) else missing | {"pid.json": ran}).items():
        with contextlib.suppress(FileExistsError):
            write_file(taken.path / name, data)


def has_exit(path: Path) -> bool:
    """Whether exit.json parses. Raises OSError."""
    found = look(path / "exit.json")
    return found is not None and bool(_object(found.data))


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        value = decode_json(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _read_pid(path: Path) -> dict[str, Any]:
    """pid.json, or the first one, which exit.json's block begins as; nothing where neither is what a parent writes."""
    found = look(path / "pid.json") or look(path / "exit.part")
    value = (_object(found.data) if found else None) or {}
    numbers = all(
        value.get(key) is None or type(value.get(key)) is int for key in ("pid", "parent", "pgid", "lane", "attempt")
    )
    texts = all(value.get(key) is None or isinstance(value.get(key), str) for key in ("boot", "born", "parent_born"))
    return value if numbers and texts else {}


def _both_died(pid: Mapping[str, Any]) -> bool:
    """Whether parent and leader are known and gone: what still holds the lease is a leftover, and nobody writes exit.json."""
    return pid.get("boot") == boot_id() and None not in (pid.get("pid"), pid.get("parent")) and not _lives(pid)


def _lives(pid: Mapping[str, Any]) -> bool:
    if pid.get("boot") != boot_id():
        return False
    return lives(pid.get("pid"), pid.get("born")) or lives(pid.get("parent"), pid.get("parent_born"))


def other_boot(path: Path, pid: Mapping[str, Any]) -> bool:
    """Whether the attempt was claimed under another boot of this host."""
    return bool(pid["boot"] != boot_id()) if pid.get("boot") else _other_boot(path)


def _other_boot(path: Path) -> bool:
    return token_of(path)[:8] != boot_id().replace("-", "")[:8]


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """An attempt to be ended: where it is, its row, and the attempt after it."""

    path: Path
    row: Mapping[str, Any]
    following: Job | None
    done_before: bool = False


def read_exit(path: Path) -> Result:
    """exit.json as a Result; raises OSError, BadData when it isn't one."""
    found = look(path / "exit.json")
    try:
        return result_of((_object(found.data) if found else None) or {})
    except (KeyError, TypeError, ValueError) as error:
        raise BadData(f"{path / 'exit.json'}: no outcome in it") from error


def result_of(record: Mapping[str, Any]) -> Result:
    """The Result in a decoded exit.json. Raises KeyError, TypeError, ValueError."""
    fields = {name: record[name] for name in Result.__dataclass_fields__ if name in record}
    return Result(**(fields | {"outcome": Outcome(fields["outcome"])}))


def write_exit(path: Path, result: Result) -> None:
    """Say how the attempt ended, unless its parent has said so already. Raises OSError."""
    draft = path / ".exit.json"
    replace_file(draft, encode_json({name: getattr(result, name) for name in Result.__dataclass_fields__}))
    with contextlib.suppress(FileExistsError):
        place(draft, path / "exit.json")
    draft.unlink(missing_ok=True)


def lost(reason: str) -> Result:
    """The result of an attempt whose end nobody saw."""
    return Result(outcome=Outcome.LOST, reason=reason, ended=utc(time.time()))


def cancelled() -> Result:
    """The result of an attempt that was called back before its job was started."""
    return Result(outcome=Outcome.CANCELLED, reason="cancelled before it started", ended=utc(time.time()))


def read_job(path: Path, pid: Mapping[str, Any]) -> Job:
    """The attempt's job; one whose file was spoilt keeps its name and number, and runs nothing again."""
    try:
        found = look(path / "job.json")
        return decode_job(found.data if found else b"", path.name)
    except BadData:
        return Job(id=path.name, argv=("?",), attempt=pid.get("attempt") or 1)


def ended(path: Path, host: str, result: Result, pid: Mapping[str, Any], at: str, job: Job) -> End:
    """The row and what follows for an attempt of `job` that ended with `result`. Raises OSError."""
    ended_at = f"ended/{at[:10]}/{job.id}~{job.attempt}"
    value, fields = _read_result(path, ended_at)
    if result.outcome is Outcome.OK and "reason" in fields:
        result = replace(result, outcome=Outcome.FAILED)
    given_up = result.outcome is Outcome.DECLINED and len(job.away) >= MAX_DECLINED - 1
    if given_up:
        result = replace(result, outcome=Outcome.FAILED, reason=f"declined {MAX_DECLINED} times")
    following = None if given_up else next_attempt(job, result, host)
    if following and os.path.exists(f"{path}/cancel"):
        following = None  # the cancel came too late for this attempt, not for the job
    row = {"event": "result", "host": host, "at": at, "job": job.id, "attempt": job.attempt, "kind": job.kind}
    row |= {name: getattr(result, name) for name in Result.__dataclass_fields__} | {
        "next": following.attempt if following else None,
        "lane": pid.get("lane"),
        "cores": job.cores,
    }
    row |= {k: v for k, v in fields.items() if k != "reason" or not row["reason"]}
    row |= {"commit": job.commit, "build": None, "payload": job.payload, "result": value, "argv": job.argv}
    row |= {"log": f"{ended_at}/log"}
    return End(path=path, row=row, following=following)


def _read_result(path: Path, ended_at: str) -> tuple[Any, dict[str, Any]]:
    """The job's result, and what else the row says of it: result_file and sha256, or the reason why there is none."""
    at = f"{path}/result.json"
    try:
        found = look(at, RESULT_READ)
    except PermissionError:
        return None, {"reason": "result.json cannot be read: the job took the permission away"}
    if found is None:
        there = os.path.lexists(at)
        return None, {"reason": "result.json is no regular file"} if there else {}
    data = found.data
    if len(data) > RESULT_READ:
        return None, {"reason": f"result.json is over {RESULT_READ >> 20} MiB"}
    try:
        value = decode_json(data)
    except ValueError as error:
        return None, {"reason": f"result.json is not JSON: {error}"}
    if len(data) > RESULT_MAX:
        return None, {"result_file": f"{ended_at}/result.json", "sha256": hashlib.sha256(data).hexdigest()}
    return value, {}


def recorded(ledger: Ledger, path: Path, host: str, attempt: int) -> Mapping[str, Any] | None:
    """The row that a killed daemon had written for this attempt already, or None."""
    for row in reversed(ledger.tail(host, 1 << 24)):
        if row.event == "result" and row.body.get("job") == path.name and row.body.get("attempt") == attempt:
            return row.body
    return None


def finish(spool: Spool, ledger: Ledger, host: str, ends: Sequence[End]) -> None:
    """Bring attempts to their end, their rows fsynced together. Raises OSError, IOFailed; the next call goes on.

    One whose directory refuses keeps none of the others from ending.
    """
    refused: list[OSError] = []
    ready = [end for end in ends if _attempted(partial(_prepare, end), refused)]
    if new := [end.row for end in ready if not end.done_before]:
        ledger.append(host, new)
    elif ready:
        ledger.sync(host)
    for end in ready:
        _attempted(partial(_leave, spool, end), refused)
    if refused:
        raise refused[0]


def _attempted(step: Callable[[], None], refused: list[OSError]) -> bool:
    try:
        step()
    except OSError as error:
        refused.append(error)
        return False
    return True


def _prepare(end: End) -> None:
    """Write next.json, if the job goes again and that is not done."""
    if end.following is None or end.done_before:
        return
    with contextlib.suppress(FileExistsError):
        os.mkdir(end.path)  # a job may delete its own directory: it still has its row, and its next attempt
    following = end.path / "next.json"
    if following.is_dir():
        os.rename(following, f"{following}~")  # the job's own doing
    replace_file(following, encode_job(end.following), durable=True)
    fsync_directory(end.path)


def _leave(spool: Spool, end: End) -> None:
    """The last two steps: next.json to queue/, the directory to ended/."""
    if end.following is not None or (end.done_before and (end.path / "next.json").exists()):
        requeue(spool, end.path / "next.json", end.path.name)
    final = os.path.join(spool.root, os.path.dirname(end.row["log"]))
    try:
        os.rename(end.path, final)
    except FileNotFoundError:
        if not os.path.isdir(end.path):
            return  # the job has deleted it
        os.makedirs(os.path.dirname(final), exist_ok=True)
        os.rename(end.path, final)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        os.rename(end.path, f"{final}~{token_of(end.path)[8:16] or 'again'}")
