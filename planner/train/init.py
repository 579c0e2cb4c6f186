"""First weights: orthogonal, as PPO's usual codes begin (Saxe et al. 2014), a pure function of shape and seed."""

import math

import numpy as np

from planner.brain.shape import Floats, Shape, named, param_count
from planner.train.rng import Stream, bits, normal

GAINS = {"hidden": math.sqrt(2), "policy": 0.01, "value": 1.0}


def first_weights(shape: Shape, seed: int) -> Floats:
    """(P,) float32: every weight matrix orthogonal, its scale by GAINS, every bias 0."""
    flat = np.zeros(param_count(shape), np.float32)
    matrices = [
        (GAINS[name.split(".")[0]], matrix)
        for name, view in named(shape, flat)
        if name.endswith("weight")
        for matrix in view.reshape(-1, *view.shape[-2:])
    ]
    for number, (gain, matrix) in enumerate(matrices):
        matrix[...] = gain * orthogonal(matrix.shape, seed, number)
    return flat


def orthogonal(size: tuple[int, int], seed: int, number: int) -> Floats:
    """A random matrix whose columns, or rows if those are fewer, are orthonormal."""
    tall = (max(size), min(size))
    at = np.arange(tall[0])[:, None], np.arange(tall[1])
    gauss = normal(*(bits(seed, Stream.WEIGHTS, number, at[0], 2 * at[1] + lane) for lane in (0, 1)))
    q, r = np.linalg.qr(gauss)
    q = q * np.sign(np.diag(r))
    return q if size == tall else q.T
