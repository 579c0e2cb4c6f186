"""Worlds to check the trainer on: CartPole-v1 and Acrobot-v1 as Gymnasium documents them, and Odd, which ends at will."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from planner.train.rng import bits
from planner.train.slab import layout, over

RESET = 16


def uniform64(seed, envs, tick, lanes, low, high):
    drawn = bits(seed, RESET, envs[:, None], tick, np.arange(lanes))
    return low + (high - low) * (drawn >> np.uint64(11)) * 2.0**-53


class Timed:
    """State rows, a clock and a running return each: what all three worlds have."""

    def __init__(self, making, buffer, offset):
        self.making = making
        self.state, self.clock, self.total = over(making.fields(), buffer, offset).values()

    def arrays(self):
        return {"state": self.state, "clock": self.clock, "total": self.total}

    def _begin(self, envs, seed, tick):
        self.state[envs] = self.making.start(seed, envs, tick)
        self.clock[envs], self.total[envs] = 0, 0

    def reset(self, lo, hi, seed, obs):
        self._begin(np.arange(lo, hi), seed, -1)
        obs[...] = self.making.see(self.state[lo:hi])

    def step(self, lo, hi, action, seed, tick, out):
        mine = slice(lo, hi)
        self.state[mine], out.reward[...], out.terminated[...] = self.making.move(self.state[mine], action)
        self.clock[mine] += 1
        self.total[mine] += out.reward
        out.truncated[...] = (self.clock[mine] >= self.making.limit) & ~out.terminated.astype(bool)
        out.obs[...] = self.making.see(self.state[mine])
        if (ends := np.flatnonzero(out.terminated | out.truncated)).size:
            out.final_obs[ends], out.score[ends] = out.obs[ends], self.total[lo + ends]
            self._begin(lo + ends, seed, tick)
            out.obs[ends] = self.making.see(self.state[lo + ends])


@dataclass(frozen=True)
class Made:
    envs: int
    limit: int = 500
    kernel: str = field(default="numpy", repr=False)
    numbers: ClassVar[int] = 4

    def fields(self):
        return (
            ("state", np.float64, (self.envs, self.numbers)),
            ("clock", np.int64, (self.envs,)),
            ("total", np.float64, (self.envs,)),
        )

    def size(self):
        return layout(self.fields())[1]

    def make(self, buffer, offset):
        return Timed(self, buffer, offset)


@dataclass(frozen=True)
class CartPole(Made):
    obs: ClassVar[int] = 4
    heads: ClassVar[tuple] = (2,)

    def start(self, seed, envs, tick):
        return uniform64(seed, envs, tick, 4, -0.05, 0.05)

    def see(self, state):
        return state

    def move(self, state, action):
        x, speed, angle, spin = state.T
        force = np.where(action[:, 0] == 1, 10.0, -10.0)
        cos, sin = np.cos(angle), np.sin(angle)
        temp = (force + 0.05 * spin**2 * sin) / 1.1
        turn = (9.8 * sin - cos * temp) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        push = temp - 0.05 * turn * cos / 1.1
        new = np.stack([x + 0.02 * speed, speed + 0.02 * push, angle + 0.02 * spin, spin + 0.02 * turn], axis=1)
        fallen = (np.abs(new[:, 0]) > 2.4) | (np.abs(new[:, 2]) > 12 * 2 * np.pi / 360)
        return new, 1.0, fallen


@dataclass(frozen=True)
class Acrobot(Made):
    obs: ClassVar[int] = 6
    heads: ClassVar[tuple] = (3,)

    def start(self, seed, envs, tick):
        return uniform64(seed, envs, tick, 4, -0.1, 0.1)

    def see(self, state):
        a, b, da, db = state.T
        return np.stack([np.cos(a), np.sin(a), np.cos(b), np.sin(b), da, db], axis=1)

    def move(self, state, action):
        torque = action[:, 0] - 1.0
        k1 = self._slope(state, torque)
        k2 = self._slope(state + 0.1 * k1, torque)
        k3 = self._slope(state + 0.1 * k2, torque)
        new = state + 0.2 / 6 * (k1 + 2 * k2 + 2 * k3 + self._slope(state + 0.2 * k3, torque))
        new[:, :2] = (new[:, :2] + np.pi) % (2 * np.pi) - np.pi
        new[:, 2] = np.clip(new[:, 2], -4 * np.pi, 4 * np.pi)
        new[:, 3] = np.clip(new[:, 3], -9 * np.pi, 9 * np.pi)
        up = -np.cos(new[:, 0]) - np.cos(new[:, 0] + new[:, 1]) > 1.0
        return new, np.where(up, 0.0, -1.0), up

    def _slope(self, state, torque):
        """Sutton and Barto's "book" equations: masses, lengths and inertias 1, centres of mass at 0.5, g 9.8."""
        a, b, da, db = state.T
        d1 = 0.25 + (1 + 0.25 + np.cos(b)) + 2
        d2 = 0.25 + 0.5 * np.cos(b) + 1
        phi2 = 0.5 * 9.8 * np.cos(a + b - np.pi / 2)
        phi1 = -0.5 * db**2 * np.sin(b) - db * da * np.sin(b) + 1.5 * 9.8 * np.cos(a - np.pi / 2) + phi2
        ddb = (torque + d2 / d1 * phi1 - 0.5 * da**2 * np.sin(b) - phi2) / (1.25 - d2**2 / d1)
        return np.stack([da, db, -(d2 * ddb + phi1) / d1, ddb], axis=1)


@dataclass(frozen=True)
class Odd(Made):
    """Two heads, `numbers` seen; ends by chance of its state and by its limit; `reward` of every step if not None."""

    numbers: ClassVar[int] = 5
    obs: ClassVar[int] = 5
    heads: ClassVar[tuple] = (2, 3)
    limit: int = 7
    reward: float | None = None

    def start(self, seed, envs, tick):
        return uniform64(seed, envs, tick, 5, -1, 1)

    def see(self, state):
        return state

    def move(self, state, action):
        new = np.roll(state, 1, axis=1) * 0.9 + 0.1 * action.sum(axis=1, keepdims=True) - 0.15
        reward = new[:, 0] if self.reward is None else np.full(len(new), self.reward)
        return new, reward, new[:, 1] > 0.8
