"""`python -m tests.planner.train.endless`: a run of three shards that goes on until it is ended.

Prints `running`, and then a worker's pid, once the first iteration is over.
"""

import multiprocessing
import sys

from planner.train.settings import Settings
from planner.train.trainer import Talk, train
from tests.planner.train.worlds import Odd


def main():
    def report(record):
        if record.iteration == 1:
            print("running", multiprocessing.active_children()[0].pid, sep="\n", flush=True)

    settings = Settings(steps=2000, epochs=1, minibatches=2, hidden=(8,))
    train(Odd(envs=64), settings, 10**12, shards=3, talk=Talk(report=report))


if __name__ == "__main__":
    sys.exit(main())
