"""PPO's loss and its gradient (Schulman et al. 2017), over a range of chunks of a shuffled minibatch.

A gradient is the sum of its chunks' gradients in one fixed tree, ((0+1)+(2+3))+((4+5)+(6+7)); who computed which chunk
changes nothing. Chunks go through in blocks of up to BLOCK rows, which stay in the cache.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import numpy as np

from planner.brain.shape import Floats, Policy, Shape, views
from planner.train.forward import Trace, empty_trace, forward, stacks
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
    action: I32  # (N, K)
    logp: Floats  # (N,)
    value: Floats
    advantage: Floats
    ret: Floats


def rows_of(rollout: Rollout) -> Rows:
    """Views of `rollout`."""
    return Rows(
        rollout.obs.reshape(-1, rollout.obs.shape[2]),
        rollout.action.reshape(-1, rollout.action.shape[2]),
        rollout.logp.reshape(-1),
        rollout.value.reshape(-1),
        rollout.advantage.reshape(-1),
        rollout.ret.reshape(-1),
    )


@dataclass(frozen=True, slots=True)
class Block:
    """Buffers for C chunks of R rows."""

    x: Floats  # (C, R, O)
    trace: Trace
    back: tuple[Floats, ...]  # (2, C, R, H)
    ones: Floats  # (1, R)


class Work:
    """One shard's buffers, made on first use and kept."""

    def __init__(self, shape: Shape, kind: Any = np.float32) -> None:
        self.shape, self.kind = shape, kind
        self._blocks: dict[tuple[int, int], Block] = {}

    def block(self, chunks: int, rows: int) -> Block:
        if (chunks, rows) not in self._blocks:
            self._blocks[chunks, rows] = Block(
                np.empty((chunks, rows, self.shape.obs), self.kind),
                empty_trace(self.shape, chunks, rows, self.kind),
                tuple(np.empty((2, chunks, rows, width), self.kind) for width in self.shape.hidden),
                np.ones((1, rows), self.kind),
            )
        return self._blocks[chunks, rows]


