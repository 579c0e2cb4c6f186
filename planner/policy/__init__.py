"""Policies: standing + room → what to ask for. Pure functions behind one gate (verdict.judge)."""

from collections.abc import Mapping

from planner.policy.asks import Ask, Leap, Move, Pairs, Policy, Terms
from planner.policy.race import race
from planner.policy.rotate import DIRECTIONS, moves, rotate
from planner.policy.screen import screen
from planner.policy.spsa import spsa

POLICIES: Mapping[str, Policy] = {"screen": screen, "race": race, "rotate": rotate, "spsa": spsa}

__all__ = ["DIRECTIONS", "POLICIES", "Ask", "Leap", "Move", "Pairs", "Policy", "Terms", "moves", "race", "rotate"]
