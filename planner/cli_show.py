"""fleet-plan next, best and log: what the standing says, for people and as JSON."""

import argparse
import time
from collections.abc import Sequence
from itertools import cycle, groupby
from typing import Any

from fleetd import Talk, clock, columns, count, seconds
from planner.cli_fill import nothing_left, open_filler, tell
from planner.cli_hosts import say_hosts
from planner.cli_rounds import reward_json, reward_table, round_json, round_line
from planner.cli_slopes import pairs_read
from planner.cli_width import plain, say_wrapped, short_change, short_effect, short_name, table_width, widest, wrapped
from planner.due import Order, blocks_due
from planner.opinion import Feedback
from planner.policy import turns
from planner.reward_turns import standing_rewards
from planner.rows import Ruling
from planner.screen import Screen
from planner.seeds import Purpose
from planner.space import DIRECTIONS
from planner.standing import Course, Standing
from planner.trial import Block, encode_change
from planner.verdict import first_read, numbers

AHEAD = 6

Turn = tuple[str, float, float | None, Course | None]  # variable, value, where to, the trial that read it last


def log(args: argparse.Namespace, talk: Talk) -> int:
    """The verdicts, oldest first, each with what people said of its trial or round."""
    filler = open_filler(args, talk)
    seen = filler.look()
    tell(filler, seen, talk)
    said = filler.feedback()
    history = filler.history()
    for ruling in history:
        undone = seen.undone.get(ruling.key) or filler.rounds.lapsed.get(ruling.key)
        of = [feedback for feedback, about in said if about == ruling.trial]
        if talk.json:
            body = {k: v for k, v in ruling.body.items() if k not in ("schema", "crc")}
            talk.emit({"schema": "fleet.verdict/1", **body, "undone": undone, "feedback": [_said_json(f) for f in of]})
        else:
            talk.data(_ruled(ruling, undone, talk))
            for feedback in of:
                talk.data(_said(feedback, talk))
    if not history:
        talk.say("no verdict yet: a trial has one when its reads are in and `fleet-plan fill` has looked")
    ruled = {ruling.trial for ruling in history}
    for feedback, about in said:
        if about not in ruled:
            say_wrapped(f"not judged yet: {about}\n{_said(feedback, talk)}", talk)
    if line := round_line(filler):
        say_wrapped(line, talk)
    say_hosts(filler, talk)
    return 0


def _said(feedback: Feedback, talk: Talk) -> str:
    """What a person said, below the verdict that it is about."""
    head = " " * 18
    return wrapped(
        f"{head}{feedback.sign}  {feedback.by}" + (f": {feedback.text}" if feedback.text else ""), talk.out, talk
    )


def _said_json(feedback: Feedback) -> dict[str, Any]:
    host, seq = feedback.row
    told = {"sign": feedback.sign, "text": feedback.text, "by": feedback.by, "at": feedback.at}
    return {"row": {"host": host, "seq": seq}, **told}


def _ruled(ruling: Ruling, undone: str | None, talk: Talk) -> str:
    """The verdict, and behind it what became of it."""
    style = "dim" if undone or ruling.event == "keep" else "green"
    head, event = f"{_local(ruling.at):16}  ", f"{ruling.event:5}"
    text = f"{head}{event}  {ruling.trial}  {ruling.sentence}" + (f" ({undone})" if undone else "")
    lines = wrapped(text, talk.out, talk)
    return head + talk.paint(style, event) + lines[len(head) + len(event) :]


def _local(at: str) -> str:
    """A row's time on this machine's clock."""
    return clock(seconds(at), time.time())


def best(args: argparse.Namespace, talk: Talk) -> int:
    """The weights adopted so far, and how they came to be."""
    filler = open_filler(args, talk)
    seen = filler.look()
    tell(filler, seen, talk)
    now, plays = seen.best, filler.played(seen)
    rewards = standing_rewards(filler.plan.space, filler.rounds)
    if talk.json:
        net = filler.rounds.net
        told = {"net": str(filler.spool.root / net.net), "sha256": net.sha256} if net else None
        head = {"schema": "fleet.best/1", "weights": dict(now.weights), "net": told, "defaults": now.defaults}
        talk.emit(head | {"adoptions": len(now.adoptions), "plays": plays})
        return 0
    starts = filler.plan.space.starts()
    rows = [
        (name, plain(starts[name]), "→", plain(value)) if value != starts[name] else (name, plain(value), "", "")
        for name, value in now.weights.items()
    ]
    for line, (name, *_) in zip(columns(rows), rows, strict=True):
        talk.data(talk.paint("bold", line) if now.weights[name] != starts[name] else line)
    talk.say(f"defaults {now.defaults}: {count(len(now.adoptions), 'adoption')} in {count(plays, 'play')}")
    for ruling in now.adoptions:
        say_wrapped(f"{_local(ruling.at):16}  {ruling.sentence}", talk)
    if net := filler.rounds.net:
        say_wrapped(f"net {net.sha256}, {count(len(filler.rounds.adoptions), 'adoption')}: {net.net}", talk)
    for variable in filler.plan.space.rewards():
        if (value := rewards[variable.name]) != variable.typed(variable.start):
            say_wrapped(f"reward {variable.name} {plain(variable.start)} → {plain(value)}", talk)
    if rounds := round_line(filler):
        say_wrapped(rounds, talk)
    return 0


