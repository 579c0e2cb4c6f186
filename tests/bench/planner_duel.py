"""What the planner makes of treadcore's scripted brain at the real settings, for docs/explanation/planner-measured.md.

    python tests/bench/planner_duel.py --out DIR [--policy screen rotate] [--seconds 3600] [--judged 400] [--svg FILE]

For each policy `fleet up --seconds S` in a spool of its own under DIR, with the plan that `fleet-plan init` writes and all
cores that the daemon is allowed. Then each adopted brain is judged beside the first one, on seeds that this plan never draws,
the same for all, and on both sides of the map. A spool that is there already is judged as it is. Told are minutes and plays
until each adoption and the gain over the first brain, ± two errors; also the processor time that the jobs took, for a
machine that does other things as well gives them less than an hour of each core.
"""

import argparse
import json
import subprocess
from datetime import datetime
from itertools import accumulate
from pathlib import Path

from learn_plot import COLOURS, DASHES, FAINT, GROUND, INK

from fleetd import Ledger

BIN = Path(__file__).parents[2] / "bin"
UNUSED = 1_400_000_000  # of the judge's range, and a plan without rounds of nets judges none
WIDE, HIGH, LEFT, RIGHT, TOP, FOOT = 640, 360, 56, 32, 64, 56
TICKS = 6  # along the plays


def ran(spool, policy, seconds):
    """The spool, after `seconds` of that policy if it was not there."""
    if spool.exists():
        return
    for argv in (["fleet", "init"], ["fleet-plan", "init"]):
        subprocess.run([BIN / argv[0], *argv[1:], "--spool", spool], check=True, capture_output=True)
    plan = spool / "plan.toml"
    plan.write_text(plan.read_text().replace('name = "screen"', f'name = "{policy}"'))
    with (spool.parent / f"{policy}.log").open("w") as log:
        subprocess.run(
            [BIN / "fleet", "up", "--seconds", str(seconds), "--spool", spool], check=True, stdout=log, stderr=log
        )


def moment(row):
    return datetime.fromisoformat(row.at)


def marks(spool):
    """(minutes, plays, the best's weights) at the beginning, at each adoption and, with the last best, at the end."""
    rows = sorted(Ledger(spool / "ledger.d").rows(), key=moment)
    results = [row for row in rows if row.event == "result"]
    played = list(accumulate((row.body.get("result") or {}).get("plays", 0) for row in results))
    began = moment(next(row for row in rows if row.event != "note"))

    def at(when):
        before = sum(moment(row) <= when for row in results)
        return (when - began).total_seconds() / 60, played[before - 1] if before else 0

    best = None
    yield 0.0, 0, best
    for row in rows:
        if row.event == "adopt" and row.body.get("candidate"):
            best = {**row.body["weights"], **row.body["candidate"]}
            yield *at(moment(row)), best
    yield *at(moment(results[-1])), best


def gained(weights, out, judged):
    """The brain's gain over the first one and its error."""
    if weights is None:
        return 0.0, 0.0
    path = out / "weights.json"
    path.write_text(json.dumps(weights))
    argv = [
        "treadcore",
        "judge",
        "--candidate",
        path,
        "--best",
        "scripted",
        "--seeds",
        f"{UNUSED}:{UNUSED + judged}",
        "--json",
    ]
    told = json.loads(subprocess.run([BIN / argv[0], *argv[1:]], check=True, capture_output=True, text=True).stdout)
    return told["mean"], told["se"]


def curve(out, policy, judged):
    found, known = [], {}
    for minutes, plays, weights in marks(out / policy):
        key = json.dumps(weights, sort_keys=True)
        known[key] = known[key] if key in known else gained(weights, out, judged)
        found.append((minutes, plays, *known[key]))
    return found


def spent(spool):
    """Processor minutes of the jobs that the ledger knows."""
    return sum(row.body.get("cpu_s") or 0 for row in Ledger(spool / "ledger.d").rows()) / 60


def drawn(curves, judged):
    """The picture; steps, for a best stays until the next is adopted."""
    most = max(points[-1][1] for points in curves.values())
    high = max(0.1, max(gain for points in curves.values() for *_, gain, _ in points) * 1.1)

    def x(plays):
        return LEFT + (WIDE - LEFT - RIGHT) * plays / most

    def y(gain):
        return HIGH - FOOT - (HIGH - FOOT - TOP) * gain / high

    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" width="{WIDE}" height="{HIGH}" '
    yield f'font-family="sans-serif" font-size="13"><rect width="{WIDE}" height="{HIGH}" fill="{GROUND}"/>'
    yield f'<text x="{LEFT}" y="24" font-size="15" fill="{INK}">treadcore: gain over the first brain, {judged} seeds</text>'
    for part in range(6):
        line = f'x1="{LEFT}" x2="{WIDE - RIGHT}" y1="{y(high * part / 5):.1f}" y2="{y(high * part / 5):.1f}"'
        yield f'<line {line} stroke="{FAINT}"/>'
        place = f'x="{LEFT - 8}" y="{y(high * part / 5) + 5:.1f}" text-anchor="end"'
        yield f'<text {place} fill="{INK}">{high * part / 5:.2f}</text>'
    tick = next(size for k in range(9) for size in (10**k, 2 * 10**k, 5 * 10**k) if size * TICKS >= most)
    for plays in range(0, most + 1, tick):
        yield f'<text x="{x(plays):.1f}" y="{HIGH - FOOT + 20}" text-anchor="middle" fill="{INK}">{plays:,}</text>'
    yield f'<text x="{WIDE / 2}" y="{HIGH - 12}" text-anchor="middle" fill="{INK}">plays</text>'
    for row, ((name, points), colour, dash) in enumerate(zip(curves.items(), COLOURS, DASHES, strict=False)):
        line = f'fill="none" stroke="{colour}" stroke-width="3" stroke-dasharray="{dash}"'
        steps = [f"M{x(0):.1f} {y(0):.1f}"] + [f"H{x(plays):.1f}V{y(gain):.1f}" for _, plays, gain, _ in points]
        yield f'<path d="{"".join(steps)}" {line}/>'
        yield f'<path d="M{LEFT + 130 * row} 42h33" {line}/>'
        yield f'<text x="{LEFT + 130 * row + 40}" y="47" fill="{INK}">{name}</text>'
    yield "</svg>\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--policy", nargs="+", default=["screen", "rotate"])
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--judged", type=int, default=400)
    parser.add_argument("--svg", type=Path)
    a = parser.parse_args()
    a.out = a.out.resolve()
    a.out.mkdir(parents=True, exist_ok=True)
    curves = {}
    for policy in a.policy:
        ran(a.out / policy, policy, a.seconds)
        curves[policy] = curve(a.out, policy, a.judged)
        print(f"{policy}: {spent(a.out / policy):.0f} processor minutes in jobs", flush=True)
        print("| minutes | plays | gain over the first |\n|---|---|---|")
        for minutes, plays, mean, error in curves[policy]:
            print(f"| {minutes:.1f} | {plays:,} | {mean:+.3f} ± {2 * error:.3f} |", flush=True)
    if a.svg:
        a.svg.write_text("\n".join(drawn(curves, a.judged)))


if __name__ == "__main__":
    main()
