"""Tables of runs on known worlds: python tests/bench/planner_table.py FILE… [--reach 0.1 0.3 0.8]

Each line of FILE is a run as planner_world.Game.line tells it, whoever made it. First the shares alone, a column for each
world, and a policy's adoptions in all worlds. Then for each world a table, a line for each policy: the share of what can be
gained that was adopted, ± its standard error; adoptions in all, and how many of them made the best worse or no better; for each
gain of --reach the median of the plays after which the best had it, `–` where fewer than half of the runs got there; and a
run's processor time.
"""

import argparse
import json
import math
from pathlib import Path
from statistics import fmean, median_high, stdev


def read(paths):
    """(world, policy) → runs, in the order of their first line; a run that comes twice counts once, the last time."""
    runs = {}
    for path in paths:
        for text in Path(path).read_text().splitlines():
            run = json.loads(text)
            runs.setdefault((run["world"], run["policy"]), {})[run["hill"], run["plays"]] = run
    return {key: list(some.values()) for key, some in runs.items()}


def reached(run, gain):
    return next((a["plays"] for a in run["adoptions"] if a["gain"] >= gain), math.inf)


def share(runs):
    gains = [run["gain"] for run in runs]
    error = f"{stdev(gains) / math.sqrt(len(gains)):.3f}" if len(gains) > 1 else "?"
    return f"{fmean(gains):.3f} ± {error}"


def made(runs):
    true = [adoption["true"] for run in runs for adoption in run["adoptions"]]
    return f"{len(true)}, {sum(t <= 0 for t in true)}"


def summary(runs):
    worlds, policies = (dict.fromkeys(key[part] for key in runs) for part in (0, 1))
    yield from (f"| | {' | '.join(worlds)} | adoptions, false |", "|---" * (len(worlds) + 2) + "|")
    for policy in policies:
        of = {world: runs.get((world, policy), []) for world in worlds}
        shares = (share(some) if some else "" for some in of.values())
        yield f"| {policy} | {' | '.join(shares)} | {made([run for some in of.values() for run in some])} |"
    yield ""


def cells(runs, reach):
    yield share(runs)
    yield made(runs)
    for gain in reach:
        middle = median_high(reached(run, gain) for run in runs)
        yield f"{middle:,.0f}" if middle < math.inf else "–"
    yield f"{fmean(run['seconds'] for run in runs):.1f}"
    yield str(len(runs))


def tables(runs, reach):
    """Lines of Markdown."""
    yield from summary(runs)
    for world in dict.fromkeys(world for world, _ in runs):
        head = [world, "share adopted", "adoptions, false", *(f"plays to {g:g}" for g in reach), "s a run", "runs"]
        yield from (f"| {' | '.join(head)} |", "|---" * len(head) + "|")
        for (where, policy), some in runs.items():
            if where == world:
                yield f"| {policy} | {' | '.join(cells(some, reach))} |"
        yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--reach", type=float, nargs="+", default=[0.1, 0.3, 0.8])
    a = parser.parse_args()
    print("\n".join(tables(read(a.files), a.reach)))


if __name__ == "__main__":
    main()
