"""What became of a claim, and the end of an attempt: exit.json · next.json · the row · back to queue/ · to ended/.

Reaping and recovering are one: each step that is missing is done, whoever left it. First match wins: (1) exit.json parses:
done. (2) The lease is held, or the recorded pid lives with its start time: running. (3) Claimed under another boot: lost.
(4) No pid.json: never started. (5) Else lost. An error that leaves it open (EIO, ESTALE) is raised: unknown is not lost.
"""

import contextlib
import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from fleetd.claim import requeue, token_of
from fleetd.errors import BadData
from fleetd.files import fsync_directory, look, replace_file
from fleetd.job import MAX_DECLINED, Job, Outcome, Result, decode_job, decode_json, encode_job, next_attempt, utc
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
    """Where the attempt at `path` stands. Raises OSError when that cannot be known now."""
    pid_file = look(path / "pid.json")
    pid = _pid_record(pid_file.data) if pid_file else {}
    exit_file = look(path / "exit.json")
    if exit_file and _object(exit_file.data) and (pid_file or not _is_held(path)):
        return Verdict(state=State.DONE, pid=pid)
    try:
        lease = take_lease(path / "lock")
    except FileNotFoundError:
        empty = not (path / "job.json").exists()
        return Verdict(state=State.EMPTY if empty else State.LOST if pid_file else State.UNSTARTED, pid=pid)
    if _lives(pid) or (lease is None and not _both_died(pid)):
        if lease is not None:
            os.close(lease)
        return Verdict(state=State.RUNNING, pid=pid)
    if not (path / "job.json").exists():
        state = State.EMPTY
    elif other_boot(path, pid) or pid_file:
        state = State.LOST
    else:
        state = State.UNSTARTED
    return Verdict(state=state, pid=pid, lease=lease)


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        value = decode_json(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _is_held(path: Path) -> bool:
    """Whether another is just now ending this attempt, which never started: a cancel on its way."""
    try:
        lease = take_lease(path / "lock")
    except FileNotFoundError:
        return False
    if lease is not None:
        os.close(lease)
    return lease is None


def _pid_record(data: bytes) -> dict[str, Any]:
    """pid.json, or nothing where it isn't what a parent writes: that counts as started."""
    value = _object(data) or {}
    numbers = all(value.get(key) is None or type(value.get(key)) is int for key in ("pid", "parent", "pgid", "lane"))
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
    if "boot" in pid:
        return bool(pid["boot"] != boot_id())
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
    record = _object(found.data) if found else None
    try:
        fields = {name: record[name] for name in Result.__dataclass_fields__ if record and name in record}
        return Result(**(fields | {"outcome": Outcome(fields["outcome"])}))
    except (KeyError, TypeError, ValueError) as error:
        message = f"{path / 'exit.json'}: no outcome in it"
        raise BadData(message) from error


def lost(reason: str) -> Result:
    """The result of an attempt whose end nobody saw."""
    return Result(outcome=Outcome.LOST, reason=reason, ended=utc(time.time()))


def read_job(path: Path) -> Job:
    """The attempt's job; one whose file was spoilt keeps its name and runs nothing again."""
    try:
        found = look(path / "job.json")
        return decode_job(found.data if found else b"", path.name)
    except BadData:
        return Job(id=path.name, argv=("?",))


def ended(path: Path, host: str, result: Result, pid: Mapping[str, Any], at: str) -> End:
    """The row and what follows for an attempt that ended with `result`. Raises OSError."""
    job = read_job(path)
    ended_at = f"ended/{at[:10]}/{job.id}~{job.attempt}"
    value, fields = _read_result(path, ended_at)
    if result.outcome is Outcome.OK and "reason" in fields:
        result = replace(result, outcome=Outcome.FAILED)
    given_up = result.outcome is Outcome.DECLINED and len(job.away) >= MAX_DECLINED - 1
    if given_up:
        result = replace(result, outcome=Outcome.FAILED, reason=f"declined {MAX_DECLINED} times")
    following = None if given_up else next_attempt(job, result, host)
    row = {"event": "result", "host": host, "at": at, "job": job.id, "attempt": job.attempt, "kind": job.kind}
    row |= asdict(result) | {
        "next": following.attempt if following else None,
        "lane": pid.get("lane"),
        "cores": job.cores,
    }
    row |= {"commit": job.commit, "build": None, "payload": job.payload, "result": value, "argv": job.argv}
    row |= {"log": f"{ended_at}/log"}
    row |= {k: v for k, v in fields.items() if k != "reason" or not row["reason"]}
    return End(path=path, row=row, following=following)


def _read_result(path: Path, ended_at: str) -> tuple[Any, dict[str, Any]]:
    """The job's result, and what else the row says of it: result_file and sha256, or the reason why there is none."""
    found = look(path / "result.json", RESULT_READ)
    if found is None:
        there = os.path.lexists(path / "result.json")
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
    """Bring attempts to their end, their rows fsynced together. Raises OSError, IOFailed; the next call goes on."""
    for end in ends:
        if end.following is not None and not end.done_before:
            replace_file(end.path / "next.json", encode_job(end.following), durable=True)
            fsync_directory(end.path)
    if new := [end.row for end in ends if not end.done_before]:
        ledger.append(host, new)
    elif ends:
        ledger.sync(host)
    for end in ends:
        _leave(spool, end)


def _leave(spool: Spool, end: End) -> None:
    """The last two steps: next.json to queue/, the directory to ended/."""
    if (end.path / "next.json").exists():
        requeue(spool, end.path / "next.json", end.path.name)
    final = spool.root / Path(end.row["log"]).parent
    final.parent.mkdir(exist_ok=True)
    for name in ("exit.part", "cancel"):
        with contextlib.suppress(FileNotFoundError):
            (end.path / name).unlink()
    if final.exists():
        final = final.with_name(f"{final.name}~{token_of(end.path)[8:16] or 'again'}")
    os.rename(end.path, final)
