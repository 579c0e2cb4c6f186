"""What is due next: the standing and an order → the blocks to queue, held-out seeds before new trials. Pure.

Fresh search seeds belong to a pass and to the best it reads against: all trials of one pass against one best share
them, and an adoption brings new ones. Each held-out has seeds of its own that nobody used before.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from planner.plan import Plan
from planner.policy import POLICIES, Leap, Move, Pairs, Terms
from planner.screen import Screen, screen_id
from planner.seeds import Draw, Purpose, Span, fresh
from planner.shared import giving_way
from planner.standing import Standing
from planner.stats import looks, raced_looks
from planner.trial import Block, Change, Trial, trial_id
from planner.verdict import Call, judge

Shared = tuple[int, int]  # a pass, and how many seeds

BLOCK_SEEDS = 100  # of one job: lanes share a held-out, and a result stays well under 64 KiB


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """How much to queue: jobs that may wait and run together, jobs to add, plays in all; None: no limit."""

    depth: int | None = None
    count: int | None = None
    plays: int | None = None
    heldout: str | None = None  # a trial whose held-out seeds a person asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lot:
    """Blocks of one stage that belong together; what was begun is finished even past the budget."""

    blocks: list[Block | Screen]
    begun: bool
    plays: int = 0


def blocks_due(standing: Standing, plan: Plan, order: Order, busy: int) -> list[Block | Screen]:
    """The jobs to add to the `busy` ones that wait or run already."""
    depth = None if order.depth is None else order.depth - busy
    room = max(0, min((limit for limit in (depth, order.count) if limit is not None), default=0))
    if not room:
        return []
    expected = plays_expected(standing, plan)
    blocks: list[Block | Screen] = []
    for lot in _lots(standing, plan, order, room):
        if order.plays is not None and expected >= order.plays and not lot.begun:
            continue
        if len(blocks) >= room:
            break
        blocks += lot.blocks[: room - len(blocks)]
        expected += lot.plays
    return blocks


def plays_expected(standing: Standing, plan: Plan) -> int:
    """Plays read, and those that the queue and the stages begun will take."""
    read = set(standing.tally.read)
    total = sum(standing.plays.values()) + 2 * standing.screened.waiting
    for course in standing.open:
        for stage, purpose in ((course.search, Purpose.SEARCH), (course.heldout, Purpose.HELDOUT)):
            seeds = sum(map(len, [*stage.alive.values(), *stage.gaps(BLOCK_SEEDS)])) if stage else 0
            if stage and seeds:
                total += _plays(plan, purpose, seeds, first=stage.span not in read)
                read.add(stage.span)
    return total


def _plays(plan: Plan, purpose: Purpose, seeds: int, *, first: bool) -> int:
    """Both players' plays, less the best's on search seeds that were read before."""
    shared = plan.deterministic and purpose is Purpose.SEARCH and not first
    return seeds * (1 if shared else 2)


def _lots(standing: Standing, plan: Plan, order: Order, room: int) -> Iterator[_Lot]:
    """Gaps of what was begun, then held-out seeds, then the policy's trials; seeds are drawn one after another."""
    barred = {draw.whose for draw in giving_way(standing)} | standing.outside
    open_ = [course for course in standing.open if standing.current(course) and course.trial.id not in barred]
    for course in open_:
        for stage, purpose in ((course.heldout, Purpose.HELDOUT), (course.search, Purpose.SEARCH)):
            if stage and (gaps := stage.gaps(BLOCK_SEEDS)):
                yield _Lot(
                    blocks=[_block(standing, plan, course.trial, purpose, g, (stage.span, stage.looks)) for g in gaps],
                    begun=True,
                )
    draws = list(standing.draws)
    past = [course.trial for course in open_ if judge(course, current=True).call is Call.MORE]
    for trial in [*past, *asked_again(standing, order.heldout)]:
        yield _held_out(standing, plan, trial, draws)
    yield from _asked(standing, plan, draws, room)


def _held_out(standing: Standing, plan: Plan, trial: Trial, draws: list[Draw], span: Span | None = None) -> _Lot:
    """As far as the first look; the rest comes when that has not decided."""
    span = span or fresh(Purpose.HELDOUT, plan.heldout, draws)
    draws.append(Draw(span, Purpose.HELDOUT, trial.id))
    return _lot(standing, plan, trial, Purpose.HELDOUT, (span, looks(plan.heldout)), first=True)


def terms_of(plan: Plan) -> Terms:
    return Terms(
        space=plan.space,
        seeds=plan.seeds,
        seconds=plan.seconds,
        heldout=plan.heldout,
        floor=plan.floor,
        horizon=plan.horizon,
    )


