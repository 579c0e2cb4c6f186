"""Other people's tuners on the planner's worlds, with its held-out check behind them.

python tests/bench/planner_peers.py --worlds PATH --python PY [--repeats 24] [--plays 36000] [--world quad …] [--policy NAME …]
    [--out FILE]

PATH is the file of the worlds, PY a Python that has cma, nevergrad, optuna, cmaes and numpy. Repeats are hills 1, 2, …, the same
for all. Each run is one line of --out; runs that are there already are not made again, so this can be stopped and goes on. At
the end come planner_table.py's tables of all of --out. peer_tuners.py tells what each policy is.
"""

import argparse
import json
import os
import subprocess
from pathlib import Path

import planner_table

HERE = Path(__file__).resolve().parent
WORLDS = ("quad", "raw", "rough", "dead", "null")
POLICIES = (
    "sep-cma",
    "sep-cma-40",
    "tbpsa",
    "one-plus-one",
    "spsa-1",
    "spsa-2",
    "optuna-cma",
    "optuna-tpe",
)  # dearest last
ONE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def done(path):
    if not path.exists():
        return set()
    runs = map(json.loads, path.read_text().splitlines())
    return {(run["policy"], run["world"], run["hill"], run["plays"]) for run in runs}


def run(a, policy, wanted):
    """Appends a line to a.out for each (world, hill) of `wanted`."""
    command = [a.python, str(HERE / "peer_tuners.py"), a.worlds, policy, str(a.plays)]
    asked = "".join(f"{world} {hill}\n" for world, hill in wanted)
    with a.out.open("a") as out:
        subprocess.run(command, input=asked, stdout=out, text=True, check=True, env=os.environ | ONE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--worlds", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--repeats", type=int, default=24)
    parser.add_argument("--plays", type=int, default=36000)
    parser.add_argument("--world", nargs="+", choices=WORLDS, default=WORLDS)
    parser.add_argument("--policy", nargs="+", choices=POLICIES, default=POLICIES)
    parser.add_argument("--out", type=Path, default=Path("planner_peers.jsonl"))
    a = parser.parse_args()
    had = done(a.out)
    for policy in a.policy:
        todo = [(world, hill) for world in a.world for hill in range(1, a.repeats + 1)]
        todo = [(world, hill) for world, hill in todo if (policy, world, hill, a.plays) not in had]
        if todo:
            run(a, policy, todo)
    print("\n".join(planner_table.tables(planner_table.read([a.out]), (0.1, 0.3, 0.8))))


if __name__ == "__main__":
    main()
