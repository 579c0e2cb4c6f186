"""fleet-plan suggest: the strongest trials, and what to do about each."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from fleetd import Talk, columns, count
from planner.cli_fill import open_filler, tell
from planner.cli_rounds import say_rounds
from planner.cli_width import short_change, short_effect, table_width, widest
from planner.standing import Course, Stage, Standing
from planner.stats import LEAST_SEEDS, Paired, shrunk, smallest_seen, spread
from planner.trial import encode_change
from planner.verdict import Call, decimals, judge, numbers, read_of, signed

LEAST_ID = 5  # signs of a shortened id
LEAST_CHANGE = 24  # columns of a change, before the seeds' numbers make room for it
NOT_JUDGED = "not judged yet"

Read = tuple[Course, Paired]
Row = tuple[str, ...]


def suggest(args: argparse.Namespace, talk: Talk) -> int:
    """The trials against the present best that read strongest, and the last adoptions."""
    filler = open_filler(args, talk)
    seen = filler.look()
    tell(filler, seen, talk)
    reads = [(c, r) for c in seen.courses.values() if seen.current(c) and (r := read_of(c.search or c.heldout))]
    reads.sort(key=lambda pair: (-pair[1].mean / pair[1].se if pair[1].se else -pair[1].mean, pair[0].trial.id))
    adopted = [c for ruling in seen.best.adoptions[-args.top :] if (c := seen.courses.get(ruling.trial))]
    shown = reads[: args.top] + [(c, r) for c in reversed(adopted) if (r := read_of(c.search or c.heldout))]
    if talk.json:
        tau2 = spread(r for _, r in reads if r.n >= LEAST_SEEDS)
        for course, read in shown:
            talk.emit(_suggestion(seen, course, read, tau2, len(reads)))
        return 0
    for line in columns(_table(seen, shown, table_width(talk))) if shown else ():
        talk.data(talk.paint("green", line) if line.endswith("adopted") else line)
    if any(advice(seen, course) == NOT_JUDGED for course, _ in shown):
        talk.say(f"{NOT_JUDGED}: `fleet-plan fill` judges (--count 0: and queues nothing)")
    _say_shown(seen, len(reads), filler.plan.seeds, talk)
    say_rounds(filler, talk)
    return 0


def _table(seen: Standing, shown: Sequence[Read], width: int) -> list[Row]:
    """The first that fits: whole; with shortened ids; with names cut a little; without the seeds' numbers, and names cut."""
    short = _beginnings(seen.courses, [c.trial.id for c, _ in shown])
    rows: list[Row] = []
    for ids, counted, least in (({}, True, None), (short, True, LEAST_CHANGE), (short, False, 1)):
        rows = _rows(seen, shown, ids, width, counted=counted)
        over = widest(rows) - width
        if over > 0 and least:
            room = max(least, max(len(row[1]) for row in rows) - over)
            rows = _rows(seen, shown, ids, room, counted=counted)
        if widest(rows) <= width:
            break
    return rows


def _rows(seen: Standing, shown: Sequence[Read], ids: dict[str, str], room: int, *, counted: bool) -> list[Row]:
    rows: list[Row] = [("ID", "CHANGE", "SEARCH", "HELD-OUT", "ADVICE")]
    for course, _ in shown:
        trial, stages = course.trial, (course.search, course.heldout)
        cells = [_cell(stage, counted=counted) for stage in stages]
        rows.append((ids.get(trial.id, trial.id), short_change(trial, room), *cells, advice(seen, course)))
    return rows


def _cell(stage: Stage | None, *, counted: bool) -> str:
    if read := read_of(stage):
        return short_effect(read, counted=counted)
    if stage is None:
        return "–"
    return "being read" if stage.alive else "none scored"


def _beginnings(all_: Iterable[str], shown: Iterable[str]) -> dict[str, str]:
    """Id → its shortest beginning that no other id has."""
    ids = sorted(all_)
    near = dict(zip(ids, zip(["", *ids], [*ids[1:], ""], strict=False), strict=False))
    return {id_: id_[: max(LEAST_ID, *(_shared(id_, other) + 1 for other in near[id_]))] for id_ in shown}


def _shared(one: str, two: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))


def advice(seen: Standing, course: Course) -> str:
    """What a person should make of the trial, in two or three words."""
    if course.ruling:
        return "adopted" if course.ruling.event == "adopt" else "best stays"
    verdict = judge(course, current=seen.current(course))
    words = {Call.MORE: "held-out next", Call.ADOPT: NOT_JUDGED, Call.KEEP: NOT_JUDGED, Call.WAIT: "being read"}
    return words[verdict.call]


def _sentence(seen: Standing, course: Course, read: Paired, tau2: float, among: int) -> str:
    """The same with its reason."""
    expected = signed(shrunk(read, tau2), decimals([read.se]))
    if course.ruling:
        again = f"; expected {expected} when read again" if read.se and not course.heldout else ""
        return course.ruling.sentence + (again if course.ruling.event == "keep" else "")
    verdict = judge(course, current=seen.current(course))
    if verdict.call is Call.MORE:
        return f"held-out next: best of {among}, expected to shrink to about {expected}"
    if verdict.call is Call.WAIT:
        return "being read: held-out seeds decide" if course.heldout else "being read"
    return f"{NOT_JUDGED}: fleet-plan fill judges; {verdict.sentence}"


def _say_shown(seen: Standing, reads: int, seeds: int, talk: Talk) -> None:
    if not reads:
        talk.say("no trial against the present best has been read yet")
    if seeds >= LEAST_SEEDS:
        talk.say(f"{seeds} seeds can see {smallest_seen(seeds):.2f} standard deviations of a pair with 80 %")
    spent = ", ".join(f"{n:,} {purpose}" for purpose, n in seen.plays.items() if n)
    talk.say(f"plays so far: {spent or 'none'}; {count(len(seen.best.adoptions), 'adoption')}")


def _suggestion(seen: Standing, course: Course, read: Paired, tau2: float, among: int) -> Any:
    trial = course.trial
    return {
        "schema": "fleet.suggestion/1",
        "trial": trial.id,
        **encode_change(trial),
        "search": numbers(read_of(course.search)),
        "heldout": numbers(read_of(course.heldout)),
        "shrunk": shrunk(read, tau2),
        "verdict": course.ruling.event if course.ruling else None,
        "reason": course.ruling.reason if course.ruling else None,
        "advice": _sentence(seen, course, read, tau2, among),
    }
