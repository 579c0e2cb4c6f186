"""The account of the whole stream: how many false adoptions luck may have made so far, and what plays were spent on. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from planner.plan import Plan
from planner.rounds import Rounds
from planner.rows import REPLACED
from planner.seeds import Purpose
from planner.standing import Standing
from planner.stats import GATE, LEAST_SEEDS, looks, raced_looks, smallest_seen
from planner.verdict import read_of, rules_of

RACED = ("race", "screen")  # the policies whose single changes are raced
ONE_LOOK = 1.0 - GATE  # the chance that it adopts what has no effect
LUCK = {(2, False): 0.0105, (3, False): 0.0105, (2, True): 0.0105, (3, True): 0.0113}  # of so many; of a leap or not


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Since the plan's first trial, whatever best was read against."""

    decided: int  # held-outs and judged nets that their reads have decided
    false_adoptions: float  # what luck is expected to have adopted of them, if none had an effect
    adoptions: int
    plays: Mapping[str, int]  # by purpose, those of screens apart from those of single trials


def account(seen: Standing, rounds: Rounds) -> Account:
    """Of held-outs that ended; one that was replaced, or is still being read, can make no adoption."""
    chances = [LUCK.get(kind, ONE_LOOK) for kind, held_outs in seen.tally.decided.items() for _ in range(held_outs)]
    judged = [
        r for r in rounds.rounds.values() if r.lesson.best and r.ruling and r.ruling.reason != REPLACED and r.stage
    ]
    chances += [ONE_LOOK for round_ in judged if read_of(round_.stage)]
    return Account(
        decided=len(chances),
        false_adoptions=sum(chances),
        adoptions=len(seen.best.adoptions) + sum(r.from_net is not None for r in rounds.adoptions),
        plays={
            "screen": seen.screened.plays,
            "single": seen.single_plays,
            "heldout": seen.plays[Purpose.HELDOUT],
            "judge": rounds.plays,
        },
    )


def power(plan: Plan) -> dict[str, list[tuple[int, float]]]:
    """Of search and of held-out, per look: after how many seeds, and the effect in sd of a pair that passes there with 80 %."""
    search = raced_looks(plan.seeds) if plan.policy in RACED else (plan.seeds,)
    return {"search": _seen(search, Purpose.SEARCH), "heldout": _seen(looks(plan.heldout), Purpose.HELDOUT)}


def _seen(at: tuple[int, ...], purpose: Purpose) -> list[tuple[int, float]]:
    rules = zip(at, rules_of(purpose, len(at)), strict=True)
    return [(n, smallest_seen(n, rule.passed)) for n, rule in rules if n >= LEAST_SEEDS]
