"""race: each variable up and down in turn, as rotate has it, by a step that adapts, and with an early end for the hopeless.

A variable is first tried two steps to each side. What was adopted is tried twice as far next; what failed to both sides
half as far, one step at least, and after that four steps: a variable that is flat nearby is not flat for ever.
"""

from collections.abc import Iterator
from dataclasses import replace

from planner.policy.asks import Ask, Terms
from planner.policy.rotate import Turn, in_turn
from planner.space import DIRECTIONS, Space, Variable
from planner.standing import Standing

FIRST, MOST = 2, 8
AFTER = {8: 4, 4: 2, 2: 1, 1: 4}  # steps → steps, once both sides have failed


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
    steps, failed = FIRST, 0
    for adopted in standing.tally.ended.get(variable.name, ()):
        if adopted:
            steps, failed = min(2 * steps, MOST), 0
        else:
            failed += 1
            if failed == len(DIRECTIONS):
                steps, failed = AFTER[steps], 0
    return steps
