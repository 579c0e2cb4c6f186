"""A long ledger of a plan of 110 weights, and how long `fleet-plan` takes over it.

    python tests/bench/planner_ledger.py make DIR [--rows 100000] [--screens 500] [--policy screen]
    python tests/bench/planner_ledger.py time DIR [--rounds 5]

`make` writes a spool whose ledger is what a fleet of two hosts would have written: passes of raced trials of 55 seeds with
their payload of 110 weights, each with its keep row; an adoption every 1,500 trials with its three held-out rows; screens of
55 pairs; and every tenth row another kind's job. The last trials have no verdict yet. `time` runs the commands with no cache, and
then with one, and prints the wall time and the processor time of each, the least of the rounds.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from fleetd import utc
from fleetd.ledger import SCHEMA, encode_row
from fleetd.spool import init_spool
from planner.fill import KIND, verdict_row
from planner.plan import read_plan
from planner.policy.screen import REACH, axes_of
from planner.screen import Screen, Shake, encode_screen, screen_id
from planner.seeds import Purpose, Span
from planner.standing import Course, Stage
from planner.stats import looks
from planner.trial import Block, Change, Reads, Trial, encode_block, player_hash, trial_id
from planner.verdict import Call, Verdict, read_of

D, HOSTS, EVERY, OPEN = 110, ("ada", "calber"), 1500, 8
BEGUN = datetime(2026, 11, 1, tzinfo=UTC)


class Book:
    """Segments being written."""

    def __init__(self, root):
        self.files = {host: (root / f"{host}.jsonl").open("wb") for host in HOSTS}
        self.seqs, self.rows = dict.fromkeys(HOSTS, 0), 0

    def row(self, event, host, body):
        self.seqs[host] += 1
        self.rows += 1
        at = utc(BEGUN + timedelta(seconds=self.rows))
        head = {"schema": SCHEMA, "event": event, "host": host, "boot": "b" * 8, "seq": self.seqs[host], "at": at}
        self.files[host].write(encode_row(head | body))
        return host, self.seqs[host]

    def result(self, kind, payload, result, host):
        job = f"50-{(BEGUN + timedelta(seconds=self.rows)).strftime('%Y%m%dT%H%M%S')}.000000Z-{kind}-{self.rows:06x}"
        body = {"job": job, "attempt": 1, "outcome": "ok", "exit": 0, "reason": None, "next": None, "kind": kind}
        body |= {"wall_s": 4.5, "cores": 1, "lane": 1, "result": result, "payload": payload}
        return job, self.row("result", host, body)


class Fleet:
    """What was tried, from the first row on."""

    def __init__(self, spool, rows, screens):
        self.plan, self.book = read_plan(spool.plan), Book(spool.ledger_d)
        self.rng, self.rows, self.best = np.random.default_rng(1), rows, self.plan.space.starts()
        self.trials = self.heldouts = self.screens = self.pairs = 0
        self.search = 1
        self.share = screens / rows

    def seeds(self, n):
        self.search += n
        return Span(self.search - n, self.search)

    def run(self):
        pass_ = 0
        while self.book.rows < self.rows:
            pass_ += 1
            span = self.seeds(self.plan.seeds)
            for variable in self.plan.space.weights():
                for direction in (1, -1):
                    if self.book.rows >= self.rows:
                        return
                    to = variable.moved(self.best[variable.name], direction)
                    if to is not None:
                        self.trial(Change(variable=variable.name, from_=self.best[variable.name], to=to), pass_, span)

    def trial(self, change, pass_, span):
        self.trials += 1
        best = dict(self.best)
        hash_ = player_hash(best)
        id_ = trial_id(hash_, {change.variable: change.to}, self.plan.seconds, span)
        trial = Trial(id=id_, changes=(change,), defaults=hash_, pass_=pass_, seconds=self.plan.seconds)
        adopts = self.trials % EVERY == 0
        course = Course(trial=trial, search=self.stage(trial, Purpose.SEARCH, span, (55,), 0.1 if adopts else 0.0))
        if self.book.rows > self.rows - OPEN:
            return
        if adopts:
            low = 500_000_000 + 400 * self.heldouts
            self.heldouts += 1
            course = replace(course, heldout=self.stage(trial, Purpose.HELDOUT, Span(low, low + 400), looks(400), 0.2))
        call = Call.ADOPT if adopts else Call.KEEP
        self.judged(course, call)
        if adopts:
            self.best |= trial.candidate
        if self.screens < self.share * self.book.rows:
            self.screen()
        if self.book.rows % 10 == 0:
            self.book.result("build", {"commit": "0" * 40, "flags": ["-O2"]}, {"bytes": 12345}, self.host())

    def host(self):
        return HOSTS[self.rng.integers(2)]

    def stage(self, trial, purpose, span, looks_, effect):
        part = Span(span.low, span.low + looks_[0])
        block = Block(
            trial=trial, name=self.plan.name, census=self.plan.census, purpose=purpose, seeds=part, span=span,
            looks=looks_, best=self.best, play_timeout_s=60.0, deterministic=True,
        )  # fmt: skip
        luck = self.rng.normal(100, 15, len(part)).round(3)
        gain = self.rng.normal(effect - 0.2, 1.0, len(part)).round(3)
        if purpose is Purpose.HELDOUT:
            gain += 0.8
        scores = {
            s: (a, b) for s, a, b in zip(range(part.low, part.high), (luck + gain).tolist(), luck.tolist(), strict=True)
        }
        job, key = self.book.result(KIND[purpose], encode_block(block), self.told(scores, block), self.host())
        return Stage(span=span, looks=looks_, reads={part: Reads(scores=scores)}, jobs=(job,), rows=frozenset([key]))

    def told(self, scores, block):
        head = {"schema": "fleet.reads/1", "reads": [[s, a, b] for s, (a, b) in scores.items()]}
        head |= {"plays": 2 * len(scores), "reused": 0, "failed": 0, "errors": {}, "void": False, "noise": 0}
        return head | {"build": None, "rules": "maze 3", "players": block.hashes}

    def judged(self, course, call):
        purpose = Purpose.HELDOUT if course.heldout else Purpose.SEARCH
        read = read_of(course.heldout or course.search)
        said = f"{course.trial.change}: {read.mean:+.2f} ± {read.se:.2f} over {read.n} seeds, the best stays"
        reason = "past the gate" if call is Call.ADOPT else "hopeless"
        verdict = Verdict(call=call, reason=reason, sentence=said, purpose=purpose, read=read)
        body = verdict_row(self.plan, SimpleStanding(self.best), course, verdict, "fleet-plan@ada")
        self.book.row(body.pop("event"), self.host(), body)

    def screen(self):
        self.screens += 1
        weights = self.plan.space.weights()
        centre = np.array([self.best[v.name] / v.step for v in weights]) + 0.001 * self.screens
        beside = self.screens <= 3
        axes = axes_of(weights, centre, np.full(D, REACH))
        seeds, shake = self.seeds(self.plan.seeds), Shake.BESIDE if beside else Shake.MIRRORED
        made = Screen(
            id=screen_id(axes, shake, self.plan.seconds, seeds), name=self.plan.name, census=self.plan.census,
            seconds=self.plan.seconds, seeds=seeds, axes=axes, defaults=player_hash(self.best), pairs=self.pairs,
            shake=shake, play_timeout_s=60.0, deterministic=True,
        )  # fmt: skip
        luck = self.rng.normal(100, 15, len(seeds)).round(3).tolist()
        gain = self.rng.normal(-2.0 if beside else 0.0, 4.0, len(seeds)).round(3).tolist()
        scores = {s: (a + g, a) for s, a, g in zip(range(seeds.low, seeds.high), luck, gain, strict=True)}
        self.pairs += 0 if beside else len(seeds)
        self.book.result("screen", encode_screen(made), self.told(scores, made), self.host())


class SimpleStanding:
    """As much of a standing as a verdict's row takes."""

    def __init__(self, weights):
        self.best = self
        self.weights = weights


