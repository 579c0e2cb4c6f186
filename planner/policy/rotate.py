"""rotate: each variable up and down by its step, in the order of the space, pass after pass.

A trial that was overtaken by an adoption gets its turn again in the same pass, against the new best. A variable at its
bound has no trial in that direction.
"""

from collections.abc import Iterator, Sequence

from planner.policy.asks import Ask, Move, Terms
from planner.space import DIRECTIONS, Space, Variable
from planner.standing import Standing

Turn = tuple[Variable, float, float | None]


def rotate(standing: Standing, terms: Terms, room: int) -> list[Ask]:
    """The next `room` trials; fewer only when no variable can move at all."""
    return [*in_turn(standing, list(moves(standing, terms.space)), room)]


def in_turn(standing: Standing, turns: Sequence[Turn], room: int) -> list[Move]:
    """The moves that this pass has not tried yet, then those of the next passes."""
    possible = [(v.name, value, to) for v, value, to in turns if to is not None]
    tried = standing.tally.tried
    turn = [(name, value, to) for name, value, to in possible if (name, 1 if to > value else -1) not in tried]
    found: list[Move] = []
    pass_ = standing.pass_
    while len(found) < room and possible:
        found += [Move(variable=name, from_=value, to=to, pass_=pass_) for name, value, to in turn]
        turn, pass_ = possible, pass_ + 1
    return found[:room]


def moves(standing: Standing, space: Space) -> Iterator[Turn]:
    """(variable, value, where to) for up and down of every weight, in order; nowhere to at a bound."""
    for variable in space.weights():
        value = standing.best.weights[variable.name]
        for direction in DIRECTIONS:
            yield variable, value, variable.moved(value, direction)
