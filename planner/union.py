"""The union of ledgers: which rows of elsewhere are missing here, which must stay out, and what contradicts. Pure.

A row is known by (host, seq), a play by its player, seed, seconds, build, host and what else makes it that play. The same
ledgers give the same union in whatever order they come, and once it stands here there is nothing more to add.
"""

import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from fleetd import BadData, Row, count, decode_json
from planner.best import Best
from planner.builds import pooled
from planner.facts import Facts
from planner.reading import PLAYERS
from planner.rows import Attempt
from planner.seeds import Draw, Purpose, meetings
from planner.trial import READS, TRIAL, Key, decode_reads

Play = tuple[Any, ...]
Score = tuple[float, Key]  # and the row that tells it


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Two rows that cannot both be right: the same place with other content, or the same play with another score."""

    kind: str  # "row" or "play"
    rows: tuple[Key, Key]
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What becomes of one host's rows: those to add, in order, how many are here already, and how many stay out."""

    host: str
    added: tuple[bytes, ...]  # lines
    here: int
    left_out: int
    why: str | None = None  # they stay out, and what helps


class Union:
    """Rows that stand here, and rows of elsewhere; first all of the former."""

    def __init__(self) -> None:
        self._digests: dict[Key, bytes] = {}
        self._last: dict[str, int] = {}
        self._met: Counter[str] = Counter()
        self._found: dict[Key, tuple[bytes, str]] = {}
        self._again: set[Key] = set()
        self._clashes: dict[Key, Conflict] = {}
        self.void: set[Key] = set()

    def stands(self, row: Row, line: bytes) -> None:
        """A row that is here."""
        self._digests[row.host, row.seq] = _digest(line)
        self._last[row.host] = row.seq
        self._take_out(row)

    def comes(self, row: Row, line: bytes, where: str) -> None:
        """A row of the ledger at `where`."""
        key, here = (row.host, row.seq), (row.host, row.seq) in self._digests
        known = self._digests.get(key) or (_digest(self._found[key][0]) if key in self._found else None)
        self._take_out(row)
        if known is None:
            self._found[key] = line, where
        elif known != _digest(line):
            other = "here" if here else f"in {self._found[key][1]}"
            said = f"{_named(key)}: the row in {where} ({_about(row)}) differs from the one {other}"
            self._clashes.setdefault(key, Conflict(kind="row", rows=(key, key), sentence=said))
        elif here and key not in self._again:
            self._met[row.host] += 1
            self._again.add(key)

    def _take_out(self, row: Row) -> None:
        if row.event == "void":
            self.void |= {(named["host"], named["seq"]) for named in row.body["rows"]}

    @property
    def clashes(self) -> list[Conflict]:
        """Where one (host, seq) has two contents."""
        return [self._clashes[key] for key in sorted(self._clashes)]

    def parts(self, closed: Mapping[str, str]) -> list[Part]:
        """By host; `closed` are the hosts whose segments others may not lengthen → why."""
        seqs: dict[str, list[int]] = {}
        for host, seq in sorted(self._found):
            seqs.setdefault(host, []).append(seq)
        return [self._part(host, seqs.get(host, []), closed) for host in sorted({*seqs, *self._met})]

    def _part(self, host: str, seqs: list[int], closed: Mapping[str, str]) -> Part:
        """Rows are added as far as they follow the last one here without a gap."""
        last = self._last.get(host, 0)
        early, late = [seq for seq in seqs if seq < last], [seq for seq in seqs if seq > last]
        follow = [seq for at, seq in enumerate(late, last + 1) if seq == at]
        why = [_lost_here(host, seq) for seq in early[:1]]
        if len(follow) < len(late):
            why.append(_lost_there(host, last + len(follow) + 1))
        if seqs and host in closed:
            follow, why = [], [closed[host]]
        added = tuple(self._found[host, seq][0] for seq in follow)
        left = len(seqs) - len(added)
        return Part(host=host, added=added, here=self._met[host], left_out=left, why="; ".join(why) or None)


def _digest(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=16).digest()


def _named(key: Key) -> str:
    return f"{key[0]}:{key[1]}"


def _about(row: Row) -> str:
    what = f" of {row.body['job']}" if row.event == "result" else ""
    return f"{row.event}{what}, {row.at}"


def _lost_here(host: str, seq: int) -> str:
    return (
        f"seq {seq} is damaged here, and a row cannot be put in between: while nothing of {host} runs, "
        f"put the whole segment {host}.jsonl of that fleet in the place of the one here"
    )


def _lost_there(host: str, seq: int) -> str:
    return (
        f"seq {seq} is in none of these ledgers, and what comes after it cannot stand without it: "
        f"name the whole {host}.jsonl of its fleet, or that fleet's ledger.jsonl besides, which has the same rows"
    )


def rows_of(lines: Iterable[bytes]) -> Iterator[Row]:
    """The rows in lines that are known to have one: a hundred thousand of them at once would fill the memory."""
    for line in lines:
        body = decode_json(line)
        yield Row(body["host"], body["seq"], body["event"], body["at"], body)


class Scores:
    """What one play scored on which seeds, as the row says that came first; compact until a second row tells of it.

    Most players are met in one row only, and there are millions of plays.
    """

    def __init__(self, key: Key, scores: Mapping[int, float]) -> None:
        self._key, self._seeds, self._scores = key, array("q", scores.keys()), array("d", scores.values())
        self._known: dict[int, Score] | None = None

    def known(self) -> dict[int, Score]:
        """By seed; for more to be put in."""
        if self._known is None:
            self._known = {s: (x, self._key) for s, x in zip(self._seeds, self._scores, strict=True)}
        return self._known


