"""The lanes' parents as the daemon sees them: start one, give it an order, hear that an attempt has ended or that it died."""

import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fleetd.job import encode_json

_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from fleetd.child import main; main(int(sys.argv[2]))"
_WITHHELD = ("NOTIFY_SOCKET", "INVOCATION_ID")
_WITHHELD_HEADS = ("WATCHDOG_", "LISTEN_", "PYTHON", "FLEET_")


def clean(environ: Mapping[str, str]) -> dict[str, str]:
    """What of the daemon's environment its jobs get: not what was meant for the daemon itself."""
    return {k: v for k, v in environ.items() if k not in _WITHHELD and not k.startswith(_WITHHELD_HEADS)}


class Lane:
    """One parent process and the socket to it. `path` is the attempt it was last ordered to run, None when idle."""

    def __init__(self, number: int, environ: Mapping[str, str]) -> None:
        self.number = number
        self.path: Path | None = None
        ours, theirs = socket.socketpair()
        root = str(Path(__file__).resolve().parent.parent)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-S", "-E", "-c", _BOOT, root, str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
                env=clean(environ),
            )
        ours.setblocking(False)
        self._sock = ours
        self._buffer = b""

    @property
    def pid(self) -> int:
        """The parent's process id."""
        return self._process.pid

    def fileno(self) -> int:
        """Readable when the parent has said something or died."""
        return self._sock.fileno()

    def order(self, path: Path, order: Mapping[str, Any]) -> None:
        """Have it run the attempt at `path`. Raises OSError when the parent is gone."""
        self.path = path
        self._sock.setblocking(True)
        try:
            self._sock.sendall(encode_json(order) + b"\n")
        finally:
            self._sock.setblocking(False)

    def hear(self) -> tuple[list[Mapping[str, Any]], bool]:
        """Its answers since the last call, and whether it still lives; an answer leaves the lane idle."""
        alive = True
        with contextlib.suppress(BlockingIOError):
            try:
                while data := self._sock.recv(1 << 16):
                    self._buffer += data
            except ConnectionResetError:
                data = b""
            alive = bool(data)
        *lines, self._buffer = self._buffer.split(b"\n")
        if lines:
            self.path = None
        return [json.loads(line) for line in lines], alive

    def close(self) -> None:
        """Let go of it: it ends when its attempt has."""
        self._sock.close()

    def has_ended(self) -> bool:
        """Whether its process is gone; asked until it is, so that it leaves no zombie."""
        return self._process.poll() is not None

    def forget(self) -> None:
        """Leave the process to whoever comes after this daemon."""
        self._process.returncode = 0


class Crew:
    """All lanes of this daemon; a parent that died is replaced when a lane is next wanted."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)
        self.lanes: list[Lane] = []
        self._dying: list[Lane] = []

    def idle(self) -> Lane:
        """A lane that runs nothing, made if there is none. Raises OSError when no process can be started."""
        for lane in self.lanes:
            if lane.path is None:
                return lane
        taken = {lane.number for lane in self.lanes}
        lane = Lane(next(n for n in range(len(taken) + 1) if n not in taken), self._environ)
        self.lanes.append(lane)
        return lane

    def starting(self) -> dict[str, Lane]:
        """Which lane was ordered to run which attempt, by the attempt's path."""
        return {str(lane.path): lane for lane in self.lanes if lane.path is not None}

    def hear(self) -> list[Mapping[str, Any]]:
        """What all parents have said; the dead ones are let go of."""
        said: list[Mapping[str, Any]] = []
        for lane in list(self.lanes):
            answers, alive = lane.hear()
            said += answers
            if not alive:
                lane.close()
                self.lanes.remove(lane)
                self._dying.append(lane)
        self._dying = [lane for lane in self._dying if not lane.has_ended()]
        return said

    def close(self) -> None:
        """Let go of all; attempts go on."""
        for lane in self.lanes:
            lane.close()
        for lane in self.lanes + self._dying:
            lane.forget()
        self.lanes.clear()
