"""A round's jobs as the spool takes them, and its verdict as a row."""

from datetime import datetime
from typing import Any, Final

from fleetd import Job, new_id, utc
from planner.net_round import Judge, Lesson, encode_judge, encode_lesson, encode_move
from planner.plan import Plan
from planner.rounds import Round, Rounds, plain_before
from planner.verdict import NOTHING_READ, Call, Verdict, numbers, read_of

ROUND_KINDS: Final = ("train", "judge")
TRAIN_PRIORITY, JUDGE_PRIORITY = 45, 40
RETRIES: Final = 1


def round_job(task: Lesson | Judge, plan: Plan, by: str, now: datetime) -> Job:
    """The job that makes the net, or reads it."""
    learns = isinstance(task, Lesson)
    kind, priority = ("train", TRAIN_PRIORITY) if learns else ("judge", JUDGE_PRIORITY)
    return Job(
        id=new_id(kind, priority, now),
        kind=kind,
        argv=("fleet-plan", "read"),
        needs=plan.net.train_needs if learns else plan.net.judge_needs,
        cores=(learns and plan.net.cores) or plan.cores,
        retries=RETRIES,
        rerun_safe=True,
        payload=encode_lesson(task) if isinstance(task, Lesson) else encode_judge(task),
        created=utc(now),
        by=by,
    )


def round_row(plan: Plan, rounds: Rounds, round_: Round, verdict: Verdict, by: str) -> dict[str, Any]:
    """The body of an `adopt` or `keep` row; an adopted net's path in it keeps the file from being swept."""
    lesson = round_.lesson
    plain = plain_before(rounds, round_) if lesson.move else None
    beside = numbers(read_of(plain.stage)) if plain else None
    return {
        "event": "adopt" if verdict.call is Call.ADOPT else "keep",
        "by": by,
        "reason": verdict.reason,
        "sentence": verdict.sentence,
        "plan": plan.name,
        "round": lesson.round,
        "jobs": list(round_.jobs),
        "net": round_.made.player if round_.made else None,
        "from": lesson.best.sha256 if lesson.best else None,
        "seed": lesson.seed,
        "rewards": dict(lesson.rewards),
        "reward": encode_move(lesson.move),
        "plain": {"round": plain.lesson.round, **beside} if plain and beside else None,
        "stage": "judge",
        "rests_on": [{"host": host, "seq": seq} for host, seq in sorted(round_.rows)],
    } | (numbers(verdict.read) or NOTHING_READ)
