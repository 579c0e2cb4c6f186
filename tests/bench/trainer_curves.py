"""Whether the trainer is a real PPO: its learning curves beside CleanRL's at CleanRL's settings.

python tests/bench/trainer_curves.py --torch PYTHON [--worlds CartPole Acrobot] [--seeds 10] [--ticks 500000]

PYTHON is one that has torch and numpy. For each world: mean score in each tenth of the run, both, with the deviation
between seeds; and the probability of improvement (Agarwal et al. 2021) by the area under the curve: that a run of ours is
better than a run of theirs, with its 95 % interval by bootstrap over the seeds.
"""

import argparse
import json
import os
import subprocess
from pathlib import Path

import numpy as np

from planner.train.settings import Settings
from planner.train.trainer import Talk, train
from tests.planner.train import worlds

ROOT = Path(__file__).resolve().parents[2]
TENTHS = 10


def tenths(points, ticks):
    """Mean score in each tenth of the run of [(ticks, score or None)]."""
    where = np.array([min(TENTHS - 1, (at - 1) * TENTHS // ticks) for at, score in points if score is not None])
    scores = np.array([score for _, score in points if score is not None])
    return [scores[where == i].mean() if (where == i).any() else np.nan for i in range(TENTHS)]


def ours(name, seed, ticks):
    points = []
    talk = Talk(report=lambda record: points.append((record.ticks, record.score)))
    train(getattr(worlds, name)(envs=4), Settings(seed=seed, value_clip=0.2), ticks, talk=talk)
    return tenths(points, ticks)


def theirs(python, name, seed, ticks):
    command = [python, "tests/bench/peer_cleanrl.py", name, str(seed), str(ticks)]
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    said = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=True)
    return tenths([tuple(json.loads(line).values()) for line in said.stdout.splitlines()], ticks)


def better(a, b):
    """The probability that one of `a` is above one of `b`, and its interval."""
    won = (a[:, None] > b) + 0.5 * (a[:, None] == b)
    draw = np.random.default_rng(0)
    again = [won[np.ix_(*draw.integers(0, len(a), (2, len(a))))].mean() for _ in range(2000)]
    return won.mean(), np.quantile(again, [0.025, 0.975])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--torch", required=True)
    parser.add_argument("--worlds", nargs="+", default=["CartPole", "Acrobot"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--ticks", type=int, default=500_000)
    a = parser.parse_args()
    for name in a.worlds:
        curves = {"ours": [], "CleanRL": []}
        for seed in range(1, a.seeds + 1):
            curves["ours"].append(ours(name, seed, a.ticks))
            curves["CleanRL"].append(theirs(a.torch, name, seed, a.ticks))
        print(f"{name}-v1, {a.ticks} ticks, {a.seeds} seeds: mean score in each tenth, and its deviation between seeds")
        for who, found in curves.items():
            table = np.array(found)
            print(f"  {who:<8}" + "".join(f"{m:8.1f}" for m in np.nanmean(table, axis=0)))
            print(" " * 10 + "".join(f"{d:8.1f}" for d in np.nanstd(table, axis=0)))
        areas = [np.nanmean(np.array(curves[who]), axis=1) for who in curves]
        chance, (low, high) = better(*areas)
        print(f"  probability of improvement {chance:.2f} ({low:.2f} to {high:.2f})", flush=True)


if __name__ == "__main__":
    main()
