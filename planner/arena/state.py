"""The state of N plays in lockstep: arrays of whole numbers, two tanks a play, nothing hidden anywhere else.

A tank's arrays are (2, N): row 0 is the player, row 1 its opponent, and `a[::-1]` is what each sees in the other.
A play's arrays are (N,). Positions are in 2⁻¹⁷ cells, headings in 256ths of a turn, times in ticks.

All of them are views of one block, (STATE_ROWS, N) int64, in the order of `State`: what owns the block (a slab that is
shared, a checkpoint, a compiled kernel) has the whole state. A flag is the low byte of its number, 0 or 1.
"""

import sys
from dataclasses import dataclass, fields
from itertools import accumulate
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from planner.arena.chance import key
from planner.arena.maps import MAPS
from planner.arena.rules import BLOCK

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(slots=True, kw_only=True)
class State:
    """Everything that a tick reads or writes, but for the orders."""

    # (2, N):
    x: Ints
    y: Ints
    vx: Ints  # what the last tick added to x
    vy: Ints
    hull: Ints  # heading of the tank
    gun: Ints  # heading of the turret, by the map, not by the hull
    reload: Ints  # ticks until it can fire
    health: Ints
    power: Ints  # ticks that the power-up still lasts
    drift: Ints  # -1 or 1: which way round it goes now, where either will do
    shell_live: Flags  # the one shell that a tank can have in the air
    shell_x: Ints
    shell_y: Ints
    shell_vx: Ints  # its heading's cosine and sine, 2⁻¹²
    shell_vy: Ints
    shell_heading: Ints
    shell_power: Ints  # 256 where it does half as much damage again, else 0
    won: Ints  # duels
    # (N,) each, that is, of the play:
    seed: Ints
    side: Ints  # which side row 0 has in even duels: 0 or 1
    map: Ints
    duel: Ints
    born: Ints  # the tick at which this duel began
    over: Flags  # decided; the next begins with the next block
    drawn: Ints
    pack_cell: Ints
    pack_wait: Ints  # ticks until the health pack lies there; 0: it does
    power_cell: Ints
    power_wait: Ints
    stray: Ints  # (BLOCK, 2, N) nine bits of chance for a shell fired at that tick of the block


_ROWS: Final = (
    dict.fromkeys((f.name for f in fields(State)), 2)
    | dict.fromkeys(
        ("seed", "side", "map", "duel", "born", "over", "drawn", "pack_cell", "pack_wait", "power_cell", "power_wait"),
        1,
    )
    | {"stray": 2 * BLOCK}
)
STATE_ROWS: Final = sum(_ROWS.values())
ROW_OF: Final = dict(zip(_ROWS, accumulate(_ROWS.values(), initial=0), strict=False))  # the first of each array's rows
_LOW: Final = 0 if sys.byteorder == "little" else 7


def state_over(block: Ints) -> State:
    """The state whose arrays are views of `block`, (STATE_ROWS, N), which need not be contiguous along its rows."""
    n = block.shape[1]
    arrays: dict[str, Any] = {name: block[first : first + _ROWS[name]] for name, first in ROW_OF.items()}
    flags = {name: arrays[name].view(np.bool_)[:, _LOW::8] for name in ("shell_live", "over")}
    arrays["stray"] = arrays["stray"].reshape(BLOCK, 2, n)
    return State(**{name: a[0] if _ROWS[name] == 1 else a for name, a in (arrays | flags).items()})


def begin_state(block: Ints, seeds: Ints, *, swap: bool = False) -> State:
    """N plays before their first tick, over `block`, whatever it held. `swap` gives row 0 row 1's side."""
    block[:] = 0
    s = state_over(block)
    bits = key(seeds, np.zeros_like(seeds))
    s.seed[:] = seeds
    s.side[:] = ((bits & np.uint64(1)) ^ np.uint64(swap)).astype(np.int64)
    s.map[:] = ((bits >> np.uint64(8)) % np.uint64(len(MAPS))).astype(np.int64)
    s.duel[:] = -1  # the first block begins duel 0
    s.over[:] = True
    return s


def new_state(seeds: Ints, *, swap: bool = False) -> State:
    """N plays before their first tick, in a block of their own."""
    return begin_state(np.empty((STATE_ROWS, seeds.size), dtype=np.int64), seeds, swap=swap)
