"""plan.toml: what is played, on how many seeds, by which policy. Every error comes at once, as file:line:column."""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fleetd import BadSettings, Doc, IOFailed, NotFound, read_toml
from planner.policy import POLICIES
from planner.space import Space, complaints, read_space
from planner.stats import LEAST_SEEDS


@dataclass(frozen=True, slots=True, kw_only=True)
class NetPlan:
    """[net]: rounds of nets, and their share of the queue's time; 0: none. Without cores a net is made on a trial's."""

    share: float = 0.0
    first: tuple[str, ...] = ()
    train: tuple[str, ...] = ()
    judge_seeds: int = 400
    cores: int | None = None
    train_needs: tuple[str, ...] = ()
    judge_needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """plan.toml as read, with the space it names. Times in seconds."""

    name: str
    census: tuple[str, ...]
    space: Space
    seeds: int = 55
    seconds: float = 900
    heldout: int = 400
    cores: int = 1
    deterministic: bool = True
    play_timeout_s: float = 60.0
    needs: tuple[str, ...] = ()
    policy: str = "screen"
    floor: float = 0.1
    horizon: int = 36_000
    net: NetPlan = field(default_factory=NetPlan)
    files: tuple[Path, ...] = ()  # where it was read from: plan.toml first


_Rule = tuple[Callable[[Any], bool], str]


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and "\0" not in value


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) and "\0" not in v for v in value)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 1_000_000


SECONDS_MOST = 1_000_000
PLAYS_MOST = 1_000_000_000
CORES_MOST = 4096
TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)

_COMMAND: _Rule = (lambda v: _texts(v) and len(v) > 0 and v[0] != "", "a list of strings, the command first")
_COUNT: _Rule = (_count, "a whole number from 1")
_DECIDING: _Rule = (
    lambda v: _count(v) and v >= LEAST_SEEDS,
    f"a whole number from {LEAST_SEEDS}: fewer seeds decide nothing",
)
_SECONDS: _Rule = (lambda v: _number(v) and 0 < v <= SECONDS_MOST, f"a number above 0, at most {SECONDS_MOST:,}")
_CORES: _Rule = (lambda v: _count(v) and v <= CORES_MOST, f"a whole number from 1 to {CORES_MOST}")
_TAGS: _Rule = (
    lambda v: _texts(v) and all(map(TAG.fullmatch, v)),
    "a list of tags, each of letters, digits, dot, dash, underline",
)
_SHARE: _Rule = (lambda v: _number(v) and 0 <= v <= 1, "a number from 0 to 1")
_TABLE: _Rule = (lambda v: isinstance(v, dict), "a table")

TOP: Mapping[str, _Rule] = {
    "name": (_text, "a name"),
    "space": (_text, "the path of the file with the [[variable]] tables"),
    "census": _COMMAND,
    "trial": _TABLE,
    "net": _TABLE,
    "policy": _TABLE,
}
TRIAL: Mapping[str, _Rule] = {
    "seeds": _COUNT,
    "seconds": _SECONDS,
    "heldout": _DECIDING,
    "cores": _CORES,
    "deterministic": (lambda v: isinstance(v, bool), "true or false"),
    "play_timeout_s": _SECONDS,
    "needs": _TAGS,
}
NET: Mapping[str, _Rule] = {
    "share": _SHARE,
    "first": _COMMAND,
    "train": _COMMAND,
    "judge_seeds": _DECIDING,
    "cores": _CORES,
    "train_needs": _TAGS,
    "judge_needs": _TAGS,
}
POLICY: Mapping[str, _Rule] = {
    "name": (_text, "a policy's name"),
    "floor": (lambda v: _number(v) and 0 <= v < 1, "a number from 0 to under 1"),
    "horizon": (lambda v: _number(v) and v == int(v) and 2 <= v <= PLAYS_MOST, "a whole number of plays from 2"),
}
TABLES = {"trial": TRIAL, "net": NET, "policy": POLICY}


def read_plan(path: Path) -> Plan:
    """The plan at `path` and its space; raises BadSettings with every error in both files, NotFound."""
    try:
        doc = read_toml(path)
    except NotFound as error:
        raise NotFound(f"{path}: no such file; `fleet-plan init` writes one for treadcore") from error
    wrong = list(_errors(doc))
    space_path = path.parent / str(doc.table.get("space", "space.toml"))
    wrong += _space_errors(doc, space_path)
    if wrong:
        raise BadSettings("\n".join([*wrong, f"{len(wrong)} error{'s' if len(wrong) > 1 else ''}, nothing was done"]))
    table = doc.table
    trial = dict(table.get("trial", {}))
    trial["needs"] = tuple(trial.get("needs", ()))
    policy = dict(table.get("policy", {}))
    space = read_space(space_path)
    net: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in table.get("net", {}).items()
    }
    return Plan(
        name=table["name"],
        census=tuple(table["census"]),
        space=space,
        policy=policy.pop("name", "screen"),
        **policy,
        net=NetPlan(**net),
        files=(path, space_path),
        **trial,
    )


def _space_errors(doc: Doc, path: Path) -> list[str]:
    try:
        return list(complaints(read_toml(path)))
    except (NotFound, IOFailed):
        return [doc.complaint(("space",), f"{path}: cannot be read; it holds the [[variable]] tables")]
    except BadSettings as error:
        return [str(error)]


def _errors(doc: Doc) -> Iterator[str]:
    for key in ("name", "census"):
        if key not in doc.table:
            yield doc.complaint((key,), "is missing")
    if "variable" in doc.table:
        yield doc.complaint(("variable",), "the [[variable]] tables stand in the file that `space` names")
    yield from _check(doc, (), {k: v for k, v in doc.table.items() if k != "variable"}, TOP)
    for key, rules in TABLES.items():
        table = doc.table.get(key, {})
        if isinstance(table, dict):
            yield from _check(doc, (key,), table, rules)
            yield from _no_rounds(doc, key, table) if key == "net" else ()
            yield from _no_policy(doc, key, table) if key == "policy" else ()


def _check(doc: Doc, keys: tuple[str, ...], table: Mapping[str, Any], rules: Mapping[str, _Rule]) -> Iterator[str]:
    for key, value in table.items():
        if key not in rules:
            yield doc.unknown((*keys, key), rules)
        elif not rules[key][0](value):
            yield doc.complaint((*keys, key), f"expected {rules[key][1]}, got {value!r}")


def _no_rounds(doc: Doc, key: str, table: Mapping[str, Any]) -> Iterator[str]:
    """A share of the time for rounds, and no command to make nets by."""
    share = table.get("share", 0)
    if _number(share) and share > 0:
        missing = [name for name in ("first", "train") if name not in table]
        yield from (doc.complaint((key, name), "is missing: a share above 0 needs it") for name in missing)


def _no_policy(doc: Doc, key: str, table: Mapping[str, Any]) -> Iterator[str]:
    name = table.get("name", "screen")
    here = ", ".join(f'"{policy}"' for policy in POLICIES)
    if _text(name) and name not in POLICIES:
        yield doc.complaint((key, "name"), f'no policy is called "{name}"; there are {here}')
