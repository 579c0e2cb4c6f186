"""Chance without state: 64 bits as a pure function of (seed, stream, tick, lane).

The finaliser is splitmix64's (Steele, Lea, Flood 2014). No draw depends on what else is in a batch or on any draw
before it, so a play is the same alone, in company, and in any order.
"""

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_STREAM = np.uint64(0xD1B54A32D192ED03)
_TICK = np.uint64(0x8CB92BA72F3D8DD7)
_LANE = np.uint64(0xAEF17502108EF2D9)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)


def mix(z: Bits) -> Bits:
    """The splitmix64 finaliser: every bit of the answer depends on every bit of `z`."""
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    return z ^ (z >> _31)


def key(seed: Ints, stream: Ints) -> Bits:
    """What `draw` needs to know of (seed, stream); arrays broadcast."""
    return mix(mix(seed.astype(np.uint64) + _GOLDEN) + stream.astype(np.uint64) * _STREAM)


def draw(keys: Bits, tick: Ints, lane: Ints) -> Ints:
    """32 even bits as int64 in [0, 2³²) for each (key, tick, lane); arrays broadcast."""
    bits = mix(keys + tick.astype(np.uint64) * _TICK + lane.astype(np.uint64) * _LANE)
    return (bits >> np.uint64(32)).astype(np.int64)
