"""fleet-plan init: plan.toml and space.toml for treadcore, at the real settings."""

import argparse
import subprocess
from pathlib import Path

from fleetd import CannotCreate, Talk, find_program, find_spool
from planner.plan import read_plan

PLAN = """\
# What the planner varies and how it reads. `fleet-plan next` shows what comes of it.
name = "treadcore"
space = "space.toml"                 # the [[variable]] tables, beside this file
census = ["treadcore", "census"]     # plays in, scores out; {build} stands for the build's directory

[trial]
seeds = 55                           # of a search: they propose
seconds = 900                        # of play
heldout = 400                        # at most, of seeds that nobody used before: they decide
cores = 1                            # what one census may use
deterministic = true                 # the same play, the same score; false for an engine on a clock
play_timeout_s = 300                 # no answer for so long: the play that is due hangs; a batch must fit in it
needs = []                           # tags that a host must have

[net]
share = 0                            # of the lanes' time, for rounds of nets: train, judge, verdict; 0: none
first = ["treadcore", "clone"]       # makes the first net
train = ["treadcore", "train", "--from", "{best}", "--seed", "{seed}", "--rewards", "{rewards}",
         "--feedback", "{feedback}", "--rivals", "{rivals}"]
# cores = 2                          # lanes that it may use; without this line those of a trial
judge_seeds = 400                    # fresh seeds that a new net is read on, beside the best
train_needs = []                     # tags that a host must have to train
judge_needs = []                     # and to judge

[policy]
name = "screen"                      # all variables at once, in mirrored pairs; also: race, rotate, spsa
# floor = 0.1                        # of the search plays, for trials of single variables
"""

RANGE = (-1.0, 1.0, 0.125)  # low, high, step of a reward term's weight
RANGES = {
    "win": (0.0, 4.0, 0.25),
    "loss": (-4.0, 0.0, 0.25),
    "feedback.positive": (0.0, 1.0, 0.125),
    "feedback.negative": (-1.0, 0.0, 0.125),
}
LIKES = {"feedback.positive": 0.25, "feedback.negative": -0.25}  # what people say counts from the beginning


def init(args: argparse.Namespace, talk: Talk) -> int:
    """Write both files; raises CannotCreate when either is there."""
    spool = find_spool(args.spool, talk.environ)
    plan, space = spool.plan, spool.root / "space.toml"
    if there := [path for path in (plan, space) if path.exists() or path.is_symlink()]:
        raise CannotCreate(f"{there[0]}: is there already; init never overwrites, move it away first")
    _write(space, _weights(talk) + _rewards())
    _write(plan, PLAN)
    read = read_plan(plan)
    if talk.json:
        talk.emit({"schema": "fleet.plan-init/1", "plan": str(plan), "space": str(space)})
        return 0
    talk.data(str(plan))
    talk.data(str(space))
    talk.say(
        f"{len(read.space.weights())} variables, {read.seeds} seeds of {read.seconds:g} s, {read.heldout} held out"
    )
    talk.say("next: fleet-plan fill queues plays, fleetd runs them, fleet up does it all")
    return 0


def _weights(talk: Talk) -> str:
    """What `treadcore weights` prints: a space.toml."""
    told = subprocess.run(
        [find_program("treadcore", talk.environ), "weights"], capture_output=True, text=True, check=False
    )
    if told.returncode:
        raise CannotCreate(f"`treadcore weights` ended with exit {told.returncode}: {told.stderr.strip()}")
    return told.stdout


def _rewards() -> str:
    """The terms that training is rewarded by, as variables beside the weights."""
    from planner.train.rewards import DEFAULT, MEANINGS

    head = "\n# What rounds of nets are rewarded for: the weight of each term, for each round to change one.\n"
    tables = []
    for term, meaning in MEANINGS.items():
        low, high, step = RANGES.get(term, RANGE)
        start = LIKES.get(term, DEFAULT[term])
        numbers = f"start = {start}\nlow = {low}\nhigh = {high}\nstep = {step}\n"
        tables.append(f'\n# {meaning}\n[[variable]]\nname = "{term}"\n{numbers}group = "reward"\n')
    return head + "".join(tables)


def _write(path: Path, text: str) -> None:
    try:
        with path.open("x") as file:
            file.write(text)
    except OSError as error:
        raise CannotCreate(f"{path}: {error.strerror}") from error
