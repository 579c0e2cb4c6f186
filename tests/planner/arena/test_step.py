"""A tick keeps to the rules, whatever the orders are."""

from dataclasses import fields

import numpy as np
import pytest

from planner.arena import rules
from planner.arena.state import ROW_OF, STATE_ROWS, State, begin_state, new_state
from planner.arena.step import begin_block, hold_orders, tick
from planner.arena.tables import GO, SOLID

N = 64


def wild(orders, rng):
    """Orders such as no brain gives."""
    orders.heading = rng.integers(0, 256, (2, N))
    orders.speed = rng.integers(rules.REVERSE, rules.FORWARD + 1, (2, N))
    orders.aim = rng.integers(0, 256, (2, N))
    orders.care = rng.integers(-1, 128, (2, N))


def states(ticks, seed=0):
    """The state after each of `ticks` ticks of wild orders, changed every four."""
    rng = np.random.default_rng(seed)
    s, orders = new_state(np.arange(N)), hold_orders(N)
    for now in range(ticks):
        if now % rules.BLOCK == 0:
            begin_block(s, now)
        if now % 4 == 0:
            wild(orders, rng)
        tick(s, orders, now)
        yield s


def test_no_tank_is_ever_in_a_wall():
    for s in states(2000):
        assert not SOLID[(s.map << 8) + (s.y >> 17 << 4) + (s.x >> 17)].any()
        assert GO[(s.map << 12) + (s.y >> 15 << 6) + (s.x >> 15)].all()


def test_tanks_do_not_drive_into_each_other():
    before = None
    for s in states(2000):
        apart = np.maximum(np.abs(s.x[0] - s.x[1]), np.abs(s.y[0] - s.y[1]))
        if before is not None:
            assert ((apart >= rules.TANK_GAP) | (apart >= before) | (s.born == s.born.max())).all()
        before = apart


def test_everything_stays_whole_and_in_range():
    for s in states(800):
        assert all(a.dtype == np.int64 for a in (s.x, s.y, s.vx, s.vy, s.shell_x, s.shell_y, s.health))
        assert ((s.hull >= 0) & (s.hull < 256) & (s.gun >= 0) & (s.gun < 256)).all()
        assert ((s.reload >= 0) & (s.reload <= rules.RELOAD + rules.RELOAD_MORE)).all()
        assert (s.health <= rules.HEALTH).all()
        assert (s.health[:, ~s.over] > 0).all()


def test_a_duel_ends_within_its_limit_and_one_block():
    for now, s in enumerate(states(1200)):
        assert (now - s.born <= rules.DUEL_LIMIT + rules.BLOCK).all()
    assert (s.drawn > 0).any()


def test_every_duel_is_won_lost_or_drawn():
    for s in states(3000):
        assert (s.won.sum(axis=0) + s.drawn == s.duel + s.over).all()


def test_two_duels_running_share_their_starts_with_sides_changed():
    s = new_state(np.arange(N))
    begin_block(s, 0)
    first = s.x.copy(), s.y.copy()
    s.over[:] = True
    begin_block(s, 8)
    assert (s.x == first[0][::-1]).all()
    assert (s.y == first[1][::-1]).all()


@pytest.mark.parametrize(("heading", "damage"), [(0, rules.REAR), (64, rules.SIDE), (128, rules.FRONT)])
def test_a_shell_from_the_left_hurts_by_the_face_it_meets(heading, damage):
    s, orders = new_state(np.array([3])), hold_orders(1)
    begin_block(s, 0)
    s.map[:] = 1  # pillars: row 3 is free
    s.x[:, 0] = np.array([3, 6]) * rules.CELL
    s.y[:, 0] = 3 * rules.CELL + rules.CELL // 2
    s.hull[1], s.gun[0] = heading, 0
    orders.heading[1], orders.aim[0], orders.care[0] = heading, 0, 0
    s.stray[:] = 35  # dead straight from a tank at rest
    for now in range(6):
        tick(s, orders, now)
    assert s.health[1, 0] == rules.HEALTH - damage
    assert s.health[0, 0] == rules.HEALTH


def test_a_wall_stops_a_shell():
    s, orders = new_state(np.array([3])), hold_orders(1)
    begin_block(s, 0)
    s.map[:] = 2  # lanes: a wall stands in column 7 of rows 1 to 3
    s.x[:, 0] = np.array([5, 9]) * rules.CELL + rules.CELL // 2
    s.y[:, 0] = rules.CELL + rules.CELL // 2
    s.gun[0] = 0
    orders.care[0] = 0
    for now in range(12):
        tick(s, orders, now)
    assert not s.shell_live.any()
    assert s.reload[0, 0] > 0
    assert s.health[1, 0] == rules.HEALTH


def test_a_pack_heals_at_most_to_full_and_lies_at_the_other_place_next():
    s, orders = new_state(np.arange(4)), hold_orders(4)
    begin_block(s, 0)
    cell = s.pack_cell.copy()
    s.pack_wait[:] = 0
    s.health[0] = [1, 50, 100, 128]
    s.x[0], s.y[0] = (cell % 16) * rules.CELL + 5, (cell // 16) * rules.CELL + 5
    tick(s, orders, 0)
    assert s.health[0].tolist() == [1 + rules.PACK_HEALS, 50 + rules.PACK_HEALS, 128, 128]
    assert (s.pack_cell == 255 - cell).all()
    assert (s.pack_wait == rules.PACK_AGAIN).all()


def test_plays_that_are_columns_of_a_larger_block_go_as_in_one_of_their_own():
    block = np.full((STATE_ROWS, 3 * N), -1)
    inner = begin_state(block[:, N : 2 * N], np.arange(N))
    outer = new_state(np.arange(N))
    for s in (inner, outer):
        rng, orders = np.random.default_rng(1), hold_orders(N)
        for now in range(600):
            if now % rules.BLOCK == 0:
                begin_block(s, now)
            wild(orders, rng)
            tick(s, orders, now)
    assert all((getattr(inner, f.name) == getattr(outer, f.name)).all() for f in fields(State))
    assert (block[:, :N] == -1).all()
    assert (block[:, 2 * N :] == -1).all()
    assert set(np.unique(block[ROW_OF["shell_live"], N : 2 * N])) <= {0, 1}
