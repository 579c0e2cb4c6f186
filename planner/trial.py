"""What a trial job carries and what comes back: `fleet.trial/1` (a job's payload) and `fleet.reads/1` (its result).

payload   schema       "fleet.trial/1"                    name      the plan's name
          census       argv                               seconds   of a play
          purpose      "search" or "heldout"              seeds     [low, high) that this job reads
          trial        its id                             span      [low, high) of all the trial's blocks
          of           the trial that it reads again      pass      of the rotation
          looks        after how many of them the reads are judged
          variable     what changes, `from` and `to`      candidate {what differs from the best}
          pairs        of a leap, in place of variable, from and to: read of the slopes when it was made
          best         {"defaults": hash, "weights": {all of them}}
          play_timeout_s, deterministic                   as in plan.toml
          voided       {host: seq}, where rows with reads were voided: no score of a row up to that one is used again
          title        the change and the seeds, for people
result    schema       "fleet.reads/1"
          reads        [[seed, candidate's score or null, best's score or null], …]
          plays        really played                      reused    scores taken from the ledger
          failed       pairs without two scores           errors    {reason: plays}
          void         over 5 % of the pairs failed       noise     lines of the census that were ignored
          build        FLEET_BUILD or null                players   {"candidate": hash, "best": hash}
          rules        what the census calls its rules, or null
          probe        {"player", "seed", "scores": [two]} of a deterministic plan (planner/probe.py), or null

A trial is known by the hash of what it is (players, seeds, seconds): the same trial cannot be queued under two names.
"""

import hashlib
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from fleetd import BadData, count, encode_json
from planner.seeds import Draw, Purpose, Span, stray
from planner.stats import beyond

TRIAL = "fleet.trial/1"
READS = "fleet.reads/1"
VOID_SHARE = 0.05
SEEDS_MOST = 1_000_000  # of a span: as many as plan.toml allows
ANY_SEED = 1 << 62
PASS_MOST = 1_000_000_000

NO_CHANGE: Mapping[str, None] = {"variable": None, "from": None, "to": None}  # said of none, or of many

Key = tuple[str, int]  # where a row stands: (host, seq)
Place = tuple[str, int, int, int]  # a row: host, seq, and the offsets in its segment, newline not included


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One variable's."""

    variable: str
    from_: float
    to: float

    @property
    def direction(self) -> int:
        return 1 if self.to > self.from_ else -1

    @property
    def told(self) -> dict[str, Any]:
        """As JSON."""
        return {"variable": self.variable, "from": self.from_, "to": self.to}

    def __str__(self) -> str:
        """flank.enemy_health 0.25 → 0.35."""
        return f"{self.variable} {self.from_:g} → {self.to:g}".replace(" -", " −")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A candidate beside the best: one variable changed, or a leap of many along their slopes."""

    id: str
    changes: tuple[Change, ...]
    defaults: str
    pass_: int
    seconds: float
    of: str | None = None
    pairs: int | None = None  # of a leap: read of the slopes when it was made

    @property
    def single(self) -> Change | None:
        """The one change; None for a leap."""
        return self.changes[0] if self.pairs is None else None

    @property
    def candidate(self) -> dict[str, float]:
        """What differs from the best."""
        return {change.variable: change.to for change in self.changes}

    @property
    def change(self) -> str:
        """flank.enemy_health 0.25 → 0.35; of a leap its size."""
        if change := self.single:
            return str(change)
        their = "its slope" if len(self.changes) == 1 else "their slopes"
        return f"{count(len(self.changes), 'variable')} along {their} after {count(self.pairs or 0, 'pair')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One job of a trial: the players, the command, and the seeds that this job reads."""

    trial: Trial
    name: str
    census: tuple[str, ...]
    purpose: Purpose
    seeds: Span
    span: Span
    looks: tuple[int, ...]  # after how many seeds of the span the reads are judged; the last: after all
    best: Mapping[str, float]
    play_timeout_s: float
    deterministic: bool

    @property
    def players(self) -> dict[str, dict[str, Any]]:
        """Both, as a census takes them."""
        return {
            "candidate": {"weights": {**self.best, **self.trial.candidate}},
            "best": {"weights": dict(self.best)},
        }

    def players_on(self, _seed: int) -> dict[str, dict[str, Any]]:
        """The same on every seed."""
        return self.players

    @property
    def hashes(self) -> dict[str, str]:
        """What each is known by."""
        return {side: player_hash(player["weights"]) for side, player in self.players.items()}

    @property
    def seconds(self) -> float:
        return self.trial.seconds

    @property
    def change(self) -> str:
        return self.trial.change

    @property
    def draw(self) -> Draw:
        return Draw(self.span, self.purpose, self.trial.id)


