"""What fleet-plan shows of rounds of nets: the one under way, the next, the last verdicts, the rewards' turns."""

from typing import Any

from fleetd import Talk, clock, columns, count, seconds
from planner.cli_width import plain, say_wrapped, short_name, widest
from planner.fill import Filler
from planner.net_round import encode_move
from planner.reward_turns import Turn, turns
from planner.round_due import FAILURES, lesson_due, may_learn
from planner.rounds import Round
from planner.seeds import Purpose
from planner.standing import Stage
from planner.verdict import effect, numbers, read_of

SHOWN = 3  # verdicts of rounds that suggest tells again


def round_line(filler: Filler) -> str | None:
    """The round under way, or what the next one would do; None for a plan without rounds."""
    rounds, plan = filler.rounds, filler.plan
    if not plan.net.share:
        return None
    if round_ := rounds.open:
        return f"round {_title(round_)}: {_state(round_)}"
    if why := filler.net_missing:
        return f"rounds: none begins before its net is there: {why}"
    if not may_learn(rounds, plan):
        return f"rounds: none begins; the last {FAILURES} nets could not be made (fleet-plan log)"
    lesson = lesson_due(rounds, plan)
    what = "the first net" if rounds.net is None else f"a net from {rounds.net.short}"
    return f"round next: {what}, {lesson.move or 'rewards as they stand'}"


def _title(round_: Round) -> str:
    lesson = round_.lesson
    begun = f"from {lesson.best.short}" if lesson.best else "the first net"
    return f"{lesson.round} ({begun}{f', {lesson.move}' if lesson.move else ''})"


def _state(round_: Round) -> str:
    """How far it has come."""
    if round_.failure:
        return f"{round_.failure}; not judged yet"
    if round_.made is None:
        return f"being made by {round_.learning[0]}" if round_.learning else "its net is to be made again"
    if round_.lesson.best is None:
        return f"net {round_.made.short} is made; not judged yet"
    if round_.stage is None:
        return f"net {round_.made.short} is made; its judge seeds come next"
    read = read_of(round_.stage)
    so_far = f", so far {effect(read)}" if read else ""
    return f"net {round_.made.short}: {_read(round_.stage)} of {len(round_.stage.span)} judge seeds read{so_far}"


def _read(stage: Stage) -> int:
    return sum(map(len, stage.reads))


def round_json(filler: Filler) -> Any:
    """The same for programs: null without rounds."""
    rounds, plan = filler.rounds, filler.plan
    if not plan.net.share:
        return None
    if round_ := rounds.open:
        lesson, stage = round_.lesson, round_.stage
        state = "failed" if round_.failure else "judge" if round_.made else "train"
    elif may_learn(rounds, plan):
        lesson, stage, round_, state = lesson_due(rounds, plan), None, None, "next"
    else:
        return {"state": "given up", "round": None}
    return {
        "state": state,
        "round": lesson.round,
        "best": lesson.best.sha256 if lesson.best else None,
        "net": round_.made.sha256 if round_ and round_.made else None,
        "reward": encode_move(lesson.move),
        "purpose": str(Purpose.JUDGE if stage else Purpose.TRAINING),
        "seeds": len(stage.span) if stage else None,
        "seeds_read": _read(stage) if stage else None,
        "read": numbers(read_of(stage)),
    }


def reward_table(filler: Filler, now: float, width: int) -> list[str]:
    """The reward variables: value, where they would go, when a round last tried it and what came of it; fits `width`."""
    found = turns(filler.rounds, filler.plan.space) if filler.plan.net.share else []
    if not found:
        return []
    cells = [(plain(t.now), plain(t.to) if t.to is not None else "–", _last(t, now)) for t in found]
    longest = max(len(turn.variable.name) for turn in found)

    def rows(room: int) -> list[tuple[str, ...]]:
        named = [(short_name(t.variable.name, room), *rest) for t, rest in zip(found, cells, strict=True)]
        return [("REWARD", "NOW", "TO", "LAST TRIED"), *named]

    return columns(rows(max(1, longest - max(0, widest(rows(longest)) - width))))


def _last(turn: Turn, now: float) -> str:
    if turn.last is None:
        return "never"
    ruling, read = turn.last.ruling, read_of(turn.last.stage)
    if ruling is None:
        return "under way"
    adopted = "  adopted" if ruling.event == "adopt" else ""
    return f"{clock(seconds(ruling.at), now)}  {effect(read) if read else 'not read'}{adopted}"


def reward_json(filler: Filler) -> list[dict[str, Any]]:
    """The same for programs."""
    found = turns(filler.rounds, filler.plan.space) if filler.plan.net.share else []
    return [
        {
            "name": turn.variable.name,
            "now": turn.now,
            "to": turn.to,
            "round": turn.last.lesson.round if turn.last else None,
            "read_at": turn.last.ruling.at if turn.last and turn.last.ruling else None,
            "read": numbers(read_of(turn.last.stage)) if turn.last else None,
        }
        for turn in found
    ]


def say_rounds(filler: Filler, talk: Talk) -> None:
    """The last verdicts of rounds, the newest last, and the round under way."""
    ruled = [round_.ruling for round_ in filler.rounds.rounds.values() if round_.ruling]
    for ruling in ruled[-SHOWN:]:
        say_wrapped(f"{ruling.event} {ruling.trial}  {ruling.sentence}", talk)
    if line := round_line(filler):
        say_wrapped(f"{line}; {count(len(filler.rounds.adoptions), 'net')} adopted so far", talk)
