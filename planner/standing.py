"""The standing: what the ledger's rows say together. A pure fold in any order: the same rows, the same standing.

`standing` looks at the facts through the space. Rows of other defaults stay, but are never pooled with the present ones.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fleetd import Outcome
from planner.best import Best, best_of
from planner.facts import Attempt, Ended, Facts, Judged, Key, Ruling
from planner.screen import Screen
from planner.screened import Screened, screened
from planner.seeds import Draw, Purpose, Span, overlap
from planner.space import Space
from planner.trial import Block, Reads, Trial

Drawn = tuple[Draw, tuple[int, ...]]  # and the looks

REPLACED = "replaced"  # the reason of a keep whose best was replaced meanwhile: its turn in the rotation comes again


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A trial's reads for one purpose: what is asked, what came, what is still to come."""

    span: Span
    looks: tuple[int, ...]  # after how many seeds the reads are judged; the last: after all
    reads: Mapping[Span, Reads] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)  # job → reason, final
    alive: Mapping[str, Span] = field(default_factory=dict)  # job → seeds, waiting or running
    jobs: tuple[str, ...] = ()
    rows: frozenset[Key] = frozenset()  # of the reads and the failures
    read_at: str | None = None

    def gaps(self, size: int) -> tuple[Span, ...]:
        """The seeds up to the next look that nobody read or reads, in blocks of at most `size`; none after a failure."""
        return () if self.failures else self._gaps(size, self.reached)

    def _gaps(self, size: int, seeds: int) -> tuple[Span, ...]:
        at, end = self.span.low, self.span.low + seeds
        blocks: list[Span] = []
        for held in sorted([*self.reads, *self.alive.values(), Span(end, end)]):
            if held.low > at:
                blocks += Span(at, min(end, held.low)).blocks(size) if at < end else ()
            at = max(at, held.high)
        return tuple(blocks)

    @property
    def reached(self) -> int:
        """The first look that is not complete, or the last one."""
        return next((seeds for seeds in self.looks if not self.complete_to(seeds)), self.looks[-1])

    def complete_to(self, seeds: int) -> bool:
        """Whether each of the first so many seeds was asked for in an ok row."""
        end = self.span.low + seeds
        return not self._gaps(seeds, seeds) and not any(span.low < end for span in self.alive.values())

    @property
    def complete(self) -> bool:
        """Whether every seed of the span was asked for in an ok row."""
        return not self.failures and self.complete_to(len(self.span))

    def first(self, seeds: int) -> "Stage":
        """The same as if no more than the first so many seeds had ever been asked for."""
        end = self.span.low + seeds
        reads = {span: read.before(end) for span, read in self.reads.items() if span.low < end}
        return replace(self, span=Span(self.span.low, end), looks=(seeds,), reads=reads)

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
class Standing:
    """What was tried, what stands, what is under way."""

    best: Best
    courses: Mapping[str, Course]
    draws: tuple[Draw, ...]
    overlap: str | None  # why held-out reads cannot be trusted, by the seeds of what stands and what is under way
    plays: Mapping[Purpose, int]
    pass_: int
    rulings: tuple[Ruling, ...]
    screened: Screened = field(default_factory=Screened)
    single_plays: int = 0  # of the search, by trials of one variable
    history: tuple[Ruling, ...] = ()  # every verdict, oldest first
    undone: Mapping[Key, str] = field(default_factory=dict)  # a verdict of the history → why it counts no more

    def current(self, course: Course) -> bool:
        """Whether the trial is read against the best that stands now."""
        return course.trial.defaults == self.best.defaults

    def expired(self, course: Course) -> bool:
        """Whether the trial says nothing about the best that stands: replaced before its verdict."""
        return course.ruling.reason == REPLACED if course.ruling else not self.current(course)


