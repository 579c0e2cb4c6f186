"""The standing: what the ledger's rows say together. A pure fold in any order: the same rows, the same standing.

`standing` looks at the facts through the space. Rows of other defaults stay, but are never pooled with the present ones.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fleetd import Outcome
from planner.best import Best, best_of
from planner.builds import pooled
from planner.facts import Facts
from planner.rows import NOT_READ, REPLACED, Attempt, Judged, Ruling
from planner.screen import Screen
from planner.screened import Screened, screened
from planner.seeds import Draw, Purpose, Span, astray, joined
from planner.shelf import Line, Shelf
from planner.space import Space
from planner.tally import Tally, tally_of
from planner.trial import Block, Key, Reads, Trial

Drawn = tuple[Draw, tuple[int, ...]]  # and the looks


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
    """How far one trial has come. One that is on the shelf is opened when it is asked for more than its trial."""

    trial: Trial
    search: Stage | None = None
    heldout: Stage | None = None
    ruling: Ruling | None = None
    shelved: tuple[Shelf, Line] | None = field(default=None, compare=False, repr=False)

    def __getattr__(self, name: str) -> Any:
        """What was not asked for before: Python calls this where a slot has no value yet."""
        if name not in ("trial", "search", "heldout", "ruling") or self.shelved is None:
            raise AttributeError(name)
        shelf, line = self.shelved
        if name == "trial":
            object.__setattr__(self, name, line.trial)
        else:
            opened = _opened(shelf, line)
            for stage in ("search", "heldout", "ruling"):
                object.__setattr__(self, stage, getattr(opened, stage))
        return getattr(self, name)

    @property
    def defaults(self) -> str:
        """The best that it is read against."""
        return self.shelved[1].defaults if self.shelved else self.trial.defaults

    @property
    def searched(self) -> bool:
        return self.shelved[1].high > 0 if self.shelved else self.search is not None

    @property
    def read_at(self) -> str:
        """When its search was read last; "" where it was not."""
        if self.shelved:
            return self.shelved[1].read_at
        return (self.search.read_at if self.search else None) or ""

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


class Courses(Mapping[str, Course]):
    """Trials by id, in the order in which they were queued; those on the shelf are made when they are asked for."""

    def __init__(self, courses: Mapping[str, Course], shelf: Shelf, lines: Iterable[Line]) -> None:
        self._courses, self._shelf = courses, shelf
        self._against = {line.id: line.defaults for line in lines}

    def __getitem__(self, id_: str) -> Course:
        return self._courses.get(id_) or _shelved(self._shelf, self._shelf.lines[id_])

    def __iter__(self) -> Iterator[str]:
        return iter(self._against)

    def __len__(self) -> int:
        return len(self._against)

    def against(self, defaults: str) -> Iterator[Course]:
        """Those that are read against that best."""
        return (self[id_] for id_, read_against in self._against.items() if read_against == defaults)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What was tried, what stands, what is under way."""

    best: Best
    courses: Courses
    draws: tuple[Draw, ...]
    overlap: str | None  # why reads cannot be trusted: their seeds meet those of another purpose
    plays: Mapping[Purpose, int]
    pass_: int
    screened: Screened = field(default_factory=Screened)
    single_plays: int = 0  # of the search, by trials of one variable
    undone: Mapping[Key, str] = field(default_factory=dict)  # a verdict → why it counts no more
    open: tuple[Course, ...] = ()  # those without a verdict
    outside: frozenset[str] = frozenset()  # of them, those whose candidate the space does not allow any more
    leaps: tuple[Course, ...] = ()  # those of many variables
    alive: Mapping[str, int] = field(default_factory=dict)  # jobs of trials that wait or run → seeds
    single_seeds: int = 0  # of them, those of searches of one variable
    tally: Tally = field(default_factory=Tally)

    def current(self, course: Course) -> bool:
        """Whether the trial is read against the best that stands now."""
        return course.defaults == self.best.defaults


