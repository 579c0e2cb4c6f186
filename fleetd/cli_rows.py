"""Result rows as the commands read them: their heads for counting, whole ones only where they are shown.

A trial's row is kilobytes of payload and result, and decoding those takes ten times as long as all the rest. The engine
writes them last, so that what stands before `payload` says what became of the job.
"""

import os
import zlib
from collections.abc import Collection, Iterator

from fleetd.job import decode_json
from fleetd.ledger import Ledger, Row, decode_row

_RESULT = b'{"schema":"fleet.row/1","event":"result",'
_CRC = len(',"crc":"00000000"}')
_NEEDED = frozenset({"host", "seq", "at", "job", "attempt", "outcome", "next"})
_KEPT = ("job", "attempt", "outcome", "exit", "signal", "reason", "next")


class Heads:
    """Iterates over the result rows of all segments, bodies cut to what counting needs; `skipped` counts bad lines."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.skipped = 0

    def __iter__(self) -> Iterator[Row]:
        for line, whole in _lines(self._ledger):
            row = head_of(line)
            self.skipped += row is None or not whole
            if row is not None and row.event == "result":
                yield Row(row.host, row.seq, row.event, row.at, {key: row.body.get(key) for key in _KEPT})


def rows_of(ledger: Ledger, jobs: Collection[str]) -> list[Row]:
    """The whole result rows of these jobs, in order of attempts."""
    found = []
    for line, _ in _lines(ledger):
        head = head_of(line)
        if head and head.event == "result" and head.body["job"] in jobs and (row := decode_row(line)):
            found.append(row)
    return sorted(found, key=lambda row: (row.body["attempt"], row.at))


def head_of(line: bytes) -> Row | None:
    """The row without what follows `payload`; None when the line is none. A line of another make is decoded whole."""
    at = line.find(b',"payload":')
    if at < 0 or not line.startswith(_RESULT):
        return decode_row(line)
    if line[-10:-2] != b"%08x" % zlib.crc32(line[:-_CRC] + b"}"):
        return None
    try:
        body = decode_json(line[:at] + b"}")
    except ValueError:
        return decode_row(line)
    if not _NEEDED.issubset(body):
        return decode_row(line)
    return Row(body["host"], body["seq"], body["event"], body["at"], body)


def _lines(ledger: Ledger) -> Iterator[tuple[bytes, bool]]:
    """The lines of all segments without newlines; what a crash left of NULs is cut off, and said by False."""
    for host in ledger.hosts():
        try:
            fd = os.open(ledger.root / f"{host}.jsonl", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
        with open(fd, "rb") as file:
            for line in file:
                if len(line) > 1 and line.endswith(b"\n"):
                    _, nul, rest = line[:-1].rpartition(b"\0")
                    yield rest, not nul
