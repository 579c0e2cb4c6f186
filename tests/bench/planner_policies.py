"""Our policies on the worlds, in process: the planner's own standing, policies, gate and rows, a world for the census.

python tests/bench/planner_policies.py --worlds PATH [--repeats 24] [--plays 36000] [--world W …] [--policy P …] [--out FILE]

PATH is worlds.py. Each run is one hill: rows go through Facts, standing, blocks_due and judge as a ledger's do; only the queue
and the processes are left out. `--lanes` jobs are under way at once, so a policy knows less than all. Told are the share of the
possible gain that was adopted ± its standard error over the hills, adoptions, and those that were none (true gain <= 0);
FILE gets a JSON line for each run, with the gain over plays.
"""

import argparse
import json
import math
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from fleetd import Row
from planner.due import Order, blocks_due
from planner.facts import Facts
from planner.filing import lines_of
from planner.fill import verdict_row
from planner.plan import Plan
from planner.screen import Screen, encode_screen, sides
from planner.space import Space, Variable
from planner.standing import standing
from planner.trial import encode_block
from planner.verdict import Call, verdict_on
from tests.bench.planner_world import Hill, load

FILE_EVERY = 50  # verdicts: then what was decided goes on the shelf, as a long ledger's does


def names_of(world):
    return [f"w{i:03d}" for i in range(world.d)]


def space_of(world, step=1.0):
    kinds = zip(names_of(world), world.whole, strict=True)
    return Space(
        tuple(
            Variable(name=n, start=0, low=world.low, high=world.high, step=step, type="int" if whole else "float")
            for n, whole in kinds
        )
    )


class Run:
    """One hill, one policy: an in-memory ledger and its queue."""

    def __init__(self, world, plan):
        self.world, self.plan, self.facts, self.seq = world, plan, Facts("world"), 0
        self.queue, self.read, self.curve, self.adoptions = {}, set(), [], []
        self.rows, self.verdicts = {}, 0
        self.names = names_of(world)

    def row(self, event, body):
        self.seq += 1
        at = f"2026-01-01T{self.seq // 3600 % 24:02d}:{self.seq // 60 % 60:02d}:{self.seq % 60:02d}.{self.seq:06d}Z"
        self.rows["h", self.seq] = row = Row(host="h", seq=self.seq, event=event, at=at, body={"event": event, **body})
        self.facts.add([row])

    def fetch(self, places):
        return [self.rows[host, seq] for host, seq, _, _ in places]

    def shelve(self, seen):
        """Put away what was decided, as a long ledger's is."""
        self.facts.shelve(list(lines_of(self.facts, seen, {key: (*key, 0, 0) for key in self.rows})), self.fetch)

    def standing(self):
        return standing(self.facts, self.plan.space, self.queue)

    def settle(self):
        while True:
            seen = self.standing()
            ruled = [(c, verdict_on(seen, c)) for c in seen.open]
            adopt = [r for r in ruled if r[1].call is Call.ADOPT][:1]
            due = adopt + [r for r in ruled if r[1].call is Call.KEEP]
            for course, verdict in due:
                if verdict.call is Call.ADOPT:
                    before, after = seen.best.weights, {**seen.best.weights, **course.trial.candidate}
                    gain = self.gain(after) - self.gain(before)
                    told = {"plays": sum(seen.plays.values()), "read": verdict.read.mean, "true": gain}
                    self.adoptions.append(told | {"gain": self.gain(after)})
                body = verdict_row(self.plan, seen, course, verdict, "bench")
                self.row(body.pop("event"), body)
            self.verdicts += len(due)
            if not due:
                if self.verdicts >= FILE_EVERY:
                    self.verdicts = 0
                    self.shelve(seen)
                return seen

    def vector(self, weights):
        return np.array([weights[name] for name in self.names])

    def gain(self, weights):
        return self.world.gain(self.vector(weights))

    def play(self, job, task):
        """What a census would have said: scores on the seeds that were not played before."""
        seeds = [*range(task.seeds.low, task.seeds.high)]
        if isinstance(task, Screen):
            one, other = sides(task, seeds)
            plays = 2 * len(seeds)
        else:
            best, candidate = self.vector(task.best), self.vector({**task.best, **task.trial.candidate})
            one, other = np.tile(candidate, (len(seeds), 1)), np.tile(best, (len(seeds), 1))
            keys = {(task.trial.defaults, seed) for seed in seeds}
            plays = len(seeds) + len(keys - self.read)
            self.read |= keys
        d = self.world.diffs(one, other, seeds[0])
        reads = [[seed, float(x), 0.0] for seed, x in zip(seeds, d, strict=True)]
        payload = encode_screen(task) if isinstance(task, Screen) else encode_block(task)
        result = {"schema": "fleet.reads/1", "reads": reads, "plays": plays}
        self.row("result", {"job": job, "attempt": 1, "outcome": "ok", "payload": payload, "result": result})

    def go(self, plays, lanes):
        jobs = 0
        while True:
            seen = self.settle()
            self.curve.append((sum(seen.plays.values()), self.gain(seen.best.weights)))
            for task in blocks_due(seen, self.plan, Order(depth=lanes, plays=plays), len(self.queue)):
                self.queue[f"50-{jobs:08d}-x"] = task
                jobs += 1
            if not self.queue:
                return seen
            job = min(self.queue)
            self.play(job, self.queue.pop(job))


def one(name, hill, policy, args):
    world = Hill(load(args.worlds), name, hill)
    plan = Plan(name="world", census=("x",), space=space_of(world, args.step), policy=policy, horizon=args.plays)
    run, began = Run(world, replace(plan, seeds=args.seeds)), time.process_time()
    seen = run.go(args.plays, args.lanes)
    told = {"world": name, "hill": hill, "policy": policy, "step": args.step, "gain": run.gain(seen.best.weights)}
    told |= {
        "adoptions": run.adoptions,
        "plays": sum(seen.plays.values()),
        "spent": {str(k): v for k, v in seen.plays.items()},
    }
    return told | {"seconds": time.process_time() - began, "curve": run.curve[:: max(1, len(run.curve) // 60)]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=24)
    parser.add_argument("--first", type=int, default=1, help="the first hill")
    parser.add_argument("--plays", type=int, default=36_000)
    parser.add_argument("--seeds", type=int, default=55)
    parser.add_argument("--lanes", type=int, default=4)
    parser.add_argument("--step", type=float, default=1.0, help="of the space: rotate's, and half of race's first")
    parser.add_argument("--world", nargs="+", default=["quad", "raw", "rough", "dead", "null"])
    parser.add_argument("--policy", nargs="+", default=["screen"])
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    for policy in args.policy:
        for name in args.world:
            runs = []
            for hill in range(args.first, args.first + args.repeats):
                runs.append(one(name, hill, policy, args))
                if args.out:
                    with args.out.open("a") as file:
                        file.write(json.dumps(runs[-1]) + "\n")
            gains, made = [run["gain"] for run in runs], [a for run in runs for a in run["adoptions"]]
            se = stdev(gains) / math.sqrt(len(gains)) if len(gains) > 1 else 0.0
            false = sum(a["true"] <= 0 for a in made)
            told = f"{fmean(gains):6.3f} ± {se:.3f}  {len(made) / len(runs):.1f} adoptions, {false} false"
            print(f"{policy:<8}{name:<7}{told}, {fmean(run['seconds'] for run in runs):.1f} s", flush=True)


if __name__ == "__main__":
    main()
