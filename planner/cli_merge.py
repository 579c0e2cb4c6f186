"""fleet-plan merge: the rows of other fleets' ledgers that are missing here, each in the segment of the host that wrote it."""

import argparse
import time
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from fleetd import BadData, Ledger, NotFound, Row, Spool, Talk, columns, count, ledger_lines, seconds
from planner.best import Best
from planner.cli_fill import open_filler
from planner.cli_width import say_wrapped
from planner.facts import Facts
from planner.fill import Filler
from planner.rounds import rounds_of
from planner.seeds import Draw
from planner.standing import standing
from planner.trial import Key
from planner.union import Conflict, Part, Union, contradictions, rows_of, shared_seeds, sorted_out

ALIVE_S = 180.0  # since the last heartbeat
SHOWN = 20  # conflicts, or trials that share seeds

SORTS: Mapping[str, str] = {
    "current": "read beside the best that stands: they count",
    "again": "read beside the best that stands, on seeds that were read here too: each seed counts once",
    "build": "of another build, or under other rules, than the reads here: kept, not pooled with them",
    "defaults": "read beside another best: kept, not pooled",
    "space": "of other variables than the space has: kept, not pooled",
    "screen": "of screens: they count by how far the best has moved from where they were made",
    "net": "of rounds of nets",
    "plan": "of another plan: kept, and not looked at",
    "void": "voided",
    "odd": "of odd content: they count for nothing",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What came of it, or would come."""

    parts: Sequence[Part]
    conflicts: Sequence[Conflict]
    skipped: Mapping[str, int]  # ledger file → its damaged lines
    sorts: Counter[str] = field(default_factory=Counter)
    notes: Sequence[str] = ()  # what it does to the standing
    shared: Sequence[str] = ()  # held-out seeds drawn twice
    wrong: str | None = None  # why the planner will stand still

    @property
    def added(self) -> int:
        return sum(len(part.added) for part in self.parts)

    @property
    def here(self) -> int:
        return sum(part.here for part in self.parts)

    @property
    def left_out(self) -> int:
        return sum(part.left_out for part in self.parts)


def merge(args: argparse.Namespace, talk: Talk) -> int:
    """Add what is missing: 0 when all of it stands here, 1 when rows stay out. Raises BadData when rows contradict."""
    filler, files = open_filler(args, talk), [file for named in args.ledger for file in _files(Path(named))]
    with nullcontext() if args.dry_run else filler.alone():
        merged = _united(filler, files)
        if not (args.dry_run or merged.conflicts):
            ledger = Ledger(filler.spool.ledger_d)
            for part in merged.parts:
                if part.added:
                    ledger.graft(part.host, part.added)
    _show(merged, talk, dry=args.dry_run)
    if merged.conflicts:
        raise BadData(
            f"{count(len(merged.conflicts), 'conflict')}, nothing was written: where a play has two scores, void the wrong "
            "row and merge again; where a row has two contents, two machines have had one name, or a file was edited: "
            "leave that host's segment out"
        )
    return 1 if merged.left_out else 0


def _files(named: Path) -> list[Path]:
    """The ledger files that LEDGER stands for: itself, or a spool's or a directory's segments. Raises NotFound."""
    if not named.is_dir():
        return [named]
    where = named / "ledger.d" if (named / "ledger.d").is_dir() else named
    files = sorted(path for path in where.glob("*.jsonl") if not path.name.startswith("."))
    if not files and where == named:
        raise NotFound(f"{named}: no ledger: name a <host>.jsonl, a ledger.jsonl, a ledger.d or a spool")
    return files


def _united(filler: Filler, files: Sequence[Path]) -> Merged:
    union, root = Union(), filler.spool.ledger_d
    for row, line in Ledger(root).poll_lines():
        union.stands(row, line)
    skipped = {str(file): lines for file in files if (lines := _take(union, file))}
    parts = union.parts(_writers_here(filler.spool))
    new = [line for part in parts for line in part.added]
    hosts = {part.host for part in parts if part.added}
    conflicts = union.clashes or contradictions(rows_of(new), _rows_of(root, hosts), union.void)
    merged = Merged(parts=parts, conflicts=conflicts, skipped=skipped)
    return merged if conflicts or not new else _judged(filler, merged, new, union.void)


def _take(union: Union, file: Path) -> int:
    """Take a ledger's rows in; how many of its lines are none. Raises NotFound, IOFailed, and BadData when all are."""
    skipped = rows = 0
    for row, line in ledger_lines(file):
        if row is None:
            skipped += 1
        else:
            rows += 1
            union.comes(row, line, str(file))
    if skipped and not rows:
        raise BadData(f"{file}: no ledger: not one of its {count(skipped, 'line')} is a row")
    return skipped


def _writers_here(spool: Spool) -> dict[str, str]:
    """The hosts that write their segments in this very spool → why nobody else may."""
    beats = {host for host, beat in spool.heartbeats().items() if not beat.get("ended") and _is_fresh(str(beat["at"]))}
    writers = dict.fromkeys(beats, "is alive here") | {run.host: "has jobs that run here" for run in spool.attempts()}
    return {
        host: f"{host} {how} and writes its own segment, which stays as it is; if that was another machine of this name, "
        f"give one of them another (FLEET_HOST); if it was this one, merge once its daemon has ended"
        for host, how in writers.items()
    }


def _is_fresh(at: str) -> bool:
    try:
        return time.time() - seconds(at) < ALIVE_S
    except (ValueError, OverflowError):
        return True


def _rows_of(root: Path, hosts: set[str]) -> Iterator[Row]:
    return (row for row in Ledger(root).rows() if row.host in hosts) if hosts else iter(())


def _judged(filler: Filler, merged: Merged, new: Sequence[bytes], void: Container[Key]) -> Merged:
    """With what the new rows mean here."""
    before, facts = filler.after(filler.plan).look(), Facts(filler.plan.name)
    best, draws, overlap = before.best, before.draws, before.overlap
    del before  # with all that was read here, which the facts have once more
    keys = {(row.host, row.seq) for row in rows_of(new)}
    facts.add(Ledger(filler.spool.ledger_d).rows())
    facts.add(rows_of(new))
    after = standing(facts, filler.plan.space, {})
    shared = shared_seeds((Draw(a.seeds, a.purpose, a.trial.id) for a in facts.attempts() if a.key in keys), draws)
    return Merged(
        parts=merged.parts,
        conflicts=(),
        skipped=merged.skipped,
        sorts=sorted_out(rows_of(new), keys, facts, after.best, void),
        notes=_notes(filler, best, after.best, facts),
        shared=shared,
        wrong=None if overlap else after.overlap,
    )


def _notes(filler: Filler, before: Best, after: Best, facts: Facts) -> list[str]:
    """What becomes of the best."""
    notes = [note for note in after.notes if note not in before.notes]
    if after.defaults != before.defaults:
        notes.insert(0, f"another best stands with these rows: defaults {before.defaults} → {after.defaults}")
    if net := rounds_of(facts, {}).net:
        try:
            net.found_in(filler.spool.root)
        except (NotFound, BadData) as error:
            notes.append(f"{error}; copy it there from its fleet's spool: rounds of nets go on from it")
    return notes


def _show(merged: Merged, talk: Talk, *, dry: bool) -> None:
    if talk.json:
        talk.emit(_json(merged, dry=dry))
    elif merged.conflicts:
        for conflict in merged.conflicts[:SHOWN]:
            talk.data(conflict.sentence)
        if len(merged.conflicts) > SHOWN:
            talk.data(f"… and {len(merged.conflicts) - SHOWN} more: --json has them all")
    elif merged.parts:
        rows = [(p.host, f"{len(p.added):,}", f"{p.here:,}", f"{p.left_out:,}") for p in merged.parts]
        for line in columns([("HOST", "NEW", "HERE BEFORE", "LEFT OUT"), *rows]):
            talk.data(line)
    for file, lines in merged.skipped.items():
        say_wrapped(f"{file}: {count(lines, 'damaged line')} skipped (torn, NULs, or a wrong crc)", talk)
    if not merged.conflicts:
        for said in (*_left(merged), *_meant(merged), _summary(merged, dry=dry)):
            say_wrapped(said, talk)


def _left(merged: Merged) -> Iterator[str]:
    return (f"{part.host}: {count(part.left_out, 'row')} left out: {part.why}" for part in merged.parts if part.why)


def _meant(merged: Merged) -> Iterator[str]:
    """What the rows do to the planner."""
    for sort, words in SORTS.items():
        if number := merged.sorts[sort]:
            yield f"{count(number, 'job')} {words}"
    yield from merged.notes
    if merged.shared:
        more = f" (and {count(len(merged.shared) - 1, 'pair')} of trials more)" if merged.shared[1:] else ""
        yield (
            f"warning: {merged.shared[0]}{more}: verdicts by the same games share their luck and are not two independent "
            "ones; what is decided stays, what is still open draws fresh seeds at the next fill"
        )
    if merged.wrong:
        yield f"warning: {merged.wrong}: fleet-plan fill does nothing (exit 65) until a void row names the row"


def _summary(merged: Merged, *, dry: bool) -> str:
    if not merged.added:
        left_out = sum(part.left_out for part in merged.parts)
        rest = f", and {left_out:,} cannot be taken" if left_out else ""
        return f"nothing to add: {count(merged.here, 'row')} of these ledgers stand here already{rest}"
    hosts = count(sum(bool(part.added) for part in merged.parts), "host")
    if dry:
        return f"would add {count(merged.added, 'row')} of {hosts}; nothing was written"
    return f"added {count(merged.added, 'row')} of {hosts}"


def _json(merged: Merged, *, dry: bool) -> dict[str, object]:
    hosts = [
        {"host": part.host, "added": len(part.added), "here": part.here, "left_out": part.left_out, "why": part.why}
        for part in merged.parts
    ]
    conflicts = [
        {"kind": c.kind, "rows": [{"host": host, "seq": seq} for host, seq in c.rows], "sentence": c.sentence}
        for c in merged.conflicts
    ]
    return {
        "schema": "fleet.merge/1",
        "dry_run": dry,
        "added": 0 if conflicts else merged.added,
        "here": merged.here,
        "left_out": merged.left_out,
        "skipped": dict(merged.skipped),
        "hosts": hosts,
        "reads": dict(merged.sorts),
        "notes": list(merged.notes),
        "shared_seeds": list(merged.shared),
        "conflicts": conflicts,
    }
