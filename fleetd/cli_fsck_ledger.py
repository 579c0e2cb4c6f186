"""What fleet fsck finds in the ledger: each segment by itself, the jobs in all of them, and the merged view beside them."""

import os
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from fleetd.cli_text import count
from fleetd.job import Outcome
from fleetd.ledger import Row, decode_head
from fleetd.spool import Spool

SETTLE_S = 0.5  # an append under way
MERGE_S = 3.0  # the home host's daemon adds what others have written with each of its looks
NAMED = 5
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line. `note`: nothing is wrong, it is only good to know; `unreadable`: what is there could not be seen."""

    path: Path
    what: str
    todo: str
    note: bool = False
    unreadable: bool = False


@dataclass(slots=True)
class Segment:
    """One file of lines, read: its rows' crc by (host, seq), what is wrong in it, and what is half a line at its end."""

    crcs: dict[tuple[str, int], bytes] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    torn_at: int | None = None


@dataclass(slots=True)
class Known:
    """What all segments say: by (job, attempt) where its rows stand, by job those of its ok rows, and void rows."""

    attempts: dict[tuple[str, int], list[tuple[str, int]]] = field(default_factory=dict)
    oks: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    void: set[tuple[str, int]] = field(default_factory=set)

    def add(self, row: Row) -> None:
        """Take in one row."""
        here = row.host, row.seq
        if row.event == "void":
            self.void |= {(of["host"], of["seq"]) for of in row.body["rows"]}
        if row.event != "result":
            return
        job, attempt, outcome = row.body["job"], row.body["attempt"], row.body["outcome"]
        if attempt and outcome != Outcome.SUPERSEDED:
            self.attempts.setdefault((job, attempt), []).append(here)
        if outcome == Outcome.OK:
            self.oks.setdefault(job, []).append(here)


def check_ledger(spool: Spool) -> tuple[Known, list[Finding]]:
    """Read every segment and the merged view."""
    known, findings = Known(), []
    crcs: dict[tuple[str, int], bytes] = {}
    for path in sorted(spool.ledger_d.glob("*.jsonl")):
        segment = read_segment(path, known)
        crcs |= segment.crcs
        findings += segment.findings
    findings += _twice(known, spool.ledger_d)
    return known, findings + list(_check_view(spool, crcs))


def read_segment(path: Path, known: Known) -> Segment:
    """Every line of one segment, and what is wrong with it."""
    segment, host, last = Segment(), path.name.removesuffix(".jsonl"), 0
    for at, line, row in _lines(path, segment):
        if row is None:
            segment.findings.append(_damage(path, at, line))
        elif row.host != host:
            segment.findings.append(_foreign(path, at, row))
        else:
            segment.findings += _step(path, at, row.seq, last, segment)
            last = max(last, row.seq)
            segment.crcs[row.host, row.seq] = line[-10:-2]
            known.add(row)
    if segment.torn_at is not None and _stays(path, segment.torn_at):
        todo = "nothing: readers wait for its end, and the next writer begins a line of its own"
        segment.findings.append(Finding(path=path, what=f"torn line at byte {segment.torn_at}, the last", todo=todo))
    return segment


def _lines(path: Path, segment: Segment) -> Iterator[tuple[int, bytes, Row | None]]:
    """Each whole line: its byte offset, itself, and its row. What follows NULs directly is a line of its own."""
    at = 0
    try:
        fd = os.open(path, _READ)
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                todo = "move it away"
                segment.findings.append(Finding(path=path, what="no regular file", todo=todo, unreadable=True))
                return
            for line in file:
                if not line.endswith(b"\n"):
                    segment.torn_at = at
                    return
                nuls, _, clean = line[:-1].rpartition(b"\0")
                if len(clean) < len(line) - 1:
                    yield at, nuls + b"\0", None
                if clean:
                    yield at + len(line) - 1 - len(clean), clean, decode_head(clean)
                at += len(line)
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        todo = "mend the disk or the permissions"
        segment.findings.append(Finding(path=path, what=what, todo=todo, unreadable=True))


def _damage(path: Path, at: int, line: bytes) -> Finding:
    if b"\0" in line:
        kind = f"{count(len(line), 'byte')} with NULs"
    elif line[-18:-10] != b',"crc":"':
        kind = f"torn line of {count(len(line), 'byte')}"
    else:
        kind = "line whose crc is wrong, or that is no fleet.row/1"
    todo = "nothing: readers skip it, and a gap in seq tells whether a row is lost with it"
    return Finding(path=path, what=f"{kind} at byte {at}", todo=todo)


def _foreign(path: Path, at: int, row: Row) -> Finding:
    what = f"row of host {row.host!r} at byte {at}"
    return Finding(path=path, what=what, todo="find out who writes here: one host a segment")


