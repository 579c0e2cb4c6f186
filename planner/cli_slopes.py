"""What fleet-plan shows of the screens: the strongest slopes, raw and shrunken, and how far the centre has gone."""

from typing import Any

import numpy as np

from fleetd import Talk, columns
from planner.cli_width import plain, say_wrapped, short_name, table_width, widest
from planner.due import terms_of
from planner.plan import Plan
from planner.policy import slopes as s
from planner.policy.memory import FIRST
from planner.policy.screen import Belief, as_steps, believed, fitting, mirrored_of
from planner.standing import Standing
from planner.verdict import decimals, signed

Row = tuple[str, float, float, float, float, float, float]  # as KEYS
KEYS = (
    "name",
    "best",
    "centre",
    "steps",
    "slope",
    "se",
    "shrunk",
)  # steps from best to centre; the slope is that of a step


def pairs_read(seen: Standing, plan: Plan) -> int | None:
    """The mirrored pairs that count for the slopes; None under a policy that reads none."""
    if plan.policy != "screen":
        return None
    return mirrored_of(fitting(seen, terms_of(plan)))[1]


def belief_of(seen: Standing, plan: Plan) -> Belief | None:
    """None under a policy that reads no slopes."""
    return believed(seen, terms_of(plan)) if plan.policy == "screen" else None


def slopes_json(seen: Standing, plan: Plan, belief: Belief | None) -> Any:
    """All variables; null before there are slopes."""
    if belief is None or belief.slopes is None:
        return None
    gain, sd = _gain(seen, plan, belief)
    rows = [dict(zip(KEYS, row, strict=True)) for row in _rows(seen, plan, belief.slopes)]
    return {"pairs": belief.pairs, "gain": gain, "gain_sd": sd, "variables": rows}


def say_shaken(belief: Belief, talk: Talk) -> None:
    """What the calibration read: how much luck is in a pair, and what a shaken brain loses."""
    if (told := belief.shaken) is None:
        return
    near = "" if told.near_sd is None else f"{told.near_sd:.3g} where one variable is changed by a step, "
    say_wrapped(
        f"a pair's standard deviation is {near}{told.far_sd:.3g} where all are shaken by {told.tried:.3g} steps, "
        f"which cost {told.lost:.3g}; so they are shaken by {belief.reach:.3g} steps at most",
        talk,
    )


def say_slopes(seen: Standing, plan: Plan, belief: Belief, top: int, talk: Talk) -> None:
    """The table on stdout, and in words what it rests on."""
    if belief.slopes is None:
        talk.say(f"slopes: {belief.pairs} of the first {FIRST} mirrored pairs are read")
        return
    rows = _rows(seen, plan, belief.slopes)[:top]
    for line in ("", *columns(_table(rows, table_width(talk)))):
        talk.data(line)
    gain, sd = _gain(seen, plan, belief)
    digits = decimals([sd])
    many = f"{len(rows)} of {len(belief.slopes.centre)} variables, " if len(rows) < len(belief.slopes.centre) else ""
    say_wrapped(
        f"slopes of {belief.pairs:,} mirrored pairs, {many}at the centre, which is expected to score "
        f"{signed(gain, digits)} ± {sd:.{digits}f} beside the best",
        talk,
    )


def _gain(seen: Standing, plan: Plan, belief: Belief) -> tuple[float, float]:
    best = as_steps(plan.space.weights(), seen.best.weights)
    return s.expected_gain(belief.slopes, best) if belief.slopes else (0.0, 0.0)


def _rows(seen: Standing, plan: Plan, slopes: s.Slopes) -> list[Row]:
    """The strongest first."""
    shrunken, error, weights = s.shrunken(slopes), np.sqrt(slopes.variance), plan.space.weights()
    gone = slopes.centre - as_steps(weights, seen.best.weights)
    return [
        (
            weights[i].name,
            seen.best.weights[weights[i].name],
            float(slopes.centre[i]) * weights[i].step,
            float(gone[i]),
            float(slopes.slope[i]),
            float(error[i]),
            float(shrunken[i]),
        )
        for i in np.argsort(-np.abs(shrunken), kind="stable")
    ]


def _table(rows: list[Row], width: int) -> list[tuple[str, ...]]:
    """Names are cut where it does not fit, numbers never."""
    table = _cells(rows, width)
    over = widest(table) - width
    return table if over <= 0 else _cells(rows, max(1, max(len(row[0]) for row in table) - over))


def _cells(rows: list[Row], room: int) -> list[tuple[str, ...]]:
    cells: list[tuple[str, ...]] = [("VARIABLE", "BEST", "CENTRE", "STEPS", "SLOPE A STEP", "EXPECTED")]
    for name, best, centre, steps, slope, error, shrunk in rows:
        digits = decimals([error])
        raw = f"{signed(slope, digits)} ± {error:.{digits}f}"
        there = (plain(best, 4), plain(centre, 3), signed(steps, 1))
        cells.append((short_name(name, room), *there, raw, signed(shrunk, digits)))
    return cells
