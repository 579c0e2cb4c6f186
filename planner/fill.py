"""fill: standing + queue → verdict rows and jobs, one `fleet-plan` at a time in a spool.

Everything that a decision rests on is looked at under the lock hosts/.fill.lock: the queue first, then what runs, the
queue again, and the ledger last, so that a job on its way is seen at least once. Verdicts are written under the same
lock, each names its trial, and a trial that its reads decided never gets another: running fill twice changes nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from fleetd import BadData, Job, Ledger, NotFound, Row, Spool, new_id, only_one, utc
from planner.builds import Compared, compared
from planner.cache import Cache
from planner.due import Order, blocks_due, plays_expected
from planner.facts import Facts
from planner.filing import Reader
from planner.net_round import LESSON, Judge, Lesson, NetFile, decode_judge, decode_lesson
from planner.opinion import Feedback, Subject
from planner.plan import Plan
from planner.policy.memory import MEMORY
from planner.residuals import HostReads, dealt, rows_of
from planner.round_due import may_learn, round_due
from planner.round_jobs import ROUND_KINDS, round_job, round_row
from planner.rounds import Rounds, judge_round, rounds_of
from planner.rows import REPLACED, Attempt, Ruling
from planner.screen import SCREEN, Screen, decode_screen, encode_screen
from planner.seeds import Draw, Purpose
from planner.shared import giving_way
from planner.standing import Course, Standing, standing
from planner.stats import Paired
from planner.trial import TRIAL, Block, Key, decode_block, encode_block, encode_change, player_hash
from planner.verdict import NOTHING_READ, Call, Verdict, numbers, read_of, verdict_on

PRIORITY: Mapping[Purpose, int] = {Purpose.HELDOUT: 40, Purpose.SEARCH: 50}
KIND: Mapping[Purpose, str] = {Purpose.HELDOUT: "heldout", Purpose.SEARCH: "trial"}
SCREEN_KIND = "screen"
MARKS = tuple(f"-{kind}-" for kind in (*KIND.values(), SCREEN_KIND, *ROUND_KINDS))
Task = Block | Screen | Lesson | Judge
LOCK_S = 30.0
RETRIES = 1


class Filler:
    """One process's view of a spool and its plan: what it has read of the ledger, and the jobs it knows by id."""

    def __init__(
        self, spool: Spool, plan: Plan, host: str, now: Callable[[], datetime], cache: Path | None = None
    ) -> None:
        """`cache` is the directory where a long ledger's cache is kept; None: nowhere."""
        self.spool = spool
        self.plan = plan
        self.host = host
        self.by = f"fleet-plan@{host}"
        self._now = now
        self._ledger = Ledger(spool.ledger_d)
        self._cache = cache
        kept = Cache(home=cache, ledger=spool.ledger_d, plan=plan.name)
        self._reader = Reader(self._ledger, kept)
        MEMORY.store = kept
        self._facts = Facts(plan.name)
        self._tasks: dict[str, Task | None] = {}
        self._makers: dict[str, str] = {}  # job → who queued it
        self._seen: frozenset[str] = frozenset()  # jobs that waited or ran at the last look
        self._told: set[str] = set()
        self.alive: frozenset[str] = frozenset()
        self.rounds = Rounds()

    def after(self, plan: Plan) -> "Filler":
        """The same for another plan."""
        filler = Filler(self.spool, plan, self.host, self._now, self._cache)
        filler._told = self._told
        return filler

    @property
    def odd(self) -> Sequence[tuple[str, int]]:
        """The rows (host, seq) of this plan that count for nothing because of their content."""
        return self._facts.odd

    def subject(self, key: Key) -> Subject | None:
        """What a row of the plan is about, as of the last look."""
        return self._facts.subject(key)

    def feedback(self) -> list[tuple[Feedback, str]]:
        """What people said, oldest first, and the trial or round that it is about."""
        return [(said, about.id) for said in self._facts.feedback() if (about := self.subject(said.row))]

    def dealt(self) -> list[HostReads]:
        """What hosts read of the trials that they shared, as of the last look."""
        return dealt(self._facts)

    def rows_of(self, host: str) -> list[Key]:
        """The host's rows with reads, in order."""
        return rows_of(self._facts, host)

    def compared(self) -> list[Compared]:
        """The builds of the game that have made the same plays, as of the last look."""
        return compared(self._facts.attempts(), self._facts.screens())

    def untold(self, notes: Iterable[str]) -> list[str]:
        """Those that were not given here before."""
        new = [note for note in notes if note not in self._told]
        self._told.update(new)
        return new

    @contextmanager
    def alone(self, wait_s: float = LOCK_S) -> Iterator[None]:
        """Hold the one lock of all who write verdicts or fill the queue; raises TryLater after `wait_s`."""
        path = self.spool.hosts / ".fill.lock"
        with only_one(path, "another fleet-plan is at work", timeout_s=wait_s):
            yield

    def look(self) -> Standing:
        """The standing as it is now."""
        tasks = self._under_way()
        while self._reader.look(self._facts):  # a part of a long ledger
            self._reader.shelve(self._facts, standing(self._facts, self.plan.space, {}))
        blocks = {id_: task for id_, task in tasks.items() if isinstance(task, Block | Screen)}
        self.rounds = rounds_of(self._facts, {i: t for i, t in tasks.items() if isinstance(t, Lesson | Judge)})
        seen = standing(self._facts, self.plan.space, blocks)
        self.alive = self.rounds.alive | seen.screened.alive.keys() | seen.alive.keys()
        self._reader.keep(self._facts, seen)
        return seen

    def history(self) -> list[Ruling]:
        """Every verdict, oldest first, as of the last look."""
        return self._facts.whole().history()

    def played(self, seen: Standing) -> int:
        """Plays read, of trials and of rounds."""
        return sum(seen.plays.values()) + self.rounds.plays

    def settle(self) -> tuple[Standing, list[Row]]:
        """Write the verdicts that are due and give the standing after them; the caller holds the lock.

        Raises BadData when seeds meet those of another purpose, before anything is written.
        At most one adoption counts against one best: the strongest goes first, and the others find theirs replaced.
        A verdict whose reads were voided is voided first, by a row: whoever reads the ledger sees it undone.
        """
        rows: list[Row] = []
        while True:
            seen = self.look()
            if wrong := seen.overlap or self.rounds.stray:
                raise BadData(f"{self.spool.ledger_d}: {wrong}; nothing is done until a void row names the row")
            if shaken := self._facts.shaken():
                rows += self._ledger.append(self.host, [void_row(self.plan, r, why, self.by) for r, why in shaken])
                continue
            giving = giving_way(seen)
            if voids := self._voids_of(seen, giving):
                rows += self._ledger.append(self.host, voids)
                continue
            barred = {draw.whose for draw in giving}
            ruled = [(c, verdict_on(seen, c)) for c in seen.open if c.trial.id not in barred]
            adopt = sorted((r for r in ruled if r[1].call is Call.ADOPT), key=lambda r: -_strength(r[1].read))
            due = adopt[:1] + [r for r in ruled if r[1].call is Call.KEEP]
            bodies = [verdict_row(self.plan, seen, course, verdict, self.by) for course, verdict in due]
            bodies += self._round_row()
            if not bodies:
                return seen, rows
            rows += self._ledger.append(self.host, bodies)

    def _voids_of(self, seen: Standing, giving: Mapping[Draw, str]) -> list[dict[str, Any]]:
        """The rows that take out what was read on the held-out seeds of others, once nothing of the trial is under way."""
        busy = {course.trial.id for course in seen.open if course.alive}
        bodies = []
        for draw, why in giving.items():
            read = [a for a in self._facts.attempts() if a.purpose is Purpose.HELDOUT and a.draw == draw]
            if read and draw.whose not in busy:
                bodies.append(refusal_row(self.plan, read, why, self.by))
        return bodies

    def _round_row(self) -> list[dict[str, Any]]:
        """The row of the round that is open, when its verdict is due."""
        if (round_ := self.rounds.open) is None:
            return []
        verdict = judge_round(self.rounds, round_)
        if verdict.call is Call.ADOPT and round_.made and (why := self._no_net(round_.made)):
            said = f"round {round_.lesson.round}: {why}"
            verdict = Verdict(call=Call.KEEP, reason="not trained", sentence=said)
        return [] if verdict.call is Call.WAIT else [round_row(self.plan, self.rounds, round_, verdict, self.by)]

    def _no_net(self, made: NetFile) -> str | None:
        """Why the file is not the net that its row tells: nothing else has read a first one before it stands."""
        try:
            made.found_in(self.spool.root)
        except (NotFound, BadData) as error:
            return str(error)
        return None

    @property
    def net_missing(self) -> str | None:
        """Why the best net cannot be read here, as when it has not been copied yet after a merge: no round begins then."""
        return self._no_net(self.rounds.net) if self.rounds.net else None

    def publish(self, tasks: Sequence[Task]) -> Iterator[str]:
        """Queue one job for each task, in turn; raises TryLater when a stop file stands."""
        for task in tasks:
            made_by = self.plan, self.by, self._now()
            made = round_job(task, *made_by) if isinstance(task, Lesson | Judge) else job_of(task, *made_by)
            if voided := self._facts.voided_to():
                made = replace(made, payload={**made.payload, "voided": voided})
            yield self.spool.publish(made)

    def due(self, seen: Standing, order: Order) -> list[Task]:
        """What the order has room for: what the round that is open waits for, a new round in its turn, trials."""
        budget = None if order.plays is None else order.plays - self.rounds.plays
        begin = (budget is None or plays_expected(seen, self.plan) < budget) and not self.net_missing
        busy, limits = len(self.alive), [n for n in (order.depth, order.count) if n is not None]
        room = min([*limits, *([] if order.depth is None else [order.depth - busy])], default=0)
        tasks: list[Task] = list(round_due(self.rounds, self.plan, begin=begin)[: max(0, room)])
        if self.plan.net.share == 1 and may_learn(self.rounds, self.plan):
            return tasks
        left = None if order.count is None else order.count - len(tasks)
        return [*tasks, *blocks_due(seen, self.plan, replace(order, count=left, plays=budget), busy + len(tasks))]

    def _under_way(self) -> dict[str, Task]:
        """This plan's jobs that wait or run, by id."""
        waiting = self._waiting()
        found = self.spool.claimed() | {a.id: a.job for a in self.spool.attempts() if a.job}
        moving = {id_: job for id_, job in found.items() if _ours(id_)}
        waiting |= self._waiting()
        for id_ in (waiting | moving.keys()) - self._tasks.keys():
            if (job := moving.get(id_) or self.spool.read_waiting(id_)) is not None:
                self._tasks[id_] = task_of(job.payload, self.plan.name)
                self._makers[id_] = job.by or ""
        self._seen = frozenset(waiting | moving.keys())
        return {id_: task for id_ in waiting | moving.keys() if (task := self._tasks.get(id_))}

    @property
    def overtaken(self) -> bool:
        """Whether jobs have come since the last look, as where two hosts fill and their locks do not exclude each other."""
        return not self._waiting() <= self._seen

    @property
    def others(self) -> list[str]:
        """Who else has queued what waits or runs."""
        return sorted({by for id_ in self.alive if (by := self._makers.get(id_)) and by != self.by})

    def _waiting(self) -> set[str]:
        return {id_ for id_ in self.spool.waiting() if _ours(id_)}