def _step(path: Path, at: int, seq: int, last: int, segment: Segment) -> Iterator[Finding]:
    if (path.name.removesuffix(".jsonl"), seq) in segment.crcs:
        todo = "see that one host only has this name; answer the wrong row by a void row"
        yield Finding(path=path, what=f"seq {seq} once more at byte {at}", todo=todo)
    elif seq < last:
        yield Finding(path=path, what=f"seq {seq} after {last} at byte {at}", todo="see that only fleetd writes here")
    elif seq > last + 1:
        todo = "look for the attempts in ended/ that have no row"
        yield Finding(
            path=path, what=f"gap in seq before byte {at}: {_ranges(range(last + 1, seq))} missing", todo=todo
        )


def _stays(path: Path, torn_at: int) -> bool:
    """Whether the half line is there still, and nobody is just writing it."""
    time.sleep(SETTLE_S)
    try:
        with open(os.open(path, _READ), "rb") as file:
            file.seek(torn_at)
            return not file.readline().endswith(b"\n")
    except OSError:
        return True


def _twice(known: Known, where: Path) -> Iterator[Finding]:
    for (job, attempt), places in known.attempts.items():
        if len(standing := [at for at in places if at not in known.void]) > 1:
            what = f"attempt {attempt} of {job} has {len(standing)} rows: {_places(standing)}"
            yield Finding(path=where, what=what, todo="answer the wrong one by a void row")
    for job, places in known.oks.items():
        if len(standing := [at for at in places if at not in known.void]) > 1:
            what = f"{job} ended ok {len(standing)} times: {_places(standing)}"
            yield Finding(path=where, what=what, todo="nothing: readers take the lowest attempt; it ran once too often")


def _places(places: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{host} seq {seq}" for host, seq in places)


def _check_view(spool: Spool, crcs: dict[tuple[str, int], bytes]) -> Iterator[Finding]:
    """The merged view has every row that the segments had a moment ago, and none that they do not have now."""
    path, view = spool.ledger, Segment()
    if not os.path.lexists(path):
        if crcs:
            todo = "nothing: the next fleetd of the home host makes it"
            yield Finding(path=path, what="missing", todo=todo, note=True)
        return
    end = time.monotonic() + MERGE_S
    while True:
        view = Segment()
        seen, damaged = _read_view(path, view)
        missing = crcs.keys() - seen.keys()
        if not missing or time.monotonic() > end:
            break
        time.sleep(SETTLE_S)
    yield from view.findings
    if damaged:
        yield Finding(path=path, what=f"{count(damaged, 'damaged line')}", todo="nothing: no program reads it")
    for host, numbers in _by_host(missing):
        what = f"{count(len(numbers), 'row')} of {host} missing: seq {_ranges(numbers)}"
        yield Finding(path=path, what=what, todo="nothing: the home host's fleetd adds them when it runs")
    foreign = _foreign_to(spool, seen, crcs)
    for host, numbers in _by_host(foreign):
        what = f"{count(len(numbers), 'row')} of {host} that {host}.jsonl does not have: seq {_ranges(numbers)}"
        yield Finding(
            path=path, what=what, todo="find out where they are from; remove this file, and fleetd makes it anew"
        )


def _read_view(path: Path, view: Segment) -> tuple[dict[tuple[str, int], bytes], int]:
    seen, damaged = {}, 0
    for _, line, row in _lines(path, view):
        if row:
            seen[row.host, row.seq] = line[-10:-2]
        damaged += row is None
    return seen, damaged


def _foreign_to(
    spool: Spool, seen: dict[tuple[str, int], bytes], crcs: dict[tuple[str, int], bytes]
) -> set[tuple[str, int]]:
    """What the view has and the segments have not, or have otherwise; they may have grown meanwhile."""
    strange = {key for key, crc in seen.items() if crcs.get(key) != crc}
    for host in {host for host, _ in strange}:
        now = _crcs_in(spool.ledger_d / f"{host}.jsonl")
        strange -= {key for key in strange if key[0] == host and now.get(key) == seen[key]}
    return strange


def _crcs_in(path: Path) -> dict[tuple[str, int], bytes]:
    """The crc of each row in a file, by (host, seq)."""
    return _read_view(path, Segment())[0]


def _by_host(keys: Iterable[tuple[str, int]]) -> Iterator[tuple[str, list[int]]]:
    for host, group in groupby(sorted(keys), key=lambda key: key[0]):
        yield host, [seq for _, seq in group]


def _ranges(numbers: Iterable[int]) -> str:
    """Numbers in order as a person would write them: 3, 5–9, 12."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    words = [f"{a}" if a == b else f"{a}–{b}" for a, b in runs[:NAMED]]
    return ", ".join(words) + (", …" if len(runs) > NAMED else "")
