"""fleet-plan fill: write the verdicts that are due and queue what comes next; once, or until a budget is spent."""

import argparse
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NoReturn

from fleetd import NotFound, Spool, Talk, Terminated, TryLater, Usage, allowed_cores, count, find_spool, host_name
from planner.cache import cache_home
from planner.cli_width import say_wrapped
from planner.due import Order, asked_again, plays_expected
from planner.edits import Edits
from planner.fill import LOCK_S, Filler, Task
from planner.net_round import Lesson
from planner.plan import Plan, read_plan
from planner.reading import check_command
from planner.screen import Screen
from planner.standing import Course, Standing
from planner.trial import Block, encode_change

LOOK_S = 0.5
AGAIN = 5  # looks more, where others queue at the same time
LOOK_ANYWAY_S = 30.0
NAMED = 5  # rows of odd content
WAIT_S = 2.0  # for another fleet-plan, before a watch says so and tries again


def open_filler(args: argparse.Namespace, talk: Talk) -> Filler:
    """The spool's plan and standing, as every command but init and read needs them."""
    spool = find_spool(args.spool, talk.environ)
    home = cache_home(talk.environ)
    return Filler(spool, read_plan(spool.plan), host_name(talk.environ), lambda: datetime.now(UTC), home)


def fill(args: argparse.Namespace, talk: Talk) -> int:
    """Settle, then queue up to the order; with --watch go on until the budget is spent and judged."""
    filler = open_filler(args, talk)
    if args.dry_run and args.watch:
        raise Usage("--dry-run looks once and writes nothing: leave out --watch")
    order = Order(depth=args.depth, count=args.count, plays=args.plays, heldout=_heldout(filler, args.heldout, talk))
    if args.dry_run:
        return _dry_run(filler, order, talk)
    signal.signal(signal.SIGTERM, _terminate)
    if args.watch:
        try:
            return _watch(filler, order, talk)
        except Terminated as ended:
            talk.say(str(ended))
            return 0
    seen, added, stop = _pass(filler, order, talk)
    _said_summary(filler, seen, order, added, stop, talk)
    return 0


def tell(filler: Filler, seen: Standing, talk: Talk) -> None:
    """Say, once in this process, what no longer holds of the best; with -v also which rows count for nothing."""
    notes, odd = [*seen.best.notes, *filter(None, [seen.screened.failing])], filler.odd
    if talk.verbose and odd:
        named = ", ".join(f"{host} {seq}" for host, seq in odd[:NAMED]) + ("…" if len(odd) > NAMED else "")
        notes.append(f"{count(len(odd), 'row')} of odd content skipped (host and seq: {named})")
    for note in filler.untold(notes):
        say_wrapped(note, talk)


def _pass(filler: Filler, order: Order, talk: Talk, wait_s: float = LOCK_S) -> tuple[Standing, int, str | None]:
    """Settle and add, under the lock: the standing before adding, jobs added, the stop file that stands."""
    with filler.alone(wait_s):
        seen, rows = filler.settle()
        for row in rows:
            say_wrapped(f"{row.event}: {row.body['sentence']}", talk)
        tell(filler, seen, talk)
        for note in filler.untold(map(_of_another, filler.others)):
            say_wrapped(note, talk)
        added, stop = _add(filler, seen, _deep(filler.spool, order), talk)
    return seen, added, stop


def _of_another(by: str) -> str:
    return (
        f"jobs of {by} wait or run here: where locks do not hold between hosts (fleet doctor), two that fill at once may "
        f"ask for the same plays; let one host fill then"
    )


def _deep(spool: Spool, order: Order) -> Order:
    """The order with its depth: two jobs for each lane when nobody said how many."""
    return order if order.depth or order.count is not None else replace(order, depth=2 * lanes(spool))


def lanes(spool: Spool) -> int:
    """The lanes of all hosts whose daemon has not ended, or what this one is allowed when none does."""
    found = [beat.get("lanes") for beat in spool.heartbeats().values() if not beat.get("ended")]
    return sum(n for n in found if isinstance(n, int)) or allowed_cores().cores


