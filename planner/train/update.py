"""PPO's loss and its gradient (Schulman et al. 2017), over a range of chunks of a shuffled minibatch.

A gradient is the sum of its chunks' gradients in one fixed tree, ((0+1)+(2+3))+((4+5)+(6+7)); who computed which chunk
changes nothing. A chunk of many rows is the sum of its strips' gradients in the same tree: BLAS is a third slower on a
product of 512 rows than on four of 128. Strips go through in blocks of up to BLOCK rows, which stay in the cache.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import numpy as np

from planner.brain.shape import Floats, Policy, Shape, param_count, views
from planner.train.forward import Trace, empty_trace, forward, stacks
from planner.train.passes import NUMPY, Loss, Passes, Pull, Then, empty_loss, passes
from planner.train.settings import Settings
from planner.train.slab import F64, Rollout
from planner.train.world import I32

BLOCK: Final = 1024


class Stat(IntEnum):
    """A chunk's sums, each over the minibatch's rows: added up they are means."""

    KL = 0
    CLIPPED = 1
    POLICY_LOSS = 2
    VALUE_LOSS = 3
    ENTROPY = 4


@dataclass(frozen=True, slots=True)
class Rows:
    """A rollout as the loss sees it: one row per step of an env."""

    obs: Floats  # (N, O)
    then: Then


def rows_of(rollout: Rollout) -> Rows:
    """Views of `rollout`."""
    noted = (rollout.logp, rollout.value, rollout.advantage, rollout.ret)
    action = rollout.action.reshape(-1, rollout.action.shape[2])
    return Rows(rollout.obs.reshape(-1, rollout.obs.shape[2]), Then(action, *(a.reshape(-1) for a in noted)))


@dataclass(frozen=True, slots=True)
class Block:
    """Buffers for C strips of R rows."""

    x: Floats  # (C, R, O)
    trace: Trace
    loss: Loss
    back: tuple[Floats, ...]  # (2, C, R, H)
    ones: Floats  # (1, R)


class Work:
    """One shard's buffers, made on first use and kept, and what makes its passes: numpy or numba."""

    def __init__(self, shape: Shape, kind: Any = np.float32, kernel: str = "numpy") -> None:
        self.shape, self.kind, self.by = shape, np.dtype(kind).type, passes(kernel)
        self._blocks: dict[tuple[int, int], Block] = {}
        self._strips: dict[int, tuple[Floats, F64]] = {}
        self._policies: dict[tuple[int, int], Policy] = {}

    def block(self, strips: int, rows: int) -> Block:
        if (strips, rows) not in self._blocks:
            self._blocks[strips, rows] = Block(
                np.empty((strips, rows, self.shape.obs), self.kind),
                empty_trace(self.shape, strips, rows, self.kind),
                empty_loss(strips * rows, self.shape.heads, self.kind),
                tuple(np.empty((2, strips, rows, width), self.kind) for width in self.shape.hidden),
                np.ones((1, rows), self.kind),
            )
        return self._blocks[strips, rows]

    def policy(self, grads: Floats) -> Policy:
        """The tensors of `grads` (n, P); they are kept, for to make them anew takes as long as some of the products."""
        at: int = grads.__array_interface__["data"][0]
        if (at, len(grads)) not in self._policies:
            self._policies[at, len(grads)] = views(self.shape, grads)
        return self._policies[at, len(grads)]

    def strips(self, count: int) -> tuple[Floats, F64]:
        """Gradients and stats of `count` strips."""
        if count not in self._strips:
            grads = np.empty((count, param_count(self.shape)), self.kind)
            self._strips[count] = grads, np.empty((count, len(Stat)))
        return self._strips[count]


