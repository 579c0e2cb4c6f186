"""Our PPO beside Stable-Baselines3's and CleanRL's, on the duel and at the same settings.

python tests/bench/trainer_peers.py --torch PYTHON [--envs 64 256] [--repeat 5] [--seconds 2]

PYTHON is one that has torch, stable-baselines3, gymnasium, numba and filelock. Told are decisions of all envs a second, end to
end (rollout, advantages, update), where a decision is two ticks of the game: an env's step for each of these trainers. All
have the same net (two layers of 64, actor and critic apart), 128 steps, 4 epochs of 4 minibatches, one thread each, and no
clip of the value. Theirs always step the numba world, all envs in one call, unless the column says otherwise. Columns take
turns; a column's first two iterations are not counted; told is the median ± half the distance between the quartiles. The
second figure is by the processor's time, where a column is one process: it holds on a machine that is busy with other things.
"""

import argparse
import itertools
import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from planner.train.duel import Duels
from planner.train.settings import Settings
from planner.train.trainer import Talk, train

ROOT = Path(__file__).resolve().parents[2]
COLD = 2  # iterations
BASE = "Stable-Baselines3"
ONE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Column:
    name: str
    who: str  # ours, or what peer_duel.py knows
    kernel: str
    shards: int = 1


COLUMNS = (
    Column(BASE, "sb3", "numba"),
    Column("CleanRL", "cleanrl", "numba"),
    Column("ours, numba, 1 shard", "ours", "numba"),
    Column("ours, numba, 2 shards", "ours", "numba", 2),
    Column("ours, numpy, 1 shard", "ours", "numpy"),
    Column("ours, numpy, 2 shards", "ours", "numpy", 2),
    Column("Stable-Baselines3, numpy", "sb3", "numpy"),
    Column("Stable-Baselines3, DummyVecEnv", "sb3-dummy", "numba"),
)


def ours(column, envs, iterations):
    wall, cpu = [], []

    def lap(_record):
        wall.append(time.perf_counter())
        cpu.append(time.process_time())

    making, settings = Duels(envs=envs, kernel=column.kernel), Settings()
    train(making, settings, envs * settings.steps * iterations, shards=column.shards, talk=Talk(report=lap))
    return [[b - a for a, b in itertools.pairwise(times)] for times in (wall, cpu)]


def theirs(python, column, envs, iterations):
    command = [python, "tests/bench/peer_duel.py", column.who, str(envs), column.kernel, str(iterations)]
    environ = os.environ | ONE | {"PYTHONPATH": str(ROOT)}
    said = json.loads(subprocess.run(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, check=True).stdout)
    return said["wall"][1:], said["cpu"][1:]


def measure(python, column, envs, seconds):
    """Decisions a second, by the clock and by the processor's time."""
    rows = envs * Settings().steps
    iterations = COLD + max(3, round(seconds * 50_000 / rows))
    wall, cpu = ours(column, envs, iterations) if column.who == "ours" else theirs(python, column, envs, iterations)
    return [rows * len(laps[COLD - 1 :]) / sum(laps[COLD - 1 :]) for laps in (wall, cpu)]


def tell(values, base):
    low, _, high = quantiles(values, n=4)
    return f"{median(values) / 1e3:6.1f} ± {(high - low) / 2e3:4.1f}  × {median(values) / base:.2f}"


def table(envs, found):
    print(f"{envs} envs, thousand decisions/s; × {BASE}")
    bases = [median(values) for values in zip(*found[BASE], strict=True)]
    for column in COLUMNS:
        wall, cpu = zip(*found[column.name], strict=True)
        by_cpu = tell(cpu, bases[1]) if column.shards == 1 else ""
        print(f"  {column.name:<32}{tell(wall, bases[0])}    {by_cpu}".rstrip(), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--torch", required=True)
    parser.add_argument("--envs", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="of work at 50,000 a second, in each turn")
    a = parser.parse_args()
    for envs in a.envs:
        print(f"load {os.getloadavg()[0]:.1f}", flush=True)
        found = {column.name: [] for column in COLUMNS}
        for _ in range(a.repeat):
            for column in COLUMNS:
                found[column.name].append(measure(a.torch, column, envs, a.seconds))
        table(envs, found)


if __name__ == "__main__":
    main()
