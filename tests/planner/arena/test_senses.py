"""Features lie in 0 .. 1, and say what their names say."""

import numpy as np

from planner.arena import rules
from planner.arena.senses import FEATURES, ONE, perceive
from planner.arena.state import new_state
from planner.arena.step import begin_block, hold_orders, tick

from .scenes import facing

AT = {name: i for i, name in enumerate(FEATURES)}


def test_there_are_eleven():
    assert len(FEATURES) == len(set(FEATURES)) == 11


def test_all_lie_between_0_and_1():
    rng = np.random.default_rng(5)
    s, orders = new_state(np.arange(40)), hold_orders(40)
    for now in range(1200):
        if now % rules.BLOCK == 0:
            begin_block(s, now)
            orders.heading, orders.aim = rng.integers(0, 256, (2, 2, 40))
            orders.speed[:], orders.care[:] = rules.FORWARD, 128
        tick(s, orders, now)
        f = perceive(s).features
        assert f.min() >= 0
        assert f.max() <= ONE


def test_the_enemy_is_where_it_is():
    senses = perceive(facing(6))
    assert senses.bearing[:, 0].tolist() == [0, 128]
    assert senses.distance[:, 0].tolist() == [48, 48]
    assert senses.features[AT["distance"], :, 0].tolist() == [96, 96]
    assert senses.features[AT["sight"], :, 0].tolist() == [ONE, ONE]


def test_what_is_mine_is_the_enemys_other():
    s = facing(6)
    s.health[:, 0] = [32, 96]
    s.reload[:, 0] = [0, rules.RELOAD + rules.RELOAD_MORE]
    f = perceive(s).features[:, :, 0]
    assert f[AT["my_health"]].tolist() == [64, 192] == f[AT["enemy_health"]].tolist()[::-1]
    assert f[AT["loaded"]].tolist() == [ONE, 0] == f[AT["enemy_loaded"]].tolist()[::-1]


def test_a_gun_that_points_at_it_is_a_threat_only_in_sight():
    s = facing(6)
    s.gun[:, 0] = [64, 128]
    assert perceive(s).features[AT["threat"], :, 0].tolist() == [ONE, 0]
    s = facing(10, row=7)  # a wall between
    s.gun[:, 0] = [64, 128]
    assert perceive(s).features[AT["threat"], :, 0].tolist() == [0, 0]


def test_a_shell_counts_while_it_comes_and_not_once_it_has_passed():
    s = facing(6)
    s.shell_live[1], s.shell_vx[1], s.shell_vy[1] = True, -4096, 0
    s.shell_x[1], s.shell_y[1] = s.x[0] + 2 * rules.CELL, s.y[0]
    assert perceive(s).features[AT["shell"], :, 0].tolist() == [ONE - 64, 0]
    s.shell_x[1] = s.x[0] - rules.CELL
    assert perceive(s).features[AT["shell"], :, 0].tolist() == [0, 0]


def test_a_pack_counts_only_while_it_lies_there():
    s = facing(6)
    assert perceive(s).features[AT["pack"], :, 0].tolist() == [0, 0]
    s.pack_wait[:] = 0
    s.pack_cell[:] = 3 * 16 + 3
    assert perceive(s).features[AT["pack"], :, 0].tolist() == [ONE - 20, ONE - 100]
