"""A short training; `python -m tests.planner.train.shas N…` prints the hash of its end on N shards, for each N."""

import sys

from planner.train.settings import Settings
from planner.train.trainer import train
from tests.planner.train.worlds import Odd

ODD = Odd(envs=61)  # eight chunks of envs, the last one short: uneven for every number of shards but one
SHORT = Settings(steps=11, chunk_rows=24, epochs=2, minibatches=3, hidden=(16, 12))  # ten chunks, the last one short
ITERATION = 61 * 11


def once(shards, iterations=3, settings=SHORT, **more):
    return train(ODD, settings, ITERATION * iterations, shards=shards, **more)


if __name__ == "__main__":
    for shards in sys.argv[1:]:
        print(once(int(shards), 2).sha256)
