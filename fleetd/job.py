"""What flows: a Job is an intention, a Claim a job that a host has taken, a Result what became of it.

The format fleet.job/1 is a JSON object of at most 1 MiB; only `argv` is needed in a file put in by hand. Unknown keys are
kept and passed on. All times are RFC 3339 in UTC with microseconds.
"""

import json
import math
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from fleetd.errors import BadData

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
_DIGITS = bytes.maketrans(b"123456789E", b"000000000e")
_LONG = b"0" * 300
SCHEMA = "fleet.job/1"
MAX_BYTES = 1 << 20
MAX_DEPTH = 100
MAX_DECLINED = 4  # the fourth exit 75 is a final failure
MAX_LOST = 3
DECLINED_EXIT = 75


class Outcome(StrEnum):
    """What became of one attempt."""

    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    STOPPED = "stopped"
    CANCELLED = "cancelled"
    DECLINED = "declined"
    LOST = "lost"
    SUPERSEDED = "superseded"
    BUILD_FAILED = "build_failed"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """An intention: what to run and what it needs. `attempt`, `failed`, `lost` and `away` are the engine's."""

    id: str
    argv: tuple[str, ...]
    kind: str = "job"
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    cores: int = 1
    gpus: int = 0
    timeout_s: float | None = None
    retries: int = 0
    rerun_safe: bool = False
    after: tuple[str, ...] = ()
    not_before: str | None = None
    commit: str | None = None
    payload: Mapping[str, Any] = field(default_factory=dict)
    created: str = ""
    by: str = ""
    attempt: int = 1
    failed: int = 0
    lost: int = 0
    away: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of one attempt: the middle of a ledger row. Seconds and MiB; times RFC 3339."""

    outcome: Outcome
    exit: int | None = None
    signal: int | None = None
    reason: str | None = None
    started: str | None = None
    ended: str
    wall_s: float | None = None
    cpu_s: float | None = None
    max_rss_mb: float | None = None
    leftovers: int = 0


def utc(at: datetime | float) -> str:
    """RFC 3339 with microseconds and Z, of an aware datetime or of seconds since the epoch."""
    moment = at.astimezone(UTC) if isinstance(at, datetime) else datetime.fromtimestamp(at, UTC)
    return moment.isoformat(timespec="microseconds")[:-6] + "Z"


def seconds(at: str) -> float:
    """Seconds since the epoch of an RFC 3339 time; raises ValueError when it is none."""
    moment = datetime.fromisoformat(at)
    if moment.tzinfo is None:
        raise ValueError(f"{at}: no time zone")
    return moment.timestamp()


def new_id(kind: str, priority: int, now: datetime) -> str:
    """A name that sorts by priority, then by time: 50-20261130T165200.123456Z-trial-9f3a2c."""
    return f"{priority:02d}-{now.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}-{kind}-{secrets.token_hex(3)}"


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large for a number")
    return number


def decode_json(data: bytes | str) -> Any:
    """One JSON value; NaN, Infinity, numbers beyond a double, and over 100 levels raise ValueError."""
    value = decode_trusted(data)
    raw = data if isinstance(data, bytes) else _encoded(data)
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH and _depth_over(value, MAX_DEPTH):
        raise ValueError(f"nested over {MAX_DEPTH} levels deep")
    return value


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _depth_over(value: Any, limit: int) -> bool:
    """Whether a decoded value has more levels than that, whatever the caller's stack."""
    level = [value]
    for _ in range(limit):
        level = [child for v in level for child in _children(v)]
    return any(isinstance(v, dict | list) for v in level)


