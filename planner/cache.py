"""The cache: what was read of a long ledger, so that the next command reads only what is new. It can go at any time.

A file a plan in $XDG_CACHE_HOME/fleet-plan (else ~/.cache/fleet-plan), outside of the spool: what other hosts and users may
write to is nothing to rest on. It holds the shelf's lines and, of all other rows that count, where they stand; the rows
themselves are read from the ledger. It is good for the sources that wrote it, for one spool and plan, and as long as each
segment is the same file with the same bytes at its beginning, before where reading ended, and wherever no row could be read;
any doubt means to read anew.

    1st line   {"schema", "sources", "plan", "spool", "segments": {host: [inode, offset, crc, gaps]}, "crc": of the rest}
    the rest   Python's marshal of ([(a trial's line), …], [(a screen's), …], [(host, seq, start, end), …]): a tenth of the
               time that JSON takes

Beside it, NAME.slopes tells how far the slopes were followed (policy/memory.py): a first line without segments, and the rest.
"""

import contextlib
import hashlib
import json
import marshal
import os
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from fleetd import encode_json
from planner.sheaf import Filed, Told
from planner.shelf import Line
from planner.trial import Place

SCHEMA: Final = "fleet.cache/1"
ENDS: Final = 4096  # bytes of a segment's beginning, and of what was read last, that are looked at
MOST: Final = 1 << 30
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_SOURCES: Final = ("*.py", "policy/*.py")

Reached = Mapping[str, tuple[int, int]]  # host → inode and offset
Gap = tuple[int, int]  # offsets, between rows: what is no row there may be mended


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What was read."""

    reached: Reached
    lines: Sequence[Line]
    screens: Sequence[Filed]
    places: Sequence[Place]
    gaps: Mapping[str, Sequence[Gap]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """Of one plan in one spool."""

    home: Path | None  # None: there is no place for it
    ledger: Path
    plan: str

    @property
    def path(self) -> Path | None:
        named = hashlib.sha256(f"{self.ledger.resolve()}\0{self.plan}".encode()).hexdigest()[:16]
        return self.home / f"{named}.json" if self.home else None

    def read(self) -> Kept | None:
        """None where there is none that is good."""
        try:
            return self._decoded(_own_bytes(self.path)) if self.path else None
        except (OSError, ValueError, TypeError, KeyError, AttributeError, EOFError, RecursionError):
            return None

    def _decoded(self, data: bytes) -> Kept:
        """Raises ValueError, TypeError, KeyError, EOFError or OSError."""
        first, _, rest = data.partition(b"\n")
        head = json.loads(first)
        if {key: head[key] for key in ("schema", "sources", "plan", "spool")} != self._head():
            raise ValueError("of another version, plan or spool")
        if head["crc"] != zlib.crc32(rest):
            raise ValueError("damaged")
        for host, (inode, offset, crc, gaps) in head["segments"].items():
            if crc != self._looked_at(host, inode, offset, gaps):
                raise ValueError(f"{host}'s segment is another")
        lines, screens, places = marshal.loads(rest)  # noqa: S302 -- our own file, which nobody else may write
        return Kept(
            reached={host: (inode, offset) for host, (inode, offset, *_) in head["segments"].items()},
            lines=[*map(Line._make, lines)],
            screens=[Filed(Told._make(told), *rest) for told, *rest in screens],
            places=[_place(place) for place in places],
            gaps={host: [(start, end) for start, end in gaps] for host, (*_, gaps) in head["segments"].items()},
        )

    def write(self, kept: Kept) -> None:
        """Keep it, whole or not at all; where that cannot be, there is none."""
        if self.path is None:
            return
        screens = [(tuple(told), *rest) for told, *rest in kept.screens]
        rest = marshal.dumps(([*map(tuple, kept.lines)], screens, [*kept.places]))
        with contextlib.suppress(OSError, ValueError):  # a segment is no file any more, or another
            segments = {}
            for host, (inode, offset) in kept.reached.items():
                gaps = kept.gaps.get(host, [])
                segments[host] = inode, offset, self._looked_at(host, inode, offset, gaps), gaps
            head = encode_json(self._head() | {"segments": segments, "crc": zlib.crc32(rest)})
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _put(self.path, head + b"\n" + rest)

    def recall(self) -> bytes | None:
        """What was stored beside it, if this code stored it for this plan and spool."""
        try:
            first, _, rest = (_own_bytes(self._beside) if self._beside else b"").partition(b"\n")
            return rest if first == self._stored(rest) else None
        except (OSError, ValueError):
            return None

    def store(self, data: bytes) -> None:
        """In place of what is stored beside it; where that cannot be, nothing is."""
        if self._beside:
            with contextlib.suppress(OSError):
                self._beside.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                _put(self._beside, self._stored(data) + b"\n" + data)

    @property
    def _beside(self) -> Path | None:
        return self.path.with_suffix(".slopes") if self.path else None

    def _stored(self, data: bytes) -> bytes:
        return encode_json(self._head() | {"crc": zlib.crc32(data)})

    def remove(self) -> None:
        """What is there misleads."""
        if self.path:
            with contextlib.suppress(OSError):
                self.path.unlink()

    def _head(self) -> dict[str, Any]:
        where = str(self.ledger.resolve())
        return {"schema": SCHEMA, "sources": sources(), "plan": self.plan, "spool": where}

    def _looked_at(self, host: str, inode: int, offset: int, gaps: Iterable[Gap]) -> int:
        """The checksum of both ends of what was read, and of its gaps. Raises OSError, and ValueError for another file."""
        fd = os.open(self.ledger / f"{host}.jsonl", _READ)
        try:
            at = os.fstat(fd)
            if not stat.S_ISREG(at.st_mode) or at.st_ino != inode or at.st_size < offset:
                raise ValueError(f"{host}: another file")
            places = [(0, min(ENDS, offset)), (max(0, offset - ENDS), offset), *gaps]
            return zlib.crc32(b"".join(os.pread(fd, end - start, start) for start, end in places))
        finally:
            os.close(fd)


def cache_home(environ: Mapping[str, str]) -> Path | None:
    """Where this user's caches are; a relative path counts as none."""
    home = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME") or "", ".cache")
    return Path(home) / "fleet-plan" if os.path.isabs(home) else None


@lru_cache(maxsize=1)
def sources() -> str:
    """A name for the code that reads rows, and for the Python that runs it: another version means another cache."""
    made_of, here = hashlib.sha256(sys.version.encode()), Path(__file__).parent
    for path in sorted(path for pattern in _SOURCES for path in here.glob(pattern)):
        made_of.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return made_of.hexdigest()[:16]


def _place(value: Any) -> Place:
    host, seq, start, end = value
    if not (isinstance(host, str) and isinstance(seq, int) and isinstance(start, int) and isinstance(end, int)):
        raise TypeError(f"{value!r} is no place")
    return host, seq, start, end


def _own_bytes(path: Path) -> bytes:
    """A file that nobody else can have written. Raises OSError and ValueError."""
    with open(os.open(path, _READ), "rb") as file:
        at = os.fstat(file.fileno())
        if not stat.S_ISREG(at.st_mode) or at.st_uid != os.geteuid() or at.st_mode & 0o022 or at.st_size > MOST:
            raise ValueError("somebody else's, or no file")
        return file.read()


def _put(path: Path, data: bytes) -> None:
    """In place of what is there, by one rename: of two who write, one's stands, whole. Raises OSError."""
    fd, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600
    try:
        with open(fd, "wb") as file:
            file.write(data)
        os.rename(draft, path)
    except OSError:
        os.unlink(draft)
        raise
