"""A trail: what screens taught one after another, kept so that only new ones have to teach.

A screen may come late, before others that have taught already; then the trail goes back to the last state before it. States are
kept for the newest few places and ever more sparsely before them, so that a long trail takes little memory.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import takewhile
from typing import Any, Final, Generic, TypeVar

from planner.sheaf import Sheaf

NEWEST: Final = 8  # places whose states are all kept; before them, half as many for each doubling of the distance

State = TypeVar("State")


@dataclass(slots=True)
class Trail(Generic[State]):
    """States by how many screens have taught them."""

    rests_on: Any = None  # what else the states come from
    taught: list[tuple[str, bytes]] = field(default_factory=list)  # a screen's id, and the digest of what it read
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
        told = told_of(sheaves)
        alike = sum(1 for _ in takewhile(lambda two: two[0] == two[1], zip(self.taught, told, strict=False)))
        done = max((n for n in self.states if least <= n <= alike), default=0)
        state = self.states[done] if done else begin()
        del self.taught[done:]
        self.states = {n: state for n, state in self.states.items() if n <= done}
        for sheaf, of in zip(sheaves[done:], told[done:], strict=True):
            state = teach(state, sheaf)
            self.taught.append(of)
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
    for id_, mark in told_of(sheaves):
        told.update(id_.encode() + mark)
        yield told.digest()


def told_of(sheaves: Sequence[Sheaf]) -> list[tuple[str, bytes]]:
    """What each is known by."""
    return [(sheaf.told.id, sheaf.told.mark) for sheaf in sheaves]
