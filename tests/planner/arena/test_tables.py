"""The looked-up values: the same on any machine, and true to the maps."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from planner.arena import tables
from planner.arena.maps import MAPS

GOLDEN = Path(__file__).parents[2] / "data" / "arena_tables_1.sha256"
NAMES = (
    "HEADING_X",
    "HEADING_Y",
    "BEARING",
    "DISTANCE",
    "GO",
    "SIGHT",
    "LENGTH",
    "COVER",
    "WAY",
    "FLOOR",
    "DAMAGE",
    "SPREAD",
)


def far_from_a_half(values):
    return np.abs(np.abs(values - np.rint(values)) - 0.5).min()


@pytest.mark.parametrize("name", NAMES)
def test_a_table_is_what_it_was(name):
    golden = dict(line.split() for line in GOLDEN.read_text().splitlines())
    assert hashlib.sha256(getattr(tables, name).tobytes()).hexdigest() == golden[name]


def test_no_rounding_of_libm_is_close():
    angle = np.arange(256) * (2 * np.pi / 256)
    d = np.arange(-tables.LOOK, tables.LOOK + 1, dtype=np.float64)
    assert far_from_a_half(4096 * np.cos(angle)) > 1e-6
    assert far_from_a_half(4096 * np.sin(angle)) > 1e-6
    assert far_from_a_half(np.arctan2(d[:, None], d[None, :]) * (128 / np.pi)) > 1e-6


@pytest.mark.parametrize("m", MAPS, ids=lambda m: m.name)
def test_a_map_turned_by_half_is_itself(m):
    assert (m.wall == m.wall[::-1, ::-1]).all()
    assert sorted(255 - c for c in m.packs) == sorted(m.packs)
    assert sorted(255 - c for c in m.powers) == sorted(m.powers)
    assert not any(m.wall.ravel()[c] or m.wall.ravel()[255 - c] for c in m.starts)


@pytest.mark.parametrize("i", range(len(MAPS)), ids=[m.name for m in MAPS])
def test_every_free_cell_is_reached_from_every_other(i):
    free = ~MAPS[i].wall.ravel()
    length = tables.LENGTH.reshape(len(MAPS), 256, 256)[i]
    assert length[np.ix_(free, free)].max() < tables.FAR


@pytest.mark.parametrize("i", range(len(MAPS)), ids=[m.name for m in MAPS])
def test_following_the_way_arrives(i):
    free = np.flatnonzero(~MAPS[i].wall.ravel())
    way = tables.WAY.reshape(2, len(MAPS), 256, 256)[0, i]
    goal, at = np.meshgrid(free, free)
    for _ in range(60):
        at = way[goal, at]
    assert (at == goal).all()


@pytest.mark.parametrize("i", range(len(MAPS)), ids=[m.name for m in MAPS])
def test_cover_is_out_of_sight(i):
    free = np.flatnonzero(~MAPS[i].wall.ravel())
    hide = tables.WAY.reshape(2, len(MAPS), 256, 256)[1, i]
    sight = tables.SIGHT.reshape(len(MAPS), 256, 256)[i]
    enemy, at = np.meshgrid(free, free)
    for _ in range(60):
        at = hide[enemy, at]
    assert not sight[enemy, at].any()


def test_sight_is_mutual():
    sight = tables.SIGHT.reshape(len(MAPS), 256, 256)
    assert (sight == sight.transpose(0, 2, 1)).all()


def test_a_shell_does_least_to_the_front_and_most_to_the_rear():
    head_on, from_the_side, from_behind = (tables.DAMAGE[turned] for turned in (128, 64, 0))
    assert head_on < from_the_side < from_behind
    assert tables.DAMAGE[256 + 128] == head_on * 3 // 2


def test_a_shell_strays_to_both_sides_alike_and_more_when_moving():
    still, moving = tables.SPREAD[:64], tables.SPREAD[64:]
    assert sorted(still) == sorted(-still)
    assert sorted(moving) == sorted(-moving)
    assert moving.max() > still.max() > 0