def contradictions(new: Iterable[Row], here: Iterable[Row], void: Container[Key]) -> list[Conflict]:
    """Where one play has two scores, and a new row tells one of them; rows that were voided tell none."""
    told: dict[Play, Scores] = {}
    pairs: dict[tuple[Key, Key], list[str]] = {}
    for rows, are_new in ((new, True), (here, False)):
        for row in rows:
            key = (row.host, row.seq)
            for play, scores in plays_of(row) if key not in void else ():
                if play not in told:
                    if are_new:
                        told[play] = Scores(key, scores)
                    continue
                known = told[play].known()
                for seed, score in scores.items():
                    other = known.setdefault(seed, (score, key)) if are_new else known.get(seed, (score, key))
                    if other[0] != score:
                        one, two = sorted((other[1], key))
                        pairs.setdefault((one, two), []).append(_told(play, seed, other, (score, key)))
    return [
        Conflict(
            kind="play", rows=rows, sentence=min(said) + (f"; {count(len(said) - 1, 'play')} more" if said[1:] else "")
        )
        for rows, said in sorted(pairs.items())
    ]


def _told(play: Play, seed: int, one: Score, two: Score) -> str:
    host, player, seconds, build, *_ = play
    what = f"player {player}, seed {seed}, {seconds:g} s, build {build or 'none'}, on {host}"
    (first, of), (second, other) = sorted((one, two), key=lambda score: score[1])
    return f"{_named(of)} and {_named(other)}: the same play ({what}) scored {first!r} and {second!r}"


def plays_of(row: Row) -> Iterator[tuple[Play, dict[int, float]]]:
    """The plays in a row of reads whose plan says that the same play has the same score: each with its scores by seed."""
    payload, result = row.body.get("payload"), row.body.get("result")
    if not isinstance(payload, dict) or payload.get("deterministic") is not True or not _is_read(result):
        return
    if not isinstance(players := result.get("players"), dict):
        return
    try:
        reads = decode_reads(result).scores
    except BadData:
        return
    game = json.dumps([payload.get("census"), result.get("rules"), row.body.get("commit")], sort_keys=True)
    for side, name in enumerate(PLAYERS):
        play = row.host, str(players.get(name)), _number(payload.get("seconds")), str(result.get("build") or ""), game
        yield play, {seed: score for seed, pair in reads.items() if (score := pair[side]) is not None}


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _is_read(result: Any) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(result, dict) and result.get("schema") == READS


def sorted_out(
    new: Iterable[Row], keys: Container[Key], facts: Facts, best: Best, void: Container[Key]
) -> Counter[str]:
    """How many of the new rows with reads are of which sort, where `facts` has them already; `keys` are theirs.

    current: beside the best that stands; again: the same, on seeds of that trial that were read here too; build: of other
    rules, or of a build that agrees with none of the reads here beside this best; defaults: beside another best; space: of
    other variables; screen: of no trial; net: of a round of nets; plan: of another plan; void; odd.
    """
    attempts, odd = {a.key: a for a in pooled(facts)[0]}, frozenset(facts.odd)
    ours = [a for a in attempts.values() if a.key not in keys and a.trial.defaults == best.defaults]
    rooms, read = {_room(a) for a in ours}, {(a.trial.id, a.purpose, a.seeds) for a in ours}
    kinds: Counter[str] = Counter()
    for row in new:
        key, payload = (row.host, row.seq), row.body.get("payload")
        if row.event != "result" or not isinstance(payload, dict):
            continue
        if payload.get("schema") != TRIAL and not _is_read(row.body.get("result")):
            continue
        if key in void:
            kinds["void"] += 1
        elif payload.get("name") != facts.name:
            kinds["plan"] += 1
        elif key in odd:
            kinds["odd"] += 1
        elif attempt := attempts.get(key):
            kinds[_sort(attempt, payload, best, rooms, read)] += 1
        else:
            kinds["net" if payload.get("purpose") == Purpose.JUDGE else "screen"] += 1
    return kinds


def _sort(attempt: Attempt, payload: Mapping[str, Any], best: Best, rooms: set[str], read: Container[object]) -> str:
    """Of a trial's row."""
    if payload["best"]["weights"].keys() != best.weights.keys():
        return "space"
    if attempt.trial.defaults != best.defaults:
        return "defaults"
    if rooms and _room(attempt) not in rooms:
        return "build"
    return "again" if (attempt.trial.id, attempt.purpose, attempt.seeds) in read else "current"


def _room(attempt: Attempt) -> str:
    return json.dumps([attempt.reads.build, attempt.reads.rules], sort_keys=True)


def shared_seeds(new: Iterable[Draw], here: Iterable[Draw]) -> list[str]:
    """Where held-out seeds of a new draw were drawn for another trial too, a sentence for each two trials."""
    fresh = {draw for draw in new if draw.purpose is Purpose.HELDOUT}
    said: dict[frozenset[str], str] = {}
    for one, two in meetings([*fresh, *here]):
        if one in fresh or two in fresh:
            said.setdefault(frozenset((one.whose, two.whose)), f"{two.whose}: {two.drawn_twice(one)}")
    return list(said.values())