def _children(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def decode_trusted(data: bytes | str) -> Any:
    """`decode_json` for what this engine has written itself: whoever wrote it has looked how deep it is."""
    raw, text = (data, data.decode("utf-8")) if isinstance(data, bytes) else (_encoded(data), data)
    decoder = _PLAIN if raw.count(b".") > _FEW and _is_plain(raw) else _CHECKED
    try:
        return decoder.decode(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


_PLAIN = json.JSONDecoder(parse_constant=_no_constant)
_CHECKED = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)
_FEW = 8  # looking at each of many fractions takes longer than all the rest


def _is_plain(text: bytes) -> bool:
    """Whether no number in it can leave the range of a double."""
    shape = text.translate(_DIGITS, b"+")
    return b"0e000" not in shape and _LONG not in shape


def encode_json(value: Any) -> bytes:
    """Compact ASCII JSON on one line, without a newline."""
    return _COMPACT.encode(value).encode("ascii")


_COMPACT = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def _is_count(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= 1 << 31


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_time(value: Any) -> bool:
    try:
        return isinstance(value, str) and math.isfinite(seconds(value))
    except (ValueError, OverflowError):
        return False


def _is_limit(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1 << 31


def _is_names(value: Any) -> bool:
    return _is_texts(value) and all(map(NAME.fullmatch, value))


def _is_env(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return not value or all(k and "=" not in k and _is_text(k) and _is_text(v) for k, v in value.items())


_CHECKS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "schema": (lambda v: v == SCHEMA, f'"{SCHEMA}"'),
    "id": (_is_text, "a string"),
    "kind": (lambda v: isinstance(v, str) and NAME.fullmatch(v), "a name of letters, digits, dot, dash, underline"),
    "argv": (lambda v: _is_texts(v) and len(v) > 0 and v[0] != "", "a list of strings, the command first"),
    "cwd": (lambda v: v is None or (_is_text(v) and v.startswith("/")), "an absolute path or null"),
    "env": (_is_env, "an object of strings"),
    "needs": (_is_texts, "a list of strings"),
    "cores": (lambda v: _is_count(v, 1), "a whole number from 1"),
    "gpus": (lambda v: _is_count(v, 0), "a whole number from 0"),
    "timeout_s": (lambda v: v is None or _is_limit(v), "a number of seconds above 0, or null"),
    "retries": (lambda v: _is_count(v, 0), "a whole number from 0"),
    "rerun_safe": (lambda v: isinstance(v, bool), "true or false"),
    "after": (_is_names, "a list of job ids"),
    "not_before": (lambda v: v is None or _is_time(v), "an RFC 3339 time with zone, or null"),
    "commit": (lambda v: v is None or (_is_text(v) and v), "a commit's name or null"),
    "payload": (lambda v: isinstance(v, dict), "an object"),
    "created": (_is_text, "a string"),
    "by": (_is_text, "a string"),
    "attempt": (lambda v: _is_count(v, 1), "a whole number from 1"),
    "failed": (lambda v: _is_count(v, 0), "a whole number from 0"),
    "lost": (lambda v: _is_count(v, 0), "a whole number from 0"),
    "away": (_is_texts, "a list of host names"),
}
_LISTS = ("argv", "needs", "after", "away")
_DEFAULTS = {f.name: f.default for f in fields(Job) if f.name in _CHECKS}
_EMPTY = {"env": dict, "payload": dict, "needs": list, "after": list, "away": list}


def decode_job(data: bytes, name: str) -> Job:
    """The job in a file called `name`.json; raises BadData with one line that says what is wrong with it."""
    return Job(**decode_fields(data, name))


def decode_fields(data: bytes, name: str) -> dict[str, Any]:
    """The same, as the fields of Job less those at their defaults: what it takes to make a Job takes as long again."""
    if len(data) > MAX_BYTES:
        raise BadData(f"{len(data)} bytes: a job file has at most {MAX_BYTES}")
    try:
        value = decode_json(data)
    except ValueError as error:
        raise BadData(f"not JSON: {error}") from error
    return _fields_of(value, name)


def job_of(value: Any, name: str) -> Job:
    """The job that a decoded JSON value describes; raises BadData."""
    return Job(**_fields_of(value, name))


def _fields_of(value: Any, name: str) -> dict[str, Any]:
    if not NAME.fullmatch(name):
        raise BadData(
            f"{name!r} is no job id: letters, digits, dot, dash and underline, at most 128, first a letter or digit"
        )
    if not isinstance(value, dict):
        raise BadData(f"a job is a JSON object, this is {_kind_of(value)}")
    said, extra, wrong = _sorted_out(value)
    if "argv" not in value:
        wrong.append('argv is missing: the command to run, for example ["echo", "hi"]')
    if not wrong and value.get("id", name) != name:
        wrong.append(f"id {value['id']!r} is unlike the file's name {name}.json")
    if not wrong and name in value.get("after", ()):
        wrong.append("after: names itself")
    if wrong:
        raise BadData("; ".join(wrong))
    return said | {"id": name, "extra": extra}


def _sorted_out(value: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """What a file says of a job's fields beyond their defaults, what it says besides, and what is wrong with it."""
    said: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    wrong: list[str] = []
    for key, v in value.items():
        if v is _DEFAULTS.get(key, _CHECKS) or (not v and type(v) is _EMPTY.get(key)):
            continue  # most fields of most files
        if key not in _CHECKS:
            extra[key] = v
        elif not _CHECKS[key][0](v):
            wrong.append(f"{key}: expected {_CHECKS[key][1]}")
        elif key != "schema":
            said[key] = tuple(v) if key in _LISTS else v
    return said, extra, wrong


def _kind_of(value: Any) -> str:
    return {list: "a list", str: "a string", type(None): "null", bool: "true or false"}.get(type(value), "a number")


def encode_job(job: Job) -> bytes:
    """The job file's bytes: one line of ASCII JSON and a newline."""
    known = {name: getattr(job, name) for name in _CHECKS if name != "schema"}
    return encode_json({"schema": SCHEMA, **known, **job.extra}) + b"\n"


def next_attempt(job: Job, result: Result, host: str) -> Job | None:
    """The attempt to queue after this one, or None when the outcome is final."""
    again = replace(job, attempt=job.attempt + 1)
    match result.outcome:
        case Outcome.FAILED | Outcome.TIMEOUT if job.failed < job.retries:
            return replace(again, failed=job.failed + 1)
        case Outcome.DECLINED if len(job.away) < MAX_DECLINED - 1:
            return replace(again, away=(*job.away, host))
        case Outcome.STOPPED if job.rerun_safe:
            return again
        case Outcome.LOST if job.rerun_safe and job.lost + 1 < MAX_LOST:
            return replace(again, lost=job.lost + 1)
    return None
