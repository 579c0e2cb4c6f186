"""A fleet to test against: one real spool, real daemons on it, and the certainty that all of them are gone afterwards."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from fleetd import Ledger
from fleetd.spool import init_spool

FLEET, FLEETD = (Path(sys.executable).with_name(name) for name in ("fleet", "fleetd"))
SETTINGS = {"spool": 1, "poll_s": 30, "grace_s": 1.0, "min_free_mb": 0, "failures": 1000}
SHELL = "sh", "-c"


def bearing(mark: bytes) -> dict[int, str]:
    """The living processes with this in their environment, by pid, and their command lines."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found[int(pid)] = (
                    Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
        except OSError:
            continue
    return found


class Rig:
    """One spool and the daemons started on it. Every process that comes of them bears the mark RIG=<root>."""

    def __init__(self, root: Path, wait_for, said: Path | None = None) -> None:
        self.root, self._wait_for = root, wait_for
        self._said = said or root.with_name(f"{root.name}.said")
        self.spool = init_spool(root, home=None)
        self.mark = f"RIG={root}".encode()
        self.daemons: list[subprocess.Popen[bytes]] = []
        self.ledger = Ledger(self.spool.ledger_d)
        self._rows: list[dict] = []
        self.settings()

    def settings(self, **changed) -> None:
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in (SETTINGS | changed).items()]
        self.spool.settings.write_text("".join(lines))

    def start(self, *flags, host="calber", lanes=2, env: Mapping[str, str] | None = None, ready=True, wrap=()):
        """A daemon; with `ready`, once its first heartbeat says that it looked at the queue."""
        clean = {key: value for key, value in os.environ.items() if not key.startswith("FLEET_")}
        beat = self.spool.hosts / f"{host}.json"
        command = [*wrap, FLEETD, "--spool", self.root, "--host", host, "--lanes", str(lanes), *flags]
        with open(self._said, "ab") as said:
            daemon = subprocess.Popen(command, stderr=said, env=clean | {"RIG": str(self.root)} | dict(env or {}))
        self.daemons.append(daemon)
        if ready:
            self._wait_for(lambda: daemon.poll() is not None or self.beat(host).get("pid") == daemon.pid)
            assert daemon.poll() is None or "--once" in flags, self.said()
            assert beat.exists()
        return daemon

    def once(self, *flags, limit_s=20.0, **keys) -> int:
        """Run `fleetd --once` to its end; its exit code."""
        return self.start("--once", *flags, ready=False, **keys).wait(limit_s)

    def said(self) -> str:
        """All that the daemons have written to stderr."""
        return self._said.read_text(errors="replace")

    def beat(self, host="calber") -> dict:
        return self.spool.heartbeats().get(host, {})

    def drop(self, name: str, *argv: str, **keys) -> str:
        """Put a job file into queue/ as a person would: written elsewhere, then moved in."""
        return self.drop_bytes(name, json.dumps({"argv": argv} | keys).encode())

    def drop_bytes(self, name: str, data: bytes) -> str:
        draft = self.spool.tmp / f"{name}.draft"
        draft.write_bytes(data)
        draft.rename(self.spool.queue / f"{name}.json")
        return name

    def shell(self, name: str, script: str, **keys) -> str:
        return self.drop(name, *SHELL, script, **keys)

    def rows(self, event="result") -> list[dict]:
        """The bodies of all rows of that event so far."""
        self._rows += [dict(row.body) for row in self.ledger.poll()]
        return [row for row in self._rows if row["event"] == event]

    def results(self, name: str) -> list[dict]:
        """The rows of one job, first attempt first."""
        return [row for row in self.rows() if row["job"] == name]

    def ended(self, name: str, limit_s=15.0) -> dict:
        """The job's final row, once there is one and its directory has left running/."""

        def final():
            return next((row for row in self.results(name) if row["next"] is None), None)

        row = self._wait_for(final, limit_s)
        self._wait_for(lambda: not self.attempt(name).exists())
        return row

    def attempt(self, name: str, host="calber") -> Path:
        return self.spool.running / host / name

    def pid(self, name: str, host="calber", limit_s=10.0) -> dict:
        """pid.json once it names the leader."""

        def recorded():
            found = self.attempt(name, host) / "pid.json"
            value = json.loads(found.read_bytes()) if found.exists() else {}
            return value if value.get("pid") else None

        return self._wait_for(recorded, limit_s)

    def log(self, row: Mapping) -> bytes:
        return (self.root / row["log"]).read_bytes()

    def parents(self) -> set[int]:
        """The living parents of lanes."""
        return {pid for pid, command in bearing(self.mark).items() if "fleetd.child" in command}

    def jobs(self) -> dict[int, str]:
        """The living processes of jobs: they know their spool by FLEET_SPOOL."""
        return bearing(f"FLEET_SPOOL={self.root}".encode())

    def kill(self) -> None:
        """kill -9 every daemon; their jobs go on."""
        for daemon in self.daemons:
            daemon.kill()
            daemon.wait()
        self.daemons.clear()

    def close(self) -> None:
        """End everything that came of this rig, and see that it is gone."""
        self.kill()

        def none_left():
            left = bearing(self.mark)
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            return not left

        self._wait_for(none_left)


@pytest.fixture
def rig(tmp_path, wait_for):
    """A spool of its own, no daemon on it yet."""
    made = Rig(tmp_path / "spool", wait_for)
    yield made
    made.close()


@pytest.fixture(scope="module")
def busy(tmp_path_factory, wait_for):
    """One daemon for a whole module, that looks at the spool only when something happens (poll_s = 30)."""
    made = Rig(tmp_path_factory.mktemp("busy") / "spool", wait_for)
    made.start(lanes=4)
    yield made
    made.close()


@pytest.fixture
def environ(tmp_path):
    """The environment of a command whose spool is tmp_path/spool and whose host is calber."""
    return os.environ | {"FLEET_SPOOL": str(tmp_path / "spool"), "FLEET_HOST": "calber"}


@pytest.fixture
def fleet(environ, tmp_path):
    """`fleet(*arguments, stdin="", **environ)` runs the real command in an otherwise empty directory."""

    def run(*arguments, stdin="", **also):
        return subprocess.run(
            [FLEET, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            env=environ | also,
            cwd=tmp_path,
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture
def root_only():
    if os.getuid() != 0:
        pytest.skip("mounting needs root")


@pytest.fixture
def small_disk(root_only, tmp_path):
    """`small_disk(size)` mounts a tmpfs of that size and gives its path."""
    mounted = []

    def mount(size="64k", kind="tmpfs"):
        at = tmp_path / f"disk{len(mounted)}"
        at.mkdir()
        done = subprocess.run(["mount", "-t", kind, "-o", f"size={size}", kind, at], capture_output=True, check=False)
        if done.returncode:
            pytest.skip(f"no {kind} to be had: {done.stderr.decode()}")
        mounted.append(at)
        return at

    yield mount
    for at in mounted:
        subprocess.run(["umount", "-l", at], check=True)