def find_course(seen: Standing, id_: str) -> Course:
    """The trial of that id or of the one id that begins so. Raises NotFound."""
    if id_ in seen.courses:
        return seen.courses[id_]
    found = [course for name, course in seen.courses.items() if name.startswith(id_)] if id_ else []
    if len(found) != 1:
        many = f"; {len(found)} trials begin so" if found else ""
        raise NotFound(f"{id_!r}: no such trial{many}; `fleet-plan log` names all that were judged")
    return found[0]


def _heldout(filler: Filler, id_: str | None, talk: Talk) -> str | None:
    """The trial that --heldout names. Raises NotFound, and Usage when its best was replaced."""
    if id_ is None:
        return None
    seen = filler.look()
    course = find_course(seen, id_)
    trial = course.trial.id
    if course.ruling and course.ruling.event == "adopt":
        raise Usage(f"--heldout {trial}: it was adopted already, on held-out seeds")
    if not seen.current(course):
        raise Usage(
            f"--heldout {trial}: the best that it was read against has been replaced; "
            f"a trial of its change against the present one comes in its turn"
        )
    if not course.ruling:
        talk.say(f"{trial}: it is still being read; ask again once it is judged (fleet-plan log)")
    elif not list(asked_again(seen, trial)):
        talk.say(f"{trial}: its held-out seeds were asked for before, as {trial}h")
    return trial


def _add(filler: Filler, seen: Standing, order: Order, talk: Talk) -> tuple[int, str | None]:
    """How many jobs were added, and the stop file that kept the rest out, if any."""
    added, blocks = 0, filler.due(seen, order)
    for _ in range(AGAIN):
        if not filler.overtaken:
            break
        blocks = filler.due(filler.look(), order)
    if stops := filler.spool.stops():
        return 0, min(stops)
    _check_commands(blocks, filler.plan, talk)
    try:
        for block, id_ in zip(blocks, filler.publish(blocks), strict=False):
            added += 1
            _said_job(id_, block, talk)
    except TryLater:
        return added, min(filler.spool.stops(), default="a stop file")
    return added, None


def _check_commands(tasks: Sequence[Task], plan: Plan, talk: Talk) -> None:
    """Raises NotFound when a program that these jobs will run is not here."""
    if tasks:
        check_command(plan.census, talk.environ, f"{plan.files[0]}: census")
    for task in tasks:
        if isinstance(task, Lesson):
            check_command(task.command, talk.environ, f"{plan.files[0]}: [net] {'train' if task.best else 'first'}")


def _dry_run(filler: Filler, order: Order, talk: Talk) -> int:
    seen = filler.look()
    tell(filler, seen, talk)
    blocks = filler.due(seen, _deep(filler.spool, order))
    _check_commands(blocks, filler.plan, talk)
    for block in blocks:
        _said_job(None, block, talk)
    talk.say(f"would add {count(len(blocks), 'job')} to {len(filler.alive)} that wait or run; nothing was written")
    return 0


def _watch(filler: Filler, order: Order, talk: Talk) -> int:
    left, said_stop, said_busy, mark, looked = order.count, False, False, None, 0.0
    edits = Edits(filler.plan, lambda plan: check_command(plan.census, talk.environ, f"{plan.files[0]}: census"))
    while True:
        if edits.look(talk.say):
            filler, mark = filler.after(edits.plan), None
            talk.say(f"{edits.plan.files[0]} or its space was edited: what comes next follows it")
        if (now := _mark(filler.spool)) == mark and time.monotonic() - looked < LOOK_ANYWAY_S:
            time.sleep(LOOK_S)
            continue
        try:
            seen, added, stop = _pass(filler, replace(order, count=left), talk, WAIT_S)
        except TryLater as error:
            if not said_busy:
                talk.say(f"{error}; waiting for it")
            said_busy = True
            continue
        said_busy, mark, looked = False, now, time.monotonic()
        left = left if left is None else left - added
        if stop and not said_stop:
            talk.say(f"{filler.spool.root / stop} stands: nothing is added until it is gone (fleet resume)")
        said_stop = stop is not None
        if not (added or stop or filler.alive):
            talk.say(_why_done(seen, filler, order))
            return 0


