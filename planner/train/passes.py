"""What an update does to each number by itself, between the products and the exponentials: the passes over its arrays.

These are the reference. `kernel_passes.py` has the same as machine code, to the bit: adds, multiplies and divisions in the
same order, nothing fused. Exponentials, logarithms and tanh are numpy's in both.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from planner.brain.shape import Floats
from planner.train.world import I32

F64 = npt.NDArray[np.float64]
TOLD: Final = 5  # what a row tells: update.Stat


class Loss(NamedTuple):
    """What is worked out for n rows of A logits in K heads; choices go down, so that each step runs across all rows."""

    z: Floats  # (A, n) logits less the head's largest, then log probabilities
    p: Floats  # (A, n) their exponentials, then probabilities
    total: Floats  # (K, n) of a head's exponentials
    log: Floats  # (K, n) of total
    entropy: Floats  # (K, n)
    shift: Floats  # (n,) log of the ratio
    d_logp: Floats  # (n,) the loss's derivative by the choices' log probability
    ratio: Floats  # (n,) of the choices' probabilities, now to then
    told: F64  # (TOLD, n)
    d_logits: Floats  # (n, A)
    d_value: Floats  # (n,)


class Then(NamedTuple):
    """What was noted of the rows when they were played; N each."""

    action: I32  # (N, K)
    logp: Floats
    value: Floats
    advantage: Floats
    ret: Floats


class Pull(NamedTuple):
    """The loss's numbers."""

    mean: Any  # of the advantages; all of these of the loss's own kind
    inverse: Any  # 1 / their deviation
    low: Any  # the ratio's clip
    high: Any
    scale: Any  # 1 / rows of the minibatch
    entropy: Any  # times scale
    value: Any  # times scale
    limit: Any  # on the value's change; below 0: none


class Decay(NamedTuple):
    """What a step of Adam multiplies by."""

    old_mean: Any
    new_mean: Any
    old_square: Any
    new_square: Any
    root: Any  # what the root is divided by
    least: Any
    rate: Any


Widths = tuple[int, ...]


def empty_loss(n: int, widths: Widths, kind: Any) -> Loss:
    a, k, row = sum(widths), len(widths), (n,)
    sizes = ((a, n), (a, n), (k, n), (k, n), (k, n), row, row, row, (TOLD, n), (n, a), row)
    fields = zip(Loss._fields, sizes, strict=True)
    return Loss(**{name: np.empty(size, np.float64 if name == "told" else kind) for name, size in fields})


def lower(logits: Floats, widths: Widths, z: Floats) -> None:
    """Each head of `logits` (n, A) less its largest."""
    end = 0
    for width in widths:
        part = logits[:, end : end + width]
        np.subtract(part, part.max(axis=1, keepdims=True), out=z[:, end : end + width])
        end += width


def pick(p: Floats, widths: Widths, u: Floats, action: I32) -> None:
    """Choose by inverse CDF: `u` (n, K) in [0, 1) and exponentials `p` (n, A) give `action` (n, K)."""
    end = 0
    for k, width in enumerate(widths):
        reach = np.add.accumulate(p[:, end : end + width], axis=1)
        passed = np.add.reduce(reach <= u[:, k, None] * reach[:, -1:], axis=1, dtype=np.int32)
        np.minimum(passed, width - 1, out=action[:, k])
        end += width


def spread(logits: Floats, widths: Widths, loss: Loss) -> None:
    """`loss.z`, of logits (n, A)."""
    loss.z[...] = logits.T
    end = 0
    for width in widths:
        z = loss.z[end : end + width]
        z -= z.max(axis=0)
        end += width


def add_up(widths: Widths, loss: Loss) -> None:
    """`loss.total`, of `loss.p`."""
    end = 0
    for width, total in zip(widths, loss.total, strict=True):
        np.add.reduce(loss.p[end : end + width], axis=0, out=total)
        end += width


def settle(then: Then, chosen: I32, widths: Widths, loss: Loss) -> None:
    """Probabilities, their logarithms and entropies; and `loss.shift`."""
    action, row, end = then.action[chosen], np.arange(len(chosen)), 0
    for k, width in enumerate(widths):
        z, p = loss.z[end : end + width], loss.p[end : end + width]
        z -= loss.log[k]
        p /= loss.total[k]
        np.negative(np.add.reduce(p * z, axis=0), out=loss.entropy[k])
        if k:
            loss.shift[...] += z[action[:, k], row]
        else:
            loss.shift[...] = z[action[:, k], row]
        end += width
    loss.shift[...] -= then.logp[chosen].astype(loss.shift.dtype, copy=False)


