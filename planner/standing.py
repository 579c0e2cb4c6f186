"""The standing: what the ledger's rows say together. A pure fold in any order: the same rows, the same standing.

Facts gathers rows as they come, without their weights; `standing` looks at the facts through the space, whose
starts are the first best. Adoptions form a chain of hashes: each `adopt` row leads from the defaults it replaces to its
own, and the best is where the chain ends. Rows of other defaults stay, but are never pooled with the present ones.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fleetd import BadData, Outcome, Row
from planner.seeds import Draw, Purpose, Span, overlap
from planner.space import Space
from planner.trial import TRIAL, Block, Reads, Trial, decode_block, decode_reads, player_hash

VERDICTS = ("adopt", "keep")
REPLACED = "replaced"  # the reason of a keep whose best was replaced meanwhile: its turn in the rotation comes again

Key = tuple[str, int]  # (host, seq)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A result row of a trial's job, without the weights."""

    host: str
    at: str
    job: str
    attempt: int
    outcome: str
    final: bool
    reason: str | None
    trial: str
    purpose: Purpose
    seeds: Span
    reads: Reads


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """An adopt or keep row: the one verdict on a trial."""

    event: str
    at: str
    key: Key
    trial: str
    reason: str
    sentence: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A trial's reads for one purpose: what is asked, what came, what is still to come."""

    span: Span
    reads: Mapping[Span, Reads] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)  # job → reason, final
    alive: Mapping[str, Span] = field(default_factory=dict)  # job → seeds, waiting or running
    jobs: tuple[str, ...] = ()
    read_at: str | None = None

    def gaps(self, size: int) -> tuple[Span, ...]:
        """The seeds that nobody read or reads, in blocks of at most `size`; none once a job has failed for good."""
        if self.failures:
            return ()
        at = self.span.low
        blocks: list[Span] = []
        for held in sorted([*self.reads, *self.alive.values(), Span(self.span.high, self.span.high)]):
            if held.low > at:
                blocks += Span(at, held.low).blocks(size)
            at = max(at, held.high)
        return tuple(blocks)

    @property
    def complete(self) -> bool:
        """Whether every seed of the span was asked for in an ok row."""
        return not self.alive and not self.failures and not self.gaps(len(self.span))

    def pairs(self) -> dict[int, tuple[float, float]]:
        """Seed → (candidate, best), each seed once."""
        return {s: pair for reads in self.reads.values() for s, pair in reads.pairs().items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How far one trial has come."""

    trial: Trial
    search: Stage | None = None
    heldout: Stage | None = None
    ruling: Ruling | None = None

    @property
    def stages(self) -> tuple[Stage, ...]:
        return tuple(stage for stage in (self.search, self.heldout) if stage)

    @property
    def order(self) -> tuple[str, str]:
        """Trials in the order they were queued: a job's id without its priority begins with its time."""
        return min((job[3:] for stage in self.stages for job in stage.jobs), default=""), self.trial.id

    @property
    def alive(self) -> bool:
        return any(stage.alive for stage in self.stages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The defaults adopted so far."""

    weights: Mapping[str, float]
    defaults: str
    adoptions: tuple[Ruling, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What was tried, what stands, what is under way."""

    best: Best
    courses: Mapping[str, Course]
    draws: tuple[Draw, ...]
    overlap: str | None  # why held-out reads cannot be trusted, by the seeds of what stands and what is under way
    plays: Mapping[Purpose, int]
    pass_: int
    rulings: tuple[Ruling, ...]

    def current(self, course: Course) -> bool:
        """Whether the trial is read against the best that stands now."""
        return course.trial.defaults == self.best.defaults

    def expired(self, course: Course) -> bool:
        """Whether the trial says nothing about the best that stands: replaced before its verdict."""
        return course.ruling.reason == REPLACED if course.ruling else not self.current(course)


class Facts:
    """The rows of one plan, by what they are about. Adding a row twice, or in another order, changes nothing."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.trials: dict[str, Trial] = {}
        self.draws: dict[tuple[str, Purpose], Draw] = {}
        self._attempts: dict[Key, Attempt] = {}
        self._rulings: dict[Key, Ruling] = {}
        self._void: set[Key] = set()

    def add(self, rows: Iterable[Row]) -> None:
        for row in rows:
            key = (row.host, row.seq)
            if row.event == "void":
                self._void |= {(v["host"], v["seq"]) for v in row.body.get("rows", ())}
            elif row.event in VERDICTS and row.body.get("plan") == self.name:
                self._rulings[key] = _ruling(row)
            elif row.event == "result" and (block := self._block(row)):
                self.trials.setdefault(block.trial.id, block.trial)
                drawn = (block.trial.id, block.purpose)
                self.draws[drawn] = min(self.draws.get(drawn, block.draw), block.draw, key=lambda draw: draw.span)
                self._attempts[key] = _attempt(row, block)

    def _block(self, row: Row) -> Block | None:
        payload = row.body.get("payload")
        if not isinstance(payload, dict) or payload.get("schema") != TRIAL or payload.get("name") != self.name:
            return None
        try:
            return decode_block(payload)
        except BadData:
            return None

    def attempts(self) -> list[Attempt]:
        """The result rows that no void row takes out."""
        return [attempt for key, attempt in self._attempts.items() if key not in self._void]

    def rulings(self) -> list[Ruling]:
        """The standing verdicts, oldest first; of two on one trial the first."""
        standing = sorted((r for k, r in self._rulings.items() if k not in self._void), key=lambda r: (r.at, r.key))
        first: dict[str, Ruling] = {}
        for ruling in standing:
            first.setdefault(ruling.trial, ruling)
        return list(first.values())


def _ruling(row: Row) -> Ruling:
    body = row.body
    return Ruling(
        event=row.event,
        at=row.at,
        key=(row.host, row.seq),
        trial=str(body.get("trial")),
        reason=str(body.get("reason")),
        sentence=str(body.get("sentence")),
        body=body,
    )


def _attempt(row: Row, block: Block) -> Attempt:
    body = row.body
    return Attempt(
        host=row.host,
        at=row.at,
        job=body["job"],
        attempt=body["attempt"],
        outcome=body["outcome"],
        final=body.get("next") is None,
        reason=body.get("reason"),
        trial=block.trial.id,
        purpose=block.purpose,
        seeds=block.seeds,
        reads=decode_reads(body.get("result")),
    )


def standing(facts: Facts, space: Space, alive: Mapping[str, Block]) -> Standing:
    """The facts seen through the space; `alive` are the jobs that wait or run, by id."""
    rulings, attempts = facts.rulings(), facts.attempts()
    trials = {block.trial.id: block.trial for block in alive.values()} | facts.trials
    draws = {(block.trial.id, block.purpose): block.draw for block in alive.values()} | facts.draws
    return Standing(
        best=_best(space, rulings),
        courses=_courses(trials, draws, attempts, rulings, alive),
        draws=tuple(sorted(draws.values(), key=lambda draw: (draw.span, draw.whose))),
        overlap=overlap([*(Draw(a.seeds, a.purpose, a.trial) for a in attempts), *(b.draw for b in alive.values())]),
        plays=_plays(attempts),
        pass_=max((trial.pass_ for trial in trials.values()), default=1),
        rulings=tuple(rulings),
    )


def _best(space: Space, rulings: Iterable[Ruling]) -> Best:
    """Walk the adoptions from the space's starts; the first adoption from given defaults is the one that counts."""
    after: dict[str, Ruling] = {}
    for ruling in rulings:
        if ruling.event == "adopt" and isinstance(ruling.body.get("candidate"), dict):
            after.setdefault(str(ruling.body.get("defaults")), ruling)
    weights = space.starts()
    chain: list[Ruling] = []
    while (defaults := player_hash(weights)) in after:
        chain.append(after.pop(defaults))
        weights = {**weights, **chain[-1].body["candidate"]}
    return Best(weights=weights, defaults=player_hash(weights), adoptions=tuple(chain))


def _plays(attempts: Iterable[Attempt]) -> dict[Purpose, int]:
    plays = dict.fromkeys(Purpose, 0)
    for attempt in attempts:
        plays[attempt.purpose] += attempt.reads.plays
    return plays


def _courses(
    trials: Mapping[str, Trial],
    draws: Mapping[tuple[str, Purpose], Draw],
    attempts: Iterable[Attempt],
    rulings: Iterable[Ruling],
    alive: Mapping[str, Block],
) -> dict[str, Course]:
    by_stage: dict[tuple[str, Purpose], list[Attempt]] = {}
    for attempt in attempts:
        by_stage.setdefault((attempt.trial, attempt.purpose), []).append(attempt)
    live: dict[tuple[str, Purpose], dict[str, Span]] = {}
    for job, block in alive.items():
        live.setdefault((block.trial.id, block.purpose), {})[job] = block.seeds
    ruled = {ruling.trial: ruling for ruling in rulings}

    def stage(trial: str, purpose: Purpose) -> Stage | None:
        key = (trial, purpose)
        return _stage(draws[key].span, by_stage.get(key, []), live.get(key, {})) if key in draws else None

    courses = {
        id_: Course(
            trial=trial,
            search=stage(id_, Purpose.SEARCH),
            heldout=stage(id_, Purpose.HELDOUT),
            ruling=ruled.get(id_),
        )
        for id_, trial in trials.items()
    }
    return dict(sorted(courses.items(), key=lambda item: item[1].order))


def _stage(span: Span, attempts: list[Attempt], live: Mapping[str, Span]) -> Stage:
    """Per job the lowest ok attempt counts; one that ended otherwise for good has failed; one nowhere is a gap."""
    ok: dict[str, Attempt] = {}
    last: dict[str, Attempt] = {}
    for attempt in sorted(attempts, key=lambda a: (a.attempt, a.host)):
        if attempt.outcome == Outcome.OK:
            ok.setdefault(attempt.job, attempt)
        last[attempt.job] = attempt
    failed = {job: a for job, a in last.items() if a.final and job not in ok and job not in live}
    return Stage(
        span=span,
        reads={a.seeds: a.reads for a in sorted(ok.values(), key=lambda a: a.job, reverse=True)},
        failures={job: _failure(failed[job]) for job in sorted(failed)},
        alive={job: seeds for job, seeds in live.items() if job not in ok},
        jobs=tuple(sorted({*last, *live})),
        read_at=max((a.at for a in ok.values()), default=None),
    )


def _failure(attempt: Attempt) -> str:
    return f"{attempt.outcome}" + (f": {attempt.reason}" if attempt.reason else "")
