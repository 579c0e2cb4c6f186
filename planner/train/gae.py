"""Generalised advantage estimation (Schulman et al. 2016), in which a time limit bootstraps and a real end does not."""

import numpy as np

from planner.train.slab import Rollout


def advantages(rollout: Rollout, lo: int, hi: int, gamma: float, lam: float) -> None:
    """Write advantage and ret of the envs lo..hi-1.

    After a step that ended a play counts `beyond`: the value of what was last seen where it was truncated, else 0.
    """
    ends = (rollout.terminated[lo:hi] | rollout.truncated[lo:hi]).astype(bool).T  # (T, n)
    value = np.vstack([rollout.value[lo:hi].T, rollout.last_value[lo:hi]])
    after = np.where(ends, rollout.beyond[lo:hi].T, value[1:])
    delta = rollout.reward[lo:hi].T + np.float32(gamma) * after - value[:-1]
    carry = np.where(ends, np.float32(0), np.float32(gamma * lam))
    for t in range(len(delta) - 2, -1, -1):
        delta[t] += carry[t] * delta[t + 1]
    rollout.advantage[lo:hi] = delta.T
    rollout.ret[lo:hi] = (delta + value[:-1]).T
