"""The net in training: stacks of fixed chunks forward, choices drawn from the logits.

BLAS rounds a row's product by how many rows stand beside it, so rows always go in chunks of a fixed height: `np.matmul`
over a stack (C, R, K) @ (K, M) runs one product of fixed shape per chunk, whose bits do not depend on C. A short last
chunk is a stack of its own. So how many chunks a shard has changes nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.brain.shape import Floats, Policy, Shape
from planner.train.passes import NUMPY, Passes, passes
from planner.train.world import F32, I32, U8


@dataclass(frozen=True, slots=True)
class Trace:
    """What a forward pass over a stack leaves: C chunks of R rows."""

    hidden: tuple[Floats, ...]  # (2, C, R, H) after tanh, actor and critic
    logits: Floats  # (C, R, A)
    value: Floats  # (C, R, 1)


def empty_trace(shape: Shape, chunks: int, rows: int, kind: Any = np.float32) -> Trace:
    return Trace(
        tuple(np.empty((2, chunks, rows, width), kind) for width in shape.hidden),
        np.empty((chunks, rows, sum(shape.heads)), kind),
        np.empty((chunks, rows, 1), kind),
    )


def forward(policy: Policy, x: Floats, trace: Trace, by: Passes = NUMPY) -> None:
    """Run `x` (C, R, O) through; at least one hidden layer."""
    below = x
    for layer, h in zip(policy.hidden, trace.hidden, strict=True):
        np.matmul(below, layer.weight[:, None], out=h)
        by.add_bias(h, layer.bias)
        np.tanh(h, out=h)
        below = h
    np.matmul(below[0], policy.policy.weight, out=trace.logits)
    np.matmul(below[1], policy.value.weight, out=trace.value)
    trace.logits[...] += policy.policy.bias
    trace.value[...] += policy.value.bias


def log_probability(logits: F32, widths: tuple[int, ...], action: I32) -> F32:
    """(N,) of the choices `action` (N, K) by `logits` (N, A)."""
    found, end = np.zeros(len(logits), np.float32), 0
    for k, width in enumerate(widths):
        z = np.ascontiguousarray(logits[:, end : end + width].T)
        z -= z.max(axis=0)
        found += z[action[:, k], np.arange(len(z.T))] - np.log(np.exp(z).sum(axis=0))
        end += width
    return found


def stacks(count: int, rows: int) -> Iterator[tuple[slice, int, int]]:
    """Rows 0..count-1 as stacks of whole chunks of `rows` and one short chunk: (where, chunks, rows of each)."""
    whole = count - count % rows
    if whole:
        yield slice(0, whole), whole // rows, rows
    if whole < count:
        yield slice(whole, count), 1, count - whole


class Eyes:
    """One shard's forward pass over its `count` envs, in chunks of `rows`: buffers kept from step to step."""

    def __init__(self, shape: Shape, count: int, rows: int, kernel: str = "numpy") -> None:
        self.shape, self.rows, self.by = shape, rows, passes(kernel)
        self.logits = np.empty((count, sum(shape.heads)), np.float32)
        self._z, self._value = np.empty_like(self.logits), np.empty((count, 1), np.float32)
        self._stacks: list[tuple[slice, Trace]] = []
        for where, chunks, height in stacks(count, rows):
            trace = empty_trace(shape, chunks, height)
            logits, value = (part[where].reshape(chunks, height, -1) for part in (self.logits, self._value))
            self._stacks.append((where, Trace(trace.hidden, logits, value)))

    def look(self, policy: Policy, obs: F32) -> F32:
        """(count,) values of `obs` (count, O); the logits are kept for `draw`."""
        for where, trace in self._stacks:
            chunks, height, _ = trace.logits.shape
            forward(policy, obs[where].reshape(chunks, height, -1), trace, self.by)
        return self._value[:, 0]

    def draw(self, u: F32, action: I32) -> None:
        """Choose by inverse CDF: `u` (count, K) in [0, 1) gives `action` (count, K)."""
        self.by.lower(self.logits, self.shape.heads, self._z)
        np.exp(self._z, out=self._z)
        self.by.pick(self._z, self.shape.heads, u, action)

    def values_where(self, policy: Policy, obs: F32, wanted: U8) -> F32:
        """Values of the rows of `obs` where `wanted` is not 0, else 0; each in its own chunk, as `look` has it."""
        out = np.zeros(len(wanted), np.float32)
        clean = np.where(wanted[:, None] != 0, obs, np.float32(0))
        for chunk in np.unique(np.flatnonzero(wanted) // self.rows):
            where = slice(chunk * self.rows, min((chunk + 1) * self.rows, len(wanted)))
            trace = empty_trace(self.shape, 1, where.stop - where.start)
            forward(policy, clean[None, where], trace)
            out[where] = np.where(wanted[where] != 0, trace.value[0, :, 0], np.float32(0))
        return out
