r"""The ledger: append-only segments of JSON lines, one writing host each. What merges them is merge.py.

    ledger.d/<host>.jsonl   the truth;  <host>.lock beside it is held for each append
    ledger.jsonl            the same lines merged, for `tail -F`

A line (fleet.row/1) is one ASCII JSON object with compact separators and a newline, written by one write(2). `seq` is the
last valid row's + 1; `crc`, the last key, is the zlib CRC-32 (8 hex digits) of the line without its newline and with
`,"crc":"…"` cut out. (host, seq) is unique and gapless.

Reader's algorithm: take the bytes up to the last newline; what is torn, a run of NULs, fails its crc or is no object is
counted and skipped; go on after it (a line that follows NULs directly still counts). Writer's: find the last valid row;
if the file doesn't end with a newline, begin with one; fsync before anything else may rely on the row.
"""

import functools
import os
import stat
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from fleetd.errors import BadData, IOFailed, NotFound
from fleetd.files import fsync_directory
from fleetd.job import NAME, Outcome, decode_trusted, encode_json, seconds, utc
from fleetd.lease import Turn, boot_id

SCHEMA = "fleet.row/1"
_TAIL = len(',"crc":"00000000"}')
_CHUNK = 1 << 16
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OUTCOMES = frozenset(Outcome)
_COUNTED = ("job", "attempt", "outcome", "exit", "signal", "reason", "next", "kind", "wall_s")


@dataclass(frozen=True, slots=True)
class Row:
    """One valid line: where it stands, what it is about, and the whole decoded object."""

    host: str
    seq: int
    event: str
    at: str
    body: Mapping[str, Any]


Decode = Callable[[bytes], Row | None]
Written = TypeVar("Written")


def encode_row(body: Mapping[str, Any]) -> bytes:
    """The line, crc and newline included."""
    line = encode_json(body)
    return line[:-1] + b',"crc":"%08x"}\n' % zlib.crc32(line)


def decode_row(line: bytes) -> Row | None:
    """The row in a line without its newline, or None when it isn't one."""
    return _row_of(line) if _is_whole(line) else None


def decode_head(line: bytes) -> Row | None:
    """The same less what follows `payload`, which the engine writes last, and which is kilobytes in a trial's row."""
    if not _is_whole(line):
        return None
    at = line.find(b',"payload":')  # inside of a string it would stand as ,\"payload\":
    head = _row_of(line[:at] + b"}") if at >= 0 else None
    return head if head and head.event == "result" and "next" in head.body else _row_of(line)


def _is_whole(line: bytes) -> bool:
    return line[-_TAIL : -_TAIL + 8] == b',"crc":"' and line[-10:-2] == b"%08x" % zlib.crc32(line[:-_TAIL] + b"}")


def _row_of(line: bytes) -> Row | None:
    try:
        body = decode_trusted(line)
    except ValueError:
        return None
    if not isinstance(body, dict) or not _is_row(body):
        return None
    return Row(body["host"], body["seq"], body["event"], body["at"], body)


def _is_row(body: Mapping[str, Any]) -> bool:
    """Whether the keys that every reader relies on are there and of their types; a later format is no row of this one."""
    texts = all(isinstance(body.get(key), str) for key in ("host", "event", "at"))
    if not texts or body.get("schema") != SCHEMA or not _is_count(body.get("seq"), 1):
        return False
    if not _names_host(body["host"]) or not _is_moment(body["at"]):
        return False
    if body["event"] == "result":
        return (
            isinstance(body.get("job"), str)
            and _is_count(body.get("attempt"), 0)
            and isinstance(body.get("outcome"), str)
            and body["outcome"] in _OUTCOMES
        )
    if body["event"] == "void":
        return isinstance(body.get("rows"), list) and all(_is_named(row) for row in body["rows"])
    return body["event"] != "breaker" or body.get("scope") != "host" or _is_moment(body.get("until"))


@functools.lru_cache(maxsize=1024)
def _names_host(text: str) -> bool:
    return NAME.fullmatch(text) is not None


def _is_named(row: Any) -> bool:
    return isinstance(row, dict) and isinstance(row.get("host"), str) and _is_count(row.get("seq"), 1)