def standing(facts: Facts, space: Space, under_way: Mapping[str, Block | Screen]) -> Standing:
    """The facts seen through the space; `under_way` are the jobs that wait or run, by id."""
    alive = {job: task for job, task in under_way.items() if isinstance(task, Block)}
    screens = {job: task for job, task in under_way.items() if isinstance(task, Screen)}
    seen = screened(facts.screens(), screens)
    rulings, attempts = [ruling for ruling in facts.rulings() if not ruling.is_round], facts.attempts()
    trials, draws = _drawn(attempts)
    trials = {block.trial.id: block.trial for block in alive.values()} | trials
    draws = {(block.trial.id, block.purpose): (block.draw, block.looks) for block in alive.values()} | draws
    best, now = best_of(space, rulings), [block.draw for block in alive.values()]
    drawn = sorted([*(draw for draw, _ in draws.values()), *seen.draws], key=lambda draw: (draw.span, draw.whose))
    return Standing(
        best=best,
        courses=_courses(trials, draws, attempts, rulings, alive),
        draws=tuple(drawn),
        overlap=overlap([*(Draw(a.seeds, a.purpose, a.trial.id) for a in attempts), *now, *seen.draws]),
        plays=_plays(attempts, seen),
        screened=seen,
        single_plays=sum(a.reads.plays for a in attempts if a.purpose is Purpose.SEARCH),
        pass_=max((trial.pass_ for trial in trials.values()), default=1),
        rulings=tuple(rulings),
        history=tuple(facts.history()),
        undone={**facts.undone(), **best.lapsed},
    )


def _drawn(attempts: Iterable[Attempt]) -> tuple[dict[str, Trial], dict[tuple[str, Purpose], Drawn]]:
    """The trials by id, and what each drew; where rows differ, the least counts, whatever their order."""
    trials: dict[str, Trial] = {}
    draws: dict[tuple[str, Purpose], Drawn] = {}
    for attempt in attempts:
        trial, drawn = attempt.trial, (attempt.trial.id, attempt.purpose)
        known = trials.setdefault(trial.id, trial)
        if trial.pass_ < known.pass_:
            trials[trial.id] = trial
        own = attempt.draw, attempt.looks
        if drawn not in draws or (own[0].span, own[1]) < (draws[drawn][0].span, draws[drawn][1]):
            draws[drawn] = own
    return trials, draws


def _plays(attempts: Iterable[Attempt], seen: Screened) -> dict[Purpose, int]:
    plays = dict.fromkeys(Purpose, 0) | {Purpose.SEARCH: seen.plays}
    for attempt in attempts:
        plays[attempt.purpose] += attempt.reads.plays
    return plays


def _courses(
    trials: Mapping[str, Trial],
    draws: Mapping[tuple[str, Purpose], Drawn],
    attempts: Iterable[Attempt],
    rulings: Iterable[Ruling],
    alive: Mapping[str, Block],
) -> dict[str, Course]:
    by_stage: dict[tuple[str, Purpose], list[Attempt]] = {}
    for attempt in attempts:
        by_stage.setdefault((attempt.trial.id, attempt.purpose), []).append(attempt)
    live: dict[tuple[str, Purpose], dict[str, Span]] = {}
    for job, block in alive.items():
        live.setdefault((block.trial.id, block.purpose), {})[job] = block.seeds
    ruled = {ruling.trial: ruling for ruling in rulings}

    def stage(trial: str, purpose: Purpose) -> Stage | None:
        key = (trial, purpose)
        if key not in draws:
            return None
        draw, looks = draws[key]
        return stage_of(draw.span, by_stage.get(key, []), live.get(key, {}), looks)

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


def stage_of(
    span: Span, attempts: Sequence[Attempt | Judged], live: Mapping[str, Span], looks: tuple[int, ...] = ()
) -> Stage:
    """Per job the lowest ok attempt counts; one that ended otherwise for good has failed; one nowhere is a gap.

    A job that a person cancelled is nowhere, as one whose file was removed: its seeds get their turn again.
    """
    ok: dict[str, Attempt | Judged] = {}
    last: dict[str, Attempt | Judged] = {}
    for attempt in sorted(attempts, key=lambda a: (a.attempt, a.key)):
        if attempt.outcome == Outcome.OK:
            ok.setdefault(attempt.job, attempt)
        last[attempt.job] = attempt
    ended = {job: a for job, a in last.items() if a.final and job not in ok and job not in live}
    failed = {job: a for job, a in ended.items() if a.outcome != Outcome.CANCELLED}
    return Stage(
        span=span,
        looks=looks or (len(span),),
        reads={a.seeds: a.reads for a in sorted(ok.values(), key=lambda a: a.job, reverse=True)},
        failures={job: failure_of(failed[job]) for job in sorted(failed)},
        alive={job: seeds for job, seeds in live.items() if job not in ok},
        jobs=tuple(sorted({*last, *live})),
        rows=frozenset(a.key for a in (*ok.values(), *failed.values())),
        read_at=max((a.at for a in ok.values()), default=None),
    )


def failure_of(attempt: Ended) -> str:
    return f"{attempt.outcome}" + (f": {attempt.reason}" if attempt.reason else "")
