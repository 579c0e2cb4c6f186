"""Everything about the maps and about angles that a tick looks up instead of computing. Built once, in under a second.

Only `HEADING_X`, `HEADING_Y` and `BEARING` come from libm; each is rounded to whole numbers, and no value lies within
1e-6 of where its rounding would change (a test says so), so they are the same on any machine.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from planner.arena.maps import MAPS
from planner.arena.rules import CELLS, DRIVE_ANGLE, FRONT, REAR, SIDE, SPREAD_MOVING, SPREAD_STILL, TURN

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

AREA: Final = CELLS * CELLS
LOOK: Final = 8 * CELLS  # eighths of a cell across a map
LOOK_ROW: Final = 2 * LOOK + 1
LOOK_MIDDLE: Final = LOOK * LOOK_ROW + LOOK
FAR: Final = 255  # path lengths are cut here

_STRAIGHT, _SLANT = 5, 7  # path lengths: fifths of a cell


def _headings() -> tuple[Ints, Ints]:
    """(256,) cosines and sines in 2⁻¹²; heading 0 is right, 64 is down."""
    angle = np.arange(TURN) * (2 * np.pi / TURN)
    return np.rint(4096 * np.cos(angle)).astype(np.int64), np.rint(4096 * np.sin(angle)).astype(np.int64)


def _bearings() -> tuple[Ints, Ints]:
    """Heading and distance (eighths of a cell) to a point (dx, dy) eighths off, at dy * LOOK_ROW + dx + LOOK_MIDDLE."""
    d = np.arange(-LOOK, LOOK + 1, dtype=np.float64)
    heading = np.rint(np.arctan2(d[:, None], d[None, :]) * (TURN / (2 * np.pi))).astype(np.int64) & (TURN - 1)
    distance = np.rint(np.sqrt(d[:, None] ** 2 + d[None, :] ** 2)).astype(np.int64)
    return heading.ravel(), distance.ravel()


def _go(wall: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """(64, 64) quarter cells in which a tank's middle may be: outside walls, and of one quarter cell round them."""
    fine = np.pad(np.repeat(np.repeat(wall, 4, 0), 4, 1), 1, constant_values=True)
    blocked = np.zeros((4 * CELLS, 4 * CELLS), dtype=np.bool_)
    for i in range(3):
        for j in range(3):
            blocked |= fine[i : i + 4 * CELLS, j : j + 4 * CELLS]
    return ~blocked


