"""fleet-plan next, suggest, best and log: what the standing says, for people and as JSON."""

import argparse
import time
from itertools import cycle
from typing import Any

from fleetd import Talk, clock, columns, count, seconds
from planner.cli_fill import open_filler
from planner.due import Order, blocks_due
from planner.fill import numbers
from planner.policy import DIRECTIONS, moves
from planner.seeds import Purpose
from planner.standing import Course, Stage, Standing
from planner.stats import LEAST_SEEDS, Paired, shrunk, smallest_seen, spread
from planner.verdict import Call, decimals, effect, judge, read_of, signed

AHEAD = 6


def log(args: argparse.Namespace, talk: Talk) -> int:
    """The verdicts, oldest first."""
    seen = open_filler(args, talk).look()
    for ruling in seen.rulings:
        if talk.json:
            body = {k: v for k, v in ruling.body.items() if k not in ("schema", "crc")}
            talk.emit({"schema": "fleet.verdict/1", **body})
        else:
            style = "green" if ruling.event == "adopt" else "dim"
            talk.data(
                f"{_local(ruling.at):16}  {talk.paint(style, f'{ruling.event:5}')}  {ruling.trial}  {ruling.sentence}"
            )
    if not seen.rulings:
        talk.say("no verdict yet: a trial has one when its reads are in and `fleet-plan fill` has looked")
    return 0


def _local(at: str) -> str:
    """A row's time on this machine's clock."""
    return clock(seconds(at), time.time())


def best(args: argparse.Namespace, talk: Talk) -> int:
    """The weights adopted so far, and how they came to be."""
    filler = open_filler(args, talk)
    seen = filler.look()
    now, plays = seen.best, sum(seen.plays.values())
    if talk.json:
        head = {"schema": "fleet.best/1", "weights": dict(now.weights), "net": None, "defaults": now.defaults}
        talk.emit(head | {"adoptions": len(now.adoptions), "plays": plays})
        return 0
    starts = filler.plan.space.starts()
    rows = [
        (name, f"{starts[name]:g}", "→", f"{value:g}") if value != starts[name] else (name, f"{value:g}", "", "")
        for name, value in now.weights.items()
    ]
    for line, (name, *_) in zip(columns(rows), rows, strict=True):
        talk.data(talk.paint("bold", line) if now.weights[name] != starts[name] else line)
    talk.say(f"defaults {now.defaults}: {count(len(now.adoptions), 'adoption')} in {count(plays, 'play')}")
    for ruling in now.adoptions:
        talk.say(f"{_local(ruling.at):16}  {ruling.sentence}")
    return 0


def upcoming(args: argparse.Namespace, talk: Talk) -> int:
    """What would be queued next, and each variable with its last reads up and down."""
    filler = open_filler(args, talk)
    seen = filler.look()
    blocks = blocks_due(seen, filler.plan, Order(count=AHEAD), 0)
    last = _last_reads(seen)
    variables = [
        (variable.name, value, to, last.get((variable.name, direction)))
        for direction, (variable, value, to) in zip(cycle(DIRECTIONS), moves(seen, filler.plan.space), strict=False)
    ]
    if talk.json:
        talk.emit(_next_json(seen, blocks, variables))
        return 0
    for block in blocks:
        held = "held-out, " if block.purpose is Purpose.HELDOUT else ""
        talk.data(f"next  {block.trial.change}  {held}{count(len(block.seeds), 'seed')}, pass {block.trial.pass_}")
    if not blocks:
        talk.data("nothing left to try: every variable is at its bounds")
    rows = [("VARIABLE", "NOW", "TO", "LAST READ")]
    for name, value, to, course in variables:
        rows.append((name, f"{value:g}", "at bound" if to is None else f"{to:g}", _when(seen, course)))
    for line in ("", *columns(rows)):
        talk.data(line)
    done = sum(course is not None for *_, course in variables)
    talk.say(f"pass {seen.pass_}; {done} of {len(variables)} changes were read at least once")
    return 0


def _last_reads(seen: Standing) -> dict[tuple[str, int], Course]:
    """Per variable and direction the trial whose search was read last."""
    last: dict[tuple[str, int], Course] = {}
    for course in sorted(seen.courses.values(), key=_read_at):
        if _read_at(course):
            last[course.trial.variable, course.trial.direction] = course
    return last


def _read_at(course: Course) -> str:
    return (course.search.read_at if course.search else None) or ""


def _when(seen: Standing, course: Course | None) -> str:
    if course is None:
        return "never"
    read = read_of(course.search)
    old = "" if seen.current(course) else ", against an older best"
    return f"{_local(_read_at(course))}  {effect(read) if read else 'nothing scored'}{old}"