@dataclass(frozen=True, slots=True)
class Minibatch:
    """The rows of a step, in the order of the shuffle, cut in chunks of `height`; and how their advantages are scaled."""

    rows: Rows
    order: I32  # (M,)
    height: int
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
    grads, stats = out
    first, height = span[0], batch.height
    rows = batch.order[first * height : span[1] * height]
    for where, chunks, tall in stacks(len(rows), height):
        step = max(1, BLOCK // tall)
        for at in range(0, chunks, step):
            count = min(step, chunks - at)
            start, chunk = where.start + at * tall, first + where.start // height + at
            part = slice(chunk, chunk + count)
            chosen = rows[start : start + count * tall]
            _block(
                policy,
                batch,
                chosen,
                settings,
                (views(policy.shape, grads[part]), stats[part]),
                work.block(count, tall),
            )


def _block(
    policy: Policy, batch: Minibatch, chosen: I32, settings: Settings, out: tuple[Policy, F64], block: Block
) -> None:
    np.take(batch.rows.obs, chosen, axis=0, out=block.x.reshape(len(chosen), -1), mode="clip")
    forward(policy, block.x, block.trace)
    d_logits, d_value = losses(batch, chosen, settings, block.trace, out[1])
    backward(policy, block, d_logits, d_value, out[0])


def losses(batch: Minibatch, chosen: I32, settings: Settings, trace: Trace, stats: F64) -> tuple[Floats, Floats]:
    """The loss's derivatives by trace.logits (C, R, A) and trace.value (C, R, 1); writes `stats` (C, len(Stat))."""
    rows, kind, scale = batch.rows, trace.logits.dtype, 1.0 / len(batch.order)
    actions = rows.action[chosen].T
    heads = _heads(trace.logits, batch.heads)
    logp = sum(head.logp[action, np.arange(len(chosen))] for head, action in zip(heads, actions, strict=True))
    shift = logp - rows.logp[chosen].astype(kind, copy=False)
    ratio = np.exp(shift)
    advantage = (rows.advantage[chosen].astype(kind, copy=False) - kind.type(batch.mean)) * kind.type(batch.inverse)
    held = np.clip(ratio, 1 - settings.clip, 1 + settings.clip)
    plain, cut = -advantage * ratio, -advantage * held
    d_logp = np.where(plain >= cut, plain, kind.type(0)) * kind.type(scale)
    value_loss, d_value = _value_loss(batch, chosen, settings, trace.value.ravel())
    entropy = sum(head.entropy for head in heads)
    sums = (ratio - 1 - shift, ratio != held, np.maximum(plain, cut), value_loss, entropy)
    for stat, each in zip(Stat, sums, strict=True):
        stats[:, stat] = each.astype(np.float64).reshape(len(stats), -1).sum(axis=1) * scale
    d_heads = [_d_logits(head, a, d_logp, settings.entropy * scale) for head, a in zip(heads, actions, strict=True)]
    d_logits = np.ascontiguousarray(np.concatenate(d_heads).T).reshape(trace.logits.shape)
    return d_logits, (d_value * kind.type(settings.value * scale)).reshape(trace.value.shape)


@dataclass(frozen=True, slots=True)
class Head:
    """One head's distribution over its choices, a column per row."""

    p: Floats  # (choices, n)
    logp: Floats  # (choices, n)
    entropy: Floats  # (n,)


def _heads(logits: Floats, widths: tuple[int, ...]) -> list[Head]:
    """Each head's distribution; choices go down, so that sums over them run across all rows at once."""
    found, end = [], 0
    across = np.ascontiguousarray(logits.reshape(-1, logits.shape[-1]).T)
    for width in widths:
        z = across[end : end + width]
        z = z - z.max(axis=0)
        p = np.exp(z)
        total = p.sum(axis=0)
        z -= np.log(total)
        p /= total
        found.append(Head(p, z, -(p * z).sum(axis=0)))
        end += width
    return found


def _d_logits(head: Head, action: I32, d_logp: Floats, entropy: float) -> Floats:
    """(choices, n) derivatives of d_logp · logp[action] − entropy · H."""
    d: Floats = head.p * (head.p.dtype.type(entropy) * (head.logp + head.entropy) - d_logp)
    d[action, np.arange(len(action))] += d_logp
    return d


def _value_loss(batch: Minibatch, chosen: I32, settings: Settings, value: Floats) -> tuple[Floats, Floats]:
    """Half the squared error of each row, and its derivative by the value."""
    miss = value - batch.rows.ret[chosen].astype(value.dtype, copy=False)
    if settings.value_clip is None:
        return miss * miss / 2, miss
    limit = settings.value_clip
    move = value - batch.rows.value[chosen].astype(value.dtype, copy=False)
    cut = miss - move + np.clip(move, -limit, limit)
    worse = np.abs(cut) > np.abs(miss)
    larger = np.where(worse, cut, miss)
    return larger * larger / 2, np.where(worse & (np.abs(move) > limit), value.dtype.type(0), larger)


def backward(policy: Policy, block: Block, d_logits: Floats, d_value: Floats, grad: Policy) -> None:
    """Write the gradient of each of the block's chunks; uses up the block's trace."""
    top, (d_actor, d_critic) = block.trace.hidden[-1], block.back[-1]
    for into, d, h in ((grad.policy, d_logits, top[0]), (grad.value, d_value, top[1])):
        np.matmul(h.swapaxes(1, 2), d, out=into.weight)
        np.matmul(block.ones, d, out=into.bias[:, None])
    np.matmul(d_logits, policy.policy.weight.T, out=d_actor)
    np.multiply(d_value, policy.value.weight.T, out=d_critic)
    for i in reversed(range(len(policy.hidden))):
        h, d = block.trace.hidden[i], block.back[i]
        h *= h
        np.subtract(1, h, out=h)
        d *= h
        below = block.trace.hidden[i - 1] if i else block.x
        np.matmul(below.swapaxes(-1, -2), d, out=grad.hidden[i].weight.swapaxes(0, 1))
        np.matmul(block.ones, d, out=grad.hidden[i].bias.swapaxes(0, 1)[:, :, None])
        if i:
            across = np.ascontiguousarray(policy.hidden[i].weight.swapaxes(1, 2))  # BLAS is a third slower on a view
            np.matmul(d, across[:, None], out=block.back[i - 1])


def add_grads(parts: Floats) -> Floats:
    """Sum `parts` (n, P) into parts[0], ((0+1)+(2+3))+((4+5)+(6+7)), and return it; n need be no power of two."""
    stride = 1
    while stride < len(parts):
        parts[: len(parts) - stride : 2 * stride] += parts[stride :: 2 * stride]
        stride *= 2
    total: Floats = parts[0]
    return total