def standing(facts: Facts, space: Space, under_way: Mapping[str, Block | Screen]) -> Standing:
    """The facts seen through the space; `under_way` are the jobs that wait or run, by id."""
    alive = {job: task for job, task in under_way.items() if isinstance(task, Block)}
    screens = {job: task for job, task in under_way.items() if isinstance(task, Screen)}
    facts.open({block.trial.id for block in alive.values()} & facts.shelf.lines.keys())
    rulings = [ruling for ruling in facts.rulings() if not ruling.is_round]
    best = best_of(space, rulings)
    facts.open(
        [line.id for line in facts.shelf.lines.values() if line.event == "replaced" and line.defaults == best.defaults]
    )
    attempts, read, names = pooled(facts)
    seen, shelf = screened(read, screens, facts.shelf, names), facts.shelf
    courses, draws = _courses(attempts, [ruling for ruling in facts.rulings() if _stands(ruling, best)], alive)
    lines = sorted([*map(line_of, courses.values()), *shelf.lines.values()])
    pass_ = max((line.pass_ for line in lines), default=1)
    tally, plays = tally_of(lines, best.defaults, pass_), _plays(attempts, seen, shelf)
    asked = [*(Draw(a.seeds, a.purpose, a.trial.id) for a in attempts), *(block.draw for block in alive.values())]
    return Standing(
        best=best,
        courses=Courses(courses, shelf, lines),
        draws=_sorted([*draws, *shelf.draws(), *seen.draws, *_searched(tally)]),
        overlap=astray([*asked, *shelf.asked()]) or seen.stray,
        plays=plays,
        screened=seen,
        single_plays=plays[Purpose.SEARCH] - seen.plays,
        pass_=pass_,
        undone={**facts.undone(), **best.lapsed},
        open=(open_ := tuple(course for course in courses.values() if not course.ruling)),
        outside=frozenset(course.trial.id for course in open_ if not space.has(course.trial.candidate)),
        leaps=tuple(course for course in courses.values() if course.trial.single is None),
        alive={job: len(n) for c in courses.values() for stage in c.stages for job, n in stage.alive.items()},
        single_seeds=sum(map(_waiting, courses.values())),
        tally=tally,
    )


def _stands(ruling: Ruling, best: Best) -> bool:
    """A trial whose best has come back, as after a void row, is open again."""
    return not ruling.is_round and not (ruling.reason == REPLACED and ruling.body.get("defaults") == best.defaults)


def _shelved(shelf: Shelf, line: Line) -> Course:
    """The trial as it lies there: half a microsecond, for there may be 100,000."""
    course = Course.__new__(Course)
    object.__setattr__(course, "shelved", (shelf, line))
    return course


def _opened(shelf: Shelf, line: Line) -> Course:
    """What its rows say."""
    (row, *_) = rows = shelf.fetch(line.rows)
    facts = Facts(str(row.body["payload"]["name"]))
    facts.add(rows)
    return _courses(facts.attempts(), facts.rulings(), {})[0][line.id]


def line_of(course: Course) -> Line:
    """What the tally counts of it."""
    trial, search, ruling, change = course.trial, course.search, course.ruling, course.trial.single
    event = ("replaced" if ruling.reason == REPLACED else ruling.event) if ruling else ""
    return Line(
        job=course.order[0],
        id=trial.id,
        pass_=trial.pass_,
        defaults=trial.defaults,
        seconds=trial.seconds,
        of=trial.of,
        variable=change.variable if change else "",
        from_=change.from_ if change else 0.0,
        to=change.to if change else 0.0,
        event=event,
        low=search.span.low if search else 0,
        high=search.span.high if search else 0,
        read=bool(search and search.reads),
        read_at=course.read_at,
        looks=_looks_decided(course),
    )


def _looks_decided(course: Course) -> int:
    held, ruling = course.heldout, course.ruling
    if held is None or ruling is None or ruling.reason == REPLACED:
        return 0
    return len(held.looks) if ruling.body.get("stage") == Purpose.HELDOUT else 0


def _waiting(course: Course) -> int:
    """Seeds of its search that are to come, where one variable is searched."""
    return sum(map(len, course.search.alive.values())) if course.search and course.trial.single else 0