def _ours(id_: str) -> bool:
    return any(mark in id_ for mark in MARKS)


def task_of(payload: Mapping[str, Any], name: str) -> Task | None:
    """What a payload asks for, or None when that is nothing of the plan called `name`."""
    if payload.get("schema") not in (TRIAL, SCREEN, LESSON) or payload.get("name") != name:
        return None
    try:
        if payload["schema"] == LESSON:
            return decode_lesson(payload)
        if payload["schema"] == SCREEN:
            return decode_screen(payload)
        return decode_judge(payload) if payload.get("purpose") == Purpose.JUDGE else decode_block(payload)
    except BadData:
        return None


def job_of(block: Block | Screen, plan: Plan, by: str, now: datetime) -> Job:
    """The job that reads the block."""
    kind = SCREEN_KIND if isinstance(block, Screen) else KIND[block.purpose]
    return Job(
        id=new_id(kind, PRIORITY[block.purpose], now),
        kind=kind,
        argv=("fleet-plan", "read"),
        needs=plan.needs,
        cores=plan.cores,
        retries=RETRIES,
        rerun_safe=True,
        payload=encode_screen(block) if isinstance(block, Screen) else encode_block(block),
        created=utc(now),
        by=by,
    )


def void_row(plan: Plan, ruling: Ruling, why: str, by: str) -> dict[str, Any]:
    """The body of the `void` row that takes a verdict back."""
    sentence = f"{ruling.event} {ruling.trial} is taken back: {why}"
    return _void(plan, ruling.trial, [ruling.key], by, why, sentence)


