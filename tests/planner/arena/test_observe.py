"""An observation is within its bounds, says what its names say, and holds what the scripted brain decides by."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from planner.arena import rules
from planner.arena.observe import HIGH, LOW, NAMES, OBS, OBSERVATION, observe
from planner.arena.rays import FREE
from planner.arena.senses import FEATURES, ONE, perceive
from planner.arena.state import new_state
from planner.arena.step import begin_block, hold_orders, tick
from planner.brain.scripted import give_orders

from .scenes import facing

GOLDEN = Path(__file__).parents[2] / "data" / "arena_tables_1.sha256"
AT = {name: i for i, name in enumerate(NAMES)}


def seen(s, *names, row=0, now=0):
    """Those numbers of one tank of the first play."""
    return [int(observe(s, perceive(s), now)[row, 0, AT[name]]) for name in names]


@pytest.fixture(scope="module")
def played():
    """(K, OBS) of both tanks over 240 s of 32 plays of random behaviours, changed every two seconds."""
    rng = np.random.default_rng(2)
    s, orders, rows = new_state(np.arange(32)), hold_orders(32), []
    behaviour = rng.integers(0, 10, (2, 32))
    for now in range(1920):
        if now % rules.BLOCK == 0:
            begin_block(s, now)
        if now % 16 == 0:
            behaviour = rng.integers(0, 10, (2, 32))
        if now % rules.THINK == 0:
            senses = perceive(s)
            rows.append(observe(s, senses, now).reshape(-1, OBS))
            give_orders(s, senses, behaviour, orders)
        tick(s, orders, now)
    return np.concatenate(rows)


def test_every_number_has_a_name_and_bounds():
    assert len(set(NAMES)) == OBS == 50
    assert (LOW < HIGH).all()
    assert all(seeing.meaning for seeing in OBSERVATION)


def test_all_stay_within_their_bounds(played):
    assert played.dtype == np.int32
    assert [
        n for n, low, high in zip(NAMES, played.min(0) >= LOW, played.max(0) <= HIGH, strict=True) if not (low and high)
    ] == []


def test_none_is_always_the_same(played):
    assert [n for n, spread in zip(NAMES, np.ptp(played, axis=0), strict=True) if spread < ONE // 4] == []


def test_the_scripted_brains_features_are_among_them():
    s = facing(6)
    senses = perceive(s)
    assert observe(s, senses, 0)[0, 0, :10].tolist() == senses.features[1:, 0, 0].tolist()
    assert NAMES[:10] == FEATURES[1:]


def test_directions_are_the_tanks_own():
    s = facing(6)
    s.hull[:, 0], s.gun[:, 0] = [192, 0], [0, 128]  # the player looks up, its gun at the enemy
    assert seen(s, "enemy_on", "enemy_right", "gun_on", "gun_right") == [0, ONE, ONE, 0]
    assert seen(s, "hull_at_me", "gun_at_me", "gun_past_me") == [-ONE, ONE, 0]
    assert seen(s, "way_on", "way_right") == [0, ONE]


def test_speeds_are_the_tanks_own():
    s = facing(6)
    s.hull[:, 0] = [0, 64]
    s.vx[:, 0], s.vy[:, 0] = [6 * 4096, 0], [0, 6 * 4096]  # the enemy drives down, to the right of who looks at it
    assert seen(s, "speed", "slide", "enemy_leaves", "enemy_crosses") == [192, 0, 0, 192]
    assert seen(s, "speed", "slide", "enemy_leaves", "enemy_crosses", row=1) == [192, 0, -192, 0]


def test_a_shell_is_told_to_both_and_only_while_it_may_hit():
    s = facing(6)
    s.hull[:], s.shell_power[1] = 0, 256
    s.shell_live[1], s.shell_vx[1], s.shell_vy[1], s.shell_heading[1] = True, -4096, 0, 128
    s.shell_x[1], s.shell_y[1] = s.x[0] + 2 * rules.CELL, s.y[0] - rules.CELL // 4
    assert seen(s, "shell_on", "shell_right", "shell_aside", "shell_power") == [-ONE, 0, 64, ONE]
    assert seen(s, "my_shell", "my_shell_aside", row=1) == [ONE - 64, 64]
    s.shell_x[1] = s.x[0] - rules.CELL
    assert seen(s, "shell_on", "shell_right", "shell_aside", "shell_power") == [0, 0, 0, 0]


def test_ways_and_clocks_count_what_their_names_say():
    s = facing(6)
    s.pack_cell[:], s.pack_wait[:] = 3 * 16 + 3, 80
    s.power[:, 0] = [80, 0]
    assert seen(s, "way", "pack_way", "enemy_pack_way", "pack_wait") == [30, 5, 25, 128]
    assert seen(s, "my_power", "enemy_power", "time_left", now=120) == [240, 0, 180]
    assert seen(s, "cover_way") == [20]


def test_free_way_goes_round_with_the_hull():
    s = facing(6, row=1)
    names = [f"free_{i}" for i in range(8)]
    s.hull[:] = 0
    one = seen(s, *names)
    s.hull[:] = 64
    assert seen(s, *names) == one[2:] + one[:2]
    assert one[6] == 28  # from the middle of the lower half cell to the wall at the top


def test_the_wall_distances_are_what_they_were():
    golden = dict(line.split() for line in GOLDEN.read_text().splitlines())
    assert hashlib.sha256(FREE.tobytes()).hexdigest() == golden["FREE"]