def _asked(standing: Standing, plan: Plan, draws: list[Draw], room: int) -> Iterator[_Lot]:
    """What the policy asks for, each with its seeds."""
    spans = _search_spans(standing, plan)
    for ask in POLICIES[plan.policy](standing, terms_of(plan), room):
        if isinstance(ask, Move):
            yield _search(standing, plan, draws, spans, ask)
        elif isinstance(ask, Leap):
            yield _leap(standing, plan, draws, ask)
        else:
            yield _screen(standing, plan, draws, ask)


def _search(standing: Standing, plan: Plan, draws: list[Draw], spans: dict[Shared, Span], move: Move) -> _Lot:
    looks_ = raced_looks(plan.seeds) if move.raced else (plan.seeds,)
    if first := (shared := (move.pass_, looks_[-1])) not in spans:
        spans[shared] = fresh(Purpose.SEARCH, looks_[-1], draws)
        draws.append(Draw(spans[shared], Purpose.SEARCH, f"pass {move.pass_}"))
    span = spans[shared]
    how = span, looks_
    trial = replace(_trial(standing, plan, {move.variable: move.to}, span), pass_=move.pass_)
    return _lot(standing, plan, trial, Purpose.SEARCH, how, first=first)


def _leap(standing: Standing, plan: Plan, draws: list[Draw], leap: Leap) -> _Lot:
    span = fresh(Purpose.HELDOUT, plan.heldout, draws)
    trial = replace(_trial(standing, plan, leap.candidate, span), pairs=leap.pairs)
    return _held_out(standing, plan, trial, draws, span)


def _screen(standing: Standing, plan: Plan, draws: list[Draw], ask: Pairs) -> _Lot:
    seeds = fresh(Purpose.SEARCH, terms_of(plan).pairs, draws)
    screen = Screen(
        id=screen_id(ask.axes, ask.shake, plan.seconds, seeds),
        name=plan.name,
        census=plan.census,
        seconds=plan.seconds,
        seeds=seeds,
        axes=ask.axes,
        defaults=standing.best.defaults,
        pairs=ask.pairs,
        shake=ask.shake,
        play_timeout_s=plan.play_timeout_s,
        deterministic=plan.deterministic,
    )
    draws.append(screen.draw)
    return _Lot(blocks=[screen], begun=False, plays=2 * len(seeds))


def _search_spans(standing: Standing, plan: Plan) -> dict[Shared, Span]:
    """The seeds that trials against the present best share."""
    spans = standing.tally.spans.items()
    return {(pass_, seeds): span for (pass_, seconds, seeds), span in spans if seconds == plan.seconds}


def asked_again(standing: Standing, id_: str | None) -> Iterable[Trial]:
    """The trial that reads on held-out seeds a candidate which has its verdict, because a person asked; once."""
    course = standing.courses.get(id_ or "")
    again = f"{id_}h"
    if course and course.ruling and standing.current(course) and again not in standing.courses:
        yield replace(course.trial, id=again, of=course.trial.id)


def _trial(standing: Standing, plan: Plan, candidate: Mapping[str, float], span: Span) -> Trial:
    now = standing.best.weights
    return Trial(
        id=trial_id(standing.best.defaults, candidate, plan.seconds, span),
        changes=tuple(Change(variable=name, from_=now[name], to=to) for name, to in candidate.items()),
        defaults=standing.best.defaults,
        pass_=standing.pass_,
        seconds=plan.seconds,
    )


How = tuple[Span, tuple[int, ...]]  # a stage's seeds, and its looks


def _lot(standing: Standing, plan: Plan, trial: Trial, purpose: Purpose, how: How, *, first: bool) -> _Lot:
    span, looks_ = how
    now = Span(span.low, span.low + looks_[0])
    blocks: list[Block | Screen] = [_block(standing, plan, trial, purpose, s, how) for s in now.blocks(BLOCK_SEEDS)]
    return _Lot(blocks=blocks, begun=False, plays=_plays(plan, purpose, len(now), first=first))


def _block(standing: Standing, plan: Plan, trial: Trial, purpose: Purpose, seeds: Span, how: How) -> Block:
    return Block(
        trial=trial,
        name=plan.name,
        census=plan.census,
        purpose=purpose,
        seeds=seeds,
        span=how[0],
        looks=how[1],
        best=standing.best.weights,
        play_timeout_s=plan.play_timeout_s,
        deterministic=plan.deterministic,
    )
