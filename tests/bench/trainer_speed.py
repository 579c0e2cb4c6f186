"""What shards gain and what chunks cost, without a world's own time: python tests/bench/trainer_speed.py [--envs 64 256]

Every column is a whole training of its own; columns take turns, and each is told as the median of its rounds, ± half the
distance between the quartiles. Run it on a machine with nothing else to do.
"""

import argparse
import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median, quantiles
from typing import ClassVar

import numpy as np

from planner.train import collect
from planner.train.settings import Settings
from planner.train.shards import choose_shards
from planner.train.slab import layout, over
from planner.train.trainer import Talk, plot_of, train

SHARDS = (1, 2, 3, 4, 8)


@dataclass(frozen=True)
class Drift:
    """Forty numbers that drift as they are pushed; costs next to nothing."""

    envs: int
    kernel: str = field(default="numpy", repr=False)
    obs: ClassVar[int] = 40
    heads: ClassVar[tuple] = (10,)

    def fields(self):
        return (("state", np.float32, (self.envs, self.obs)),)

    def size(self):
        return layout(self.fields())[1]

    def make(self, buffer, offset):
        return Drifting(over(self.fields(), buffer, offset)["state"])


class Drifting:
    def __init__(self, state):
        self.state = state

    def arrays(self):
        return {"state": self.state}

    def reset(self, lo, hi, _seed, obs):
        self.state[lo:hi] = np.linspace(-1, 1, self.state.shape[1])
        obs[...] = self.state[lo:hi]

    def step(self, lo, hi, action, _seed, _tick, out):
        state = self.state[lo:hi]
        state *= np.float32(0.99)
        state[:, 0] += action[:, 0] * np.float32(0.01)
        out.obs[...], out.reward[...] = state, state[:, 0]
        out.terminated[...], out.truncated[...] = 0, 0


def speed(envs, iterations, shards=1, settings=None, clock=time.perf_counter):
    """Median env-ticks a second over the iterations but the first; and the hash of what came out."""
    records, settings = [], settings or Settings()
    ticks = envs * settings.steps * (iterations + 1)
    ended = train(Drift(envs), settings, ticks, shards=shards, talk=Talk(report=records.append, clock=clock))
    return median(record.ticks_per_s for record in records[1:]), ended.sha256


def spread(values):
    low, _, high = quantiles(values, n=4)
    return f"{median(values) / 1e3:6.1f} ± {(high - low) / 2e3:4.1f}"


def alternate(columns, repeat):
    """Name → its values, the columns taking turns."""
    found = {name: [] for name in columns}
    for _ in range(repeat):
        for name, run in columns.items():
            found[name].append(run())
    return found


def tell(title, found):
    first = median(next(iter(found.values())))
    print(title)
    for name, values in found.items():
        print(f"  {name:<28} {spread(values)} thousand env-ticks/s  × {median(values) / first:.2f}")


def without_chunks(envs, iterations):
    """One chunk of all envs and one of all a minibatch's rows: not to be shared out, and the fastest that this way can be."""
    kept, collect.ENV_CHUNK = collect.ENV_CHUNK, envs
    try:
        return speed(envs, iterations, settings=replace(Settings(), chunk_rows=1 << 30), clock=time.process_time)[0]
    finally:
        collect.ENV_CHUNK = kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--envs", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--shards", type=int, nargs="+", default=SHARDS)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=5)
    a = parser.parse_args()
    from fleetd import allowed_cores  # noqa: PLC0415

    print(
        f"load {os.getloadavg()[0]:.1f}, {Path('/proc/cpuinfo').read_text().partition('model name')[2].split(chr(10))[0]}"
    )
    for envs in a.envs:
        print(choose_shards(allowed_cores(), envs, plot_of(Drift(envs), Settings()).chunks)[1])
        shas = set()

        def on(shards, envs=envs, shas=shas):
            found, sha = speed(envs, a.iterations, shards)
            shas.add(sha)
            return found

        tell(f"{envs} envs", alternate({f"{n} shards": lambda n=n: on(n) for n in a.shards}, a.repeat))
        print(f"  {len(shas)} different net{'s' * (len(shas) != 1)}")
        columns = {
            "no chunks": lambda envs=envs: without_chunks(envs, a.iterations),
            "chunks": lambda envs=envs: speed(envs, a.iterations, clock=time.process_time)[0],
        }
        tell(f"{envs} envs, 1 shard, by its processor time", alternate(columns, a.repeat))


if __name__ == "__main__":
    main()
