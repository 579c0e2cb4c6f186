"""The four maps: 16 x 16 cells, each the same turned by half, so that neither side has the better end.

`#` wall, `.` floor, `A` where one side may begin (the other begins opposite to one of these), `h` where the
health pack may lie, `p` where the power-up may lie.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_HALVES = {
    "courtyard": """
################
#A..A..AA..A..A#
#..A........A..#
#...##....##...#
#...#...h..#...#
#.......#......#
#..p....#...##.#
#.....###......#
""",
    "pillars": """
################
#A.A..A..A..A.A#
#...#..##..#...#
#.....A..A.....#
#.#..#....#..#.#
#......p.......#
#..h.#....#....#
#.......##.....#
""",
    "lanes": """
################
#A..A..#..A...A#
#.A..A.#.A..A..#
#..##..#..##...#
#...h......p...#
#..........#...#
#####..##..#..##
#..............#
""",
    "ruins": """
################
#A.A..A.#.A.A.A#
#....A..#..A...#
#.###......##..#
#...#..h...#...#
#...#..........#
#......##..p...#
#.##.......#...#
""",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """One map; a cell's number is 16 * row + column, row 0 at the top."""

    name: str
    rows: tuple[str, ...]
    wall: npt.NDArray[np.bool_]  # (16, 16), row first
    starts: tuple[int, ...]  # 8 cells of the first side; the second side has 255 less these
    packs: tuple[int, int]
    powers: tuple[int, int]


def read_map(name: str, half: str) -> Map:
    """The map whose upper eight rows are `half`."""
    upper = half.split()
    rows = (*upper, *(row[::-1] for row in reversed(upper)))
    text = "".join(rows)
    starts = [i for i, c in enumerate(text[:128]) if c == "A"]
    packs = [i for i, c in enumerate(text) if c == "h"]
    powers = [i for i, c in enumerate(text) if c == "p"]
    wall = np.array([[c == "#" for c in row] for row in rows])
    return Map(
        name=name,
        rows=rows,
        wall=wall,
        starts=tuple(starts),
        packs=(packs[0], packs[1]),
        powers=(powers[0], powers[1]),
    )


MAPS = tuple(read_map(name, half) for name, half in _HALVES.items())