def player_hash(weights: Mapping[str, float]) -> str:
    """What a player is known by: 16 hex digits of the SHA-256 of its weights, sorted by name."""
    canonical = {name: float(weights[name]) for name in sorted(weights)}
    return hashlib.sha256(encode_json(canonical)).hexdigest()[:16]


def trial_id(defaults: str, candidate: Mapping[str, float], seconds: float, span: Span) -> str:
    """A name for the trial: t and ten hex digits."""
    what = [defaults, {k: float(candidate[k]) for k in sorted(candidate)}, float(seconds), span.low, span.high]
    return "t" + hashlib.sha256(encode_json(what)).hexdigest()[:10]


def encode_block(block: Block) -> dict[str, Any]:
    """The job's payload."""
    trial = block.trial
    return {
        "schema": TRIAL,
        "title": f"{trial.change}, {len(block.seeds)} {block.purpose} seeds from {block.seeds.low}",
        "name": block.name,
        "census": list(block.census),
        "seconds": trial.seconds,
        "purpose": str(block.purpose),
        "trial": trial.id,
        "of": trial.of,
        "pass": trial.pass_,
        "seeds": [block.seeds.low, block.seeds.high],
        "span": [block.span.low, block.span.high],
        "looks": list(block.looks),
        **encode_change(trial),
        "candidate": trial.candidate,
        "best": {"defaults": trial.defaults, "weights": dict(block.best)},
        "play_timeout_s": block.play_timeout_s,
        "deterministic": block.deterministic,
    }


def encode_change(trial: Trial) -> dict[str, Any]:
    """What a payload or a verdict's row says of the change, beside `candidate`."""
    if change := trial.single:
        return change.told
    return {**NO_CHANGE, "pairs": trial.pairs}


def decode_block(payload: Mapping[str, Any]) -> Block:
    """The block that a payload describes; raises BadData saying what is wrong with it. Seeds are `stray_seeds`'s business."""
    if payload.get("schema") != TRIAL:
        raise BadData(f"the payload is no {TRIAL}: only `fleet-plan fill` makes such jobs")
    try:
        return _block(payload)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise BadData(f"the {TRIAL} payload cannot be read: {type(error).__name__}: {error}") from error


def stray_seeds(block: Block) -> str | None:
    """What is wrong with a block whose seeds are not all in its purpose's range, or None."""
    return stray(block.draw) or stray(Draw(block.seeds, block.purpose, block.trial.id))


def _block(payload: Mapping[str, Any]) -> Block:
    best = payload["best"]
    best_weights = decode_weights(best["weights"])
    trial = Trial(
        id=str(payload["trial"]),
        changes=_changes(payload, best_weights),
        defaults=str(best["defaults"]),
        pass_=_whole(payload["pass"], 1, "pass"),
        seconds=number_of(payload["seconds"]),
        of=None if payload.get("of") is None else str(payload["of"]),
        pairs=None if payload["variable"] is not None else _whole(payload["pairs"], 0, "count of pairs"),
    )
    return Block(
        trial=trial,
        name=str(payload["name"]),
        census=tuple(str(word) for word in payload["census"]),
        purpose=Purpose(payload["purpose"]),
        seeds=decode_span(payload["seeds"]),
        span=(span := decode_span(payload["span"])),
        looks=_looks(payload.get("looks", [len(span)]), len(span)),
        best=best_weights,
        play_timeout_s=float(number_of(payload["play_timeout_s"])),
        deterministic=bool(payload["deterministic"]),
    )


def decode_change(value: Mapping[str, Any]) -> Change:
    """Raises KeyError, TypeError or ValueError when it is none."""
    return Change(variable=str(value["variable"]), from_=number_of(value["from"]), to=number_of(value["to"]))


def decode_weights(value: Any) -> dict[str, float]:
    """Numbers by name; raises BadData when it is anything else."""
    if not isinstance(value, dict) or not all(isinstance(k, str) and is_number(v) for k, v in value.items()):
        raise BadData(f"expected numbers by name, got {str(value)[:80]}")
    return value


