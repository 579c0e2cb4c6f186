"""fleet-plan adopt: adopt a trial by hand, through the same gate as ever."""

import argparse

from fleetd import No, Talk
from planner.cli_fill import find_course, open_filler
from planner.fill import Filler
from planner.standing import Course, Standing
from planner.verdict import read_of, summary, verdict_on


def adopt(args: argparse.Namespace, talk: Talk) -> int:
    """Write the verdicts that are due; exit 0 when the trial is adopted after that, else 1 with the reason."""
    filler = open_filler(args, talk)
    with filler.alone():
        course = find_course(filler.look(), args.id)
        seen, rows = filler.settle()
        if course.trial.id not in seen.courses:
            told = (row.body["sentence"] for row in rows if row.body.get("trial") == course.trial.id)
            raise No(next(told, f"{course.trial.id}: its only job is not in the queue any more, and it has no row"))
        course = seen.courses[course.trial.id]
    decided = _decided(seen, course)
    if decided.ruling is None or decided.ruling.event != "adopt":
        raise No(_why_not(seen, decided, filler))
    if talk.json:
        talk.emit({"schema": "fleet.adopt/1", "trial": decided.trial.id, "defaults": decided.ruling.body["adopted"]})
    else:
        talk.data(decided.ruling.sentence)
    if not any(row.event == "adopt" and row.body.get("trial") == decided.trial.id for row in rows):
        talk.say("it was adopted before")
    return 0


def _decided(seen: Standing, course: Course) -> Course:
    """The trial itself, or the one that read it on held-out seeds because a person asked."""
    return seen.courses.get(f"{course.trial.id}h", course) if course.heldout is None else course


def _why_not(seen: Standing, course: Course, filler: Filler) -> str:
    trial = course.trial
    held = read_of(course.heldout)
    if course.heldout is None and seen.current(course):
        return (
            f"{trial.id} ({trial.change}) has no held-out reads; search reads of a chosen maximum are biased upwards\n"
            f"next: fleet-plan fill --heldout {trial.id} --spool {filler.spool.root}"
        )
    if course.ruling:
        return f"{trial.id}: {course.ruling.sentence}"
    verdict = verdict_on(seen, course)
    so_far = f"; so far {summary(held)}" if held else ""
    return f"{trial.id} ({trial.change}): {verdict.sentence or 'its held-out seeds are not all read yet'}{so_far}"