def _sight(wall: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """(256, 256): whether two cells see each other: no wall on four lines, between like points near their corners.

    So a shell between two tanks that see each other is hardly ever stopped by a corner. 33 places of a line are looked at.
    Neighbours see each other round a single corner too, or two tanks that meet at one would stand there for ever.
    """
    row, column = np.divmod(np.arange(AREA), CELLS)
    clear = np.ones((AREA, AREA), dtype=np.bool_)
    flat = wall.ravel()
    for i in range(33):
        y = row[:, None] * (256 - 8 * i) + row[None, :] * 8 * i  # 256ths of a cell
        x = column[:, None] * (256 - 8 * i) + column[None, :] * 8 * i
        for corner in (32, 224):
            rank = (y + corner >> 8) * CELLS
            for other in (32, 224):
                clear &= ~flat[rank + (x + other >> 8)]
    for offset, _, open_ in _moves(wall, past_corners=True):
        near = np.flatnonzero(open_)
        clear[near, near + offset] = True
    return clear & clear.T


def _moves(wall: npt.NDArray[np.bool_], *, past_corners: bool = False) -> list[tuple[int, int, npt.NDArray[np.bool_]]]:
    """(cell offset, length, (256,) where it may be taken) for the eight neighbours.

    Slanting asks for both cells beside it to be free, or with `past_corners` for one of them.
    """
    free = np.pad(~wall, 1)
    steps = []
    for dy, dx in ((0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, -1), (-1, 1)):
        open_ = free[1:-1, 1:-1] & free[1 + dy : 17 + dy, 1 + dx : 17 + dx]
        if dx and dy:
            beside, other = free[1 + dy : 17 + dy, 1:-1], free[1:-1, 1 + dx : 17 + dx]
            open_ = open_ & (beside | other if past_corners else beside & other)
        steps.append((dy * CELLS + dx, _SLANT if dx and dy else _STRAIGHT, open_.ravel()))
    return steps


def _fields(wall: npt.NDArray[np.bool_], goal: npt.NDArray[np.bool_]) -> tuple[Bytes, Bytes]:
    """For each row of `goal` (K, 256 cells): path length to the nearest goal, and the next cell on the way (K, 256).

    Relaxation over the eight neighbours until nothing changes; a cell with no way on is its own next cell.
    """
    length = np.where(goal, 0, FAR).astype(np.int16).T.copy()  # (256, K): a neighbour is a shifted row
    moves = [(np.flatnonzero(open_), offset, cost) for offset, cost, open_ in _moves(wall)]
    changed = True
    while changed:
        before = length.copy()
        for cells, offset, cost in moves:
            length[cells] = np.minimum(length[cells], length[cells + offset] + cost)
        changed = not np.array_equal(before, length)
    step = np.repeat(np.arange(AREA, dtype=np.int16)[:, None], goal.shape[0], 1)
    for cells, offset, cost in moves:
        better = (length[cells + offset] + cost == length[cells]) & (step[cells] == cells[:, None])
        step[cells] = np.where(better & (length[cells] > 0), cells[:, None] + offset, step[cells])
    return np.ascontiguousarray(length.T).astype(np.uint8), np.ascontiguousarray(step.T).astype(np.uint8)


def _build() -> tuple[Ints, Bytes, Bytes, Bytes, Bytes, Ints]:
    """All maps' tables, flattened: see the names they are given below."""
    fine, sight, length, cover, nearest = [], [], [], [], []
    ways: list[list[Bytes]] = [[], []]
    everywhere = np.eye(AREA, dtype=np.bool_)
    for m in MAPS:
        seen = _sight(m.wall)
        floor = ~m.wall.ravel()
        far, to_cell = _fields(m.wall, everywhere & floor)
        hidden, to_cover = _fields(m.wall, ~seen & floor)
        fine.append(_go(m.wall))
        sight.append(seen)
        length.append(far)
        cover.append(hidden)
        for way, step in zip(ways, (to_cell, to_cover), strict=True):
            way.append(step)
        row, column = np.divmod(np.arange(AREA), CELLS)
        apart = (row[:, None] - row) ** 2 + (column[:, None] - column) ** 2
        nearest.append(np.argmin(np.where(floor, apart, 999), axis=1))
    return (
        np.concatenate([f.ravel() for f in fine]).astype(np.int64),
        np.concatenate([s.ravel() for s in sight]).astype(np.uint8),
        np.concatenate([f.ravel() for f in length]),
        np.concatenate([f.ravel() for f in cover]),
        np.concatenate([w.ravel() for way in ways for w in way]),
        np.concatenate(nearest).astype(np.int64),
    )


HEADING_X, HEADING_Y = _headings()
BEARING, DISTANCE = _bearings()
# Indexed by map * 4096 + quarter row * 64 + quarter column | map * 65536 + cell * 256 + cell | the same |
# map * 65536 + cell * 256 + own cell: path length to the nearest cell out of its sight |
# (kind * maps + map) * 65536 + cell * 256 + own cell, kind 0 to a cell, 1 out of its sight |
# map * 256 + cell: the nearest cell that is no wall.
GO, SIGHT, LENGTH, COVER, WAY, FLOOR = _build()
SOLID = np.concatenate([m.wall.ravel() for m in MAPS]).astype(np.int64)  # map * 256 + cell
KINDS = len(MAPS) * AREA * AREA  # entries of WAY a kind
STARTS = np.array([m.starts for m in MAPS], dtype=np.int64).ravel()  # map * 8 + which
PACKS = np.array([m.packs for m in MAPS], dtype=np.int64).ravel()
POWERS = np.array([m.powers for m in MAPS], dtype=np.int64).ravel()


def _damage() -> Ints:
    """(2 * 256,): damage by whether the shell is powered, and the shell's heading less the hull's."""
    off = np.abs((np.arange(TURN) + TURN // 2) % TURN - TURN // 2)  # 0: into the rear; 128: head on
    plain = np.where(off >= 96, FRONT, np.where(off <= 32, REAR, SIDE))
    return np.concatenate([plain, plain * 3 // 2]).astype(np.int64)


def _spread() -> Ints:
    """(2 * 64,): how far a shell strays, by whether its tank moves and six bits of chance; a triangle about 0."""
    i, j = np.divmod(np.arange(64), 8)
    triangle = (2 * (i + j) - 14) / 14  # -1 .. 1
    return np.concatenate([np.rint(triangle * SPREAD_STILL), np.rint(triangle * SPREAD_MOVING)]).astype(np.int64)


DAMAGE = _damage()
SPREAD = _spread()
DRIVES = (np.abs((np.arange(TURN) + TURN // 2) % TURN - TURN // 2) <= DRIVE_ANGLE).astype(np.int64)
