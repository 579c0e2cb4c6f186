"""Chance for training: 64 bits as a pure function of (seed, stream, env, tick, lane); no state to share, shard or save."""

from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.arena.chance import Bits, key, mix

_ENV = np.uint64(0xA24BAED4963EE407)
_TICK = np.uint64(0x8CB92BA72F3D8DD7)
_LANE = np.uint64(0xAEF17502108EF2D9)


class Stream(IntEnum):
    """Who draws; worlds take numbers from 16 on."""

    ACTION = 0
    SHUFFLE = 1
    WEIGHTS = 2


def bits(seed: int, stream: int, env: Any, tick: Any, lane: Any) -> Bits:
    """Bits of the broadcast shape of `env`, `tick` and `lane` (integers or arrays of them); at least one axis."""
    start = key(np.array([seed], np.int64), np.array([stream], np.int64))
    spread = mix(start + _unsigned(env) * _ENV)
    return mix(spread + _unsigned(tick) * _TICK + _unsigned(lane) * _LANE)


def _unsigned(values: Any) -> Bits:
    return np.atleast_1d(np.asarray(values, np.int64)).astype(np.uint64)


def uniform(drawn: Bits) -> npt.NDArray[np.float32]:
    """Float32 in [0, 1), even on a grid of 2⁻²⁴."""
    return (drawn >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)


def normal(drawn: Bits, other: Bits) -> npt.NDArray[np.float64]:
    """Standard normal numbers (Box and Muller 1958) from two draws of bits."""
    radius = np.sqrt(-2.0 * np.log(((drawn >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53))
    return np.asarray(radius * np.cos((other >> np.uint64(11)).astype(np.float64) * (2.0**-52 * np.pi)))


def shuffle(seed: int, iteration: int, epoch: int, count: int) -> npt.NDArray[np.int32]:
    """An order of 0..count-1, every one equally likely: numbers in the order of random bits that stand above them.

    All keys differ, so that any way of sorting, the fastest too, gives one order.
    """
    number = np.arange(count)
    mask = np.uint64((1 << count.bit_length()) - 1)
    keys = (bits(seed, Stream.SHUFFLE, number, iteration, epoch) & ~mask) | number.astype(np.uint64)
    return (np.sort(keys) & mask).astype(np.int32)
