"""fleet-plan suggest: the strongest trials, and what to do about each."""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleetd import Talk, columns, count
from planner.account import account, power
from planner.cli_fill import open_filler, tell
from planner.cli_hosts import builds_json, hosts_json, say_builds, say_hosts
from planner.cli_rounds import say_rounds
from planner.cli_slopes import belief_of, say_shaken, say_slopes, slopes_json
from planner.cli_width import say_wrapped, short_change, short_effect, table_width, widest
from planner.fill import Filler
from planner.policy.screen import Belief
from planner.standing import Course, Stage, Standing
from planner.stats import LEAST_SEEDS, Paired, shrunk, spread
from planner.trial import encode_change
from planner.verdict import Call, decimals, first_read, numbers, read_of, signed, verdict_on

LEAST_ID = 5  # signs of a shortened id
LEAST_CHANGE = 24  # columns of a change, before the seeds' numbers make room for it
NOT_JUDGED = "not judged yet"
SEEN = {"search": "search", "heldout": "held-out"}
SPENT = {"screen": "in screens", "single": "in single trials", "heldout": "held-out", "judge": "judging nets"}

Read = tuple[Course, Paired]
Row = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How much of a trial its line has."""

    ids: Mapping[str, str]  # shortened
    counted: bool  # with the seeds' numbers
    expected: bool  # with what it is expected to be when read again
    tau2: float


def suggest(args: argparse.Namespace, talk: Talk) -> int:
    """The trials against the present best that read strongest, and the last adoptions."""
    filler = open_filler(args, talk)
    seen = filler.look()
    tell(filler, seen, talk)
    belief = belief_of(seen, filler.plan)
    reads = [(c, r) for c in seen.courses.against(seen.best.defaults) if (r := first_read(c))]
    reads.sort(key=lambda pair: (-pair[1].mean / pair[1].se if pair[1].se else -pair[1].mean, pair[0].trial.id))
    adopted = [c for ruling in seen.best.adoptions[-args.top :] if (c := seen.courses.get(ruling.trial))]
    listed = reads if talk.json else list(_last_of_each(reads))
    shown = listed[: args.top] + [(c, r) for c in reversed(adopted) if (r := first_read(c))]
    tau2 = spread(r for c, r in reads if c.searched and r.n >= LEAST_SEEDS)
    if talk.json:
        for course, read in shown:
            talk.emit(_suggestion(seen, course, read, tau2, len(reads)))
        talk.emit(_account_json(seen, filler, belief))
        return 0
    for line in columns(_table(seen, shown, tau2, table_width(talk))) if shown else ():
        talk.data(talk.paint("green", line) if line.endswith("adopted") else line)
    if any(advice(seen, course) == NOT_JUDGED for course, _ in shown):
        talk.say(f"{NOT_JUDGED}: `fleet-plan fill` judges (--count 0: and queues nothing)")
    if not reads:
        talk.say("no trial against the present best has been read yet")
    if belief:
        say_shaken(belief, talk)
        say_slopes(seen, filler.plan, belief, args.top, talk)
    _say_account(seen, filler, talk)
    say_rounds(filler, talk)
    say_builds(filler, talk)
    say_hosts(filler, talk)
    return 0


def _last_of_each(reads: Sequence[Read]) -> Iterator[Read]:
    """Of trials of the same change, in several passes or at another length, the one that was read last."""
    last: dict[str, str] = {}
    for course, _ in sorted(reads, key=lambda pair: pair[0].read_at):
        last[course.trial.change] = course.trial.id
    return (pair for pair in reads if last[pair[0].trial.change] == pair[0].trial.id)


def _table(seen: Standing, shown: Sequence[Read], tau2: float, width: int) -> list[Row]:
    """The first that fits: whole; ids shortened; names cut a little; no seeds' numbers; no expected column; names cut."""
    short = _beginnings(seen.courses, [c.trial.id for c, _ in shown])
    rows: list[Row] = []
    looks: tuple[tuple[Mapping[str, str], bool, bool, int | None], ...] = (
        ({}, True, True, None),
        (short, True, True, LEAST_CHANGE),
        (short, False, True, LEAST_CHANGE),
        (short, False, False, 1),
    )
    for ids, counted, expected, least in looks:
        look = Look(ids=ids, counted=counted, expected=expected, tau2=tau2)
        rows = _rows(seen, shown, width, look)
        over = widest(rows) - width
        if over > 0 and least:
            room = max(least, max(len(row[1]) for row in rows) - over)
            rows = _rows(seen, shown, room, look)
        if widest(rows) <= width:
            break
    return rows


