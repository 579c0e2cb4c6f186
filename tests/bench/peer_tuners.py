"""Other people's tuners on our worlds, one run for each line of stdin; planner_peers.py runs this.

PYTHON tests/bench/peer_tuners.py WORLDS POLICY PLAYS: for each line `WORLD HILL`, a run, told as planner_world's line. PYTHON has
cma, nevergrad, optuna, cmaes and numpy, and nothing of the planner is needed.

A policy is a generator: it plays a batch, yields the player that it would recommend now, and stops when the plays are used up.
At CHECKS of the budget and at its end the recommendation goes through the held-out check; what that plays is part of the
budget. Fairness: all begin at the start with steps of one step (the space's unit); what a library leaves open was tried both
ways on hills that are not among the measured ones (from 101), and the better way stayed.
"""

import json
import sys
import time
import warnings

import cma
import nevergrad as ng
import numpy as np
import optuna
import planner_world as pw

CHECKS = tuple(n / 36 for n in (1, 2, 4, 8, 16, 24))  # and the end: a check that fails at once costs 200 plays


def sep_cma(popsize, seeds=10):
    def policy(game, seed):
        """sep-CMA-ES; a generation shares its seeds; recommended is the mean of the distribution."""
        options = {"CMA_diagonal": True, "popsize": popsize, "seed": seed, "verbose": -9}
        search = cma.CMAEvolutionStrategy(np.zeros(game.hill.d), 1.0, options)
        while game.left >= popsize * seeds:
            players = search.ask()
            search.tell(players, -game.scores(players, game.seeds(seeds)).mean(1))
            yield search.mean

    return policy


def by_nevergrad(name, batch, seeds=5):
    def policy(game, seed):
        """`batch` evaluations share their seeds; recommended is what the library recommends."""
        space = ng.p.Array(init=np.zeros(game.hill.d)).set_mutation(sigma=1.0)
        space.random_state.seed(seed)
        search = ng.optimizers.registry[name](parametrization=space, budget=game.left // seeds)
        while game.left >= batch * seeds:
            asked = [search.ask() for _ in range(batch)]
            scores = game.scores([a.value for a in asked], game.seeds(seeds)).mean(1)
            for candidate, score in zip(asked, scores, strict=True):
                search.tell(candidate, -float(score))
            yield search.recommend().value

    return policy


def by_optuna(sampler, batch, seeds):
    def policy(game, seed):
        """The mean difference to the best on the batch's seeds, and what the best was found to be worth, is to be large.

        The first batch is the start and players a step about it: drawn from the whole space, as TPE does, all are hopeless.
        Recommended is the mean of the better half of the last batch: the trial that did best of all is the luckiest one.
        """
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore")
        study = optuna.create_study(direction="maximize", sampler=sampler(seed, game.hill.d))
        space = {
            f"w{i:03d}": optuna.distributions.FloatDistribution(game.hill.low, game.hill.high)
            for i in range(game.hill.d)
        }
        near = np.random.default_rng(seed).normal(0, 1, (batch, game.hill.d))
        near[0] = 0.0
        for x in near:
            study.enqueue_trial(dict(zip(space, x.tolist(), strict=True)))
        while game.left >= (batch + 1) * seeds:
            trials = [study.ask(space) for _ in range(batch)]
            players = np.array([list(trial.params.values()) for trial in trials])
            scores = game.scores([*players, game.best], game.seeds(seeds))
            values = (scores[:-1] - scores[-1]).mean(1) + game.worth
            for trial, value in zip(trials, values, strict=True):
                study.tell(trial, float(value))
            yield players[np.argsort(-values)[: batch // 2]].mean(0)

    return policy


def tpe(seed, _d):
    return optuna.samplers.TPESampler(seed=seed)


def cmaes(seed, d):
    """sigma0 is a share of the range there: a twelfth is one step. Separable, and 40 a generation, as does better above."""
    x0 = {f"w{i:03d}": 0.0 for i in range(d)}
    sampler = optuna.samplers.CmaEsSampler
    return sampler(x0=x0, sigma0=1 / 12, seed=seed, popsize=40, use_separable_cma=True, warn_independent_sampling=False)


def spsa(end, r_end=0.002):
    def policy(game, seed):
        """fishtest's schedule, which is told its horizon; c_end is `end` steps; recommended is where it stands."""
        rng, theta = np.random.default_rng(seed), np.zeros(game.hill.d)
        horizon = int((game.left - 200 * len(CHECKS)) // 2)
        big_a, alpha, gamma = 0.1 * horizon, 0.602, 0.101
        c0, a0 = end * horizon**gamma, r_end * end**2 * (big_a + horizon) ** alpha
        for k in range(1, horizon + 1):
            if game.left < 2:
                return
            c, a = c0 / k**gamma, a0 / (big_a + k) ** alpha
            flip, turn = rng.choice([-1.0, 1.0], theta.size), rng.random(theta.size)
            pair = np.array([theta + c * flip, theta - c * flip])
            pair = np.where(game.hill.whole, np.floor(pair + turn), pair)
            won = game.diffs(pair[:1], pair[1:])[0]
            theta = np.clip(theta + a / c * won * flip, game.hill.low, game.hill.high)
            yield theta

    return policy


POLICIES = {
    "sep-cma": sep_cma(18),  # the library's own size of a generation at 110 variables
    "sep-cma-40": sep_cma(40),  # which does better here
    "tbpsa": by_nevergrad("TBPSA", 1),  # with seeds shared by a generation it does worse
    "one-plus-one": by_nevergrad("OptimisticNoisyOnePlusOne", 1),
    "spsa-1": spsa(1.0),
    "spsa-2": spsa(2.0),
    "optuna-cma": by_optuna(cmaes, 40, 10),
    "optuna-tpe": by_optuna(
        tpe, 20, 55
    ),  # more seeds, fewer trials: a trial costs a sampler of so many variables 60 ms
}


def run(game, policy):
    """Plays until the budget is used up; each time a mark is passed, and at the end, what is recommended is checked."""
    marks, recommended = [share * game.budget for share in CHECKS], game.best
    for recommended in policy(game, game.hill.seed):
        if marks and game.plays >= marks[0] and game.left >= pw.DEAREST:
            game.check(recommended)
            marks = [mark for mark in marks if mark > game.plays]
    game.check(recommended)


def main() -> None:
    path, name, plays = sys.argv[1:]
    worlds = pw.load(path)
    for line in sys.stdin:
        world, hill = line.split()
        game, began = pw.Game(pw.Hill(worlds, world, int(hill)), int(plays)), time.process_time()
        run(game, POLICIES[name])
        print(json.dumps(game.line(name, time.process_time() - began)), flush=True)


if __name__ == "__main__":
    main()
