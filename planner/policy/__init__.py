"""Policies: standing + room → trials. Pure functions behind one gate (verdict.judge)."""

from collections.abc import Callable, Mapping

from planner.policy.rotate import DIRECTIONS, Move, moves, rotate
from planner.space import Space
from planner.standing import Standing

Policy = Callable[[Standing, Space, int], list[Move]]
POLICIES: Mapping[str, Policy] = {"rotate": rotate}

__all__ = ["DIRECTIONS", "POLICIES", "Move", "Policy", "moves", "rotate"]
