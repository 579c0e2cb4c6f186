"""Does a net learn to beat the scripted brain? The figures and the plot of docs/explanation/learning.md.

    python tests/bench/learn_duel.py --out DIR [--runs 3] [--svg FILE]       the clone, then nets trained from it
    python tests/bench/learn_duel.py --out DIR --trail [NAME …]              other ways to train, one by one

The clone is made, then each run trains from it by the defaults of `treadcore train`. At each mark on the way the net is
judged as it is: on 400 seeds, on both sides of the map, against the scripted brain and against the clone. Training,
judging and the trail draw from ranges that cannot meet; settings were chosen by the trail's seeds, the plot's are others.
DIR keeps nets and scores: a call goes on from what is there.
"""

import argparse
import hashlib
import json
import os
import time
from pathlib import Path

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np
from learn_plot import draw
from learn_ways import TRAIL, Way, begin, dim, lesson

from planner.arena.observe import OBS
from planner.brain.net import Net, load_net, player, save_net
from planner.brain.netplay import play_nets
from planner.brain.weights import BEHAVIOURS, DEFAULT, whole_weights
from planner.seeds import RANGES, Purpose
from planner.stats import paired, past_gate
from planner.train.clone import Cloning, agreement, clone
from planner.train.trainer import Keep, Talk, train

MARKS = (0, 250_000, 500_000, 1_000_000, 1_500_000, 2_000_000, 3_000_000, 4_000_000)  # decisions
SECONDS, LONG = 300, 900
JUDGED, TRIED = 400, 200  # seeds
AT_HELDOUT, AT_JUDGE = (RANGES[p].stop - 1_000_000 for p in (Purpose.HELDOUT, Purpose.JUDGE))  # planners begin below
SCRIPTED = whole_weights(DEFAULT)


class Judge:
    """Scores by seed, each the mean of both sides; and what they were, kept in DIR/scores.jsonl."""

    def __init__(self, out):
        self._path = out / "scores.jsonl"
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        self._known = {tuple(row["key"]): row for row in map(json.loads, lines)}

    def __call__(self, net, rival, seeds, seconds):
        """{"scores", "used", "draws"} of a net's file against another's, or None for the scripted brain."""
        key = (sha(net), sha(rival) if rival else "scripted", seeds.start, len(seeds), seconds)
        if key not in self._known:
            row = {"key": key} | self._play(net, rival, seeds, seconds)
            self._known[key] = row
            with self._path.open("a") as file:
                file.write(json.dumps(row) + "\n")
        return self._known[key]

    def _play(self, net, rival, seeds, seconds):
        used, sides, duels, drawn = np.zeros(len(BEHAVIOURS)), [], 0, 0

        def watch(_state, behaviour, now):
            if now % 16 == 0:
                used[:] += np.bincount(behaviour[0], minlength=len(BEHAVIOURS))

        brain, other = player(load_net(net)), player(load_net(rival)) if rival else SCRIPTED
        for swap in (False, True):
            n = len(seeds)
            results = play_nets([brain] * n, [other] * n, list(seeds), seconds, swap=swap, watch=watch)
            sides.append([r.score for r in results])
            duels += sum(r.won + r.lost + r.drawn for r in results)
            drawn += sum(r.drawn for r in results)
        shares = dict(zip(BEHAVIOURS, (used / used.sum()).round(4).tolist(), strict=True))
        return {"scores": np.mean(sides, axis=0).tolist(), "used": shares, "draws": drawn / duels}