def _is_count(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_moment(value: Any) -> bool:
    try:
        seconds(value)
    except (ValueError, TypeError, OverflowError):
        return False
    return True


@dataclass(slots=True)
class _Seen:
    """How far one segment was read: the file's inode and the offset after the last whole line."""

    inode: int = 0
    offset: int = 0


class Ledger:
    """The segments under `root` (ledger.d). Reading needs no lock; `poll` reads only what is new to this object."""

    def __init__(self, root: Path, patience_s: float = 30.0) -> None:
        self.root, self._patience_s = root, patience_s
        self.skipped = 0
        self._seen: dict[str, _Seen] = {}
        self._last: dict[str, tuple[int, int]] = {}
        self._locks: dict[str, AbstractContextManager[object]] = {}
        self._appended: list[tuple[Row, bytes]] = []
        self.synced: dict[str, int] = {}  # up to which seq this object knows a segment to be durable

    def rows(self) -> Iterator[Row]:
        """Every valid row of all segments, segment by segment; what was skipped is in `skipped` afterwards."""
        yield from (row for row, _ in self.lines(decode_row))

    def heads(self) -> Iterator[Row]:
        """The result rows, as `rows` gives them, with as much in their bodies as counting takes: a tenth of the work."""
        for row, _ in self.lines(decode_head):
            if row.event == "result":
                yield Row(row.host, row.seq, row.event, row.at, {key: row.body.get(key) for key in _COUNTED})

    def lines(self, decode: Decode) -> Iterator[tuple[Row, bytes]]:
        """From the beginning: each row as `decode` gives it, with its line."""
        self.skipped = 0
        self._seen.clear()
        self._appended.clear()
        yield from self.poll_lines(decode)

    def poll(self) -> list[Row]:
        """The rows that came since the last call of `poll` or `rows`."""
        return [row for row, _ in self.poll_lines()]

    def poll_lines(self, decode: Decode = decode_row) -> Iterator[tuple[Row, bytes]]:
        """`poll`, each row with its line as it stands in the segment."""
        while self._appended:
            yield self._appended.pop(0)
        for host in self.hosts():
            for line in self._new_lines(host, self._seen.setdefault(host, _Seen())):
                clean = line.rpartition(b"\0")[2]
                row = decode(clean)
                self.skipped += (row is None and bool(line)) or clean != line
                if row:
                    yield row, clean

    def reached(self, host: str) -> tuple[int, int]:
        """How far `poll` has read that host's segment: the file's inode, and the offset behind the line that it gave last."""
        seen = self._seen.get(host, _Seen())
        to_give = sum(len(line) + 1 for row, line in self._appended if row.host == host)
        return seen.inode, seen.offset - to_give

    def go_on(self, reached: Mapping[str, tuple[int, int]]) -> None:
        """Let `poll` go on from where another object had reached; a segment that is another file now is read anew."""
        self._seen = {host: _Seen(inode, offset) for host, (inode, offset) in reached.items()}

    def rows_at(self, host: str, places: Sequence[tuple[int, int]]) -> list[Row | None]:
        """The rows between those offsets of a segment, newline not included; None where there is none. Raises OSError."""
        fd = os.open(self.root / f"{host}.jsonl", _READ)
        try:
            return [decode_row(os.pread(fd, end - start, start)) for start, end in places]
        finally:
            os.close(fd)

    def behind(self, host: str) -> bool:
        """Whether that host's segment has rows that `poll` has not given yet; one look-up."""
        try:
            size = os.stat(self.root / f"{host}.jsonl").st_size
        except OSError:
            return True
        return size != self._seen.setdefault(host, _Seen()).offset

    def own_lines(self) -> list[tuple[Row, bytes]]:
        """What this object has appended since the last call, where that needs no reading; `poll` gives it else."""
        own, self._appended = self._appended, []
        return own

    def hosts(self) -> list[str]:
        """The hosts that have a segment, in order."""
        try:
            return sorted(name.removesuffix(".jsonl") for name in os.listdir(self.root) if name.endswith(".jsonl"))
        except FileNotFoundError as error:
            raise NotFound(f"{self.root}: no ledger here; fleet init makes a spool") from error

    def _new_lines(self, host: str, seen: _Seen) -> Iterator[bytes]:
        try:
            fd = os.open(self.root / f"{host}.jsonl", _READ)
        except OSError:
            return
        at = os.fstat(fd)
        if at.st_ino != seen.inode or at.st_size < seen.offset:
            seen.inode, seen.offset = at.st_ino, 0
        if at.st_size == seen.offset or not stat.S_ISREG(at.st_mode):
            os.close(fd)
            return
        with open(fd, "rb") as file:
            file.seek(seen.offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                seen.offset += len(line)
                yield line[:-1]

    def tail(self, host: str, limit_bytes: int) -> list[Row]:
        """The valid rows in the last `limit_bytes` of one segment, oldest first. Raises OSError."""
        path = self.root / f"{host}.jsonl"
        if not path.is_file() or path.is_symlink():
            return []
        fd = os.open(path, _READ)
        try:
            size = os.fstat(fd).st_size
            lines = os.pread(fd, limit_bytes, max(0, size - limit_bytes)).split(b"\n")
        finally:
            os.close(fd)
        return [row for line in lines if (row := decode_row(line.rpartition(b"\0")[2]))]

    def append(self, host: str, bodies: Sequence[Mapping[str, Any]]) -> list[Row]:
        """Append under the segment's lock and fsync once; adds schema, host, boot, seq, at.

        Raises BadData for a body that readers would not take for a row, IOFailed when the disk refuses.
        """
        return self._write(host, lambda fd, path: self._append(fd, path, host, bodies))

    def graft(self, host: str, lines: Sequence[bytes]) -> int:
        """Append rows that `host` has written elsewhere, lines as `ledger_lines` gives them, and fsync once; how many.

        Raises BadData unless each is a row of that host and follows the one before it, the first the last row here.
        """
        return self._write(host, lambda fd, path: self._graft(fd, path, host, lines))

    def _write(self, host: str, write: Callable[[int, Path], Written]) -> Written:
        """What `write` makes of the segment, open and locked."""
        path = self.root / f"{host}.jsonl"
        with self._lock(host, path):
            try:
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            except OSError as error:
                raise IOFailed(f"{path}: cannot append: {error.strerror}") from error
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    raise IOFailed(f"{path}: no regular file; move it away")
                return write(fd, path)
            finally:
                os.close(fd)

    def _lock(self, host: str, path: Path) -> AbstractContextManager[object]:
        lock = self._locks.get(host)
        if lock is None:
            lock = self._locks[host] = Turn(
                self.root / f"{host}.lock", f"another process writes {path}", self._patience_s
            )
        return lock

    def _append(self, fd: int, path: Path, host: str, bodies: Sequence[Mapping[str, Any]]) -> list[Row]:
        at = os.fstat(fd)
        size = at.st_size
        known, seq = self._last.get(host, (-1, 0))
        if known != size:
            seq = _last_seq(fd, size)
            if size and os.pread(fd, 1, size - 1) != b"\n":
                size += write_line(fd, path, b"\n", size)
        seen = self._seen.get(host, _Seen())
        caught_up = (seen.inode, seen.offset) == (at.st_ino, size)
        rows, lines = [], []
        for number, body in enumerate(bodies, seq + 1):
            full = _headed(body, host, number)
            if not _is_row(full):
                raise BadData(f"{path}: this would be no row: {encode_json(full)[:200]!r}")
            rows.append(Row(host, number, full["event"], full["at"], full))
            lines.append(encode_row(full))
        for line in lines:
            size += write_line(fd, path, line, size)
        try:
            os.fsync(fd)
        except OSError as error:
            raise IOFailed(f"{path}: fsync: {error.strerror}") from error
        self._last[host] = (size, seq + len(rows))
        self.synced[host] = seq + len(rows)
        if caught_up:
            seen.offset = size
            self._appended += zip(rows, (line[:-1] for line in lines), strict=True)
        return rows

    def _graft(self, fd: int, path: Path, host: str, lines: Sequence[bytes]) -> int:
        size = os.fstat(fd).st_size
        last = _last_seq(fd, size)
        for seq, line in enumerate(lines, last + 1):
            row = decode_row(line)
            if row is None or (row.host, row.seq) != (host, seq):
                what = f"seq {row.seq} of {row.host}" if row else "no row"
                raise BadData(f"{path}: {what} comes where seq {seq} of {host} must: nothing was written")
        if size and os.pread(fd, 1, size - 1) != b"\n":
            size += write_line(fd, path, b"\n", size)
        for line in lines:
            size += write_line(fd, path, line + b"\n", size)
        try:
            os.fsync(fd)
            fsync_directory(self.root)
        except OSError as error:
            raise IOFailed(f"{path}: fsync: {error.strerror}") from error
        return len(lines)

    def sync(self, host: str) -> None:
        """Make durable what any process has appended for this host. Raises OSError."""
        fd = os.open(self.root / f"{host}.jsonl", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def ledger_lines(path: Path) -> Iterator[tuple[Row | None, bytes]]:
    """The lines of a ledger file, a segment or a merged one, each with its row; None: torn, NULs, a wrong crc, no row.

    Raises NotFound, IOFailed.
    """
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise IOFailed(f"{path}: no regular file")
            for line in file:
                nuls, _, clean = line.removesuffix(b"\n").rpartition(b"\0")
                if nuls or line.startswith(b"\0"):
                    yield None, nuls
                if clean:
                    yield decode_row(clean), clean
    except FileNotFoundError as error:
        raise NotFound(f"{path}: no such ledger") from error
    except OSError as error:
        raise IOFailed(f"{path}: cannot be read: {error.strerror}") from error


def _headed(body: Mapping[str, Any], host: str, seq: int) -> dict[str, Any]:
    head = {"schema": SCHEMA, "event": body["event"], "host": host, "boot": boot_id(), "seq": seq}
    return head | {"at": body.get("at") or utc(time.time())} | {k: v for k, v in body.items() if k not in head}


def write_line(fd: int, path: Path, line: bytes, size: int) -> int:
    """One write(2) of the whole line; a short one (disk full) is taken back, and IOFailed raised."""
    try:
        wrote = os.write(fd, line)
    except OSError as error:
        raise IOFailed(f"{path}: cannot append: {error.strerror}") from error
    if wrote < len(line):
        os.ftruncate(fd, size)
        raise IOFailed(f"{path}: the disk took {wrote} of {len(line)} bytes; free some space")
    return wrote


def _last_seq(fd: int, size: int) -> int:
    """The seq of the last valid row, looking from the end, further back only while none is found."""
    want = _CHUNK
    while True:
        data = os.pread(fd, want, max(0, size - want))
        for line in reversed(data.split(b"\n")):
            if row := decode_row(line.rpartition(b"\0")[2]):
                return row.seq
        if want >= size:
            return 0
        want *= 4