def make(args):
    spool = init_spool(args.dir, home="ada")
    spool.plan.write_text(
        f'name = "long"\ncensus = ["true", "census"]\n[policy]\nname = "{args.policy}"\n'
        "[trial]\nseeds = 55\nheldout = 400\nseconds = 900\n"
    )
    table = '[[variable]]\nname = "{}"\nstart = {}\nlow = -5\nhigh = 5\nstep = 0.25\n'
    names = (f"group{n % 11}.weight_of_{n}" for n in range(D))
    (args.dir / "space.toml").write_text("\n".join(table.format(name, n % 7 - 3) for n, name in enumerate(names)))
    fleet = Fleet(spool, args.rows, args.screens)
    fleet.run()
    size = sum(file.tell() for file in fleet.book.files.values())
    of = f"{fleet.trials:,} trials, {fleet.screens:,} screens, {fleet.heldouts} adoptions"
    print(f"{fleet.book.rows:,} rows, {size / 1e6:,.0f} MB: {of}")


def timed(args):
    cache = args.dir / "cache"
    environ = os.environ | {"FLEET_SPOOL": str(args.dir), "FLEET_HOST": "ada", "XDG_CACHE_HOME": str(cache)}
    commands = (("next",), ("suggest",), ("fill", "--dry-run", "--count", "40"))
    print(f"{'command':30} {'no cache':>16} {'with it':>16}   (wall s, processor s)")
    for words in commands:
        shutil.rmtree(cache, ignore_errors=True)
        cold = run(words, environ)
        warm = min(run(words, environ) for _ in range(args.rounds))
        print(f"{' '.join(words):30} {cold[0]:8.2f} {cold[1]:7.2f} {warm[0]:8.2f} {warm[1]:7.2f}", flush=True)


def run(words, environ):
    before, at = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-m", "planner.cli", *words], env=environ, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - at, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    make_ = commands.add_parser("make")
    make_.add_argument("dir", type=Path)
    make_.add_argument("--rows", type=int, default=100_000)
    make_.add_argument("--screens", type=int, default=500)
    make_.add_argument("--policy", default="screen")
    make_.set_defaults(run=make)
    time_ = commands.add_parser("time")
    time_.add_argument("dir", type=Path)
    time_.add_argument("--rounds", type=int, default=5)
    time_.set_defaults(run=timed)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
