"""What a policy asks for, and what it is told of the plan. Its seeds an ask gets later."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from planner.screen import Axis, Shake
from planner.space import Space
from planner.standing import Standing

PAIRS_MOST: Final = 100  # of one screen: lanes share the work, and a result stays well under 64 KiB


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The plan, as far as a policy has to know it."""

    space: Space
    seeds: int  # of a trial's search
    seconds: float  # of a play
    heldout: int  # seeds of a held-out at most
    floor: float  # of the search's plays, for trials of one variable
    horizon: int  # plays after which spsa has come to its end

    @property
    def pairs(self) -> int:
        """Of a screen."""
        return min(self.seeds, PAIRS_MOST)

    @property
    def movable(self) -> bool:
        """Whether any variable has room to move."""
        return any(v.low < v.high for v in self.space.weights())


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
