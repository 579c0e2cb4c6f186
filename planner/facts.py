"""Facts: the rows of one plan, each under its (host, seq), without their weights.

What a void row names is as if it had never been: its trial, its pass and its seeds go with it. A row of the right form
with odd content (text for a number, a pass of 1e300) counts for nothing; `odd` names those.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fleetd import BadData, Row
from planner.net_round import (
    LESSON,
    Judge,
    Lesson,
    NetFile,
    decode_judge,
    decode_lesson,
    decode_move,
    decode_net,
    net_of,
)
from planner.opinion import Feedback, Opinion, Subject, decode_feedback
from planner.screen import SCREEN, Screen, decode_screen
from planner.seeds import Draw, Purpose, Span
from planner.shelf import Line, Place, Shelf
from planner.trial import (
    TRIAL,
    Block,
    Change,
    Key,
    Reads,
    Trial,
    decode_block,
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
    differences: Mapping[int, float]  # seed → one side's score less the other's


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


class Facts:
    """The rows of one plan, by where they stand. Adding a row twice, or in another order, changes nothing.

    Those of the trials on the `shelf` are facts as well: they are looked at when a row about the trial comes.
    """

    def __init__(self, name: str, shelf: Shelf | None = None) -> None:
        self.name = name
        self.shelf = shelf or Shelf()
        self._touched: set[str] = set()  # trials on the shelf
        self._attempts: dict[Key, Attempt] = {}
        self._screens: dict[Key, ScreenRow] = {}
        self._learned: dict[Key, Learned] = {}
        self._judged: dict[Key, Judged] = {}
        self._rulings: dict[Key, Ruling] = {}
        self._feedback: dict[Key, Feedback] = {}
        self._voids: set[Key] = set()  # the rows that void
        self._void: dict[Key, str] = {}  # what they name → the reason
        self._odd: set[Key] = set()

    def add(self, rows: Iterable[Row]) -> None:
        for row in rows:
            try:
                self._take(row)
            except BadData:
                self._odd.add((row.host, row.seq))
        self.open({id_ for id_ in self._touched if id_ in self.shelf.lines})
        self._touched.clear()

    def open(self, trials: Iterable[str]) -> None:
        """Take these trials from the shelf."""
        if rows := self.shelf.take(trials):
            self.add(rows)

    def shelve(self, lines: Iterable[Line], fetch: Callable[[Sequence[Place]], list[Row]]) -> None:
        """Put these trials on the shelf; `fetch` reads their rows again."""
        filed = {line.id: line for line in lines}
        for host, seq, *_ in (place for line in filed.values() for place in line.rows):
            self._attempts.pop((host, seq), None)
            self._rulings.pop((host, seq), None)
        self.shelf = Shelf(self.shelf.lines | filed, fetch)

    def whole(self) -> "Facts":
        """The same with nothing on the shelf: all of it is opened."""
        self.open(list(self.shelf.lines))
        return self

    def keys(self) -> set[Key]:
        """The rows that are facts here, those on the shelf not among them."""
        found = self._attempts, self._screens, self._learned, self._judged, self._rulings, self._feedback, self._voids
        return self._odd.union(*found)

    def _take(self, row: Row) -> None:
        key = (row.host, row.seq)
        if row.event == "void":
            reason = str(row.body.get("reason"))
            self._voids.add(key)
            for named in ((v["host"], v["seq"]) for v in row.body["rows"]):
                self._void[named] = min(reason, self._void.get(named, reason))
                self._touched.add(self.shelf.trial_of(named) or "")
        elif row.event in VERDICTS and row.body.get("plan") == self.name:
            self._rulings[key] = ruling = _ruling(row)
            self._touched.add(ruling.trial)
        elif row.event == "feedback" and row.body.get("plan") == self.name:
            self._feedback[key] = decode_feedback(row)
        elif row.event == "result":
            self._take_result(key, row)

    def _take_result(self, key: Key, row: Row) -> None:
        payload = row.body.get("payload")
        if not isinstance(payload, dict) or payload.get("name") != self.name:
            return
        if payload.get("schema") == LESSON:
            self._learned[key] = _learned(row, decode_lesson(payload))
        elif payload.get("schema") == TRIAL and payload.get("purpose") == Purpose.JUDGE:
            self._judged[key] = _judged(row, decode_judge(payload))
        elif payload.get("schema") == SCREEN:
            self._screens[key] = _screen_row(row, decode_screen(payload))
        elif payload.get("schema") == TRIAL:
            self._attempts[key] = attempt = _attempt(row, decode_block(payload))
            self._touched.add(attempt.trial.id)

    @property
    def odd(self) -> list[Key]:
        """The rows of odd content that no void row has taken out."""
        return sorted(self._odd - self._void.keys())

    def attempts(self) -> list[Attempt]:
        """The result rows that no void row takes out, in the order of their keys."""
        return [attempt for key, attempt in sorted(self._attempts.items()) if key not in self._void]

    def voided(self) -> list[Attempt]:
        """Those that one does."""
        return [attempt for key, attempt in self._attempts.items() if key in self._void]

    def voided_to(self) -> dict[str, int]:
        """Of each host the last row with reads that a void row takes out: nothing up to it is to be used again."""
        found: dict[str, int] = {}
        for rows in (self._attempts, self._screens, self._judged):
            for host, seq in rows.keys() & self._void.keys():
                found[host] = max(seq, found.get(host, 0))
        return found

    def is_void(self, key: Key) -> bool:
        return key in self._void

    def screens(self) -> list[ScreenRow]:
        return [row for key, row in self._screens.items() if key not in self._void]

    def learned(self) -> list[Learned]:
        return [attempt for key, attempt in self._learned.items() if key not in self._void]

    def judged(self) -> list[Judged]:
        return [attempt for key, attempt in self._judged.items() if key not in self._void]

    def subject(self, key: Key) -> Subject | None:
        """What the row is about; None: no such row of this plan, or it was voided."""
        if key in self._void:
            return None
        if shelved := self.shelf.lines.get(self.shelf.trial_of(key) or ""):
            return Subject(id=shelved.trial.id, change=shelved.trial.single)
        if found := self._attempts.get(key):
            return Subject(id=found.trial.id, change=found.trial.single)
        if screened := self._screens.get(key):
            return Subject(id=screened.screen.id)
        rounds = self._learned.get(key), self._judged.get(key)
        if told := next((row for row in rounds if row), None):
            return Subject(id=told.lesson.round if isinstance(told, Learned) else told.judge.round)
        return _ruled(ruling) if (ruling := self._rulings.get(key)) else None

    def feedback(self) -> list[Feedback]:
        """What was said of rows that stand, oldest first; of what one said of one row, the last counts."""
        said = (f for key, f in self._feedback.items() if key not in self._void and self.subject(f.row))
        last = {(f.by, f.row): f for f in sorted(said, key=lambda f: (f.at, f.key))}
        return sorted(last.values(), key=lambda f: (f.at, f.key))

    def opinions(self) -> list[Opinion]:
        """The same, with what the rows are about."""
        told = ((f, self.subject(f.row)) for f in self.feedback())
        return [Opinion(sign=f.sign, text=f.text, subject=subject) for f, subject in told if subject]

    def history(self) -> list[Ruling]:
        """Every verdict, oldest first, also those that stand no more."""
        return sorted(self._rulings.values(), key=lambda r: (r.at, r.key))

    def undone(self) -> dict[Key, str]:
        """The verdicts that were taken back → why: voided, or resting on reads that were."""
        return {key: f"taken back: {why}" for key, ruling in self._rulings.items() if (why := self._why_not(ruling))}

    def shaken(self) -> list[tuple[Ruling, str]]:
        """The verdicts whose reads were voided and which no void row names yet, with the reason."""
        return [(r, why) for r in self.history() if r.key not in self._void and (why := self._why_not(r))]

    def _why_not(self, ruling: Ruling) -> str | None:
        if ruling.key in self._void:
            return self._void[ruling.key]
        gone = ruling.rests_on & self._void.keys()
        return f"the reads that it rests on were voided ({self._void[min(gone)]})" if gone else None

    def rulings(self) -> list[Ruling]:
        """The standing verdicts, oldest first; of two on one trial the first that its reads decided, else the last."""
        first: dict[str, Ruling] = {}
        for ruling in self.history():
            known = first.get(ruling.trial)
            if not self._why_not(ruling) and (known is None or known.reason in LAPSING):
                first.pop(ruling.trial, None)
                first[ruling.trial] = ruling
        return list(first.values())


def _ruling(row: Row) -> Ruling:
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


def _ruled(ruling: Ruling) -> Subject:
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


def _attempt(row: Row, block: Block) -> Attempt:
    return Attempt(
        **_ended(row),
        trial=block.trial,
        purpose=block.purpose,
        seeds=block.seeds,
        draw=block.draw,
        looks=block.looks,
        reads=replace(decode_reads(row.body.get("result")), census=block.census),
    )


def _screen_row(row: Row, screen: Screen) -> ScreenRow:
    reads = replace(decode_reads(row.body.get("result")), census=screen.census)
    differences = {seed: one - other for seed, (one, other) in reads.pairs().items()}
    return ScreenRow(**_ended(row), screen=screen, reads=reads, differences=differences)


def _learned(row: Row, lesson: Lesson) -> Learned:
    return Learned(**_ended(row), lesson=lesson, net=net_of(row.body.get("log"), row.body.get("result")))


def _judged(row: Row, judge: Judge) -> Judged:
    return Judged(**_ended(row), judge=judge, seeds=judge.seeds, reads=decode_reads(row.body.get("result")))
