"""fleet.toml: one frozen record, every key with a default; errors come all at once as file:line:column."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fleetd.errors import BadSettings
from fleetd.job import NAME
from fleetd.toml import Doc, Keys, read_toml

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """[host.NAME]: what that machine offers. None: `lanes` the cores it is allowed, `gpus` what nvidia-smi lists."""

    lanes: int | None = None
    gpus: int | None = None
    tags: tuple[str, ...] = ()
    ssh: str | None = None
    start: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """fleet.toml as read; seconds, MiB and days as the names say."""

    spool: int = FORMAT
    home: str | None = None
    poll_s: float = 2.0
    grace_s: float = 10.0
    failures: int = 5
    rest_s: float = 300.0
    log_max_mb: float = 64.0
    min_free_mb: float = 256.0
    keep_ended_days: float = 30.0
    hosts: Mapping[str, Host] = field(default_factory=dict)

    def host(self, name: str) -> Host:
        """The [host.NAME] table, or a host with every default."""
        return self.hosts.get(name, Host())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 1 << 20


def _is_tags(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) and NAME.fullmatch(v) for v in value)


_Rule = tuple[Callable[[Any], Any], str]
_NAMED: _Rule = (lambda v: isinstance(v, str) and NAME.fullmatch(v), "a host's name")
_TEXT: _Rule = (lambda v: isinstance(v, str), "a string")
_ABOVE: _Rule = (lambda v: _is_number(v) and v > 0, "a number above 0")
_FROM_0: _Rule = (lambda v: _is_number(v) and v >= 0, "a number from 0")
_WHOLE: _Rule = (_is_whole, "a whole number from 1")
_TOP: dict[str, _Rule] = {
    "spool": (lambda v: v == FORMAT and not isinstance(v, bool), f"{FORMAT}, the only format this fleetd knows"),
    "home": _NAMED,
    "poll_s": _ABOVE,
    "grace_s": _FROM_0,
    "failures": _WHOLE,
    "rest_s": _FROM_0,
    "log_max_mb": _ABOVE,
    "min_free_mb": _FROM_0,
    "keep_ended_days": _ABOVE,
    "host": (lambda v: isinstance(v, dict), "tables [host.NAME]"),
}
_HOST: dict[str, _Rule] = {
    "lanes": _WHOLE,
    "gpus": (lambda v: v == 0 or _is_whole(v), "a whole number from 0"),
    "tags": (_is_tags, "a list of names"),
    "ssh": _TEXT,
    "start": _TEXT,
}


def read_settings(path: Path) -> Settings:
    """The settings at `path`; a file that is not there is all defaults. Raises BadSettings with every error in it."""
    if not path.exists():
        return Settings()
    doc = read_toml(path)
    wrong = list(_errors(doc))
    if wrong:
        raise BadSettings("\n".join([*wrong, f"{len(wrong)} error{'s' if len(wrong) > 1 else ''} in {path}"]))
    top = {key: value for key, value in doc.table.items() if key != "host"}
    hosts = {
        name: Host(**(table | {"tags": tuple(table.get("tags", ()))}))
        for name, table in doc.table.get("host", {}).items()
    }
    return Settings(**top, hosts=hosts)


def _errors(doc: Doc) -> Iterator[str]:
    yield from _check(doc, (), doc.table, _TOP)
    hosts = doc.table.get("host", {})
    for name, table in hosts.items() if isinstance(hosts, dict) else ():
        keys: Keys = ("host", name)
        if not NAME.fullmatch(name):
            yield doc.complaint(keys, "a host's name has letters, digits, dots and dashes")
        elif not isinstance(table, dict):
            yield doc.complaint(keys, f"expected a table [host.{name}]")
        else:
            yield from _check(doc, keys, table, _HOST)


def _check(doc: Doc, keys: Keys, table: Mapping[str, Any], rules: Mapping[str, _Rule]) -> Iterator[str]:
    for key, value in table.items():
        if key not in rules:
            yield doc.unknown((*keys, key), rules)
        elif not rules[key][0](value):
            yield doc.complaint((*keys, key), f"expected {rules[key][1]}, got {value!r}")
