"""How attempts ended whose directory could not take exit.json: kept on this machine, outside of the spool, until it can.

A record is `<token>.json` with the attempt's directory and what exit.json is to say, in the first of these directories that
takes it: $XDG_STATE_HOME/fleet/held (~/.local/state/fleet/held), $XDG_RUNTIME_DIR/fleet/held (/run/user/UID/fleet/held; root:
/run/fleet/held), /var/tmp/fleet-held-UID. All of them are looked in. Each must be this user's alone (mode 0700).
"""

import contextlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fleetd.files import fsync_directory, look, replace_file, scan
from fleetd.job import decode_json, encode_json, seconds
from fleetd.xdg import runtime_dir, state_home

_TOKEN = re.compile(r"[0-9a-f]{8,64}", re.ASCII)


def shelters(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The directories, in order."""
    lasting = Path(f"/var/tmp/fleet-held-{os.getuid()}")  # noqa: S108 - looked at
    return state_home(environ) / "fleet/held", runtime_dir(environ) / "fleet/held", lasting


def keep(places: tuple[Path, ...], token: str, attempt: str, record: Mapping[str, Any]) -> bool:
    """Keep the record where it is taken; False when it is nowhere."""
    data = encode_json({"attempt": attempt, "exit": record})
    for place in places if _TOKEN.fullmatch(token) else ():
        with contextlib.suppress(OSError):
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            place.mkdir(mode=0o700, exist_ok=True)
            if _is_ours_alone(place):
                replace_file(place / f"{token}.json", data, durable=True)
                fsync_directory(place)
                return True
    return False


def find(places: tuple[Path, ...], token: str) -> dict[str, Any] | None:
    """What exit.json is to say, if that was kept."""
    for place in places if _TOKEN.fullmatch(token) else ():
        record = _read(place, f"{token}.json").get("exit")
        if isinstance(record, dict):
            return record
    return None


def is_token(text: str) -> bool:
    """Whether a claim may have this token."""
    return _TOKEN.fullmatch(text) is not None


def token_for(places: tuple[Path, ...], attempt: Path) -> str | None:
    """Under which token word of this attempt is kept, for one whose `lock` no longer says it: a power cut may empty that.

    What ended before this attempt was claimed is an earlier one's.
    """
    with contextlib.suppress(OSError):
        claimed = os.lstat(attempt / "job.json").st_ctime
        for place, token in _tokens(places):
            record = _read(place, f"{token}.json")
            if record.get("attempt") == str(attempt) and _ended(record) >= claimed:
                return token
    return None


def _ended(record: Mapping[str, Any]) -> float:
    try:
        return seconds(record["exit"]["ended"])
    except (KeyError, TypeError, ValueError):
        return float("-inf")


def waiting(places: tuple[Path, ...], running: Path) -> list[str]:
    """Which jobs of `running`, a host's, have ended and wait for the spool to take that."""
    attempts = (_read(place, f"{token}.json").get("attempt") for place, token in _tokens(places))
    here = {Path(attempt) for attempt in attempts if isinstance(attempt, str) and Path(attempt).parent == running}
    return sorted(path.name for path in here if path.is_dir() and not os.path.lexists(path / "exit.json"))


def drop(places: tuple[Path, ...], token: str) -> None:
    """Keep it no longer: exit.json stands."""
    for place in places if _TOKEN.fullmatch(token) else ():
        with contextlib.suppress(OSError):
            os.unlink(place / f"{token}.json")


def sweep(places: tuple[Path, ...], running: Path) -> None:
    """Drop what is kept of attempts of `running`, a host's, that are there no more: a kill came before that. Raises OSError."""
    for place, token in _tokens(places):
        attempt = _read(place, f"{token}.json").get("attempt")
        if isinstance(attempt, str) and Path(attempt).parent == running:
            lock = look(Path(attempt, "lock"))
            claim = lock.data.decode("ascii", "replace") if lock else ""
            if not os.path.isdir(attempt) or (is_token(claim) and claim != token):
                drop(places, token)


def _tokens(places: tuple[Path, ...]) -> Iterator[tuple[Path, str]]:
    for place in places:
        with contextlib.suppress(OSError):
            names = (entry.name.removesuffix(".json") for entry in scan(place))
            yield from ((place, name) for name in names if _TOKEN.fullmatch(name))


def _read(place: Path, name: str) -> dict[str, Any]:
    """The record in the file, or nothing."""
    try:
        found = look(place / name) if _is_ours_alone(place) else None
        value = decode_json(found.data) if found else None
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _is_ours_alone(place: Path) -> bool:
    at = os.lstat(place)
    return stat.S_ISDIR(at.st_mode) and at.st_uid == os.getuid() and not at.st_mode & 0o077
