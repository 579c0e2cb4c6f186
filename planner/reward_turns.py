"""Which reward variable a round changes, and where the rewards stand. Pure; all that is remembered is the rounds.

A reward changes with the net that it made: where that is adopted, the reward stands from then on. From each net the first
round is plain, and plain and changed rounds take turns, so that each change has a plain round from the same net to be
told beside. The changes rotate: the one whose turn is longest ago is next.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from planner.opinion import TERMS
from planner.rounds import Round, Rounds, is_plain
from planner.space import DIRECTIONS, Space, Variable
from planner.trial import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One reward variable in one direction: its value now, where it would go, who tried it last.

    `to` is None at its bound, and for what feedback is worth while there is none: nothing would come of a change.
    """

    variable: Variable
    direction: int
    now: float
    to: float | None
    last: Round | None


def standing_rewards(space: Space, rounds: Rounds) -> dict[str, float]:
    """The starts, moved by the adoptions that lead on from them; a start that was edited means: from here."""
    return {variable.name: _standing(variable, rounds) for variable in space.rewards()}


def _standing(variable: Variable, rounds: Rounds) -> float:
    value = variable.typed(variable.start)
    for move in (ruling.move for ruling in rounds.adoptions):
        if move and move.variable == variable.name and move.from_ in (value, variable.inside(value)):
            value = move.to
    return variable.inside(value)


def turns(rounds: Rounds, space: Space) -> list[Turn]:
    """Up and down of every reward variable, in the order of the space."""
    standing, last = standing_rewards(space, rounds), _last(rounds)
    idle = () if rounds.opinions else TERMS
    return [
        Turn(
            variable=variable,
            direction=direction,
            now=standing[variable.name],
            to=None if variable.name in idle else variable.moved(standing[variable.name], direction),
            last=last.get((variable.name, direction)),
        )
        for variable in space.rewards()
        for direction in DIRECTIONS
    ]


def _last(rounds: Rounds) -> Mapping[tuple[str, int], Round]:
    """Variable and direction → the last round that tried it."""
    moved = ((round_.lesson.move, round_) for round_ in rounds.rounds.values())
    return {(move.variable, move.direction): round_ for move, round_ in moved if move}


def next_move(rounds: Rounds, space: Space) -> Change | None:
    """The change of the next round; None for a plain one."""
    if not _is_turn(rounds):
        return None
    order = {id_: at for at, id_ in enumerate(rounds.rounds, 1)}
    longest_ago = sorted(turns(rounds, space), key=lambda turn: order[turn.last.lesson.round] if turn.last else 0)
    moves = (Change(variable=t.variable.name, from_=t.now, to=t.to) for t in longest_ago if t.to is not None)
    return next(moves, None)


def _is_turn(rounds: Rounds) -> bool:
    """Whether the last round from the net that stands was a plain one, and judged."""
    if rounds.net is None:
        return False
    same = [r for r in rounds.rounds.values() if r.lesson.best and r.lesson.best.sha256 == rounds.net.sha256]
    return bool(same) and is_plain(same[-1])
