"""What a policy asks for, and what it is told of the plan. Its seeds an ask gets later."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from planner.screen import Axis, Shake
from planner.space import Space
from planner.standing import Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The plan, as far as a policy has to know it."""

    space: Space
    seeds: int  # of a trial's search, and of a screen
    seconds: float  # of a play
    heldout: int  # seeds of a held-out at most
    floor: float  # of the search's plays, for trials of one variable
    horizon: int  # plays after which spsa has come to its end


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A trial of one variable's change, and the pass it belongs to. `raced`: it may end before all its seeds are read."""

    variable: str
    from_: float
    to: float
    pass_: int
    raced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """A screen."""

    axes: tuple[Axis, ...]
    shake: Shake
    pairs: int  # read before


@dataclass(frozen=True, slots=True, kw_only=True)
class Leap:
    """A trial of many changes at once, on held-out seeds alone."""

    candidate: Mapping[str, float]
    pairs: int


Ask = Move | Pairs | Leap
Policy = Callable[[Standing, Terms, int], list[Ask]]
