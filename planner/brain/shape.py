"""The shape of a net, and its weights as views into one vector, in the one order that `tensors` walks.

Actor and critic are two nets of the same hidden layers, kept side by side in each hidden tensor ([0] the actor, [1] the
critic), so that one stacked product runs both.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[Any]  # float32 in training and in files, float64 where a gradient is checked


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """`obs` numbers in, tanh layers of `hidden` widths, one choice out of each of `heads`, and one value."""

    obs: int
    heads: tuple[int, ...]
    hidden: tuple[int, ...] = (64, 64)


@dataclass(frozen=True, slots=True)
class Layer:
    """(…, in, out) weights and (…, out) biases; hidden layers have a leading axis of two: actor, critic."""

    weight: Floats
    bias: Floats


@dataclass(frozen=True, slots=True)
class Policy:
    """A net's weights: `flat` (P,) and every tensor a view of it."""

    shape: Shape
    flat: Floats
    hidden: tuple[Layer, ...]
    policy: Layer
    value: Layer


def tensors(shape: Shape) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Name and shape of every tensor, in the order in which they stand in the vector, packed without gaps."""
    below = shape.obs
    for i, width in enumerate(shape.hidden):
        yield f"hidden.{i}.weight", (2, below, width)
        yield f"hidden.{i}.bias", (2, width)
        below = width
    yield "policy.weight", (below, sum(shape.heads))
    yield "policy.bias", (sum(shape.heads),)
    yield "value.weight", (below, 1)
    yield "value.bias", (1,)


def param_count(shape: Shape) -> int:
    return sum(math.prod(size) for _, size in tensors(shape))


def policy_bytes(shape: Shape) -> int:
    return param_count(shape) * 4


def policy_over(shape: Shape, buffer: Any, offset: int = 0) -> Policy:
    """The policy whose float32 weights lie in `buffer` from `offset` on: no copy, no ownership."""
    return views(shape, np.frombuffer(buffer, np.float32, param_count(shape), offset))


def views(shape: Shape, flat: Floats) -> Policy:
    """The policy over a vector (P,), or over many at once: (…, P) gives tensors (…, *size)."""
    found = [view for _, view in named(shape, flat)]
    layers = tuple(Layer(*found[i : i + 2]) for i in range(0, len(found), 2))
    return Policy(shape, flat, layers[:-2], layers[-2], layers[-1])


def named(shape: Shape, flat: Floats) -> Iterator[tuple[str, Floats]]:
    """Each tensor's name and its view of `flat`."""
    at = 0
    for name, size in tensors(shape):
        count = math.prod(size)
        yield name, flat[..., at : at + count].reshape(*flat.shape[:-1], *size)
        at += count
