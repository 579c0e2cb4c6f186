"""The rows of one plan, decoded: results of trials, screens and rounds without their weights, and verdicts. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fleetd import BadData, Row
from planner.net_round import (
    Judge,
    Lesson,
    NetFile,
    decode_move,
    decode_net,
    net_of,
)
from planner.opinion import Subject
from planner.screen import Screen, shape_of
from planner.seeds import Draw, Purpose, Span
from planner.sheaf import Differences, mark_of
from planner.trial import (
    Block,
    Change,
    Key,
    Reads,
    Trial,
    decode_reads,
    decode_weights,
    is_number,
)

VERDICTS = ("adopt", "keep")
NOT_READ = "not read"  # of one whose job failed: until that is read after all
REPLACED = "replaced"  # the reason of a keep whose best was replaced meanwhile: its turn in the rotation comes again
LAPSING = (NOT_READ, REPLACED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What every result row says."""

    key: Key
    at: str
    job: str
    attempt: int
    outcome: str
    final: bool
    reason: str | None
    busy_s: float  # of lanes

    @property
    def failure(self) -> str:
        """The outcome, and why."""
        return self.outcome + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt(Ended):
    """A result row of a trial's job, without the weights."""

    trial: Trial
    purpose: Purpose
    seeds: Span
    draw: Draw
    looks: tuple[int, ...]
    reads: Reads


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenRow(Ended):
    """A result row of a screen's job."""

    screen: Screen
    reads: Reads
    differences: Differences
    shape: str  # of the space that it was made of
    mark: bytes  # a digest of the differences


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned(Ended):
    """A result row of a job that makes a net; None: it has made none, or tells it wrongly."""

    lesson: Lesson
    net: NetFile | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged(Ended):
    """A result row of a job that reads one net beside another."""

    judge: Judge
    seeds: Span
    reads: Reads


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """An adopt or keep row. Of an adoption, `weights` is the whole best that it leads from; None: its row has none.

    Of a round, `trial` is the round's id, and an adoption leads from the net `from_net` (None: from none) to `net`.
    """

    event: str
    at: str
    key: Key
    trial: str
    reason: str
    sentence: str
    body: Mapping[str, Any]
    candidate: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[str, float] | None = None
    rests_on: frozenset[Key] = frozenset()  # the rows with the reads that decided
    is_round: bool = False
    net: NetFile | None = None
    from_net: str | None = None
    move: Change | None = None  # the reward that the round tried


def ruling_of(row: Row) -> Ruling:
    """Raises BadData when an adoption does not say in numbers what it adopts."""
    body, adopts = row.body, row.event == "adopt"
    if "round" in body:
        return _round_ruling(row)
    return Ruling(
        event=row.event,
        at=row.at,
        key=(row.host, row.seq),
        trial=str(body.get("trial")),
        reason=str(body.get("reason")),
        sentence=str(body.get("sentence")),
        body=body,
        candidate=decode_weights(body.get("candidate")) if adopts else {},
        weights=decode_weights(body["weights"]) if adopts and "weights" in body else None,
        rests_on=_keys(body.get("rests_on", [])),
    )


def subject_of(ruling: Ruling) -> Subject:
    body = ruling.body
    if ruling.is_round or not all(map(is_number, (body.get("from"), body.get("to")))):
        return Subject(id=ruling.trial)
    return Subject(
        id=ruling.trial, change=Change(variable=str(body.get("variable")), from_=body["from"], to=body["to"])
    )


def _round_ruling(row: Row) -> Ruling:
    body = row.body
    return Ruling(
        event=row.event,
        at=row.at,
        key=(row.host, row.seq),
        trial=str(body["round"]),
        reason=str(body.get("reason")),
        sentence=str(body.get("sentence")),
        body=body,
        rests_on=_keys(body.get("rests_on", [])),
        is_round=True,
        net=decode_net(body.get("net")) if row.event == "adopt" else None,
        from_net=None if body.get("from") is None else str(body["from"]),
        move=decode_move(body.get("reward")),
    )


def _keys(value: Any) -> frozenset[Key]:
    try:
        return frozenset((str(row["host"]), int(row["seq"])) for row in value)
    except (TypeError, KeyError, ValueError, OverflowError) as error:
        message = f"rests_on names no rows: {value!r}"
        raise BadData(message) from error


def _busy(body: Mapping[str, Any]) -> tuple[tuple[Any, float], tuple[Any, float]]:
    return (body.get("wall_s"), 0.0), (body.get("cores"), 1.0)


def _ended(row: Row) -> dict[str, Any]:
    body = row.body
    wall_s, cores = (value if is_number(value) else usual for value, usual in _busy(body))
    return {
        "key": (row.host, row.seq),
        "at": row.at,
        "job": body["job"],
        "attempt": body["attempt"],
        "outcome": body["outcome"],
        "final": body.get("next") is None,
        "reason": body.get("reason") or _exited(body),
        "busy_s": wall_s * cores,
    }


def _exited(body: Mapping[str, Any]) -> str | None:
    """What a job ended with that nothing else is said of."""
    return next((f"{how} {body[how]}" for how in ("exit", "signal") if body.get(how)), None)


def _reads(row: Row, seeds: Span) -> Reads:
    """Of the job's own seeds. Raises BadData where there are others, too."""
    reads = decode_reads(row.body.get("result"))
    if reads.scores and not seeds.low <= min(reads.scores) <= max(reads.scores) < seeds.high:
        raise BadData(f"scores of seeds that were not asked for: {min(reads.scores)} to {max(reads.scores)}")
    return reads


def attempt_of(row: Row, block: Block) -> Attempt:
    return Attempt(
        **_ended(row),
        trial=block.trial,
        purpose=block.purpose,
        seeds=block.seeds,
        draw=block.draw,
        looks=block.looks,
        reads=replace(_reads(row, block.seeds), census=block.census),
    )


def screen_row_of(row: Row, screen: Screen) -> ScreenRow:
    reads = replace(_reads(row, screen.seeds), census=screen.census)
    differences = {seed: one - other for seed, (one, other) in reads.pairs().items()}
    shape = shape_of((axis.name, axis.step, axis.low, axis.high, axis.whole) for axis in screen.axes)
    return ScreenRow(
        **_ended(row),
        screen=screen,
        reads=reads,
        differences=differences,
        shape=shape,
        mark=mark_of(differences),
    )


def learned_of(row: Row, lesson: Lesson) -> Learned:
    return Learned(**_ended(row), lesson=lesson, net=net_of(row.body.get("log"), row.body.get("result")))


def judged_of(row: Row, judge: Judge) -> Judged:
    return Judged(
        **_ended(row), judge=judge, seeds=judge.seeds, reads=replace(_reads(row, judge.seeds), census=judge.census)
    )
