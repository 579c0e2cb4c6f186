"""Policies: standing + room → what to ask for. Pure functions behind one gate (verdict.judge)."""

from collections.abc import Iterator, Mapping

from planner.policy.asks import Ask, Leap, Move, Pairs, Policy, Terms
from planner.policy.race import race, strides
from planner.policy.rotate import Turn, moves, rotate
from planner.policy.screen import screen
from planner.policy.spsa import spsa
from planner.space import Space
from planner.standing import Standing

POLICIES: Mapping[str, Policy] = {"screen": screen, "race": race, "rotate": rotate, "spsa": spsa}


def turns(name: str, standing: Standing, space: Space) -> Iterator[Turn]:
    """Where the policy takes each variable on its own, up and down."""
    return moves(standing, space) if name == "rotate" else strides(standing, space)


__all__ = ["POLICIES", "Ask", "Leap", "Move", "Pairs", "Policy", "Terms", "race", "rotate", "turns"]