def upcoming(args: argparse.Namespace, talk: Talk) -> int:
    """What would be queued next, and each variable with its last reads up and down."""
    filler = open_filler(args, talk)
    seen = filler.look()
    tell(filler, seen, talk)
    blocks = blocks_due(seen, filler.plan, Order(count=AHEAD), 0)
    last, pairs = _last_reads(seen), pairs_read(seen, filler.plan)
    ways = zip(cycle(DIRECTIONS), turns(filler.plan.policy, seen, filler.plan.space), strict=False)
    variables = [(v.name, value, to, last.get((v.name, direction))) for direction, (v, value, to) in ways]
    if talk.json:
        rounds = {"round": round_json(filler), "rewards": reward_json(filler)}
        talk.emit(_next_json(seen, blocks, variables) | {"pairs": pairs} | rounds)
        return 0
    width = table_width(talk)
    if under_way := round_line(filler):
        talk.data(wrapped(under_way, talk.out, talk))
    for line, alike in groupby(_upcoming(block, width - len(" × 6")) for block in blocks):
        jobs = len([*alike])
        talk.data(line if jobs == 1 else f"{line} × {jobs}")
    if not blocks:
        talk.data(f"nothing left to try: {nothing_left(filler.plan)}")
    for line in ("", *columns(_table(seen, variables, width))):
        talk.data(line)
    if rewards := reward_table(filler, time.time(), width):
        for line in ("", *rewards):
            talk.data(line)
    done = sum(course is not None for *_, course in variables)
    talk.say(f"pass {seen.pass_}; {done} of {len(variables)} changes were read at least once on their own")
    if pairs:
        talk.say(
            f"{pairs:,} mirrored pairs were read besides: each of them reads all {len(variables) // 2} variables at once"
        )
    return 0


def _upcoming(block: Block | Screen, width: int) -> str:
    if isinstance(block, Screen):
        return f"next  {block.change}"
    held = "held-out, " if block.purpose is Purpose.HELDOUT else ""
    what = f"  {held}{count(len(block.seeds), 'seed')}, pass {block.trial.pass_}"
    return f"next  {short_change(block.trial, width - len('next  ') - len(what))}{what}"


def _table(seen: Standing, variables: Sequence[Turn], width: int) -> list[tuple[str, ...]]:
    """Whole where that fits; else without days and numbers of seeds, and with the names cut."""
    rows = _rows(seen, variables, width, short=False)
    if widest(rows) > width:
        rows = _rows(seen, variables, width, short=True)
        longest = max(len(row[0]) for row in rows)
        rows = _rows(seen, variables, max(1, longest - max(0, widest(rows) - width)), short=True)
    return rows


def _rows(seen: Standing, variables: Sequence[Turn], room: int, *, short: bool) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("VARIABLE", "NOW", "TO", "LAST READ")]
    for name, value, to, course in variables:
        moved = "at bound" if to is None else plain(to)
        rows.append((short_name(name, room), plain(value), moved, _when(seen, course, short=short)))
    return rows


def _last_reads(seen: Standing) -> dict[tuple[str, int], Course]:
    """Per variable and direction the trial whose search was read last."""
    return {way: seen.courses[id_] for way, id_ in seen.tally.last.items()}


def _when(seen: Standing, course: Course | None, *, short: bool) -> str:
    """When the change was read last, and with what effect."""
    if course is None:
        return "never"
    read, at = first_read(course), _local(course.read_at)
    said = short_effect(read, counted=not short) if read else "none scored"
    old = "" if seen.current(course) else "  older best"
    return f"{at[5:] if short and len(at) > len('00:00:00') else at}  {said}{old}"


def _next_json(seen: Standing, blocks: list[Any], variables: list[Turn]) -> dict[str, Any]:
    upcoming_ = [
        ({"screen": b.id} if isinstance(b, Screen) else {"trial": b.trial.id, **encode_change(b.trial)})
        | {"purpose": str(b.purpose), "seeds": [b.seeds.low, b.seeds.high]}
        | {"pass": None if isinstance(b, Screen) else b.trial.pass_}
        for b in blocks
    ]
    rows = [
        {"name": name, "now": value, "to": to, "at_bound": to is None, "trial": course.trial.id if course else None}
        | {"read_at": course.read_at if course else None, "read": numbers(first_read(course)) if course else None}
        for name, value, to, course in variables
    ]
    return {"schema": "fleet.next/1", "pass": seen.pass_, "next": upcoming_, "variables": rows}
