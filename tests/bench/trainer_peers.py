"""Our PPO beside Stable-Baselines3's and CleanRL's, on the duel and at the same settings.

python tests/bench/trainer_peers.py --torch PYTHON [--envs 64 256] [--rounds 5] [--at-most 40]

PYTHON is one that has torch, stable-baselines3, gymnasium, numba and filelock. Told are decisions of all envs a second, end to
end (rollout, advantages, update), where a decision is two ticks of the game: an env's step for each of these trainers. All
have the same net (two layers of 64, actor and critic apart), 128 steps, 4 epochs of 4 minibatches, one thread each, and no
clip of the value. Theirs step the numba world, all envs in one call, unless the column says otherwise.

All columns run at once, but only one has its turn, of a few iterations; the others wait at a pipe. A round is a turn of
each. Rounds in which other processes took more than a tenth of a core are told apart: it goes on until there are
`--rounds` quiet ones, or `--at-most` in all. Told are medians ± half the distance between the quartiles, and for columns of one
process the same by its processor time, which holds on a busy machine too.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).resolve().parents[2]
BASE = "Stable-Baselines3"
STEPS, COLD, TURN_ROWS = 128, 2, 16384  # steps of an env, iterations not counted, decisions in a turn
OTHERS = 0.1  # cores that others may take in a quiet round
HZ = os.sysconf("SC_CLK_TCK")
ONE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Column:
    name: str
    who: str  # as peer_duel.py knows them
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


class Runner:
    """One column's process."""

    def __init__(self, column, envs, python):
        self.rows = envs * STEPS
        which = python if column.who != "ours" else sys.executable
        command = [which, "tests/bench/peer_duel.py", column.who, str(envs), column.kernel]
        command += [str(column.shards)] * (column.who == "ours")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "start_new_session": True}
        self.process = subprocess.Popen(command, cwd=ROOT, env=os.environ | ONE | {"PYTHONPATH": str(ROOT)}, **pipes)
        self.turn(COLD)

    def turn(self, iterations):
        """Decisions a second, by the clock and by the processor's time."""
        self.process.stdin.write(f"{iterations}\n")
        self.process.stdin.flush()
        return [self.rows * iterations / seconds for seconds in json.loads(self.process.stdout.readline())]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


def taken(sessions):
    """Core-seconds that the machine has worked but for this process and those of `sessions`."""
    user, nice, system = map(int, Path("/proc/stat").read_text().split()[1:4])
    own = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) in sessions or int(stat.parent.name) == os.getpid():
            own += int(fields[11]) + int(fields[12])
    return (user + nice + system - own) / HZ


def rounds(runners, turn, wanted, at_most):
    """(others took no more than OTHERS, name → speeds) of each round."""
    found, sessions = [], {runner.process.pid for runner in runners.values()}
    while len(found) < at_most and sum(quiet for quiet, _ in found) < wanted:
        began, before = time.perf_counter(), taken(sessions)
        speeds = {name: runner.turn(turn) for name, runner in runners.items()}
        others = (taken(sessions) - before) / (time.perf_counter() - began)
        found.append((others <= OTHERS, speeds))
    return found


def tell(values, base):
    low, _, high = quantiles(values, n=4)
    return f"{median(values) / 1e3:6.1f} ± {(high - low) / 2e3:4.1f}  × {median(values) / base:.2f}"


def table(title, columns, found):
    print(title)
    for column in columns:
        cells = []
        for clock in range(2 if column.shards == 1 else 1):
            values, bases = ([speeds[name][clock] for speeds in found] for name in (column.name, columns[0].name))
            cells.append(tell(values, median(bases)))
        print(f"  {column.name:<32}{'    '.join(cells)}", flush=True)


def compare(columns, envs, python, wanted, at_most):
    with ExitStack() as stack:
        runners = {column.name: stack.enter_context(Runner(column, envs, python)) for column in columns}
        found = rounds(runners, max(1, TURN_ROWS // (envs * STEPS)), wanted, at_most)
    for quiet, what in ((True, "quiet"), (False, "busy")):
        some = [speeds for was, speeds in found if was is quiet]
        if len(some) > 1:
            title = (
                f"{envs} envs, {len(some)} {what} rounds: thousand decisions/s × {columns[0].name}; by processor time"
            )
            table(title, columns, some)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--torch", required=True)
    parser.add_argument("--envs", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--at-most", type=int, default=40)
    a = parser.parse_args()
    for envs in a.envs:
        compare(COLUMNS, envs, a.torch, a.rounds, a.at_most)


if __name__ == "__main__":
    main()
