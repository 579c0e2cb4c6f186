"""A hill of known truth and a ledger in memory: what a policy asks for is queued, played and judged as a fleet would."""

import random

import numpy as np

from fleetd import Row
from planner.due import Order, blocks_due, terms_of
from planner.facts import Facts
from planner.fill import verdict_row
from planner.plan import Plan
from planner.policy import POLICIES
from planner.screen import Screen, encode_screen, sides
from planner.space import Space, Variable
from planner.standing import standing
from planner.trial import encode_block
from planner.verdict import Call, Verdict, verdict_on


def space(*names, **changes):
    table = {"start": 0.0, "low": -5.0, "high": 5.0, "step": 0.5} | changes
    return Space(tuple(Variable(name=name, **table) for name in names))


def plan(variables, policy="screen", **changes):
    settings = {"seeds": 55, "seconds": 1, "heldout": 400} | changes
    return Plan(name="hill", census=("x",), space=variables, policy=policy, **settings)


class Hill:
    """A score: minus curvature / 2 of the squared distance from `best` (in steps), with noise of `sd` on a difference."""

    def __init__(self, best, curvature=0.02, sd=1.0):
        self.best, self.curvature, self.sd = np.asarray(best, dtype=float), curvature, sd

    def differences(self, one, other, seeds):
        luck = np.array([np.random.default_rng([7, seed]).standard_normal() for seed in seeds])
        return self.mean(one) - self.mean(other) + self.sd * luck

    def mean(self, x):
        return -self.curvature / 2 * ((x - self.best) ** 2).sum(axis=-1)


class Fleet:
    """A plan, its ledger and its queue."""

    def __init__(self, plan_, hill):
        self.plan, self.hill, self.rows, self.queue, self.jobs = plan_, hill, [], {}, 0
        self.steps = np.array([v.step for v in plan_.space.weights()])

    def seen(self, rows=None):
        facts = Facts(self.plan.name)
        facts.add(self.rows if rows is None else rows)
        return standing(facts, self.plan.space, self.queue)

    def shuffled(self, seed):
        return self.seen(random.Random(seed).sample(self.rows, len(self.rows)))

    def asks(self, room, seen=None):
        return POLICIES[self.plan.policy](seen or self.seen(), terms_of(self.plan), room)

    def row(self, event, body, at=None):
        seq = len(self.rows) + 1
        self.rows.append(Row("h", seq, event, at or f"2026-01-01T00:{seq // 60:02d}:{seq % 60:02d}Z", body))

    def fill(self, depth):
        """What is due, queued; the new tasks."""
        new = blocks_due(self.seen(), self.plan, Order(depth=depth), len(self.queue))
        self.queue |= {f"50-{self.jobs + k:08d}-x": task for k, task in enumerate(new)}
        self.jobs += len(new)
        return new

    def play(self, job, **changes):
        """A row with the scores of the job's seeds; `changes` in what it says."""
        task = self.queue.pop(job)
        seeds = range(task.seeds.low, task.seeds.high)
        result = {"reads": self.reads(task, seeds), "plays": 2 * len(seeds), "build": changes.pop("build", None)}
        payload = encode_screen(task) if isinstance(task, Screen) else encode_block(task)
        head = {"job": job, "attempt": 1, "outcome": "ok", "payload": payload, "result": result}
        self.row("result", head | changes)

    def reads(self, task, seeds):
        if isinstance(task, Screen):
            one, other = (side / self.steps for side in sides(task, seeds))
        else:
            names = [v.name for v in self.plan.space.weights()]
            rows = [[w[n] for n in names] for w in ({**task.best, **task.trial.candidate}, task.best)]
            one, other = (np.tile(np.array(row) / self.steps, (len(seeds), 1)) for row in rows)
        scores = self.hill.differences(one, other, seeds)
        return [[seed, float(score), 0.0] for seed, score in zip(seeds, scores, strict=True)]

    def decide(self, call, reason="because"):
        """A verdict row on the trial that has none yet."""
        seen = self.seen()
        (course,) = (c for c in seen.courses.values() if not c.ruling)
        self.row(call.value, verdict_row(self.plan, seen, course, Verdict(call=call, reason=reason), "a test"))

    def settle(self):
        """The verdicts that are due, as rows; at most one adoption."""
        seen = self.seen()
        ruled = [(c, verdict_on(seen, c)) for c in seen.courses.values() if not c.ruling]
        due = [r for r in ruled if r[1].call is Call.ADOPT][:1] + [r for r in ruled if r[1].call is Call.KEEP]
        for course, verdict in due:
            body = verdict_row(self.plan, seen, course, verdict, "a test")
            self.row(body["event"], body)

    def go(self, jobs, depth=2):
        """So many jobs, one after another."""
        for _ in range(jobs):
            self.settle()
            self.fill(depth)
            if not self.queue:
                return
            self.play(min(self.queue))
        self.settle()
