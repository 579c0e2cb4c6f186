"""One play, looked at: every tick kept, then told as duels and shots."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.arena.maps import MAPS, Map
from planner.arena.rules import CELL
from planner.arena.state import Ints, State
from planner.brain.decide import Brain
from planner.brain.match import Result, play
from planner.brain.net import Player
from planner.brain.netplay import play_nets
from planner.brain.scripted import Whole

KEPT = ("x", "y", "health", "reload", "power", "shell_live", "shell_x", "shell_y", "won")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """T ticks of one play; row 0 of a tank's pair is the player."""

    seed: int
    seconds: float
    map: Map
    result: Result
    ticks: dict[str, Ints]  # KEPT, (T, 2) each
    behaviour: Ints  # (T, 2)
    duel: Ints  # (T,)
    over: npt.NDArray[np.bool_]  # (T,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Duel:
    """Ticks [first, last] of a recording in which one duel was fought; `winner` 0, 1, or None: drawn or not over."""

    first: int
    last: int
    over: bool
    winner: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """A shell's way in cells, from where it was fired to where it ended; `by` 0 or 1."""

    by: int
    at: int  # tick
    start: tuple[float, float]
    end: tuple[float, float]
    hit: bool


def record(player: Brain, opponent: Whole, seed: int, seconds: float) -> Recording:
    """Play one play, weights or a net against weights, and keep every tick of it."""
    kept: dict[str, list[Ints]] = {name: [] for name in KEPT}
    behaviours: list[Ints] = []
    duels: list[int] = []
    over: list[bool] = []
    where = []

    def watch(s: State, behaviour: npt.NDArray[np.intp], _now: int) -> None:
        for name in KEPT:
            kept[name].append(getattr(s, name)[:, 0].astype(np.int64))
        behaviours.append(behaviour[:, 0].astype(np.int64))
        duels.append(int(s.duel[0]))
        over.append(bool(s.over[0]))
        where.append(int(s.map[0]))

    if isinstance(player, Player):
        (result,) = play_nets([player], [opponent], [seed], seconds, watch=watch)
    else:
        (result,) = play([player], [opponent], [seed], seconds, watch=watch)
    return Recording(
        seed=seed,
        seconds=seconds,
        map=MAPS[where[0]],
        result=result,
        ticks={name: np.array(rows) for name, rows in kept.items()},
        behaviour=np.array(behaviours),
        duel=np.array(duels),
        over=np.array(over),
    )


def duels(r: Recording) -> list[Duel]:
    """The duels of a recording, each to the tick that decided it."""
    starts = np.flatnonzero(np.diff(r.duel, prepend=-1))
    ends = [*(starts[1:] - 1), r.duel.size - 1]
    told = []
    for first, end in zip(starts.tolist(), ends, strict=True):
        decided = np.flatnonzero(r.over[first : end + 1])
        last = first + int(decided[0]) if decided.size else int(end)
        before = r.ticks["won"][first - 1] if first else np.zeros(2, dtype=np.int64)
        gained = np.flatnonzero(r.ticks["won"][last] > before)
        later = int(end) < r.duel.size - 1  # a draw is called as the next begins
        told.append(
            Duel(
                first=first,
                last=last,
                over=bool(decided.size) or later,
                winner=int(gained[0]) if gained.size else None,
            )
        )
    return told


def shots(r: Recording, duel: Duel) -> list[Shot]:
    """The shells fired in a duel."""
    fired = np.diff(r.ticks["reload"], axis=0, prepend=0) > 0
    told = []
    for by in (0, 1):
        for at in (duel.first + np.flatnonzero(fired[duel.first : duel.last + 1, by])).tolist():
            flight = r.ticks["shell_live"][at + 1 : duel.last + 1, by]
            landed = at + 1 + int(np.argmin(flight)) if not flight.all() else duel.last
            hit = bool(r.ticks["health"][landed, 1 - by] < r.ticks["health"][landed - 1, 1 - by]) and not flight.all()
            end = _cells(r, 1 - by, landed) if hit else _cells(r, by, landed, of="shell_")
            told.append(Shot(by=by, at=at, start=_cells(r, by, at), end=end, hit=hit))
    return sorted(told, key=lambda shot: (shot.at, shot.by))


def _cells(r: Recording, tank: int, at: int, *, of: str = "") -> tuple[float, float]:
    return float(r.ticks[f"{of}x"][at, tank] / CELL), float(r.ticks[f"{of}y"][at, tank] / CELL)
