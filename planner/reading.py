"""What a trial job does: reads both players on its seeds, writes what came as it comes, and ends with a full result.

With a deterministic plan, a score that stands in this host's ledger already is not played again: so in one pass, whose
trials share their seeds, the best is read once on each host.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

from fleetd import BadData, BadSettings, NotFound, Row, encode_json, find_program, seconds
from planner.census import Answer, Play, collect
from planner.net_round import Judge
from planner.probe import Probe
from planner.screen import SCREEN, Screen
from planner.trial import READS, TRIAL, Block, decode_reads, is_void

WRITE_EVERY_S = 0.5
PLAYERS = ("candidate", "best")
READ = (TRIAL, SCREEN)
RULES_MOST = 200  # bytes
MIXED = "the census names other rules from play to play"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Scores of (player's hash, seed) that stand in the ledger, all under the rules that the newest row of them names."""

    rules: Any = None
    scores: Mapping[tuple[str, int], float] = field(default_factory=dict)


def known_reads(rows: Iterable[Row], block: Block | Judge | Screen, build: str | None, job: str) -> Known:
    """The scores in these rows of one host that hold for this block: same plan, seconds and build.

    Of an engine on a clock only this very job's earlier attempts count: what a stop left is not played again.
    """
    rules: Any = None
    known: dict[tuple[str, int], float] = {}
    for row in rows:
        result, payload = row.body.get("result"), row.body.get("payload")
        if not isinstance(result, dict) or not isinstance(payload, dict) or payload.get("schema") not in READ:
            continue
        same = (payload.get("name"), payload.get("seconds"), payload.get("census"), result.get("build"))
        if same != (block.name, block.seconds, list(block.census), build):
            continue
        if block.deterministic or row.body.get("job") == job:
            if result.get("rules") != rules:
                rules, known = result.get("rules"), {}
            known |= _scores(result)
    return Known(rules=rules, scores=known)


def _scores(result: Mapping[str, Any]) -> dict[tuple[str, int], float]:
    players = result.get("players")
    if not isinstance(players, dict):
        return {}
    hashes = [str(players.get(player)) for player in PLAYERS]
    try:
        reads = decode_reads(result).scores
    except BadData:
        return {}
    return {
        (hashes[side], seed): score
        for seed, pair in reads.items()
        for side, score in enumerate(pair)
        if score is not None
    }


def not_void(rows: Iterable[Row], everywhere: Iterable[Row]) -> list[Row]:
    """The rows that no `void` row among those of all hosts takes out."""
    named = [v for row in everywhere if row.event == "void" for v in row.body.get("rows", ())]
    void = {(v.get("host"), v.get("seq")) for v in named}
    return [row for row in rows if (row.host, row.seq) not in void]


def replaced_by(rows: Iterable[Row], block: Block, created: float) -> str | None:
    """The trial that was adopted in place of the best this block reads against, as far as these rows tell.

    Only an adoption since the job was made (epoch seconds) tells: the best may have come back to what an older one replaced.
    """
    since = (row.body for row in rows if row.event == "adopt" and seconds(row.at) >= created)
    ours = (body for body in since if (body.get("plan"), body.get("defaults")) == (block.name, block.trial.defaults))
    return next((str(body.get("trial")) for body in ours), None)


def census_command(block: Block | Judge | Screen, environ: Mapping[str, str]) -> list[str]:
    """The argv with {build} filled in and its program found: by find_program. Raises BadSettings, NotFound."""
    build = environ.get("FLEET_BUILD", "")
    if not build and any("{build}" in word for word in block.census):
        raise BadSettings(
            "the census names {build}, but this job has none: it needs a commit, and [build] in fleet.toml"
        )
    program, *arguments = (word.replace("{build}", build) for word in block.census)
    return [find_program(program, environ), *arguments]


def check_command(command: Sequence[str], environ: Mapping[str, str], where: str) -> None:
    """Raises NotFound when its program is not here, as the jobs would; what is built is not there yet."""
    if "{build}" in command[0]:
        return
    try:
        find_program(command[0], environ)
    except NotFound as error:
        raise NotFound(f"{where}: {error}; no job was queued") from error


