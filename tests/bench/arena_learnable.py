"""Is the duel a game that learning can improve on? Figures for docs/explanation/arena.md.

    python tests/bench/arena_learnable.py [--generations 60] [--plays 400] [--seconds 900]

Evolves the 110 weights by mirrored perturbations against the reference, checks the result on fresh seeds, and counts
draws, behaviours in use, weights that matter, and what one step of one weight does to a paired difference.
"""

import argparse
import json
import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.arena.state import State
from planner.brain.match import Result, play
from planner.brain.weights import BEHAVIOURS, DEFAULT, NAMES, TABLE, whole_weights

Floats = npt.NDArray[np.float64]
START: Floats = np.array([DEFAULT[n] for n in NAMES])
LOW, HIGH, STEP = (np.array([getattr(w, k) for w in TABLE]) for k in ("low", "high", "step"))
BATCH = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """Scores of N plays, the draws among their duels, duels a play, and the player's share of time by behaviour."""

    scores: Floats
    draws: float
    duels: float
    used: Floats

    @property
    def mean(self) -> float:
        return float(self.scores.mean())

    @property
    def se(self) -> float:
        return float(self.scores.std(ddof=1) / np.sqrt(self.scores.size))


def whole(weights: Floats) -> npt.NDArray[np.int32]:
    return whole_weights(dict(zip(NAMES, (float(w) for w in weights), strict=True)))


def reads(players: list[Floats], seeds: list[int], seconds: float, against: Floats = START) -> Reads:
    used = np.zeros(len(BEHAVIOURS))

    def watch(_state: State, behaviour: npt.NDArray[np.intp], now: int) -> None:
        if now % 16 == 0:
            used[:] += np.bincount(behaviour[0], minlength=len(BEHAVIOURS))

    results: list[Result] = []
    for i in range(0, len(players), BATCH):
        part = [whole(p) for p in players[i : i + BATCH]]
        results += play(part, [whole(against)] * len(part), seeds[i : i + BATCH], seconds, watch=watch)
    duels = sum(r.won + r.lost + r.drawn for r in results)
    return Reads(
        scores=np.array([r.score for r in results]),
        draws=sum(r.drawn for r in results) / max(duels, 1),
        duels=duels / len(results),
        used=used / used.sum(),
    )


def evolve(generations: int, seed: int, against: Floats = START, pairs: int = 128, seconds: float = 300.0) -> Floats:
    """Mirrored perturbations, sd 0.5 falling to 0.25: each generation steps along its scores' slope."""
    rng = np.random.default_rng(seed)
    at = against.copy()
    for g in range(generations):
        sd = 0.5 - 0.25 * g / generations
        noise = rng.standard_normal((pairs, at.size))
        players = [np.clip(at + sign * sd * n, LOW, HIGH) for sign in (1, -1) for n in noise]
        first = 10**6 + 10**4 * seed + g * pairs
        scores = reads(players, 2 * list(range(first, first + pairs)), seconds, against).scores
        gain = scores[:pairs] - scores[pairs:]
        slope = (gain @ noise) / (np.abs(gain).mean() * pairs)
        at = np.clip(at + 0.6 * sd * slope / np.sqrt((slope**2).mean()) * 0.5, LOW, HIGH)
    return at


def matter(at: Floats, plays: int, seconds: float, steps: float) -> tuple[Floats, float, float]:
    """Each weight's effect in errors, at `steps` steps up on paired seeds; median sd of a pair; median correlation."""
    seeds = list(range(plays))
    base = reads([at] * plays, seeds, seconds).scores
    changed = [at + steps * STEP * (np.arange(at.size) == i) for i in range(at.size)]
    every = reads([p for p in changed for _ in seeds], seeds * at.size, seconds).scores.reshape(at.size, plays)
    effects, sds, rhos = [], [], []
    for scores in every:
        d = scores - base
        sd = float(d.std(ddof=1))
        effects.append(d.mean() / (sd / np.sqrt(plays)) if sd else 0.0)
        sds.append(sd)
        rhos.append(float(np.corrcoef(scores, base)[0, 1]))
    return np.array(effects), float(np.median(sds)), float(np.median(rhos))


def told(name: str, r: Reads) -> None:
    shares = " ".join(f"{b} {100 * u:.1f}" for b, u in zip(BEHAVIOURS, r.used, strict=True))
    print(f"{name}: score {r.mean:.4f} +- {r.se:.4f} (sd of a play {r.scores.std(ddof=1):.4f}), n {r.scores.size}")
    print(f"   draws {r.draws:.3f}, duels a play {r.duels:.1f}, behaviours over 2 %: {(r.used > 0.02).sum()}: {shares}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--generations", type=int, default=60)
    parser.add_argument("--plays", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=900.0)
    parser.add_argument("--no-matter", action="store_true", help="skip the effects of single weights")
    parser.add_argument("--matter-plays", type=int, default=400)
    parser.add_argument("--matter-seconds", type=float, default=900.0)
    a = parser.parse_args()
    fresh = list(range(5 * 10**8, 5 * 10**8 + a.plays))
    rng = np.random.default_rng(0)
    started = time.monotonic()
    told("default", reads([START] * a.plays, fresh, a.seconds))
    told("random, uniform in -2 .. 2", reads([rng.uniform(-2, 2, START.size) for _ in fresh], fresh, a.seconds))
    for sd in (0.25, 1.0):
        told(
            f"default + noise of sd {sd}",
            reads([START + sd * rng.standard_normal(110) for _ in fresh], fresh, a.seconds),
        )
    evolved = evolve(a.generations, 1)
    told("evolved", reads([evolved] * a.plays, fresh, a.seconds))
    again = evolve(a.generations, 2, against=evolved)
    told("evolved again, against evolved", reads([again] * a.plays, fresh, a.seconds, against=evolved))
    told("evolved again, against the default", reads([again] * a.plays, fresh, a.seconds))
    print(json.dumps({n: round(float(w), 2) for n, w in zip(NAMES, evolved, strict=True)}))
    if not a.no_matter:
        for name, at in (("default", START), ("evolved", evolved)):
            for steps in (1, 4):
                effects, sd, rho = matter(at, a.matter_plays, a.matter_seconds, steps)
                up, down, any_ = (effects > 2.5).sum(), (effects < -2.5).sum(), (effects != 0).sum()
                print(f"{name}, one weight {steps} steps up, {a.matter_plays} plays of {a.matter_seconds:g} s:")
                print(f"   past 2.5 errors: {up} better, {down} worse; any effect: {any_}")
                print(f"   sd of a pair {sd:.4f}, correlation {rho:.3f}")
    print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