def _mark(spool: Spool) -> tuple[object, ...]:
    """What changes when there may be something to do."""
    with os.scandir(spool.ledger_d) as segments:
        sizes = sorted((entry.name, entry.stat().st_size) for entry in segments if entry.name.endswith(".jsonl"))
    return (spool.stops(), spool.queue.stat().st_mtime_ns, *sizes)


def _why_nothing(seen: Standing, filler: Filler, order: Order) -> str:
    spent = order.plays is not None and plays_expected(seen, filler.plan) + filler.rounds.plays >= order.plays
    return f"the budget of {order.plays:,} plays is spent" if spent else nothing_left(filler.plan)


def _why_done(seen: Standing, filler: Filler, order: Order) -> str:
    played = filler.played(seen)
    if order.plays is not None and plays_expected(seen, filler.plan) + filler.rounds.plays >= order.plays:
        return f"done: {count(played, 'play')} read and judged, the budget was {order.plays:,}"
    if order.count is not None:
        return f"done: {count(order.count, 'job')} added, read and judged"
    return f"nothing left to try: {nothing_left(filler.plan)}"


def nothing_left(plan: Plan) -> str:
    """Why the policy asks for nothing more."""
    ended = plan.policy == "spsa" and any(v.low < v.high for v in plan.space.weights())
    return f"spsa has come to its horizon of {plan.horizon:,} plays" if ended else "every variable is at its bounds"


def _said_job(id_: str | None, task: Task, talk: Talk) -> None:
    if isinstance(task, Block):
        _said_block(id_, task, talk)
    elif isinstance(task, Screen):
        _said_screen(id_, task, talk)
    elif talk.json:
        seeds = None if isinstance(task, Lesson) else [task.seeds.low, task.seeds.high]
        purpose = "training" if isinstance(task, Lesson) else "judge"
        talk.emit({"schema": "fleet.fill/1", "job": id_, "round": task.round, "purpose": purpose, "seeds": seeds})
    else:
        talk.data(f"{id_ or '-'}  {task.title}")


def _said_screen(id_: str | None, screen: Screen, talk: Talk) -> None:
    if talk.json:
        about = {"screen": screen.id, "purpose": str(screen.purpose), "shake": str(screen.shake)}
        talk.emit({"schema": "fleet.fill/1", "job": id_} | about | {"seeds": [screen.seeds.low, screen.seeds.high]})
    else:
        talk.data(f"{id_ or '-'}  {screen.id}  {screen.change}")


def _said_block(id_: str | None, block: Block, talk: Talk) -> None:
    trial, seeds = block.trial, block.seeds
    if talk.json:
        talk.emit(
            {
                "schema": "fleet.fill/1",
                "job": id_,
                "trial": trial.id,
                "purpose": str(block.purpose),
                "pass": trial.pass_,
                **encode_change(trial),
                "seeds": [seeds.low, seeds.high],
            }
        )
    else:
        what = "held-out" if block.purpose == "heldout" else f"pass {trial.pass_}"
        talk.data(f"{id_ or '-'}  {trial.id}  {trial.change}  {count(len(seeds), 'seed')}, {what}")


def _said_summary(filler: Filler, seen: Standing, order: Order, added: int, stop: str | None, talk: Talk) -> None:
    if stop:
        talk.say(f"{filler.spool.root / stop} stands: nothing is added; fleet resume lifts it")
        return
    busy = len(filler.alive) + added
    if order.count == 0:
        talk.say(f"judged; {busy} wait or run, {count(filler.played(seen), 'play')} read so far")
        return
    talk.say(f"added {count(added, 'job')}; {busy} wait or run, {count(filler.played(seen), 'play')} read so far")
    if not busy:
        talk.say(f"nothing is queued: {_why_nothing(seen, filler, order)} (fleet-plan next)")


def _terminate(*_: object) -> NoReturn:
    raise Terminated("ended by SIGTERM; what is queued stays, and `fleet-plan fill --watch` goes on from here")