def refusal_row(plan: Plan, read: Sequence[Attempt], why: str, by: str) -> dict[str, Any]:
    """The body of the `void` row for a trial's reads on held-out seeds that another trial has."""
    trial = read[0].trial
    sentence = f"{trial.id} ({trial.change}): {why}; what was read of it there does not count, it draws fresh ones"
    return _void(plan, trial.id, sorted(a.key for a in read), by, why, sentence)


def _void(plan: Plan, trial: str, keys: Sequence[Key], by: str, why: str, sentence: str) -> dict[str, Any]:
    return {
        "event": "void",
        "by": by,
        "reason": why,
        "sentence": sentence,
        "plan": plan.name,
        "trial": trial,
        "rows": [{"host": host, "seq": seq} for host, seq in keys],
    }


def verdict_row(plan: Plan, seen: Standing, course: Course, verdict: Verdict, by: str) -> dict[str, Any]:
    """The body of an `adopt` or `keep` row."""
    trial = course.trial
    body = {
        "event": "adopt" if verdict.call is Call.ADOPT else "keep",
        "by": by,
        "reason": verdict.reason,
        "sentence": verdict.sentence,
        "plan": plan.name,
        "trial": trial.id,
        "jobs": [job for stage in course.stages for job in stage.jobs],
        **encode_change(trial),
        "pass": trial.pass_,
        "candidate": trial.candidate,
        "defaults": trial.defaults,
        "stage": str(verdict.purpose),
        "search": numbers(read_of(course.search)),
        "heldout": numbers(read_of(course.heldout)),
        "rests_on": [{"host": host, "seq": seq} for host, seq in _rests_on(course, verdict)],
    }
    if verdict.call is Call.ADOPT:
        body["weights"] = dict(seen.best.weights)
        body["adopted"] = player_hash({**seen.best.weights, **trial.candidate})
    return body | (numbers(verdict.read) or NOTHING_READ)


def _rests_on(course: Course, verdict: Verdict) -> list[tuple[str, int]]:
    """The rows with the reads that decided; that a best was replaced is not read from any."""
    stage = course.heldout if verdict.purpose is Purpose.HELDOUT else course.search
    return sorted(stage.rows) if stage and verdict.reason != REPLACED else []


def _strength(read: Paired | None) -> float:
    if read is None:
        return 0.0
    return read.mean / read.se if read.se else float("inf")
