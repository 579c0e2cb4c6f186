"""Adam (Kingma, Ba 2015) over one vector, and the limit on a gradient's norm."""

import math

import numpy as np

from planner.brain.shape import Floats

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-5


def clip_norm(grad: Floats, limit: float) -> float:
    """Scale `grad` in place to a norm of at most `limit`, and return the norm that it had."""
    norm = math.sqrt(float(np.square(grad, dtype=np.float64).sum()))
    if norm > limit:
        grad *= grad.dtype.type(limit / norm)
    return norm


def adam(flat: Floats, moments: tuple[Floats, Floats], grad: Floats, t: int, lr: float) -> None:
    """One step of `flat` in place, the `t`-th from 1 on; `moments` are the running means of grad and of its square."""
    m, v = moments
    m *= BETA_1
    m += (1 - BETA_1) * grad
    v *= BETA_2
    v += (1 - BETA_2) * (grad * grad)
    root = np.sqrt(v)
    root /= math.sqrt(1 - BETA_2**t)
    root += EPSILON
    np.divide(m, root, out=root)
    root *= lr / (1 - BETA_1**t)
    flat -= root