class Sheet:
    """The scores of one job as they come in."""

    def __init__(
        self, block: Block | Judge | Screen, known: Known, build: str | None, probe: Probe | None = None
    ) -> None:
        self.probe = probe
        self._block = block
        self._build = build
        self.hashes = block.hashes
        self._scores: dict[tuple[str, int], float] = {}
        self._errors: Counter[str] = Counter()
        self.failed: set[int] = set()
        self._seeds = range(block.seeds.low, block.seeds.high)
        self.rules = known.rules
        self._named, self.mixed = False, False  # whether a play has named the rules, and another named others
        self._due: dict[int, tuple[str, int]] = {}
        for seed in self._seeds:
            for player in PLAYERS:
                key = (self.hashes[player], seed)
                if key in known.scores:
                    self._scores[player, seed] = known.scores[key]
                else:
                    self._due[len(self._due)] = (player, seed)
        self._known = list(self._scores)
        self._asked = len(self._due)
        self.played = 0

    @property
    def reused(self) -> int:
        """Scores taken from the ledger."""
        return len(self._known)

    def plays(self) -> list[Play]:
        """What is still to be played, a seed's two plays side by side."""
        players, seconds = self._block.players_on, self._block.seconds
        return [Play(id=i, player=players(s)[p], seed=s, seconds=seconds) for i, (p, s) in self._due.items()]

    def to_probe(self) -> list[Play]:
        """The play to be played beforehand, in a process of its own; none where the host has passed."""
        return self.plays()[:1] if self._block.deterministic and not self.probe else []

    def hear_first(self, answer: Answer) -> None:
        """The probe's first score; a play that fails probes nothing."""
        player, seed = self._due[answer.id]
        if answer.score is not None:
            self.probe = Probe(player=player, seed=seed, scores=(answer.score,))

    def _hear_second(self, player: str, seed: int, score: float | None) -> None:
        if self.probe and self.probe.open and (self.probe.player, self.probe.seed) == (player, seed):
            told = (*self.probe.scores, score) if score is not None else ()
            self.probe = replace(self.probe, scores=told) if told else None

    def over(self) -> bool:
        """Whether no more plays are worth their time."""
        return self.void() or self.mixed or bool(self.probe and self.probe.differs)

    def hear(self, answer: Answer) -> dict[str, Any]:
        """Take the answer down; gives it back with its player and seed, for the record."""
        player, seed = self._due.pop(answer.id)
        self.played += 1
        self._hear_second(player, seed, answer.score)
        if answer.score is None:
            self._errors[answer.why or "no score"] += 1
            self.failed.add(seed)
        else:
            self._heed(answer.extra.get("rules"))
            self._scores[player, seed] = answer.score
        said = {"score": answer.score} if answer.score is not None else {"error": answer.why}
        return {"player": player, "seed": seed, **said, **answer.extra}

    def _heed(self, rules: Any) -> None:
        """Scores known from a game with other rules are of no use: those plays are due too."""
        rules = _short(rules)
        if self._named and rules != self.rules and not self.mixed:
            self.mixed = True
            self._errors[MIXED] += 1
        elif rules != self.rules:
            for key in self._known:
                del self._scores[key]
                self._due[self._asked] = key
                self._asked += 1
            self.rules, self._known = rules, []
        self._named = True

    def void(self) -> bool:
        """Whether over 5 % of the pairs can no longer be had."""
        return is_void(len(self._seeds) - len(self.failed), len(self._seeds))

    def scored(self) -> bool:
        """Whether anything was scored that can be told."""
        return bool(self._scores) and not self.mixed

    def errors(self) -> str:
        """The commonest reasons, for a person."""
        return ", ".join(f"{n} × {why}" for why, n in self._errors.most_common(3))

    def result(self, noise: int = 0) -> dict[str, Any]:
        """What came so far, as `fleet.reads/1`."""
        doubted = self.mixed or (self.probe and (self.probe.open or self.probe.differs))
        seeds = () if doubted else self._seeds
        reads = [[seed, *(self._scores.get((player, seed)) for player in PLAYERS)] for seed in seeds]
        return {
            "schema": READS,
            "reads": [read for read in reads if read[1] is not None or read[2] is not None],
            "probe": self.probe.encode() if self.probe else None,
            "plays": self.played,
            "reused": self.reused,
            "failed": len(self.failed),
            "errors": dict(self._errors.most_common(20)),
            "noise": noise,
            "void": self.void(),
            "build": self._build,
            "rules": self.rules,
            "players": self.hashes,
        }


def _short(rules: Any) -> Any:
    """What a census calls its rules, or a digest where that is long: it stands in every row."""
    told = encode_json(rules)
    return {"sha256": hashlib.sha256(told).hexdigest()} if len(told) > RULES_MOST else rules


def play(
    sheet: Sheet,
    silence_s: float,
    command: list[str],
    write: Callable[[Mapping[str, Any]], None],
    record: BinaryIO,
) -> None:
    """Play what the sheet asks for; `write` gets partial results now and then, and the last one however this ends.

    `record` gets a JSON line for each play with all that the census said of it.
    """
    written = -WRITE_EVERY_S

    def hear(answer: Answer) -> None:
        nonlocal written
        record.write(encode_json(sheet.hear(answer)) + b"\n")
        if (now := time.monotonic()) - written >= WRITE_EVERY_S:
            write(sheet.result())
            written = now

    noise = 0
    try:
        if first := sheet.to_probe():
            noise += collect(command, first, silence_s, sheet.hear_first, lambda: False).noise
        while (plays := sheet.plays()) and not sheet.over():
            noise += collect(command, plays, silence_s, hear, sheet.over).noise
    finally:
        write(sheet.result(noise))
