"""Which machine this is, and whether a host's name in the spool is its own to serve.

Two machines may bear one name, and on a share the lock in hosts/ may not keep them apart. So each heartbeat bears the
machine's id, and a daemon that finds another's there serves nothing until that has said that it ended, or its counter has
stood still for as long as makes a host suspect. The wait is for the other machine alone: one that comes back finds its own.
"""

import contextlib
import functools
import hashlib
import re
import secrets
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleetd.errors import TryLater
from fleetd.files import look, place, write_file
from fleetd.job import decode_json
from fleetd.lease import boot_id
from fleetd.peers import SUSPECT_S
from fleetd.spool import Spool, disk_time
from fleetd.xdg import state_home

_TWIN_S = 30.0  # three heartbeats
_LOOK_S = 1.0
_STEP_S = 5.0  # what setting a machine's clock right, soon after its start, may move
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine as its daemon's heartbeats name it; `id` is None where nothing tells it from others."""

    id: str | None
    boot: str


def this_machine(environ: Mapping[str, str]) -> Machine:
    """The one that we are on. The id is made of the system's own, which is nobody else's business (machine-id(5))."""
    found = _of_system(Path("/")) or _of_ioreg() or _of_state(environ)
    return Machine(id=_hidden(found) if found else None, boot=boot_id())


def _hidden(found: str) -> str:
    return hashlib.blake2b(b"fleetd", key=found.encode(), digest_size=16).hexdigest()


def _of_system(root: Path) -> str | None:
    for name in ("etc/machine-id", "var/lib/dbus/machine-id"):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if _ID.fullmatch(text := (root / name).read_text().strip()):
                return text
    return None


def _of_ioreg() -> str | None:
    """What macOS calls IOPlatformUUID (its kern.uuid is the kernel's, the same on each machine)."""
    try:
        asked = subprocess.run(
            ["ioreg", "-rd1", "-c", "IOPlatformExpertDevice"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'"IOPlatformUUID" = "([^"]+)"', asked.stdout)
    return found[1] if found else None


def _of_state(environ: Mapping[str, str]) -> str | None:
    """One that was made up on this machine and is kept; None where it cannot be."""
    path = state_home(environ) / "fleet" / "machine-id"
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(draft, f"{secrets.token_hex(16)}\n".encode(), durable=True)
            with contextlib.suppress(FileExistsError):
                place(draft, path)
        if _ID.fullmatch(text := path.read_text().strip()):
            return text
    return None


def is_other(beat: Mapping[str, Any], me: Machine) -> bool:
    """Whether a heartbeat is surely another machine's."""
    return isinstance(beat.get("machine"), str) and me.id is not None and beat["machine"] != me.id


@dataclass(frozen=True, slots=True)
class _Seen:
    """hosts/<host>.json at one moment: `pulse` changes while its daemon lives."""

    beat: Mapping[str, Any]
    written: float

    @property
    def pulse(self) -> tuple[object, ...]:
        return tuple(self.beat.get(key) for key in ("machine", "boot", "pid", "counter"))

    @property
    def is_over(self) -> bool:
        return bool(self.beat.get("ended")) and not self.beat.get("busy")


def _see(path: Path) -> _Seen | None:
    """Raises OSError where it cannot be told what stands there; what is no heartbeat is none."""
    found = look(path)
    with contextlib.suppress(ValueError):
        beat = decode_json(found.data) if found else None
        if found and isinstance(beat, dict):
            return _Seen(beat, found.stamp[2] / 1e9)
    return None


def patience_s(seen: _Seen | None, me: Machine, started: Callable[[], float]) -> float:
    """For how long to watch before the name is ours: 0 where it is ours already, or nobody's.

    A heartbeat of this machine under another boot is that of our last start, unless it was written after this one: then
    it is a twin's, a copy of this machine. `started`: when this machine was, in the disk's time.
    """
    if seen is None or seen.is_over:
        return 0.0
    if is_other(seen.beat, me):
        return SUSPECT_S
    twin = seen.beat.get("boot") not in (None, me.boot) and seen.written > started() + _STEP_S
    return _TWIN_S if twin else 0.0


def _started(spool: Spool) -> float:
    """When this machine was started, in the disk's time; the end of time where the disk takes no file to ask it by."""
    try:
        return disk_time(spool) - time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
    except OSError:
        return float("inf")


def settle(
    spool: Spool,
    host: str,
    me: Machine,
    log: Callable[[str], None],
    pause: Callable[[float], None],
    now: Callable[[], float] = time.monotonic,
) -> None:
    """Come back once nobody else serves `host`. Raises TryLater when another machine does, OSError if that can't be seen."""
    path = spool.hosts / f"{host}.json"
    first = _see(path)
    limit_s = patience_s(first, me, functools.partial(_started, spool))
    if first is None or limit_s == 0:
        return
    log(f"{path} is another machine's, of {first.beat.get('at')}; looking for {limit_s:.0f} s whether that still lives")
    spent, at = 0.0, now()
    while spent < limit_s:
        pause(_LOOK_S)
        before, at = at, now()
        try:
            disk_time(spool)
            seen = _see(path)
        except OSError:
            continue  # while we see nothing, its silence says nothing
        spent += at - before
        if seen is None or seen.is_over:
            return
        if seen.pulse != first.pulse:
            raise TryLater(f"{path}: {refusal(host, seen.beat)}")
    log(
        f"{host}: the other machine has been silent for {limit_s:.0f} s; its name is taken over, and what ran there is lost"
    )


def refusal(host: str, beat: Mapping[str, Any]) -> str:
    """Why the name cannot be had, and what to do."""
    return (
        f"another machine serves {host} on this spool (PID {beat.get('pid')} there, heartbeat of {beat.get('at')}); "
        "give this one a name of its own: --host or FLEET_HOST"
    )


def whose(spool: Spool, host: str, me: Machine) -> str:
    """Who holds the lock of this host, in a sentence."""
    with contextlib.suppress(OSError):
        seen = _see(spool.hosts / f"{host}.json")
        if seen and is_other(seen.beat, me):
            return refusal(host, seen.beat)
    return f"another fleetd serves {host} on this spool; one is enough (fleet hosts shows it)"