def pull(then: Then, chosen: I32, widths: Widths, by: Pull, loss: Loss) -> None:
    """What each row tells, and the loss's derivatives by logits and value; `loss.d_value` holds the value at first."""
    kind, ratio = loss.ratio.dtype, loss.ratio
    against = (by.mean - then.advantage[chosen].astype(kind, copy=False)) * by.inverse
    held = np.minimum(np.maximum(ratio, by.low), by.high)
    plain, cut = against * ratio, against * held
    np.multiply(np.where(plain >= cut, plain, kind.type(0)), by.scale, out=loss.d_logp)
    np.subtract(ratio - 1, loss.shift, out=loss.told[0])
    np.not_equal(ratio, held, out=loss.told[1])
    np.maximum(plain, cut, out=loss.told[2])
    _miss(then, chosen, by, loss)
    loss.told[4] = np.add.reduce(loss.entropy, axis=0)
    action, row, end = then.action[chosen], np.arange(len(chosen)), 0
    for k, width in enumerate(widths):
        z, p = loss.z[end : end + width], loss.p[end : end + width]
        z += loss.entropy[k]
        z *= by.entropy
        z -= loss.d_logp
        p *= z
        p[action[:, k], row] += loss.d_logp
        end += width
    loss.d_logits[...] = loss.p.T


def _miss(then: Then, chosen: I32, by: Pull, loss: Loss) -> None:
    """Half the squared error of each row's value, and its derivative."""
    kind, value = loss.d_value.dtype, loss.d_value
    miss = value - then.ret[chosen].astype(kind, copy=False)
    larger = slope = miss
    if by.limit >= 0:
        move = value - then.value[chosen].astype(kind, copy=False)
        cut = miss - move + np.minimum(np.maximum(move, -by.limit), by.limit)
        worse = np.abs(cut) > np.abs(miss)
        larger = np.where(worse, cut, miss)
        slope = np.where(worse & (np.abs(move) > by.limit), kind.type(0), larger)
    np.divide(larger * larger, 2, out=loss.told[3])
    np.multiply(slope, by.value, out=loss.d_value)


def add_bias(h: Floats, bias: Floats) -> None:
    """Add (2, H) to each row of `h` (2, C, R, H)."""
    np.add(h, bias[:, None, None], out=h)


def through(h: Floats, d: Floats) -> None:
    """Times the derivative of the tanh that gave `h`; uses up `h`."""
    h *= h
    np.subtract(1, h, out=h)
    d *= h


def through_value(h: Floats, d_value: Floats, weight: Floats, d: Floats) -> None:
    """The same for d_value (C, R, 1) times weight (H,), into `d` (C, R, H)."""
    np.multiply(d_value, weight, out=d)
    through(h, d)


def descend(flat: Floats, m: Floats, v: Floats, grad: Floats, by: Decay) -> None:
    """One step of Adam."""
    m *= by.old_mean
    m += by.new_mean * grad
    v *= by.old_square
    v += by.new_square * (grad * grad)
    root = np.sqrt(v)
    root /= by.root
    root += by.least
    np.divide(m, root, out=root)
    root *= by.rate
    flat -= root


class Passes(NamedTuple):
    """All of them, of one make."""

    lower: Callable[[Floats, Widths, Floats], None] = lower
    pick: Callable[[Floats, Widths, Floats, I32], None] = pick
    spread: Callable[[Floats, Widths, Loss], None] = spread
    add_up: Callable[[Widths, Loss], None] = add_up
    settle: Callable[[Then, I32, Widths, Loss], None] = settle
    pull: Callable[[Then, I32, Widths, Pull, Loss], None] = pull
    add_bias: Callable[[Floats, Floats], None] = add_bias
    through: Callable[[Floats, Floats], None] = through
    through_value: Callable[[Floats, Floats, Floats, Floats], None] = through_value
    descend: Callable[[Floats, Floats, Floats, Floats, Decay], None] = descend


NUMPY: Final = Passes()


def passes(kernel: str) -> Passes:
    """Those of the `kernel`, numpy or numba."""
    if kernel != "numba":
        return NUMPY
    from planner.train import kernel_passes as made  # noqa: PLC0415 - numba may not be there

    return Passes(*(getattr(made, name) for name in Passes._fields))
