"""What a round's jobs carry: `fleet.lesson/1` makes a net, and a `fleet.trial/1` of purpose judge reads it beside the best.

lesson    schema     "fleet.lesson/1"                  name     the plan's name
          round      its id                            command  of the plan: {best}, {seed}, {rewards} stand in it
          best       {"net", "sha256"}, or null        seed     of all chance in it
          rewards    {term: weight}                    title    for people
judge     schema     "fleet.trial/1"                   purpose  "judge"
          round      its id                            name, census, seconds, seeds, span, play_timeout_s,
          candidate  {"net", "sha256"}                          deterministic, title as in a trial's
          best       {"net", "sha256"}

A net is named by its path from the spool and by its file's SHA-256: that is what it is known by.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from fleetd import BadData, NotFound, encode_json
from planner.opinion import Opinion, decode_opinion
from planner.seeds import Draw, Purpose, Span, stray
from planner.trial import TRIAL, Change, decode_change, decode_span, decode_weights, number_of

LESSON: Final = "fleet.lesson/1"
SHORT: Final = 8  # hex digits of a hash, for people
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_ENDED: Final = re.compile(r"ended/[^/]+/[^/]+/log")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetFile:
    """A net's file; `net` is its path from the spool, or a whole one."""

    net: str
    sha256: str

    @property
    def short(self) -> str:
        return self.sha256[:SHORT]

    @property
    def player(self) -> dict[str, str]:
        return {"net": self.net, "sha256": self.sha256}

    def found_in(self, spool: Path) -> "NetFile":
        """The same with its whole path. Raises NotFound, and BadData for a file of another hash."""
        path = spool / self.net
        try:
            if path.exists() and not path.is_file():
                raise BadData(f"{path}: the net {self.short} is no file: a FIFO or a directory is never opened")
            found = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise NotFound(f"{str(path)[:200]}: the net {self.short} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise BadData(f"{str(path)[:200]!a}: the net {self.short} has a name that no file has") from error
        if found != self.sha256:
            raise BadData(f"{path}: another net: its SHA-256 is {found}, not {self.sha256}")
        return NetFile(net=str(path), sha256=self.sha256)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """The making of a net, from the best or, where there is none, from nothing.

    `rewards` are those it is taught by; `move` is the one among them that is not as it stands, if one is.
    """

    round: str
    name: str
    command: tuple[str, ...]
    best: NetFile | None
    seed: int
    rewards: Mapping[str, float]
    move: Change | None = None
    rivals: tuple[NetFile, ...] = ()
    opinions: tuple[Opinion, ...] = ()

    @property
    def draw(self) -> Draw:
        return Draw(Span(self.seed, self.seed + 1), Purpose.TRAINING, self.round)

    @property
    def title(self) -> str:
        taught = f", {self.move}" if self.move else ""
        return f"round {self.round}: a net from {self.best.short if self.best else 'nothing'}, seed {self.seed}{taught}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """A job that reads a candidate beside the best, or a part of it: `seeds` of `span`."""

    round: str
    name: str
    census: tuple[str, ...]
    seconds: float
    seeds: Span
    span: Span
    candidate: NetFile
    best: NetFile
    play_timeout_s: float
    deterministic: bool

    @property
    def players(self) -> dict[str, dict[str, str]]:
        return {"candidate": self.candidate.player, "best": self.best.player}

    def players_on(self, _seed: int) -> dict[str, dict[str, str]]:
        """The same on every seed."""
        return self.players

    @property
    def hashes(self) -> dict[str, str]:
        return {"candidate": self.candidate.sha256, "best": self.best.sha256}

    @property
    def change(self) -> str:
        return f"net {self.best.short} → {self.candidate.short}"

    @property
    def purpose(self) -> Purpose:
        return Purpose.JUDGE

    @property
    def draw(self) -> Draw:
        return Draw(self.span, Purpose.JUDGE, self.round)

    @property
    def title(self) -> str:
        return f"{self.change}, {len(self.seeds)} judge seeds from {self.seeds.low}"

    def found_in(self, spool: Path) -> "Judge":
        """The same with its nets' whole paths; raises as NetFile.found_in."""
        return replace(self, candidate=self.candidate.found_in(spool), best=self.best.found_in(spool))


def round_id(command: tuple[str, ...], best: NetFile | None, seed: int, rewards: Mapping[str, float]) -> str:
    """A name for the round: r and ten hex digits."""
    what = [list(command), best.sha256 if best else None, seed, {k: float(rewards[k]) for k in sorted(rewards)}]
    return "r" + hashlib.sha256(encode_json(what)).hexdigest()[:10]


def net_of(log: Any, result: Any) -> NetFile | None:
    """The net that a result row tells: its file lies in the attempt's out/, beside its log."""
    told = result if isinstance(result, dict) else {}
    path, sha256 = told.get("net"), told.get("sha256")
    if not isinstance(path, str) or not path or "\0" in path:
        return None
    if not isinstance(sha256, str) or not _HASH.fullmatch(sha256):
        return None
    if path.startswith("/"):
        return NetFile(net=path, sha256=sha256)
    inside = isinstance(log, str) and _ENDED.fullmatch(log) and ".." not in PurePosixPath(path).parts
    return NetFile(net=str(PurePosixPath(log).parent / "out" / path), sha256=sha256) if inside else None


def encode_lesson(lesson: Lesson) -> dict[str, Any]:
    """The job's payload."""
    return {
        "schema": LESSON,
        "title": lesson.title,
        "name": lesson.name,
        "round": lesson.round,
        "command": list(lesson.command),
        "best": lesson.best.player if lesson.best else None,
        "seed": lesson.seed,
        "rewards": dict(lesson.rewards),
        "reward": encode_move(lesson.move),
        "rivals": [rival.player for rival in lesson.rivals],
        "feedback": [opinion.told for opinion in lesson.opinions],
    }


def encode_move(move: Change | None) -> dict[str, Any] | None:
    return move.told if move else None


def decode_move(value: Any) -> Change | None:
    """Raises BadData when that is no change; no value is none, as in rows of before there were any."""
    if value is None:
        return None
    try:
        return decode_change(value)
    except (KeyError, TypeError, ValueError) as error:
        raise BadData(f"expected a reward's change, got {str(value)[:80]}") from error


def decode_lesson(payload: Mapping[str, Any]) -> Lesson:
    """The lesson that a payload describes; raises BadData saying what is wrong with it."""
    try:
        lesson = Lesson(
            round=str(payload["round"]),
            name=str(payload["name"]),
            command=tuple(str(word) for word in payload["command"]),
            best=None if payload["best"] is None else decode_net(payload["best"]),
            seed=decode_span([payload["seed"], payload["seed"] + 1]).low,
            rewards=decode_weights(payload["rewards"]),
            move=decode_move(payload.get("reward")),
            rivals=tuple(decode_net(rival) for rival in payload.get("rivals", ())),
            opinions=tuple(decode_opinion(told) for told in payload.get("feedback", ())),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadData(f"the {LESSON} payload cannot be read: {type(error).__name__}: {error}") from error
    if not lesson.command:
        raise BadData(f"the {LESSON} payload has no command")
    return lesson


def encode_judge(judge: Judge) -> dict[str, Any]:
    """The job's payload."""
    return {
        "schema": TRIAL,
        "title": judge.title,
        "name": judge.name,
        "census": list(judge.census),
        "seconds": judge.seconds,
        "purpose": str(Purpose.JUDGE),
        "round": judge.round,
        "seeds": [judge.seeds.low, judge.seeds.high],
        "span": [judge.span.low, judge.span.high],
        "candidate": judge.candidate.player,
        "best": judge.best.player,
        "play_timeout_s": judge.play_timeout_s,
        "deterministic": judge.deterministic,
    }


def decode_judge(payload: Mapping[str, Any]) -> Judge:
    """The judge that a payload describes; raises BadData saying what is wrong with it."""
    try:
        return Judge(
            round=str(payload["round"]),
            name=str(payload["name"]),
            census=tuple(str(word) for word in payload["census"]),
            seconds=number_of(payload["seconds"]),
            seeds=decode_span(payload["seeds"]),
            span=decode_span(payload["span"]),
            candidate=decode_net(payload["candidate"]),
            best=decode_net(payload["best"]),
            play_timeout_s=float(number_of(payload["play_timeout_s"])),
            deterministic=bool(payload["deterministic"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise BadData(f"the judge's payload cannot be read: {type(error).__name__}: {error}") from error


def decode_net(value: Any) -> NetFile:
    """Raises BadData when that names no net."""
    if not isinstance(value, dict) or not isinstance(value.get("net"), str) or "\0" in value["net"]:
        raise BadData(f'expected a net as {{"net": path, "sha256": …}}, got {str(value)[:80]}')
    if not isinstance(value.get("sha256"), str) or not _HASH.fullmatch(value["sha256"]):
        raise BadData(f"a net's sha256 is 64 hex digits, not {str(value.get('sha256'))[:80]!r}")
    return NetFile(net=value["net"], sha256=value["sha256"])


def stray_judge(judge: Judge) -> str | None:
    """What is wrong with a judge whose seeds are not all a judge's, or None."""
    return stray(judge.draw) or stray(Draw(judge.seeds, Purpose.JUDGE, judge.round))
