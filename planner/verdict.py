"""The verdict: reads → ADOPT, KEEP or MORE, and the sentence that says why.

Search proposes: a candidate past two standard errors gets held-out seeds; a leap along the slopes of many variables gets them
at once. Held-out decides, alone and never pooled with the search: it is looked at after a quarter, a half and all of its seeds,
and adopted when past 3.0, 2.7, 2.4 standard errors at one of them. A raced search is looked at then, too, and after twice and
four times its seeds. At each look, what is hopeless ends; of leaps, which are nearly always gains and often small ones, only
what reads as a loss. Everything that is not adopted is kept out with its reason. Rows of one look, as older ledgers have them,
decide past two standard errors.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from planner.rows import NOT_READ, REPLACED
from planner.seeds import Purpose
from planner.standing import Course, Stage, Standing
from planner.stats import LEAST_SEEDS, Paired, paired, past, seeds_needed, told
from planner.trial import is_void

NOTHING_READ: Final[dict[str, Any]] = {"effect": None, "se": None, "n": 0, "interval": None, "e_value": None}


class Call(Enum):
    """What to do with a trial: wait for reads, read held-out seeds, adopt, or keep the best."""

    WAIT = "wait"
    MORE = "more"
    ADOPT = "adopt"
    KEEP = "keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The call, a reason in a word or two for machines, and the sentence for people."""

    call: Call
    reason: str = ""
    sentence: str = ""
    purpose: Purpose | None = None
    read: Paired | None = None