def number_of(value: Any) -> float:
    if not is_number(value):
        raise ValueError(f"{str(value)[:80]!r} is no number")
    number: float = value
    return number


def is_number(value: Any) -> bool:
    """Whether it is one that a double can hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def are_numbers(values: Collection[Any]) -> bool:
    """Whether each of them is one, and there is one: the same, in a tenth of the time."""
    numeric = bool(values) and {*map(type, values)} <= {int, float}
    return numeric and -sys.float_info.max <= min(values) and max(values) <= sys.float_info.max


def _changes(payload: Mapping[str, Any], best: Mapping[str, float]) -> tuple[Change, ...]:
    candidate = decode_weights(payload["candidate"])
    if payload["variable"] is not None:
        return (decode_change(payload),)
    if not candidate:
        raise ValueError("a leap changes nothing")
    return tuple(Change(variable=name, from_=best[name], to=to) for name, to in candidate.items())


def _looks(value: Any, seeds: int) -> tuple[int, ...]:
    looks = tuple(_whole(look, 1, "look") for look in value)
    if not looks or looks[-1] != seeds or any(a >= b for a, b in pairwise(looks)):
        raise ValueError(f"{str(value)[:80]} are no looks at {seeds} seeds")
    return looks


def _whole(value: Any, least: int, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= PASS_MOST:
        raise ValueError(f"{str(value)[:80]!r} is no {what}")
    return value


def decode_span(value: Any) -> Span:
    low, high = value
    if not (isinstance(low, int) and isinstance(high, int) and 0 <= low < high <= low + SEEDS_MOST <= ANY_SEED):
        raise ValueError(f"{str(value)[:80]} is no span of seeds")
    return Span(low, high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """A job's result: a score or None for each player on each seed, and what it took."""

    scores: Mapping[int, tuple[float | None, float | None]]  # seed → candidate, best
    plays: int = 0
    void: bool = False
    errors: Mapping[str, int] = field(default_factory=dict)
    build: str | None = None
    rules: Any = None
    census: tuple[str, ...] = ()  # the command that played

    def before(self, seed: int) -> "Reads":
        """Those of lower seeds."""
        return replace(self, scores={s: pair for s, pair in self.scores.items() if s < seed})

    def pairs(self) -> dict[int, tuple[float, float]]:
        """The seeds on which both players have a score."""
        return {s: (c, b) for s, (c, b) in self.scores.items() if c is not None and b is not None}


def decode_reads(result: Any) -> Reads:
    """The reads in a job's result; a job that wrote none has none. Raises BadData for reads that are odd."""
    if not isinstance(result, dict) or not isinstance(result.get("reads"), list):
        return Reads(scores={})
    plays, errors = result.get("plays"), result.get("errors")
    return Reads(
        scores=_scores(result["reads"]),
        plays=plays if isinstance(plays, int) and plays > 0 else 0,
        void=result.get("void") is True,
        errors={k: n for k, n in errors.items() if isinstance(n, int)} if isinstance(errors, dict) else {},
        build=None if (build := result.get("build")) is None else str(build),
        rules=result.get("rules"),
    )


def _scores(rows: list[Any]) -> dict[int, tuple[float | None, float | None]]:
    """By columns, and row by row only where something is odd."""
    if {*map(type, rows)} == {list} and {*map(len, rows)} == {3}:
        seeds, *sides = zip(*rows, strict=True)
        told = [score for side in sides for score in side if score is not None]
        if {*map(type, seeds)} == {int} and are_numbers(told) and not any(map(beyond, told)):
            return dict(zip(seeds, zip(*sides, strict=True), strict=True))
    return dict(map(_read, rows))


def _read(row: Any) -> tuple[int, tuple[float | None, float | None]]:
    if not isinstance(row, list) or len(row) != 3 or not isinstance(row[0], int):
        raise BadData(f"{str(row)[:80]} is no seed with two scores")
    return row[0], (_score(row[1]), _score(row[2]))


def _score(value: Any) -> float | None:
    if value is None:
        return None
    if not is_number(value) or beyond(value):
        raise BadData(f"{str(value)[:80]} is no score")
    score: float = value
    return score


def is_void(pairs: int, asked: int) -> bool:
    """Whether over 5 % of the pairs are missing."""
    return asked - pairs > VOID_SHARE * asked
