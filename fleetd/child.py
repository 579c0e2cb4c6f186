"""The parent of attempts: one small process a lane, in a session of its own, that outlives the daemon.

It gets an order (one line of JSON) on its socket, takes the attempt's lease, starts the job as the head of a new session,
waits, enforces the time limit and the log's cap, ends what is left of the tree, and writes exit.json by rename. Then it
says so and waits for the next order; when the daemon is gone it ends with the last it has. On SIGTERM it ends the job first.
On SIGCONT it looks whether the job it runs, and no other one, is to be ended: for a file `cancel` in its directory.
"""

import contextlib
import errno
import fcntl
import json
import mmap
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from fleetd import shelter
from fleetd.exitfile import write_exit
from fleetd.files import look, replace_file, stamp_of
from fleetd.job import DECLINED_EXIT, Outcome, encode_json, utc
from fleetd.lease import boot_ticks, born, born_between, take_lease
from fleetd.log import CappedLog
from fleetd.spawn import Streams, spawn, why_not
from fleetd.table import has_ended
from fleetd.tree import Ending, become_subreaper, members, say_unkillable

_RESERVED = 4096
_NOT_FOUND, _NOT_RUNNABLE = 127, 126
_NOT_NOW = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})


class NotNow(Exception):
    """The host is out of processes or memory just now, which is not the job's fault."""


class Parent:
    """This process: its lane's socket, the pipe that signals wake it by, whether it was told to end, or to look."""

    def __init__(self, sock: socket.socket, begun: mmap.mmap) -> None:
        self.sock, self._begun = sock, begun
        self.told_to_end = self.told_to_look = False
        self.last_ok = True
        self.pid, self.born = os.getpid(), born(os.getpid())
        self.environ, self.shelters = dict(os.environb), shelter.shelters(os.environ)
        self.null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        wake, wakeup = os.pipe()
        for fd in (wake, wakeup):
            os.set_blocking(fd, False)
        self._wake = wake
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        if not hasattr(os, "pidfd_open"):
            signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._end)
        signal.signal(signal.SIGCONT, self._look)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        os.umask(0o022)
        self.has_all = become_subreaper()  # whoever of a job loses its own parent becomes a child of this process

    def _end(self, *_: object) -> None:
        self.told_to_end = self.told_to_look = True

    def _look(self, *_: object) -> None:
        self.told_to_look = True

    def begin(self, mark: str) -> None:
        """Note in the memory shared with the daemon that the job with this mark starts: the job cannot take that back."""
        self._begun[:] = mark.encode().ljust(len(self._begun), b"\0")

    def wait(self, timeout_s: float, fd: int | None = None) -> None:
        """Sleep until a signal, until `fd` is readable, or until the time is over."""
        waited = select.poll()
        waited.register(self._wake, select.POLLIN)
        if fd is not None:
            waited.register(fd, select.POLLIN)
        for ready, _ in waited.poll(max(0.0, timeout_s) * 1000 if timeout_s != float("inf") else None):
            if ready == self._wake:
                os.read(self._wake, 4096)

    def serve(self) -> None:
        """Take orders until the daemon is gone or this process is told to end."""
        buffer = b""
        while not self.told_to_end:
            line, newline, rest = buffer.partition(b"\n")
            if newline:
                buffer = rest
                self._answer(run(self, json.loads(line)))
                continue
            self.wait(float("inf"), self.sock.fileno())
            with contextlib.suppress(BlockingIOError):
                data = self.sock.recv(1 << 20, socket.MSG_DONTWAIT)
                if not data:
                    return
                buffer += data

    def _answer(self, answer: bytes) -> None:
        with contextlib.suppress(OSError):
            self.sock.sendall(answer + b"\n")


def run(parent: Parent, order: Mapping[str, Any]) -> bytes:
    """One attempt from lease to exit.json; the answer says whether it was started, and how it ended, in JSON."""
    if order["ahead"] and not parent.last_ok:
        said = encode_json({"held": True, "reason": "the job before it did not end ok: the breaker decides"})
    else:
        parent.last_ok = False
        said = _run(parent, order, order["path"])
    return b'{"mark":"%s",%s' % (order["mark"].encode(), said[1:])


