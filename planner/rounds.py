"""Rounds of nets: train → judge → verdict, one round at a time. A pure fold of the same rows as the standing.

The first net is made by the plan's `first` and adopted as it is: there is nothing to judge it against. Each round after it
trains a net from the best and reads both, on judge seeds that nobody used before; past two standard errors the new one is
the best. Adoptions lead from net to net: one that does not lead on from what stands has lapsed.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fleetd import Outcome
from planner.facts import Facts
from planner.net_round import Judge, Lesson, NetFile
from planner.opinion import Opinion
from planner.rows import REPLACED, Learned, Ruling
from planner.seeds import Draw, Purpose, stray
from planner.standing import Stage, stage_of
from planner.stats import Paired, past_gate
from planner.trial import Key
from planner.verdict import WAIT, Call, Verdict, decimals, effect, read_of, short_of, signed, summary, usable

Task = Lesson | Judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """How far one round has come."""

    lesson: Lesson
    made: NetFile | None = None
    made_by: str | None = None  # the job
    failure: str | None = None
    learning: tuple[str, ...] = ()  # jobs that wait or run
    jobs: tuple[str, ...] = ()
    rows: frozenset[Key] = frozenset()
    stage: Stage | None = None
    ruling: Ruling | None = None

    @property
    def alive(self) -> tuple[str, ...]:
        return (*self.learning, *(self.stage.alive if self.stage else ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """What was learned, which net stands, what is under way."""

    net: NetFile | None = None
    adoptions: tuple[Ruling, ...] = ()
    rounds: Mapping[str, Round] = field(default_factory=dict)  # in the order of their seeds
    lapsed: Mapping[Key, str] = field(default_factory=dict)
    draws: tuple[Draw, ...] = ()
    opinions: tuple[Opinion, ...] = ()  # oldest first
    plays: int = 0
    busy_s: float = 0.0  # of lanes, all rounds together
    trials_s: float = 0.0  # the same of the weight trials

    @property
    def open(self) -> Round | None:
        """The round that has no verdict yet."""
        return next((round_ for round_ in self.rounds.values() if not round_.ruling), None)

    @property
    def stray(self) -> str | None:
        """The first reason not to trust a round: seeds that are not its own to draw."""
        return next((wrong for draw in self.draws if (wrong := stray(draw))), None)

    @property
    def alive(self) -> frozenset[str]:
        return frozenset(job for round_ in self.rounds.values() for job in round_.alive)


def rounds_of(facts: Facts, alive: Mapping[str, Task]) -> Rounds:
    """The facts as rounds; `alive` are the jobs that wait or run, by id."""
    learned, judged = facts.learned(), facts.judged()
    rulings = [ruling for ruling in facts.rulings() if ruling.is_round]
    net, adoptions, lapsed = _adopted(rulings)
    lessons = {a.lesson.round: a.lesson for a in learned} | {
        t.round: t for t in alive.values() if isinstance(t, Lesson)
    }
    judges = {a.judge.round: a.judge for a in judged} | {t.round: t for t in alive.values() if isinstance(t, Judge)}
    ruled = {ruling.trial: ruling for ruling in rulings}
    found: dict[str, Round] = {}
    for id_, lesson in sorted(lessons.items(), key=lambda item: (item[1].seed, item[0])):
        stage = None
        if id_ in judges:
            live = {job: t.seeds for job, t in alive.items() if isinstance(t, Judge) and t.round == id_}
            stage = stage_of(judges[id_].span, [a for a in judged if a.judge.round == id_], live)
        learning = tuple(sorted(job for job, t in alive.items() if isinstance(t, Lesson) and t.round == id_))
        of = [a for a in learned if a.lesson.round == id_]
        found[id_] = _round(lesson, of, learning, stage, ruled.get(id_))
    return Rounds(
        net=net,
        adoptions=adoptions,
        rounds=found,
        lapsed=lapsed,
        draws=tuple(lesson.draw for lesson in lessons.values()) + tuple(judge.draw for judge in judges.values()),
        opinions=tuple(facts.opinions()),
        plays=sum(a.reads.plays for a in judged),
        busy_s=sum(a.busy_s for a in (*learned, *judged)),
        trials_s=math.fsum([*(row.busy_s for row in (*facts.attempts(), *facts.screens())), *facts.shelf.busy_s()]),
    )


def _adopted(rulings: Iterable[Ruling]) -> tuple[NetFile | None, tuple[Ruling, ...], dict[Key, str]]:
    """Follow the oldest adoption that leads on, again and again: the net, the adoptions, and why others lapsed."""
    pending = [ruling for ruling in rulings if ruling.event == "adopt" and ruling.net]
    applied: list[Ruling] = []
    net: NetFile | None = None
    while (
        at := next((i for i, r in enumerate(pending) if r.from_net == (net.sha256 if net else None)), None)
    ) is not None:
        applied.append(pending.pop(at))
        net = applied[-1].net
    return net, tuple(applied), {r.key: "no longer applies: it leads from another net" for r in pending}


def _round(
    lesson: Lesson, attempts: list[Learned], learning: tuple[str, ...], stage: Stage | None, ruling: Ruling | None
) -> Round:
    """The lowest ok attempt's net counts; where there is none, what ended for good otherwise than cancelled has failed."""
    attempts = sorted(attempts, key=lambda a: (a.job, a.attempt, a.key))
    ok = next((a for a in attempts if a.outcome == Outcome.OK), None)
    last = next((a for a in reversed(attempts) if a.final and a.outcome not in (Outcome.OK, Outcome.CANCELLED)), None)
    failure = None
    if ok and not ok.net:
        failure = f'{ok.job} told no net: its result has no "net" and "sha256"'
    elif not ok and last and not learning:
        failure = f"{last.job} {last.failure}"
    counts = ok or last
    return Round(
        lesson=lesson,
        made=ok.net if ok else None,
        made_by=ok.job if ok else None,
        failure=failure,
        learning=() if ok else learning,
        jobs=tuple(sorted({*(a.job for a in attempts), *learning})) + (stage.jobs if stage else ()),
        rows=(frozenset([counts.key]) if counts else frozenset()) | (stage.rows if stage else frozenset()),
        stage=stage,
        ruling=ruling,
    )


