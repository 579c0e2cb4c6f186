"""Games whose truth is known, in process: what policies are measured on, and the account of what they spend.

The worlds are those of a worlds.py that stands elsewhere (`load`). `Hill` is one of them, played fast: a seed's features are
drawn once for all players of it; test_planner_world.py holds it to the file's own scores. `Game` lends a hill to a policy:
counts each play, draws each seed once, and has the one way to adopt, the held-out check. What comes of it is a `line`, one
JSON object a run, which planner_table.py makes tables of.
"""

import importlib.util
import math
import sys

import numpy as np

LOOKS = ((100, 3.078), (200, 2.728), (400, 2.410))  # Student's t at the tails of z = 3.0, 2.7, 2.4
FUTILE = 0.3  # below it at the first two looks, nothing more is hoped for
DEAREST = 2 * LOOKS[-1][0]  # plays of a check that goes all the way


def load(path):
    """The module at `path`, which has World, D, FEATURES, LENGTH, LOW, HIGH."""
    spec = importlib.util.spec_from_file_location("worlds", path)
    if spec is None or spec.loader is None:
        sys.exit(f"planner_world: {path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Hill:
    """World `name` of the module `worlds`, number `seed`; players are rows of D steps away from the start."""

    def __init__(self, worlds, name, seed):
        self.world, self.name, self.seed = worlds.World(name, seed), name, seed
        self.d, self.low, self.high = worlds.D, worlds.LOW, worlds.HIGH
        self.features, self.length = worlds.FEATURES, worlds.LENGTH
        self.whole = self.world.whole

    def playable(self, x):
        """The nearest player that the space allows."""
        x = np.clip(x, self.low, self.high)
        return np.where(self.whole, np.floor(x + 0.5), x)

    def gain(self, x):
        """The share of what can be gained."""
        return float(self.world.gain(x))

    def means(self, players):
        """world.mean of each row."""
        w, x = self.world, players
        if self.name == "dead":
            x = np.sign(x) * np.maximum(np.abs(x) - 1.2, 0.0) * 1.5
        x = np.where(w.whole, np.floor(x + 0.5), x)
        d = x - w.best
        fallen = np.sum(x * np.sign(w.cliff) > np.abs(w.cliff), axis=1) if self.name == "rough" else 0
        return -0.5 * ((d @ w.hill) * d).sum(1) - 0.15 * fallen

    def luck(self, players, seed):
        """What the seed adds to each row's mean."""
        r = np.random.default_rng([self.seed, seed])
        common = r.standard_normal()
        w = r.standard_normal((self.features, self.d)) / self.length
        phase = r.uniform(0, 2 * math.pi, self.features)
        own = math.sqrt(2 / self.features) * np.cos(players @ w.T + phase).sum(1)
        return math.sqrt(0.3) * common + math.sqrt(0.7) * own

    def scores(self, players, seeds):
        """A row for each player, a column for each seed."""
        return self.means(players)[:, None] + np.array([self.luck(players, seed) for seed in seeds]).T

    def diffs(self, these, those, seed0):
        """Row j of `these` less row j of `those`, both on seed seed0 + j."""
        pairs = np.stack([these, those], axis=1)
        lucks = np.array([self.luck(pair, seed0 + j) for j, pair in enumerate(pairs)])
        return self.means(these) - self.means(those) + lucks[:, 0] - lucks[:, 1]


class Game:
    """A hill, what may be played on it, and what has been adopted."""

    def __init__(self, hill, plays):
        self.hill, self.budget, self.best = hill, plays, np.zeros(hill.d)
        self.spent = {"search": 0, "heldout": 0}
        self.adoptions, self.checks, self.worth, self.seed = [], 0, 0.0, 1

    @property
    def plays(self):
        return sum(self.spent.values())

    @property
    def left(self):
        """Plays that a search may still use, when one more check is to come."""
        return self.budget - self.plays - DEAREST

    def seeds(self, count):
        """Seeds that nobody has seen."""
        self.seed += count
        return range(self.seed - count, self.seed)

    def scores(self, players, seeds):
        """As hill.scores, of what `players` are once the space allows them."""
        self.spent["search"] += len(players) * len(seeds)
        return self.hill.scores(self.hill.playable(np.asarray(players)), seeds)

    def diffs(self, these, those, purpose="search"):
        """As hill.diffs, on fresh seeds, of players that the space allows."""
        self.spent[purpose] += 2 * len(these)
        these, those = self.hill.playable(these), self.hill.playable(those)
        return self.hill.diffs(these, those, self.seeds(len(these))[0])

    def check(self, x):
        """Adopts x if held-out seeds show it to be better than the best."""
        x = self.hill.playable(np.asarray(x))
        if np.array_equal(x, self.best):
            return False
        self.checks += 1
        found = np.empty(0)
        for seeds, bar in LOOKS:
            more = seeds - len(found)
            found = np.append(found, self.diffs(np.tile(x, (more, 1)), np.tile(self.best, (more, 1)), "heldout"))
            t = found.mean() / (found.std(ddof=1) / math.sqrt(seeds)) if found.any() else 0.0
            if t > bar:
                self._adopt(x, float(found.mean()))
                return True
            if t < FUTILE:
                return False
        return False

    def _adopt(self, x, read):
        before, after = self.hill.gain(self.best), self.hill.gain(x)
        self.adoptions.append({"plays": self.plays, "read": read, "true": after - before, "gain": after})
        self.best, self.worth = x, self.worth + read

    def line(self, policy, seconds):
        """The run as an object for JSON: `gain` is the share of what can be gained, `adoptions[].true` that of one step."""
        return {
            "policy": policy,
            "world": self.hill.name,
            "hill": self.hill.seed,
            "plays": self.budget,
            "gain": self.hill.gain(self.best),
            "spent": self.spent,
            "checks": self.checks,
            "adoptions": self.adoptions,
            "seconds": round(seconds, 2),
        }