@dataclass(frozen=True, slots=True)
class Minibatch:
    """The rows of a step, in the order of the shuffle; how they are cut, and how their advantages are scaled."""

    rows: Rows
    order: I32  # (M,)
    height: int  # of a chunk
    strip: int  # rows that go through together: `height`, or a half of it, a quarter, …
    mean: float
    inverse: float
    heads: tuple[int, ...]

    @property
    def chunks(self) -> int:
        return -(-len(self.order) // self.height)


def norm_of(advantage: Floats) -> tuple[float, float]:
    """Mean, and 1 / (standard deviation + 1e-8), of a whole minibatch; a single sample is left as it is."""
    if len(advantage) == 1:
        return 0.0, 1.0
    wide = advantage.astype(np.float64)
    return float(wide.mean()), 1.0 / (float(wide.std()) + 1e-8)


def accumulate(
    policy: Policy, batch: Minibatch, span: tuple[int, int], settings: Settings, out: tuple[Floats, F64], work: Work
) -> None:
    """Gradient and stats of the chunks span[0]..span[1]-1, each scaled by the whole minibatch, into `out`'s rows."""
    height, by = batch.height, _pull(batch, settings, work.kind)
    step = max(1, BLOCK // height)
    for first in range(*span, step):
        last = min(first + step, span[1])
        chosen, into = batch.order[first * height : last * height], (out[0][first:last], out[1][first:last])
        whole = height == batch.strip
        grads, stats = into if whole else work.strips(-(-len(chosen) // batch.strip))
        for where, strips, tall in stacks(len(chosen), batch.strip):
            part = slice(where.start // batch.strip, where.start // batch.strip + strips)
            block = work.block(strips, tall)
            np.take(batch.rows.obs, chosen[where], axis=0, out=block.x.reshape(strips * tall, -1), mode="clip")
            forward(policy, block.x, block.trace, work.by)
            losses(batch, chosen[where], by, block, stats[part], work.by)
            backward(policy, block, work.policy(grads[part]), work.by)
        if not whole:
            _join((grads, stats), height // batch.strip, into)


def _join(strips: tuple[Floats, F64], each: int, into: tuple[Floats, F64]) -> None:
    """Add up strips, `each` in a chunk and fewer in the last."""
    for found, chunks in zip(strips, into, strict=True):
        for i, chunk in enumerate(chunks):
            own = found[i * each : (i + 1) * each]
            left, right = own[: each // 2], own[each // 2 :]
            if len(right):
                np.add(add_grads(left), add_grads(right), out=chunk)
            else:
                chunk[...] = add_grads(left)


def _pull(batch: Minibatch, settings: Settings, kind: Any) -> Pull:
    scale, limit = 1.0 / len(batch.order), settings.value_clip
    clip = 1 - settings.clip, 1 + settings.clip
    pulls = scale, settings.entropy * scale, settings.value * scale
    return Pull(*map(kind, (batch.mean, batch.inverse, *clip, *pulls, -1 if limit is None else limit)))


def losses(batch: Minibatch, chosen: I32, pull: Pull, block: Block, stats: F64, by: Passes) -> None:
    """The loss's derivatives by the block's logits and value, into block.loss; writes `stats` (C, len(Stat))."""
    loss, heads, then = block.loss, batch.heads, batch.rows.then
    by.spread(block.trace.logits.reshape(len(chosen), -1), heads, loss)
    np.exp(loss.z, out=loss.p)
    by.add_up(heads, loss)
    np.log(loss.total, out=loss.log)
    by.settle(then, chosen, heads, loss)
    np.exp(loss.shift, out=loss.ratio)
    loss.d_value[...] = block.trace.value.reshape(-1)
    by.pull(then, chosen, heads, pull, loss)
    np.add.reduce(loss.told.reshape(len(Stat), len(stats), -1), axis=2, out=stats.T)
    stats *= 1.0 / len(batch.order)


def backward(policy: Policy, block: Block, grad: Policy, by: Passes = NUMPY) -> None:
    """Write the gradient of each of the block's strips, by block.loss's derivatives; uses up the block's trace."""
    top, (d_actor, d_critic), logits = block.trace.hidden[-1], block.back[-1], block.trace.logits
    d_logits, d_value = (d.reshape(*logits.shape[:2], -1) for d in (block.loss.d_logits, block.loss.d_value))
    for into, d, h in ((grad.policy, d_logits, top[0]), (grad.value, d_value, top[1])):
        np.matmul(h.swapaxes(1, 2), d, out=into.weight)
        np.matmul(block.ones, d, out=into.bias[:, None])
    np.matmul(d_logits, policy.policy.weight.T, out=d_actor)
    by.through_value(top[1], d_value, policy.value.weight[:, 0], d_critic)
    by.through(top[0], d_actor)
    for i in reversed(range(len(policy.hidden))):
        d = block.back[i]
        below = block.trace.hidden[i - 1] if i else block.x
        np.matmul(below.swapaxes(-1, -2), d, out=grad.hidden[i].weight.swapaxes(0, 1))
        np.matmul(block.ones, d, out=grad.hidden[i].bias.swapaxes(0, 1)[:, :, None])
        if i:
            across = np.ascontiguousarray(policy.hidden[i].weight.swapaxes(1, 2))  # BLAS is a third slower on a view
            np.matmul(d, across[:, None], out=block.back[i - 1])
            by.through(block.trace.hidden[i - 1], block.back[i - 1])


def add_grads(parts: Floats, spans: Sequence[tuple[int, int]] = ()) -> Floats:
    """Sum `parts` (n, P) into parts[0], ((0+1)+(2+3))+((4+5)+(6+7)), and return it; n need be no power of two.

    What the tree adds within one of `spans`, add_within has added.
    """
    for into, other, end in _tree(len(parts)):
        if not any(lo <= into and end <= hi for lo, hi in spans):
            parts[into] += parts[other]
    total: Floats = parts[0]
    return total


def add_within(parts: Floats, span: tuple[int, int]) -> None:
    """What add_grads adds of `parts` (n, P) among span[0]..span[1]-1 alone: by the shard that has them in its cache."""
    for into, other, end in _tree(len(parts)):
        if span[0] <= into and end <= span[1]:
            parts[into] += parts[other]


def _tree(n: int) -> Iterator[tuple[int, int, int]]:
    """The additions of n parts, in order: into which, which other, and the end of what is then the sum of."""
    stride = 1
    while stride < n:
        for into in range(0, n - stride, 2 * stride):
            yield into, into + stride, min(into + 2 * stride, n)
        stride *= 2