def judge_round(rounds: Rounds, round_: Round) -> Verdict:
    """The verdict on a round that has none yet."""
    lesson, made = round_.lesson, round_.made
    best = lesson.best
    if (best.sha256 if best else None) != (rounds.net.sha256 if rounds.net else None):
        said = f"round {lesson.round}: its best net was replaced"
        return WAIT if round_.alive else Verdict(call=Call.KEEP, reason=REPLACED, sentence=said)
    if round_.failure:
        return Verdict(call=Call.KEEP, reason="not trained", sentence=f"round {lesson.round}: {round_.failure}")
    return _of_net(round_, made, _beside(rounds, round_)) if made else WAIT


def plain_before(rounds: Rounds, round_: Round) -> Round | None:
    """The last round before it from the same net that was judged and changed no reward: what one that does is told beside."""
    best, found = round_.lesson.best, None
    for other in rounds.rounds.values():
        if other is round_:
            break
        if best and other.lesson.best and other.lesson.best.sha256 == best.sha256 and is_plain(other):
            found = other
    return found


def is_plain(round_: Round) -> bool:
    """Whether it changed no reward and was judged."""
    return round_.lesson.move is None and round_.ruling is not None and read_of(round_.stage) is not None


def _beside(rounds: Rounds, round_: Round) -> str:
    """What a changed reward made of it, as far as can be told: the words behind the verdict."""
    read, plain = read_of(round_.stage), plain_before(rounds, round_) if round_.lesson.move else None
    if read is None or plain is None or (other := read_of(plain.stage)) is None:
        return ""
    made = difference(read, other)
    return f"; plain round {plain.lesson.round} made {effect(other)}, so the reward made {made}"


def difference(one: Paired, other: Paired) -> str:
    """+0.010 ± 0.014, of two reads on seeds that do not meet."""
    mean, se = one.mean - other.mean, math.hypot(one.se, other.se)
    digits = decimals([se or mean])
    return f"{signed(mean, digits)} ± {se:.{digits}f}"


def _of_net(round_: Round, made: NetFile, beside: str) -> Verdict:
    best, stage, move = round_.lesson.best, round_.stage, round_.lesson.move
    if best is None:
        said = f"net {made.short}: the first, others are judged by it"
        return Verdict(call=Call.ADOPT, reason="first net", sentence=said)
    if made.sha256 == best.sha256:
        return Verdict(
            call=Call.KEEP, reason="the same net", sentence=f"net {made.short}: training has changed nothing"
        )
    if stage is None or stage.alive or not (stage.failures or stage.complete):
        return WAIT
    taught = f", {move}" if move else ""
    return _judged(f"net {best.short} → {made.short}{taught}", stage, beside)


def _judged(change: str, stage: Stage, beside: str) -> Verdict:
    read, call = usable(stage), Call.KEEP
    if isinstance(read, tuple):
        reason, words = read
    elif past_gate(read):
        call, reason, words = Call.ADOPT, "past the gate", f"{summary(read)}, past two standard errors, adopted"
    else:
        reason, words = short_of(read)
    said = f"{change}: {words}{beside}"
    return Verdict(call=call, reason=reason, sentence=said, purpose=Purpose.JUDGE, read=read_of(stage))