WAIT = Verdict(call=Call.WAIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """At one look: past so many standard errors it has passed, under so many it is hopeless."""

    passed: float
    hopeless: float


GATE = Rule(passed=2.0, hopeless=2.0)
HELDOUT = (Rule(passed=3.0, hopeless=0.3), Rule(passed=2.7, hopeless=0.3), Rule(passed=2.4, hopeless=2.4))
LEAP = (Rule(passed=3.0, hopeless=-0.5), Rule(passed=2.7, hopeless=-0.2), Rule(passed=2.4, hopeless=2.4))
RACE = (
    Rule(passed=4.0, hopeless=0.5),
    Rule(passed=4.0, hopeless=0.7),
    Rule(passed=3.2, hopeless=1.1),
    Rule(passed=2.7, hopeless=1.5),
    Rule(passed=2.2, hopeless=2.2),
)
WORDS = {2.0: "two", 2.2: "2.2", 2.4: "2.4", 2.7: "2.7", 3.0: "three", 3.2: "3.2", 4.0: "four"}


def rules_of(purpose: Purpose, looks: int, *, leap: bool = False) -> tuple[Rule, ...]:
    """The last ones, where there are fewer looks; of a single look the plain gate."""
    if looks == 1:
        return (GATE,)
    return (RACE if purpose is not Purpose.HELDOUT else LEAP if leap else HELDOUT)[-looks:]


def verdict_on(seen: Standing, course: Course) -> Verdict:
    """What the standing says of a trial that has no verdict yet."""
    return judge(course, current=seen.current(course), outside=course.trial.id in seen.outside)


def judge(course: Course, *, current: bool, outside: bool = False) -> Verdict:
    """The verdict on a trial that has none yet.

    `current`: it is read against the best that stands now; `outside`: the space does not allow its candidate any more.
    """
    if not current:
        return WAIT if course.alive else _replaced(course)
    if outside:
        return WAIT if course.alive else _outside(course)
    if course.heldout:
        return _stage(course, course.heldout, Purpose.HELDOUT)
    return _stage(course, course.search, Purpose.SEARCH) if course.search else WAIT


def read_of(stage: Stage | None) -> Paired | None:
    """What a stage's pairs say, as far as they have come; None without any."""
    pairs = stage.pairs() if stage else {}
    return paired([c - b for _, (c, b) in sorted(pairs.items())]) if pairs else None


def first_read(course: Course) -> Paired | None:
    """Of its search, or of its held-out where it had none; of a trial on the shelf what its line tells."""
    if course.shelved:
        line = course.shelved[1]
        return told(line.n, line.mean, line.se) if line.n else None
    return read_of(course.search or course.heldout)


def _replaced(course: Course) -> Verdict:
    return _kept_out(course, REPLACED, "read against an older best, which was replaced; it gets its turn again")


def _outside(course: Course) -> Verdict:
    return _kept_out(course, "outside the space", "the space does not allow it any more, the best stays")


def _kept_out(course: Course, reason: str, why: str) -> Verdict:
    """Whatever it has read."""
    read = read_of(course.heldout or course.search)
    sentence = f"{course.trial.change}: {f'{summary(read)}, but ' if read else ''}{why}"
    purpose = Purpose.HELDOUT if course.heldout else Purpose.SEARCH
    return Verdict(call=Call.KEEP, reason=reason, sentence=sentence, purpose=purpose, read=read)


def _stage(course: Course, stage: Stage, purpose: Purpose) -> Verdict:
    """The first look that decides."""
    rules = rules_of(purpose, len(stage.looks), leap=course.trial.single is None)
    for seeds, rule in zip(stage.looks, rules, strict=True):
        part = stage if seeds == stage.looks[-1] else stage.first(seeds)
        if not (part.complete_to(seeds) or stage.failures) or (stage.failures and stage.alive):
            return WAIT
        if (verdict := _look(course, part, purpose, rule)) is not None:
            return verdict
    return WAIT


def _look(course: Course, part: Stage, purpose: Purpose, rule: Rule) -> Verdict | None:
    """None: go on reading."""
    read, call = usable(part), Call.KEEP
    if isinstance(read, tuple):
        reason, words = read
    elif past(read, rule.passed):
        call = Call.ADOPT if purpose is Purpose.HELDOUT else Call.MORE
        reason, words = _passed(course, read, call, rule)
    elif rule.hopeless < rule.passed and read.mean > rule.hopeless * read.se:
        return None
    else:
        reason, words = short_of(read, rule)
    head = "held-out " if purpose is Purpose.HELDOUT else ""
    return Verdict(
        call=call,
        reason=reason,
        sentence=f"{course.trial.change}: {head}{words}",
        purpose=purpose,
        read=read_of(part),
    )


def usable(stage: Stage) -> Paired | tuple[str, str]:
    """The read, or why it cannot decide anything: the reason and the words."""
    read, asked = read_of(stage), len(stage.span)
    if stage.failures:
        job, why = next(iter(stage.failures.items()))
        return NOT_READ, f"could not be read ({job} {why}), the best stays"
    if read is None or is_void(read.n, asked):
        return "void", f"void: {asked - (read.n if read else 0)} of {asked} pairs failed{_why(stage)}, the best stays"
    if len(builds := {str(reads.build) for reads in stage.reads.values()}) > 1:
        return "builds differ", f"read on {len(builds)} builds, which are not pooled, the best stays"
    if len(commands := {reads.census for reads in stage.reads.values()}) > 1:
        return "census differs", f"read by {len(commands)} census commands, which are not pooled, the best stays"
    if len(rules := {str(reads.rules) for reads in stage.reads.values()}) > 1:
        return "rules differ", f"read under {len(rules)} sets of rules, which are not pooled, the best stays"
    return ("no seed changed", f"no seed of {read.n} changed, the best stays") if read.still else read


def _passed(course: Course, read: Paired, call: Call, rule: Rule) -> tuple[str, str]:
    said = f"{summary(read)}, past {WORDS[rule.passed]} standard errors"
    if call is Call.MORE:
        return "past the gate", f"{said}: held-out seeds decide"
    search = read_of(course.search)
    return "past the gate", f"{said}, adopted" + (f" (search {effect(search)})" if search else "")


def short_of(read: Paired, rule: Rule = GATE) -> tuple[str, str]:
    """The reason and the words for a read that has not passed."""
    if read.n < LEAST_SEEDS:
        needed = seeds_needed(read.mean, read.sd) if read.n > 1 and read.mean > 0 else None
        hint = f"; about {needed} seeds would show it" if needed and needed > read.n else ""
        return "too few seeds", f"{summary(read)}, the best stays{hint}"
    if rule.hopeless < rule.passed:
        return "hopeless", f"{summary(read)}, more seeds are not worth their time, the best stays"
    reason = f"not past {WORDS[rule.passed]} standard errors"
    why = f", {reason}" if rule.passed > GATE.passed else ""  # of a bar above it the interval does not tell
    return reason, f"{summary(read)}{why}, the best stays"


def _why(stage: Stage) -> str:
    errors = sum((Counter(dict(r.errors)) for r in stage.reads.values()), Counter())
    return f" ({', '.join(f'{n} × {why}' for why, n in errors.most_common(3))})" if errors else ""


def effect(read: Paired) -> str:
    """+0.64 ± 0.40 over 55 seeds."""
    digits = decimals([read.se or read.mean])
    return f"{signed(read.mean, digits)} ± {read.se:.{digits}f} over {read.n} {'seeds' if read.n > 1 else 'seed'}"


def summary(read: Paired) -> str:
    """+0.64 ± 0.40 over 55 seeds: t interval −0.16 to +1.44."""
    if read.low is None or read.high is None:
        return effect(read)
    digits = decimals([read.se or read.mean])
    return f"{effect(read)}: t interval {signed(read.low, digits)} to {signed(read.high, digits)}"


def numbers(read: Paired | None) -> dict[str, Any] | None:
    """A read for a row: effect, se, n, interval (95 %, Student's t; null under two seeds), e-value."""
    if read is None:
        return None
    interval = None if read.low is None else [read.low, read.high]
    return {"effect": read.mean, "se": read.se, "n": read.n, "interval": interval, "e_value": read.e_value}


def signed(value: float, digits: int) -> str:
    """With a sign and a true minus; zero has a plus."""
    text = f"{abs(value):.{digits}f}"
    return ("−" if value < 0 and float(text) else "+") + text


def decimals(values: Iterable[float]) -> int:
    """Decimals that show two digits of the smallest value."""
    sizes = [abs(v) for v in values if v]
    return min(9, max(0, 1 - math.floor(math.log10(min(sizes))))) if sizes else 2
