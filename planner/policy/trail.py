"""A trail: what screens taught one after another, kept so that only new ones have to teach.

A screen may come late, before others that have taught already; then the trail goes back to the last state before it. States are
kept for the newest few places and ever more sparsely before them, so that a long trail takes little memory.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import takewhile
from marshal import dumps
from typing import Any, Final, Generic, TypeVar

from planner.screened import Sheaf

NEWEST: Final = 8  # places whose states are all kept; before them, half as many for each doubling of the distance

State = TypeVar("State")


@dataclass(slots=True)
class Trail(Generic[State]):
    """States by how many screens have taught them."""

    rests_on: Any = None  # what else the states come from
    taught: list[Sheaf] = field(default_factory=list)
    states: dict[int, State] = field(default_factory=dict)

    def begins_with(self, rests_on: Any) -> None:
        """Forget all that came from anything else."""
        if rests_on != self.rests_on:
            self.rests_on, self.taught, self.states = rests_on, [], {}

    def followed(
        self,
        sheaves: Sequence[Sheaf],
        begin: Callable[[], State],
        teach: Callable[[State, Sheaf], State],
        least: int = 0,
    ) -> State:
        """The state after all of them. `begin` rests on the first `least` of them."""
        alike = sum(1 for _ in takewhile(lambda two: _same(*two), zip(self.taught, sheaves, strict=False)))
        done = max((n for n in self.states if least <= n <= alike), default=0)
        state = self.states[done] if done else begin()
        del self.taught[done:]
        self.states = {n: state for n, state in self.states.items() if n <= done}
        for sheaf in sheaves[done:]:
            state = teach(state, sheaf)
            self.taught.append(sheaf)
            self.states[len(self.taught)] = state
            self._thin()
        return state

    def _thin(self) -> None:
        newest = len(self.taught)
        for n in [n for n in self.states if n % (1 << ((newest - n) // NEWEST).bit_length())]:
            del self.states[n]


def marks(rests_on: Any, sheaves: Sequence[Sheaf]) -> Iterator[bytes]:
    """After each of them, a digest of all that a state there comes from."""
    told = sha256(repr(rests_on).encode())
    for sheaf in sheaves:
        told.update(sheaf.screen.id.encode() + dumps(sorted(sheaf.differences.items())))
        yield told.digest()


def _same(one: Sheaf, other: Sheaf) -> bool:
    return one.screen.id == other.screen.id and one.differences == other.differences
