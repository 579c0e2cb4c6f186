"""The one buffer that all shards share, and what lies where in it.

Every array begins on a 64-byte boundary. A worker reads the weights that the trainer updates where they lie, and writes
its own envs' rows of the rollout: nothing is copied and nothing sent. A new slab is filled with absurd values (NaN,
and the most negative integers), so that what is read before it is written shows.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from itertools import accumulate
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from planner.brain.shape import Policy, Shape, param_count, policy_bytes, policy_over
from planner.train.world import F32, I32, U8, Buffer, Making, World

ALIGN: Final = 64
F64 = npt.NDArray[np.float64]
Field = tuple[str, type[np.generic], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Rollout:
    """What `envs` environments did in `steps` steps, env by env: flat row = env × steps + step."""

    obs: F32  # (E, T, O) what was seen before each step
    last_obs: F32  # (E, O) what is seen after the last: where the next rollout begins
    action: I32  # (E, T, K)
    logp: F32  # (E, T) of the action, when it was drawn
    value: F32  # (E, T) of what was seen before each step
    last_value: F32  # (E,) of last_obs
    reward: F32  # (E, T)
    terminated: U8  # (E, T)
    truncated: U8  # (E, T)
    beyond: F32  # (E, T) value of what was last seen where truncated, else 0
    advantage: F32  # (E, T)
    ret: F32  # (E, T)
    ended: I32  # (E,) plays that ended in this rollout
    score: F64  # (E,) the sum of their scores


@dataclass(frozen=True, slots=True)
class Sums:
    """The optimiser's two moments, and what an update adds up; C chunks at most in a minibatch."""

    m: F32  # (P,)
    v: F32  # (P,)
    order: I32  # (epochs, E × T) the shuffled rows of each
    grads: F32  # (C, P)
    stats: F64  # (C, STATS)
    norm: F64  # (epochs, minibatches, 2) mean and 1 / deviation of the advantages in each
    at: npt.NDArray[np.int64]  # (3,) the iteration, the epoch, and its minibatch's number


def rollout_fields(shape: Shape, envs: int, steps: int) -> tuple[Field, ...]:
    each = (envs, steps)
    return (
        ("obs", np.float32, (*each, shape.obs)),
        ("last_obs", np.float32, (envs, shape.obs)),
        ("action", np.int32, (*each, len(shape.heads))),
        ("logp", np.float32, each),
        ("value", np.float32, each),
        ("last_value", np.float32, (envs,)),
        ("reward", np.float32, each),
        ("terminated", np.uint8, each),
        ("truncated", np.uint8, each),
        ("beyond", np.float32, each),
        ("advantage", np.float32, each),
        ("ret", np.float32, each),
        ("ended", np.int32, (envs,)),
        ("score", np.float64, (envs,)),
    )


def sums_fields(shape: Shape, rows: int, cut: tuple[int, int], chunks: int, stats: int) -> tuple[Field, ...]:
    """`cut` in epochs and minibatches."""
    weights = param_count(shape)
    return (
        ("m", np.float32, (weights,)),
        ("v", np.float32, (weights,)),
        ("order", np.int32, (cut[0], rows)),
        ("grads", np.float32, (chunks, weights)),
        ("stats", np.float64, (chunks, stats)),
        ("norm", np.float64, (*cut, 2)),
        ("at", np.int64, (3,)),
    )


def aligned(size: int) -> int:
    """`size` bytes, filled up to the boundary."""
    return -(-size // ALIGN) * ALIGN


def layout(found: Iterable[Field]) -> tuple[Mapping[str, int], int]:
    """Each field's offset, and the bytes of all."""
    offsets, end = {}, 0
    for name, kind, size in found:
        offsets[name] = end
        end += aligned(math.prod(size) * np.dtype(kind).itemsize)
    return offsets, end


def over(found: tuple[Field, ...], buffer: Buffer, offset: int) -> dict[str, npt.NDArray[Any]]:
    """Each field as a view of `buffer` from `offset` on."""
    offsets, _ = layout(found)
    return {
        name: np.frombuffer(buffer, kind, math.prod(size), offset + offsets[name]).reshape(size)
        for name, kind, size in found
    }


def rollout_bytes(shape: Shape, envs: int, steps: int) -> int:
    return layout(rollout_fields(shape, envs, steps))[1]


def rollout_over(shape: Shape, envs: int, steps: int, buffer: Buffer, offset: int = 0) -> Rollout:
    """The rollout whose arrays lie in `buffer` from `offset` on: no copy, no ownership."""
    return Rollout(**over(rollout_fields(shape, envs, steps), buffer, offset))


@dataclass(frozen=True, slots=True)
class Slab:
    """The whole buffer's parts."""

    policy: Policy
    sums: Sums
    rollout: Rollout
    world: World


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """What lies in the buffer, and in what order: weights, sums, rollout, world."""

    making: Making
    shape: Shape
    steps: int
    cut: tuple[int, int]  # of an iteration in epochs, and of these in minibatches
    chunks: int  # at most in a minibatch
    stats: int

    def size(self) -> int:
        return self._offsets()[-1]

    def over(self, buffer: Buffer, offset: int) -> Slab:
        """The slab whose arrays lie in `buffer` from `offset` on: no copy, no ownership."""
        sums, rollout, world, _ = (offset + below for below in self._offsets())
        return Slab(
            policy_over(self.shape, buffer, offset),
            Sums(**over(self._sums(), buffer, sums)),
            rollout_over(self.shape, self.making.envs, self.steps, buffer, rollout),
            self.making.make(buffer, world),
        )

    def fill_absurd(self, buffer: Buffer, offset: int) -> None:
        """Overwrite everything with what no right run would leave there."""
        np.frombuffer(buffer, np.uint8, self.size(), offset).fill(0xA5)
        slab = self.over(buffer, offset)
        slab.policy.flat.fill(np.nan)
        for part in (slab.sums, slab.rollout):
            for field in fields(part):
                array = getattr(part, field.name)
                array.fill(
                    np.nan if array.dtype.kind == "f" else np.iinfo(array.dtype).min or np.iinfo(array.dtype).max
                )

    def _sums(self) -> tuple[Field, ...]:
        return sums_fields(self.shape, self.making.envs * self.steps, self.cut, self.chunks, self.stats)

    def _offsets(self) -> list[int]:
        sizes = (
            aligned(policy_bytes(self.shape)),
            layout(self._sums())[1],
            rollout_bytes(self.shape, self.making.envs, self.steps),
            aligned(self.making.size()),
        )
        return list(accumulate(sizes))
