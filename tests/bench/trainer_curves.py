"""Whether the trainer is a real PPO: its learning curves beside CleanRL's at CleanRL's settings.

python tests/bench/trainer_curves.py --torch PYTHON --out DIR [--worlds CartPole Acrobot] [--seeds 10] [--ticks 500000] [--svg]

PYTHON is one that has torch and numpy. For each world: mean score in each tenth of the run, both, with the deviation
between seeds; and the probability of improvement (Agarwal et al. 2021) by the area under the curve: that a run of ours is
better than a run of theirs, with its 95 % interval by bootstrap over the seeds. DIR keeps each run: a call goes on from
what is there. With --svg the curves are drawn to DIR/curves.svg.
"""

import argparse
import json
import os
import subprocess
from pathlib import Path

import numpy as np
from curve_plot import draw

from planner.train.settings import Settings
from planner.train.trainer import Talk, train
from tests.planner.train import worlds

ROOT = Path(__file__).resolve().parents[2]
TENTHS, PARTS = 10, 50  # of a run: in the table, and in the picture
WHO = ("here", "CleanRL")


def parts(points, ticks, count):
    """Mean score in each of `count` parts of the run of [(ticks, score or None)]; NaN where no play ended."""
    where = np.array([min(count - 1, (at - 1) * count // ticks) for at, score in points if score is not None])
    scores = np.array([score for _, score in points if score is not None])
    return [scores[where == i].mean() if (where == i).any() else np.nan for i in range(count)]


def ours(name, seed, ticks):
    points = []
    talk = Talk(report=lambda record: points.append((record.ticks, record.score)))
    train(getattr(worlds, name)(envs=4), Settings(seed=seed, value_clip=0.2), ticks, talk=talk)
    return points


def theirs(python, name, seed, ticks):
    command = [python, "tests/bench/peer_cleanrl.py", name, str(seed), str(ticks)]
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    said = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=True)
    return [tuple(json.loads(line).values()) for line in said.stdout.splitlines()]


def kept(out, play, *key):
    """The points of a run that DIR has, else those of `play`, kept there."""
    path = out / ("-".join(map(str, key)) + ".json")
    if not path.exists():
        path.write_text(json.dumps(play()))
    return json.loads(path.read_text())


def better(a, b):
    """The probability that one of `a` is above one of `b`, and its interval."""
    won = (a[:, None] > b) + 0.5 * (a[:, None] == b)
    draw = np.random.default_rng(0)
    again = [won[np.ix_(*draw.integers(0, len(a), (2, len(a))))].mean() for _ in range(2000)]
    return won.mean(), np.quantile(again, [0.025, 0.975])


def runs_of(a, name):
    """{who: the points of each seed}, ours and theirs in turn."""
    runs = {who: [] for who in WHO}
    for seed in range(1, a.seeds + 1):
        runs["here"].append(kept(a.out, lambda s=seed: ours(name, s, a.ticks), name, "here", seed, a.ticks))
        runs["CleanRL"].append(
            kept(a.out, lambda s=seed: theirs(a.torch, name, s, a.ticks), name, "CleanRL", seed, a.ticks)
        )
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--torch", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--worlds", nargs="+", default=["CartPole", "Acrobot"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--ticks", type=int, default=500_000)
    parser.add_argument("--svg", action="store_true")
    a = parser.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    drawn = {}
    for name in a.worlds:
        runs = runs_of(a, name)
        print(f"{name}-v1, {a.ticks} ticks, {a.seeds} seeds: mean score in each tenth, and its deviation between seeds")
        for who, found in runs.items():
            table = np.array([parts(points, a.ticks, TENTHS) for points in found])
            print(f"  {who:<8}" + "".join(f"{m:8.1f}" for m in np.nanmean(table, axis=0)))
            print(" " * 10 + "".join(f"{d:8.1f}" for d in np.nanstd(table, axis=0, ddof=1)))
        drawn[f"{name}-v1"] = {who: np.array([parts(p, a.ticks, PARTS) for p in found]) for who, found in runs.items()}
        chance, (low, high) = better(*(np.nanmean(table, axis=1) for table in drawn[f"{name}-v1"].values()))
        print(f"  probability of improvement {chance:.2f} ({low:.2f} to {high:.2f})", flush=True)
    if a.svg:
        (a.out / "curves.svg").write_text(draw(drawn, a.ticks))


if __name__ == "__main__":
    main()
