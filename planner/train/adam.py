"""Adam (Kingma, Ba 2015) over one vector, and the limit on a gradient's norm."""

import math
from collections.abc import Callable

import numpy as np

from planner.brain.shape import Floats
from planner.train.passes import Decay, descend

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-5


def clip_norm(grad: Floats, limit: float) -> float:
    """Scale `grad` in place to a norm of at most `limit`, and return the norm that it had."""
    norm = math.sqrt(float(np.square(grad, dtype=np.float64).sum()))
    if norm > limit:
        grad *= grad.dtype.type(limit / norm)
    return norm


def adam(
    flat: Floats,
    moments: tuple[Floats, Floats],
    grad: Floats,
    t: int,
    lr: float,
    descend: Callable[[Floats, Floats, Floats, Floats, Decay], None] = descend,
) -> None:
    """One step of `flat` in place, the `t`-th from 1 on; `moments` are the running means of grad and of its square."""
    rates = (BETA_1, 1 - BETA_1, BETA_2, 1 - BETA_2, math.sqrt(1 - BETA_2**t), EPSILON, lr / (1 - BETA_1**t))
    descend(flat, *moments, grad, Decay(*map(flat.dtype.type, rates)))
