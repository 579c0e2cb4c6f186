"""Chance is a pure function of (seed, stream, tick, lane)."""

import numpy as np

from planner.arena.chance import draw, key, mix


def ints(*values):
    return np.array(values, dtype=np.int64)


def test_the_finaliser_is_splitmix64():
    golden = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        states = np.array([1234567], dtype=np.uint64) + golden * np.arange(1, 4, dtype=np.uint64)
    assert mix(states).tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_a_draw_does_not_depend_on_its_company():
    keys = key(np.arange(50), np.arange(50) % 3)
    together = draw(keys, np.arange(50) * 7, np.arange(50) % 2)
    alone = [draw(keys[i : i + 1], ints(i * 7), ints(i % 2))[0] for i in range(50)]
    assert together.tolist() == alone


def test_every_argument_counts():
    base = draw(key(ints(7), ints(1)), ints(5), ints(0))[0]
    others = [
        draw(key(ints(8), ints(1)), ints(5), ints(0))[0],
        draw(key(ints(7), ints(2)), ints(5), ints(0))[0],
        draw(key(ints(7), ints(1)), ints(6), ints(0))[0],
        draw(key(ints(7), ints(1)), ints(5), ints(1))[0],
    ]
    assert base not in others
    assert len(set(others)) == 4


def test_low_bits_are_even():
    bits = draw(key(np.arange(4096), np.zeros(4096, dtype=np.int64)), ints(3), ints(1))
    assert abs(np.mean(bits & 1) - 0.5) < 0.03
    assert np.bincount(bits & 7, minlength=8).min() > 400
