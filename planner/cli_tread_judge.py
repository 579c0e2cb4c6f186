"""treadcore judge: a candidate beside the best, each on the same seeds and on both sides of the map, seed by seed."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fleetd import BadData, NotFound, Talk, decode_json
from planner.cli_tread_out import tell
from planner.seeds import RANGES, Purpose, Span
from planner.stats import LEAST_SEEDS, Paired, paired, past_gate

if TYPE_CHECKING:
    from planner.brain.decide import Brain

SCRIPTED: Final = "scripted"
SEEDS_MOST: Final = 1_000_000
BATCH: Final = 256  # seeds played together


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """A player as it is named, as it plays, and its file's hash where it is a net."""

    named: str
    brain: "Brain"
    sha256: str | None = None


def judge(args: argparse.Namespace, talk: Talk) -> None:
    """Play, and tell the difference; the exit code is 0 whatever it is."""
    from planner.arena.compiled import choose_kernel
    from planner.train.threads import one_blas_thread

    one_blas_thread()
    candidate, best = seat(args.candidate, "--candidate"), seat(args.best, "--best")
    kernel = choose_kernel(None, talk.environ)
    seeds = range(args.seeds.low, args.seeds.high)
    ours: list[float] = []
    theirs: list[float] = []
    for low in range(0, len(seeds), BATCH):
        part = seeds[low : low + BATCH]
        ours += scores(candidate.brain, part, args.seconds, kernel.name)
        theirs += scores(best.brain, part, args.seconds, kernel.name)
        so_far = paired([c - b for c, b in zip(ours, theirs, strict=True)])
        talk.say(f"treadcore: {so_far.n} of {len(seeds)} seeds: {so_far.mean:+.4f} ± {so_far.se:.4f}")
    tell(_told(candidate, best, ours, theirs), talk)


def scores(brain: "Brain", seeds: range, seconds: float, kernel: str) -> Iterator[float]:
    """A player's score against the reference on each seed, the mean of both sides of the map."""
    from planner.brain.match import play
    from planner.brain.net import Player
    from planner.brain.netplay import play_nets
    from planner.brain.weights import DEFAULT, whole_weights

    against = [whole_weights(DEFAULT)] * len(seeds)
    sides = []
    for swap in (False, True):
        if isinstance(brain, Player):
            results = play_nets([brain] * len(seeds), against, list(seeds), seconds, swap=swap)
        else:
            results = play([brain] * len(seeds), against, list(seeds), seconds, swap=swap, kernel=kernel)
        sides.append([result.score for result in results])
    return ((one + other) / 2 for one, other in zip(*sides, strict=True))


def _told(candidate: Seat, best: Seat, ours: list[float], theirs: list[float]) -> dict[str, Any]:
    read = paired([c - b for c, b in zip(ours, theirs, strict=True)])
    verdict, reason = verdict_of(read)
    return {
        "mean": read.mean,
        "se": read.se,
        "n": read.n,
        "t_interval": None if read.low is None else [read.low, read.high],
        "verdict": verdict,
        "reason": reason,
        "candidate": {"player": candidate.named, "sha256": candidate.sha256, "score": sum(ours) / len(ours)},
        "best": {"player": best.named, "sha256": best.sha256, "score": sum(theirs) / len(theirs)},
    }


def verdict_of(read: Paired) -> tuple[str, str]:
    """Adopt or keep, and why: the planner's gate, past two standard errors by Student's t."""
    if read.still:
        return "keep", "no seed changed"
    if read.n < LEAST_SEEDS:
        return "keep", "too few seeds"
    return ("adopt", "past two standard errors") if past_gate(read) else ("keep", "not past two standard errors")


def seat(named: str, option: str) -> Seat:
    """A net's file, a file of weights, or the scripted brain. Raises NotFound, and BadData for a file that is neither."""
    from hashlib import sha256

    from planner.brain.net import SCHEMA, player
    from planner.brain.weights import DEFAULT, whole_weights
    from planner.train.recipe import load_duellist

    if named == SCRIPTED:
        return Seat(named=named, brain=whole_weights(DEFAULT))
    path = Path(named)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise NotFound(f'{option} {path}: no net, no weights, nor "{SCRIPTED}": {error.strerror}') from error
    weights = _json(data)
    if not isinstance(weights, dict) or SCHEMA.encode() in data[:4096]:
        net = load_duellist(path)
        return Seat(named=named, brain=player(net), sha256=sha256(data).hexdigest())
    weights = weights.get("weights", weights)
    try:
        return Seat(named=named, brain=whole_weights({**DEFAULT, **weights}))
    except (ValueError, TypeError) as error:
        raise BadData(f"{option} {path}: {error}") from error


def _json(data: bytes) -> Any:
    """The value of a file that is one JSON value, else None."""
    try:
        return decode_json(data)
    except ValueError:
        return None


def seed_span(text: str) -> Span:
    """A:B, the seeds A to B - 1; never those that nets are trained on."""
    low, _, high = text.partition(":")
    if not all(part.isascii() and part.isdecimal() and len(part) < 20 for part in (low, high)) or int(low) >= int(high):
        raise argparse.ArgumentTypeError(f"expected seeds A:B with A below B, got {text[:40]!r}")
    span, trained = Span(int(low), int(high)), RANGES[Purpose.TRAINING]
    if len(span) > SEEDS_MOST or span.high > 1 << 63:
        raise argparse.ArgumentTypeError(f"expected at most {SEEDS_MOST:,} seeds below 2^63, got {text[:40]!r}")
    if span.meets(Span(trained.start, trained.stop)):
        raise argparse.ArgumentTypeError(f"{text}: {trained.start} to {trained.stop - 1} are what nets are trained on")
    return span
