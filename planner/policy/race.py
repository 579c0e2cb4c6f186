"""race: each variable up and down in turn, as rotate has it, by a step that adapts, and with an early end for the hopeless.

A variable is tried two steps to each side; what was adopted is tried twice as far next. Where both sides have failed twice at
two steps come four, for a variable that is flat nearby is not flat for ever, and then one. The seeds that the hopeless do
not take go to those that may be good: a trial may read four times what rotate reads.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from planner.policy.asks import Ask, Terms
from planner.policy.rotate import Turn, in_turn
from planner.space import DIRECTIONS, Space, Variable
from planner.standing import Standing

TOUR: Final = (2, 2, 4, 1)  # steps: when both sides have failed, on to the next, round and round
MOST: Final = 8


def race(standing: Standing, terms: Terms, room: int) -> list[Ask]:
    """The next `room` trials; fewer only when no variable can move at all."""
    found = in_turn(standing, list(strides(standing, terms.space)), room)
    return [replace(move, raced=True) for move in found]


def strides(standing: Standing, space: Space) -> Iterator[Turn]:
    """(variable, value, where to) for up and down of every weight, as far as it goes next."""
    for variable in space.weights():
        value, steps = standing.best.weights[variable.name], _steps(standing, variable)
        for direction in DIRECTIONS:
            yield variable, value, variable.moved(value, direction, steps)


def _steps(standing: Standing, variable: Variable) -> int:
    """How far the variable goes next, by what became of its trials so far."""
    steps, failed = TOUR[0], 0
    for adopted in standing.tally.ended.get(variable.name, ()):
        if adopted:
            steps, failed = min(2 * steps, MOST), -len(DIRECTIONS)
        else:
            failed += 1
            if failed % len(DIRECTIONS) == 0:
                steps = TOUR[failed // len(DIRECTIONS) % len(TOUR)]
    return steps
