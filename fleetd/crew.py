"""The lanes' parents as the daemon sees them: start one, give it an order, hear that an attempt has ended or that it died."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from fleetd.claim import Claim
from fleetd.job import encode_json

_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from fleetd.child import main; main(*map(int, sys.argv[2:]))"
_WITHHELD = ("NOTIFY_SOCKET", "INVOCATION_ID", "FLEET_CLAIM", "FLEET_PREVIOUS", "FLEET_BUILD")
_WITHHELD_HEADS = ("WATCHDOG_", "LISTEN_", "PYTHON")
_AT_DOOR = 1 << 18  # bytes of orders that a lane's parent has not read
_MARK = 64  # bytes that a mark has room in
_FEW = 4  # orders that a lane still has when it is given more


def for_jobs(environ: Mapping[str, str]) -> dict[str, str]:
    """What of the daemon's environment its jobs get: not what was meant for the daemon itself."""
    return {k: v for k, v in environ.items() if k not in _WITHHELD and not k.startswith(_WITHHELD_HEADS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a parent said of an attempt: its `exit` and `pid` records, or only the `reason` why it was not started."""

    taken: Claim
    said: Mapping[str, Any]

    @property
    def started(self) -> bool:
        """Whether the job has run."""
        return "exit" in self.said


def _ahead(quick_s: float) -> int:
    """How many jobs may wait at a lane's door: none where they take long, for any lane may come free first."""
    return 16 if quick_s < 0.005 else 8 if quick_s < 0.02 else 1 if quick_s < 0.1 else 0


def _shared() -> IO[bytes]:
    """Memory that a parent can be given; it says there whose job it has started, for which the daemon need not wake."""
    if hasattr(os, "memfd_create"):
        file: IO[bytes] = os.fdopen(os.memfd_create("begun"), "r+b", buffering=0)
    else:
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed with the lane
    file.truncate(_MARK)
    return file


class Lane:
    """One parent process and the socket to it. `orders`: the attempts it was ordered to run, oldest first, by path."""

    def __init__(self, number: int, environ: Mapping[str, str]) -> None:
        self.number = number
        self.orders: dict[str, Claim] = {}
        self.gpus: tuple[int, ...] = ()  # what its oldest order has
        self.quick_s = float("inf")  # how long its last attempt took
        self.since = 0.0  # when its oldest order became due, monotonic seconds
        self.has_spoken = False
        self._unsent = b""
        self._begun = _shared()
        ours, theirs = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _AT_DOOR)
        root = str(Path(__file__).resolve().parent.parent)
        fds = theirs.fileno(), self._begun.fileno()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-S", "-E", "-c", _BOOT, root, *map(str, fds)],
                pass_fds=fds,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
                env=for_jobs(environ),
            )
        self._sock = ours
        self._buffer = b""

    @property
    def pid(self) -> int:
        """The parent's process id."""
        return self._process.pid

    def fileno(self) -> int:
        """Readable when the parent has said something or died."""
        return self._sock.fileno()

    def order(self, taken: Claim, order: Mapping[str, Any]) -> None:
        """Have it run the claim when it is done with those before. What the socket doesn't take now is sent by `send`."""
        ahead = bool(self.orders)
        if not ahead:
            self.since, self.gpus = time.monotonic(), tuple(order["gpus"])
        self.orders[str(taken.path)] = taken
        self._unsent += encode_json({**order, "ahead": ahead}) + b"\n"
        self.send()

    @property
    def has_unsent(self) -> bool:
        """Whether it has not been told all its orders: it takes in none, as long as it is stopped."""
        return bool(self._unsent)

    def send(self) -> None:
        """Tell it what it has not been told, as far as it takes that now; that it is gone is for `hear` to say."""
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            while self._unsent:
                self._unsent = self._unsent[self._sock.send(self._unsent, socket.MSG_DONTWAIT) :]

    def begun(self) -> Claim | None:
        """Of what it has not answered: the claim whose job it has started."""
        mark = os.pread(self._begun.fileno(), _MARK, 0).rstrip(b"\0").decode()
        return next((taken for taken in self.orders.values() if taken.token == mark), None)

    def hear(self) -> tuple[list[Answer], bool]:
        """Its answers since the last call, and whether it still lives."""
        alive = True
        self.send()
        with contextlib.suppress(BlockingIOError):
            try:
                while data := self._sock.recv(1 << 16, socket.MSG_DONTWAIT):
                    self._buffer += data
            except ConnectionResetError:
                data = b""
            alive = bool(data)
        *lines, self._buffer = self._buffer.split(b"\n")
        return [answer for line in lines if (answer := self._answer(json.loads(line)))], alive

    def _answer(self, said: Mapping[str, Any]) -> Answer | None:
        """The answer with its claim; None when what it speaks of was taken back meanwhile."""
        self.since, self.has_spoken = time.monotonic(), True
        path = next((path for path, taken in self.orders.items() if taken.token == said["mark"]), None)
        if path is None:
            return None
        self.gpus = ()  # what stands behind it has none
        answer = Answer(taken=self.orders.pop(path), said=said)
        self.quick_s = said["exit"]["wall_s"] if answer.started else float("inf")
        return answer

    def stocked_s(self) -> float:
        """How long it will have orders, as far as its last job tells."""
        spare = len(self.orders) - _FEW
        return self.quick_s * spare if spare > 0 else 0.0

    def close(self) -> None:
        """Let go of it: it ends when its attempt has."""
        self._sock.close()
        self._begun.close()

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
        self.orphaned: list[Claim] = []  # whose jobs were started by a parent that has died since, and not yet judged
        self.stillborn = False  # whether one that died lately had never said anything

    def idle(self) -> Lane:
        """A lane that runs nothing, made if there is none. Raises OSError when no process can be started."""
        for lane in self.lanes:
            if not lane.orders:
                return lane
        taken = {lane.number for lane in self.lanes}
        lane = Lane(next(n for n in range(len(taken) + 1) if n not in taken), self._environ)
        self.lanes.append(lane)
        return lane

    def quick(self) -> Lane | None:
        """A lane whose jobs end so soon that its next one may be waiting at its door; the one with fewest waiting."""
        ready = [lane for lane in self.lanes if 0 < len(lane.orders) <= _ahead(lane.quick_s) and not lane.has_unsent]
        return min(ready, key=lambda lane: len(lane.orders), default=None)

    def stocked_s(self) -> float:
        """How long no lane with an order will run out of them: until then the next pass can wait, and do more at once."""
        return min((lane.stocked_s() for lane in self.lanes if lane.orders), default=0.0)

    def ordered(self) -> dict[str, tuple[Claim, Lane]]:
        """What was ordered and not answered, by the attempt's path."""
        return {path: (taken, lane) for lane in self.lanes for path, taken in lane.orders.items()}

    def hear(self) -> tuple[list[Answer], bool]:
        """What all parents have said, and whether one of them has died."""
        said: list[Answer] = []
        died = False
        for lane in list(self.lanes):
            answers, alive = lane.hear()
            said += answers
            if not alive:
                died = True
                self.stillborn |= not lane.has_spoken
                self.orphaned += filter(None, [lane.begun()])
                lane.close()
                self.lanes.remove(lane)
                self._dying.append(lane)
        self._dying = [lane for lane in self._dying if not lane.has_ended()]
        return said, died

    def pids(self) -> set[int]:
        """The parents whose ends are asked for here."""
        return {lane.pid for lane in self.lanes + self._dying}

    def close(self) -> None:
        """Let go of all; attempts go on."""
        for lane in self.lanes:
            lane.close()
        for lane in self.lanes + self._dying:
            lane.forget()
        self.lanes.clear()