def _rows(seen: Standing, shown: Sequence[Read], room: int, look: Look) -> list[Row]:
    rows: list[Row] = [("ID", "CHANGE", "SEARCH", "EXPECTED", "HELD-OUT", "ADVICE")]
    for course, read in shown:
        trial, again = course.trial, _expected(seen, course, read, look.tau2)
        search, heldout = (_cell(stage, counted=look.counted) for stage in (course.search, course.heldout))
        expected = "–" if again is None else signed(again, decimals([read.se or read.mean]))
        change = short_change(trial, room)
        rows.append((look.ids.get(trial.id, trial.id), change, search, expected, heldout, advice(seen, course)))
    return rows if look.expected else [(*row[:3], *row[4:]) for row in rows]


def _expected(seen: Standing, course: Course, read: Paired, tau2: float) -> float | None:
    """What the search is expected to read when read again; None where it was not searched, or beside another best."""
    return shrunk(read, tau2) if course.search and seen.current(course) else None


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
    verdict = verdict_on(seen, course)
    words = {Call.MORE: "held-out next", Call.ADOPT: NOT_JUDGED, Call.KEEP: NOT_JUDGED, Call.WAIT: "being read"}
    return words[verdict.call]


def _sentence(seen: Standing, course: Course, read: Paired, tau2: float, among: int) -> str:
    """The same with its reason."""
    expected = signed(shrunk(read, tau2), decimals([read.se]))
    if course.ruling:
        again = f"; expected {expected} when read again" if read.se and not course.heldout else ""
        return course.ruling.sentence + (again if course.ruling.event == "keep" else "")
    verdict = verdict_on(seen, course)
    if verdict.call is Call.MORE:
        return f"held-out next: best of {among}, expected to shrink to about {expected}"
    if verdict.call is Call.WAIT:
        return "being read: held-out seeds decide" if course.heldout else "being read"
    return f"{NOT_JUDGED}: fleet-plan fill judges; {verdict.sentence}"


def _say_account(seen: Standing, filler: Filler, talk: Talk) -> None:
    told, plan = account(seen, filler.rounds), filler.plan
    if said := [_told_power(SEEN[name], looks) for name, looks in power(plan).items() if looks]:
        say_wrapped(f"seen with 80 %, in standard deviations of a pair: {'; '.join(said)}", talk)
    spent = ", ".join(f"{n:,} {SPENT[purpose]}" for purpose, n in told.plays.items() if n)
    talk.say(f"plays so far: {spent or 'none'}; {count(told.adoptions, 'adoption')}")
    if told.decided:
        say_wrapped(
            f"by luck alone, {told.false_adoptions:.2g} of the {count(told.decided, 'held-out')} decided so far would be adopted",
            talk,
        )


def _told_power(of: str, looks: Sequence[tuple[int, float]]) -> str:
    """Search 0.39 after 55 seeds."""
    effects, at = (", ".join(words) for words in zip(*((f"{sd:.2f}", str(n)) for n, sd in looks), strict=True))
    return f"{of} {effects} after {at} seeds"


def _account_json(seen: Standing, filler: Filler, belief: Belief | None) -> Any:
    told, plan = account(seen, filler.rounds), filler.plan
    see = {name: [{"seeds": n, "sd": sd} for n, sd in looks] for name, looks in power(plan).items()}
    return {
        "schema": "fleet.account/1",
        "decided": told.decided,
        "false_adoptions": told.false_adoptions,
        "adoptions": told.adoptions,
        "plays": told.plays,
        "power": see,
        "slopes": slopes_json(seen, plan, belief),
        "builds": builds_json(filler),
        "hosts": hosts_json(filler),
    }


def _suggestion(seen: Standing, course: Course, read: Paired, tau2: float, among: int) -> Any:
    trial = course.trial
    return {
        "schema": "fleet.suggestion/1",
        "trial": trial.id,
        **encode_change(trial),
        "search": numbers(read_of(course.search)),
        "heldout": numbers(read_of(course.heldout)),
        "shrunk": None if (again := _expected(seen, course, read, tau2)) is None else again + 0.0,
        "verdict": course.ruling.event if course.ruling else None,
        "reason": course.ruling.reason if course.ruling else None,
        "advice": _sentence(seen, course, read, tau2, among),
    }
