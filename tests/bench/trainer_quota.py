"""What the trainer chooses under a real quota of cores, and what that gains. To be run as root:

python tests/bench/trainer_quota.py [--quotas 1.0 1.5] [--envs 64] [--repeat 5]

Each run is a process of its own in a cgroup that this makes and takes away again (v2 where the cpu controller is there, else
v1): one with what `choose_shards` picks, one with one shard, one with two; they take turns. Told are thousand decisions a second
on the duel with numba, the median ± half the distance between the quartiles, and what was chosen and why. A quota of Q cores
says no more than Q on a machine that has them free: run it on one with nothing else to do.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median, quantiles

from fleetd import allowed_cores
from planner.train.duel import Duels
from planner.train.settings import Settings
from planner.train.shards import choose_shards
from planner.train.trainer import Talk, plot_of, train

ROOT = Path(__file__).resolve().parents[2]
CGROUPS = Path("/sys/fs/cgroup")
NAME = f"treadcore-quota-{os.getpid()}"
PERIOD_US = 100_000
COLD = 2  # iterations


def inside(envs, iterations, wanted):
    """What a process under the quota does: choose, train, and tell."""
    making, settings, ends = Duels(envs=envs, kernel="numba"), Settings(), []
    chunks = plot_of(making, settings).chunks
    shards, why = choose_shards(allowed_cores(), envs, chunks)
    shards = wanted or shards
    rows = envs * settings.steps
    talk = Talk(report=lambda _: ends.append(time.perf_counter()))
    train(making, settings, rows * iterations, shards=shards, talk=talk)
    print(json.dumps({"why": why, "speed": rows * (iterations - COLD) / (ends[-1] - ends[COLD - 1])}))


@contextlib.contextmanager
def quota(cores):
    """A cgroup of that many cores: where a process writes its pid to be in it."""
    v2 = "cpu" in _text(CGROUPS / "cgroup.subtree_control").split()
    group = (CGROUPS if v2 else CGROUPS / "cpu") / NAME
    group.mkdir()
    try:
        limit = f"{round(cores * PERIOD_US)}"
        if v2:
            (group / "cpu.max").write_text(f"{limit} {PERIOD_US}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(limit)
        yield group / "cgroup.procs"
    finally:
        _remove(group)


def _text(file):
    return file.read_text() if file.exists() else ""


def _remove(group):
    for _ in range(100):  # the forkserver of a run ends shortly after it
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.05)


def run(procs, envs, iterations, wanted):
    enter = f"echo $$ > {procs} && exec {sys.executable} {__file__} --inside {envs} {iterations} {wanted}"
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    said = subprocess.run(["sh", "-c", enter], cwd=ROOT, env=environ, stdout=subprocess.PIPE, check=True)
    return json.loads(said.stdout)


def table(cores, envs, iterations, repeat):
    columns = {"chosen": 0, "--shards 1": 1, "two shards": 2}
    found = {name: [] for name in columns}
    with quota(cores) as procs:
        for _ in range(repeat):
            for name, wanted in columns.items():
                found[name].append(run(procs, envs, iterations, wanted))
    print(f"a quota of {cores}, {envs} envs, load {os.getloadavg()[0]:.1f}: {found['chosen'][0]['why']}")
    base = median(each["speed"] for each in found["--shards 1"])
    for name, each in found.items():
        low, middle, high = quantiles([one["speed"] for one in each], n=4)
        print(f"  {name:<12}{middle / 1e3:6.1f} ± {(high - low) / 2e3:4.1f}  × {middle / base:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--quotas", type=float, nargs="+", default=[1.0, 1.5])
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--iterations", type=int, default=COLD + 12)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--inside", type=int, nargs=3, help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.inside:
        inside(*a.inside)
        return
    for cores in a.quotas:
        table(cores, a.envs, a.iterations, a.repeat)


if __name__ == "__main__":
    main()