def sha(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def cloned(out, hidden=(64, 64)):
    """The clone of that shape, made if it is not there."""
    path = out / ("clone.net" if hidden == (64, 64) else f"clone-{'x'.join(map(str, hidden))}.net")
    if not path.exists():
        began, how = time.process_time(), Cloning(hidden=hidden)
        save_net(path, net := clone(how))
        agrees = agreement(net, how.seed + 1)
        print(f"{path.name}: {time.process_time() - began:.0f} CPU-s, agrees in {100 * agrees:.1f} %", flush=True)
    return path


def trained(out, name, way, seed, marks=()):
    """{decisions: net} at each mark and at the end of a run, made as far as they are not there."""
    folder = out / name.replace(" ", "-") / str(seed)
    folder.mkdir(parents=True, exist_ok=True)
    began, start, ticks = time.process_time(), begin(way, cloned(out, way.hidden), folder), way.ticks // way.rounds
    known, found = [start] if start else [], {0: start}
    for number in range(way.rounds):
        making, settings = lesson(way, [(path, sha(path)) for path in known], number, seed)
        for mark in sorted({m for m in marks if 0 < m < ticks} | {ticks}):
            done = number * ticks + mark
            path = found[done] = folder / f"{done}.net"
            if not path.exists():
                run_to(path, making, settings, ticks, known, mark)
        known.append(path)
    if (spent := time.process_time() - began) > 1:
        print(f"{name}, seed {seed}: {spent:.0f} CPU-s", flush=True)
    return found


def run_to(path, making, settings, ticks, known, mark):
    """Train up to a mark of a run of `ticks`, from its checkpoint on where there is one, and keep the net."""
    came = [0]
    talk = Talk(report=lambda record: came.__setitem__(0, record.ticks), stop=lambda: came[0] >= mark)
    keep = Keep(path=path.with_name(f"{len(known)}.checkpoint"), every=1000, resume=True)
    start = load_net(known[-1]).flat if known else None
    ended = train(making, settings, ticks, start=start, keep=keep, talk=talk)
    net = Net(shape=ended.shape, flat=ended.flat, notes={"made_by": "learn_duel", "ticks": ended.ticks})
    save_net(path, dim(net, getattr(making, "sees", OBS)))


def told(scores):
    read = paired(scores)
    return f"{read.mean:.3f} ± {read.se:.3f}"


def curves(a, judge):
    """Train the runs, judge every mark, print the table, draw the plot."""
    base, seeds = cloned(a.out), range(AT_HELDOUT, AT_HELDOUT + JUDGED)
    runs = [trained(a.out, "as it is", Way(), seed, MARKS) for seed in range(1, a.runs + 1)]
    marks = sorted(runs[0])
    kept = {"the scripted brain": None, "the clone": base}
    lines = {
        against: np.array([[judge(run[m], rival, seeds, SECONDS)["scores"] for m in marks] for run in runs])
        for against, rival in kept.items()
    }  # (runs, marks, seeds)
    print(f"{JUDGED} seeds from {AT_HELDOUT}, {SECONDS} s, both sides; mean of {a.runs} runs ± error; each run's score")
    print("| decisions | " + " | ".join(f"against {name} | runs" for name in lines) + " |")
    for i, mark in enumerate(marks):
        cells = [f"{told(found[:, i].mean(axis=0))} | {spread(found[:, i])}" for found in lines.values()]
        print(f"| {mark:,} | " + " | ".join(cells) + " |")
    final, cloned_scores = runs[0][marks[-1]], judge(base, None, seeds, SECONDS)["scores"]
    for seed, run in enumerate(runs, 1):
        ours = judge(run[marks[-1]], None, seeds, SECONDS)["scores"]
        gain = paired([x - y for x, y in zip(ours, cloned_scores, strict=True)])
        print(
            f"run {seed}, past the clone's score against the scripted: {gain.mean:+.4f} ± {gain.se:.4f}, {past_gate(gain)}"
        )
    longer = judge(final, None, seeds, LONG)
    print(f"run 1 at {LONG} s against the scripted: {told(longer['scores'])}, draws {longer['draws']:.3f}")
    print("  behaviours over 2 %: " + uses(longer))
    if a.svg:
        a.svg.write_text(
            draw(marks, lines, f"{JUDGED} held-out seeds, both sides, plays of {SECONDS} s; {a.runs} runs")
        )


def spread(by_run):
    return " ".join(f"{mean:.3f}" for mean in by_run.mean(axis=1))


def uses(row):
    over = sorted(((share, name) for name, share in row["used"].items() if share > 0.02), reverse=True)
    return ", ".join(f"{name} {100 * share:.0f}" for share, name in over)


def trail(a, judge):
    """Each way, from its start to its end, and what came of it."""
    base, seeds = cloned(a.out), range(AT_JUDGE, AT_JUDGE + TRIED)
    for name in a.trail or TRAIL:
        nets = trained(a.out, name, TRAIL[name], a.seed)
        net = nets[max(nets)]
        row, other = judge(net, None, seeds, SECONDS), judge(net, base, seeds, SECONDS)
        print(f"| {name} | {told(row['scores'])} | {told(other['scores'])} | {uses(row)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--trail", nargs="*", choices=list(TRAIL), metavar="NAME")
    parser.add_argument("--seed", type=int, default=1, help="of the trail's runs")
    a = parser.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    judge = Judge(a.out)
    (curves if a.trail is None else trail)(a, judge)


if __name__ == "__main__":
    main()