def _run(parent: Parent, order: Mapping[str, Any], path: str) -> bytes:
    try:
        lease = take_lease(f"{path}/lock")
    except OSError as error:
        return _not_started(path, error.strerror)
    if lease is None:
        return _not_started(path, "another holds its lease")
    try:
        lock = look(f"{path}/lock")  # by its name: what was taken back between open and flock may be a new claim by now
        still_ours = lock and lock.data == order["mark"].encode() and stamp_of(f"{path}/job.json")
        if parent.told_to_end or not still_ours:
            return _not_started(path, "the claim is no longer this lane's to start")
        return _run_leased(parent, order, path, lease)
    except OSError as error:
        return _not_started(path, error.strerror)
    finally:
        os.close(lease)


def _not_started(path: str, why: str | None) -> bytes:
    return encode_json({"reason": f"{path}: {why}"})


def _run_leased(parent: Parent, order: Mapping[str, Any], path: str, lease: int) -> bytes:
    limit = order["timeout_s"]
    pid = {key: order[key] for key in ("host", "boot", "lane", "gpus", "attempt")} | {
        "parent": parent.pid,
        "parent_born": parent.born,
        "deadline": time.monotonic() + limit if limit is not None else None,
    }
    record = _Pid(encode_json(pid))
    reserved = -1
    try:
        reserved = _reserve(path, record.line)
        log = os.open(f"{path}/log", os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as error:
        if reserved >= 0:
            os.close(reserved)
        _forget(path)
        return _not_started(path, error.strerror)
    try:
        said = _attempt(parent, order, record, Streams(null=parent.null, log=log, lease=lease))
    except NotNow as error:
        os.close(reserved)
        _forget(path)
        return _not_started(path, str(error))
    finally:
        os.close(log)
    write_exit(parent.shelters, path, order["mark"], reserved, said)
    return b'{"exit":%s,"pid":%s}' % (said, record.line)


def _forget(path: str) -> None:
    """Remove what says that the job was started."""
    for name in ("pid.json", "exit.part", "log"):
        with contextlib.suppress(OSError):
            os.unlink(f"{path}/{name}")


class _Pid:
    """pid.json: what is known before the start, then with the leader in it."""

    def __init__(self, known: bytes) -> None:
        self._known = known[:-1]
        self.line = self._known + b',"pid":null,"pgid":null,"born":null}'

    def started(self, leader: int, born: str | None) -> None:
        self.line = self._known + b',"pid":%d,"pgid":%d,"born":%s}' % (leader, leader, encode_json(born))


def _reserve(path: str, first: bytes) -> int:
    """Take exit.json's block now, so that a full disk cannot lose an exit code; gives the open file. Raises OSError.

    It begins as the first pid.json, by a link: what replaces that frees no inode, and the attempt needs one less.
    """
    fd = os.open(f"{path}/exit.part", os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(fd, 0, _RESERVED)
        else:
            os.pwrite(fd, b" " * _RESERVED, 0)
        os.pwrite(fd, first.ljust(_RESERVED), 0)
        try:
            os.link(f"{path}/exit.part", f"{path}/pid.json")
        except OSError:  # a file system without hard links
            replace_file(f"{path}/pid.json", first)
    except OSError:
        os.close(fd)
        raise
    return fd


def _attempt(parent: Parent, order: Mapping[str, Any], pid: _Pid, streams: Streams) -> bytes:
    """From the start to the tree's end; gives exit.json."""
    path = order["path"]
    started, began, tick = time.time(), time.monotonic(), boot_ticks()
    environ = parent.environ
    try:
        environ = environ | {os.fsencode(k): os.fsencode(v) for k, v in order["env"].items()}
        parent.begin(order["mark"])
        leader = spawn(order["argv"], environ, order["cwd"], streams)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in _NOT_NOW:
            raise NotNow(error.strerror) from error
        return encode_json(_never_ran(order, environ, error, started))
    with contextlib.suppress(OSError):
        pid.started(leader, born_between(leader, tick, boot_ticks()))
        replace_file(f"{path}/pid.json", pid.line)
    capped = CappedLog(Path(path, "log"), streams.log, int(order["log_max_mb"] * (1 << 20)))
    cause = _wait(parent, order, leader, capped)
    ended = {"started": utc(started), "ended": utc(time.time()), "wall_s": round(time.monotonic() - began, 6)}
    record = _outcome(parent, order, leader, cause) | ended
    with contextlib.suppress(OSError):
        capped.finish()
    parent.last_ok = record["outcome"] == Outcome.OK
    return encode_json(record)


def _never_ran(
    order: Mapping[str, Any], environ: Mapping[bytes, bytes], error: OSError | ValueError, started: float
) -> dict[str, Any]:
    missing = isinstance(error, FileNotFoundError) and error.filename != order["cwd"]
    return {
        "outcome": Outcome.FAILED,
        "exit": _NOT_FOUND if missing else _NOT_RUNNABLE,
        "signal": None,
        "reason": why_not(order["argv"][0], order["cwd"], environ, error),
        "started": utc(started),
        "ended": utc(time.time()),
        "wall_s": 0.0,
        "cpu_s": 0.0,
        "max_rss_mb": 0.0,
        "leftovers": 0,
    }


def _wait(parent: Parent, order: Mapping[str, Any], leader: int, log: CappedLog) -> Outcome | None:
    """Until the leader has ended; gives back why it was ended by us, or None."""
    limit = order["timeout_s"]
    deadline = time.monotonic() + limit if limit is not None else float("inf")
    cause, ending = None, None
    with _end_of(leader) as end:
        while not has_ended(leader):
            now = time.monotonic()
            if ending is None and (parent.told_to_look or now >= deadline):
                cause = _cause(parent, order, late=now >= deadline)
                ending = _ending(order, leader) if cause else None
            if ending is not None:
                ending.step(now)
            wake_at = min(deadline if ending is None else now + ending.pause_s, _tend(log, now))
            parent.wait(wake_at - time.monotonic(), end)
    return cause


@contextlib.contextmanager
def _end_of(leader: int) -> Iterator[int | None]:
    """A descriptor that is readable once the leader has ended; None where SIGCHLD or the next look at the log has to tell."""
    fd = None
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):
            fd = os.pidfd_open(leader)
    try:
        yield fd
    finally:
        if fd is not None:
            os.close(fd)


def _tend(log: CappedLog, now: float) -> float:
    """Look after the log's cap; a share that errors is looked at again in a second."""
    try:
        return log.tend(now)
    except OSError:
        return now + 1.0


def _cause(parent: Parent, order: Mapping[str, Any], *, late: bool) -> Outcome | None:
    """Why the job is to be ended now, or None."""
    parent.told_to_look = False
    if os.path.exists(f"{order['path']}/cancel"):
        return Outcome.CANCELLED
    if parent.told_to_end:
        return Outcome.STOPPED
    return Outcome.TIMEOUT if late else None


def _ending(order: Mapping[str, Any], leader: int | None) -> Ending:
    find = partial(members, root=os.getpid(), group=leader, mark=order["mark"])
    return Ending(find, order["grace_s"], partial(say_unkillable, order["path"]))


def _outcome(parent: Parent, order: Mapping[str, Any], leader: int, cause: Outcome | None) -> dict[str, Any]:
    """Reap the leader and end what it left alive: it stays a zombie until then where its group is needed to find them."""
    leftovers = 0 if parent.has_all else _end_leftovers(parent, order, leader)
    _, status, used = os.wait4(leader, 0)
    if parent.has_all and _has_children():
        leftovers = _end_leftovers(parent, order, None)
    code = os.waitstatus_to_exitcode(status)
    return {
        "outcome": cause or {0: Outcome.OK, DECLINED_EXIT: Outcome.DECLINED}.get(code, Outcome.FAILED),
        "exit": code if code >= 0 else None,
        "signal": -code if code < 0 else None,
        "reason": None,
        "cpu_s": round(used.ru_utime + used.ru_stime, 6),
        "max_rss_mb": round(used.ru_maxrss / (1 << (20 if sys.platform == "darwin" else 10)), 3),
        "leftovers": leftovers,
    }


def _has_children() -> bool:
    """Whether this process has any, once the dead are reaped."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
        return True
    return False


def _end_leftovers(parent: Parent, order: Mapping[str, Any], leader: int | None) -> int:
    """End what the leader left alive; how many there were. None: the leader is reaped, and its group forgotten."""
    ending = _ending(order, leader)
    done = ending.step(time.monotonic())
    count = ending.left
    while not done:
        parent.wait(ending.pause_s)
        if leader is None:
            _has_children()
        done = ending.step(time.monotonic())
    return count


def main(fd: int, begun: int) -> None:
    """The lane's parent: `fd` is its end of the socket to the daemon, `begun` the file of what they share of memory."""
    fcntl.fcntl(fd, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
    memory = mmap.mmap(begun, 0)
    os.close(begun)
    with socket.socket(fileno=fd) as sock:
        Parent(sock, memory).serve()
