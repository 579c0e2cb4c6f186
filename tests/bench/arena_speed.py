"""How fast whole plays are on one core: python tests/bench/arena_speed.py [--seconds 100] [--repeat 5]"""

import argparse
import time

from planner.arena.rules import TICKS_PER_S
from planner.brain.match import play
from planner.brain.weights import DEFAULT, whole_weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--repeat", type=int, default=5)
    a = parser.parse_args()
    brain = whole_weights(DEFAULT)
    play([brain], [brain], [0], 1)
    for n in (1, 56, 110, 256, 512, 1024):
        took = []
        for _ in range(a.repeat):
            started = time.process_time()
            play([brain] * n, [brain] * n, range(n), a.seconds)
            took.append(time.process_time() - started)
        ticks = a.seconds * TICKS_PER_S
        best = min(took)
        print(
            f"{n:>5} plays: {1e6 * best / ticks:6.0f} us a tick of all, {n * ticks / best / 1e3:7.0f} thousand play-ticks/s,"
            f" {best * 900 / a.seconds:5.2f} s for plays of 900 s"
        )


if __name__ == "__main__":
    main()