def _next_json(
    seen: Standing, blocks: list[Any], variables: list[tuple[str, float, float | None, Course | None]]
) -> Any:
    upcoming_ = [
        {"trial": b.trial.id, "variable": b.trial.variable, "from": b.trial.from_, "to": b.trial.to}
        | {"purpose": str(b.purpose), "seeds": [b.seeds.low, b.seeds.high], "pass": b.trial.pass_}
        for b in blocks
    ]
    rows = [
        {"name": name, "now": value, "to": to, "at_bound": to is None, "trial": course.trial.id if course else None}
        | {"read_at": _read_at(course) if course else None, "read": numbers(read_of(course.search)) if course else None}
        for name, value, to, course in variables
    ]
    return {"schema": "fleet.next/1", "pass": seen.pass_, "next": upcoming_, "variables": rows}


def suggest(args: argparse.Namespace, talk: Talk) -> int:
    """The trials against the present best that read strongest, and the last adoptions."""
    filler = open_filler(args, talk)
    seen = filler.look()
    reads = [(c, r) for c in seen.courses.values() if seen.current(c) and (r := read_of(c.search or c.heldout))]
    reads.sort(key=lambda pair: (-pair[1].mean / pair[1].se if pair[1].se else -pair[1].mean, pair[0].trial.id))
    tau2 = spread(r for _, r in reads if r.n >= LEAST_SEEDS)
    adopted = [c for ruling in seen.best.adoptions[-args.top :] if (c := seen.courses.get(ruling.trial))]
    shown = reads[: args.top] + [(c, r) for c in reversed(adopted) if (r := read_of(c.search or c.heldout))]
    if talk.json:
        for course, read in shown:
            talk.emit(_suggestion(seen, course, read, tau2))
        return 0
    rows = [("ID", "CHANGE", "SEARCH", "HELD-OUT", "ADVICE")]
    rows += [(c.trial.id, c.trial.change, *_cells(seen, c, r, tau2, len(reads))) for c, r in shown]
    for line in columns(rows) if shown else ():
        talk.data(talk.paint("green", line) if line.endswith("adopted") else line)
    _say_shown(seen, len(reads), filler.plan.seeds, talk)
    return 0


def _say_shown(seen: Standing, reads: int, seeds: int, talk: Talk) -> None:
    if not reads:
        talk.say("no trial against the present best has been read yet")
    if seeds >= LEAST_SEEDS:
        talk.say(f"{seeds} seeds can see {smallest_seen(seeds):.2f} standard deviations of a pair with 80 %")
    spent = ", ".join(f"{n:,} {purpose}" for purpose, n in seen.plays.items() if n)
    talk.say(f"plays so far: {spent or 'none'}; {count(len(seen.best.adoptions), 'adoption')}")


def _cells(seen: Standing, course: Course, read: Paired, tau2: float, among: int) -> tuple[str, str, str]:
    return _cell(course.search), _cell(course.heldout), advice(seen, course, read, tau2, among)


def _cell(stage: Stage | None) -> str:
    if read := read_of(stage):
        return effect(read)
    if stage is None:
        return "not judged"
    return "being read" if stage.alive else "nothing scored"


def advice(seen: Standing, course: Course, read: Paired, tau2: float, among: int) -> str:
    """What a person should make of the trial."""
    if course.ruling:
        if course.ruling.event == "adopt":
            return "adopted"
        expected = f", expected {signed(shrunk(read, tau2), decimals([read.se]))} when read again" if read.se else ""
        said = "drop" if course.heldout else "the best stays"
        return f"{said}: {course.ruling.reason}{expected if not course.heldout else ''}"
    verdict = judge(course, current=seen.current(course))
    if verdict.call is Call.MORE:
        expected = signed(shrunk(read, tau2), decimals([read.se]))
        return f"judge first: best of {among}, expected to shrink to about {expected}"
    words = {Call.ADOPT: "adopt", Call.KEEP: "the best stays", Call.WAIT: "held-out seeds decide"}
    return words[verdict.call] if course.heldout or verdict.call is not Call.WAIT else "being read"


def _suggestion(seen: Standing, course: Course, read: Paired, tau2: float) -> Any:
    trial = course.trial
    return {
        "schema": "fleet.suggestion/1",
        "trial": trial.id,
        "variable": trial.variable,
        "from": trial.from_,
        "to": trial.to,
        "search": numbers(read_of(course.search)),
        "heldout": numbers(read_of(course.heldout)),
        "shrunk": shrunk(read, tau2),
        "verdict": course.ruling.event if course.ruling else None,
        "reason": course.ruling.reason if course.ruling else None,
        "advice": advice(seen, course, read, tau2, 1),
    }