def _sorted(draws: Iterable[Draw]) -> tuple[Draw, ...]:
    return tuple(sorted(draws, key=lambda draw: (draw.span.low, draw.span.high, draw.whose)))


def _searched(tally: Tally) -> Iterable[Draw]:
    """The search's seeds, once for all the trials that share them."""
    return (Draw(span, Purpose.SEARCH, id_) for span, id_ in tally.searched.items())


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


def _plays(attempts: Iterable[Attempt], seen: Screened, shelf: Shelf) -> dict[Purpose, int]:
    plays = dict.fromkeys(Purpose, 0) | shelf.plays()
    plays[Purpose.SEARCH] += seen.plays
    for attempt in attempts:
        plays[attempt.purpose] += attempt.reads.plays
    return plays


def _courses(
    attempts: Sequence[Attempt], rulings: Iterable[Ruling], alive: Mapping[str, Block]
) -> tuple[dict[str, Course], list[Draw]]:
    """The trials by id, in the order in which they were queued, and what was drawn for held-out."""
    trials, draws = _drawn(attempts)
    trials = {block.trial.id: block.trial for block in alive.values()} | trials
    draws = {(block.trial.id, block.purpose): (block.draw, block.looks) for block in alive.values()} | draws
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
        id_: _course(trial, stage(id_, Purpose.SEARCH), stage(id_, Purpose.HELDOUT), ruled.get(id_))
        for id_, trial in trials.items()
    }
    drawn = {*(a.draw for a in attempts), *(draw for draw, _ in draws.values())}  # two fleets may draw twice for one
    courses = dict(sorted(courses.items(), key=lambda item: item[1].order))
    return courses, [draw for draw in drawn if draw.purpose is not Purpose.SEARCH]


def _course(trial: Trial, search: Stage | None, heldout: Stage | None, ruling: Ruling | None) -> Course:
    """Open again where the job that failed was read after all, as by `fleet retry`."""
    if ruling and ruling.reason == NOT_READ and not any(stage.failures for stage in (search, heldout) if stage):
        ruling = None
    return Course(trial=trial, search=search, heldout=heldout, ruling=ruling)


def stage_of(
    span: Span, attempts: Sequence[Attempt | Judged], live: Mapping[str, Span], looks: tuple[int, ...] = ()
) -> Stage:
    """Per job the lowest ok attempt counts; one that ended otherwise for good has failed; one nowhere is a gap.

    What was read outside of the span, for a fleet that had drawn others, does not count, nor a failure where another job has
    read its seeds. A job that a person cancelled is nowhere, as one whose file was removed: its seeds get their turn again.
    """
    ok: dict[str, Attempt | Judged] = {}
    last: dict[str, Attempt | Judged] = {}
    inside = [a for a in attempts if span.low <= a.seeds.low and a.seeds.high <= span.high]
    for attempt in sorted(inside, key=lambda a: (a.attempt, a.key)):
        if attempt.outcome == Outcome.OK:
            ok.setdefault(attempt.job, attempt)
        last[attempt.job] = attempt
    ended = {job: a for job, a in last.items() if a.final and job not in ok and job not in live}
    read = joined(a.seeds for a in ok.values())
    missed = {job: a for job, a in ended.items() if a.outcome != Outcome.CANCELLED}
    failed = {
        job: a for job, a in missed.items() if not any(s.low <= a.seeds.low and a.seeds.high <= s.high for s in read)
    }
    return Stage(
        span=span,
        looks=looks or (len(span),),
        reads={a.seeds: a.reads for a in sorted(ok.values(), key=lambda a: a.job, reverse=True)},
        failures={job: failed[job].failure + _most(failed[job].reads.errors) for job in sorted(failed)},
        alive={job: seeds for job, seeds in live.items() if job not in ok},
        jobs=tuple(sorted({*last, *live})),
        rows=frozenset(a.key for a in (*ok.values(), *failed.values())),
        read_at=max((a.at for a in ok.values()), default=None),
    )


def _most(errors: Mapping[str, int]) -> str:
    """The failure of a play that came most often."""
    why = max(errors, key=lambda why: (errors[why], why), default=None)
    return f" ({errors[why]} × {why})" if why else ""
