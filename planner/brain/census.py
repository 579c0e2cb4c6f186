"""The census contract: JSON lines of plays in, JSON lines of scores out, in batches; no line can bring it down.

    {"id": 0, "player": {"weights": {…all 110…}}, "seed": 7, "seconds": 900}
    {"id": 1, "player": {"net": "path", "sha256": "…"}, "seed": 7, "seconds": 900}
    {"id": 0, "score": 0.52, "won": 12, "lost": 11, "drawn": 3, "rules": 1}       or     {"id": 0, "error": "…"}

Keys of a play that this page doesn't name come back with its answer.
"""

import json
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from fleetd import BadData
from planner.arena.observe import OBS
from planner.arena.rules import RULES
from planner.brain.decide import HEADS, Brain
from planner.brain.match import Result, play
from planner.brain.net import Player, load_net, player
from planner.brain.netplay import play_nets
from planner.brain.weights import DEFAULT, whole_weights

LINE_LIMIT: Final = 1 << 20  # bytes
READ: Final = 1 << 16  # bytes at a time
SECONDS_LIMIT: Final = 86400.0
SEED_LIMIT: Final = 1 << 63
WAIT_S: Final = 0.05  # for more lines, before what has arrived is played
FIRST_BATCH: Final = 28  # plays: half of a usual trial, so that a stop keeps what was read till then
BATCH: Final = 256  # plays: fewer would cost more each, more would keep their scores for longer

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A play that can be played."""

    extra: Mapping[str, Any]  # id, and the keys that are not the contract's
    player: Brain
    seed: int
    seconds: float


def read_ask(line: bytes) -> Ask | Answer:
    """The play that a line asks for, or the answer that says why it is none."""
    if len(line) > LINE_LIMIT:
        return {"id": None, "error": f"line over {LINE_LIMIT} bytes"}
    try:
        asked = json.loads(line.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        return {"id": None, "error": f"not JSON: {error}"}
    if not isinstance(asked, dict):
        return {"id": None, "error": f"not a JSON object: {type(asked).__name__}"}
    if "id" not in asked:
        return {"id": None, "error": "no id"}
    extra = {k: v for k, v in asked.items() if k not in {"player", "seed", "seconds"}}
    try:
        return Ask(
            extra=extra,
            player=_player(asked.get("player")),
            seed=_seed(asked.get("seed")),
            seconds=_seconds(asked.get("seconds")),
        )
    except (ValueError, BadData) as error:
        return {**extra, "error": str(error)}


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _player(asked: object) -> Brain:
    if not isinstance(asked, dict):
        raise ValueError('player is not an object: {"weights": {…}}')  # noqa: TRY004 - one kind of error: the line is at fault
    if "net" in asked:
        return _net(asked["net"], asked.get("sha256"))
    weights = asked.get("weights")
    if not isinstance(weights, dict):
        raise ValueError('player has no "weights" object')  # noqa: TRY004
    return whole_weights(weights)


def _net(path: object, sha256: object) -> Player:
    if not isinstance(path, str) or not isinstance(sha256, str):
        raise ValueError('a net is named by two texts: {"net": "path", "sha256": "…"}')  # noqa: TRY004
    if "\0" in path:
        raise ValueError(f"no file has such a name: {_short(path)}")
    return _load(path, sha256)


@lru_cache(maxsize=16)
def _load(path: str, sha256: str) -> Player:
    """What the hash names does not change: it is read once."""
    return player(load_net(Path(path), sha256, obs=OBS, heads=HEADS))


def _seed(seed: object) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < SEED_LIMIT:
        raise ValueError(f"seed is not a whole number from 0 to 2^63 - 1: {_short(seed)}")
    return seed


def _seconds(seconds: object) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= SECONDS_LIMIT:
        raise ValueError(f"seconds is not a number over 0, to {SECONDS_LIMIT:g}: {_short(seconds)}")
    return float(seconds)


def _short(value: object) -> str:
    return json.dumps(value)[:60]


def answer_batch(asks: Sequence[Ask], kernel: str) -> Iterator[Answer]:
    """Play in lockstep what has the same length and kind of player, in order of arrival."""
    for seconds, kind in dict.fromkeys((a.seconds, type(a.player)) for a in asks):
        group = [a for a in asks if (a.seconds, type(a.player)) == (seconds, kind)]
        for ask, result in zip(group, _results(group, seconds, kernel), strict=True):
            counts = {"won": result.won, "lost": result.lost, "drawn": result.drawn}
            yield {**ask.extra, "score": result.score, **counts, "rules": RULES}


def _results(group: Sequence[Ask], seconds: float, kernel: str) -> list[Result]:
    """What came of plays against the reference."""
    against, seeds = [whole_weights(DEFAULT)] * len(group), [a.seed for a in group]
    weights = [a.player for a in group if not isinstance(a.player, Player)]
    if weights:
        return play(weights, against, seeds, seconds, kernel=kernel)
    return play_nets([a.player for a in group], against, seeds, seconds)


def answer_all(read: Callable[[int], bytes], say: Callable[[Answer], None], kernel: str = "numpy") -> None:
    """Answer every line until `read` gives nothing; no play waits for others to arrive.

    `read` is called by another thread. It must hold no lock while it waits, as a buffered file does: the interpreter
    could not end then.
    """
    arrived: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    threading.Thread(target=_pump, args=(read, arrived), daemon=True).start()
    batch, more = FIRST_BATCH, True
    while more:
        asks, more = _gather(arrived, say, batch)
        batch = BATCH
        for answer in answer_batch(asks, kernel):
            say(answer)


def _pump(read: Callable[[int], bytes], arrived: "queue.SimpleQueue[bytes | None]") -> None:
    """Lines into the queue, None at the end; a line over the limit is cut to just what is refused."""
    rest = b""
    while chunk := read(READ):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            arrived.put(line)
        rest = rest[: LINE_LIMIT + 1]
    arrived.put(rest)
    arrived.put(None)


def _gather(
    arrived: "queue.SimpleQueue[bytes | None]", say: Callable[[Answer], None], batch: int
) -> tuple[list[Ask], bool]:
    """Up to `batch` plays of what has arrived, and whether more may come; lines that ask for none are answered now."""
    asks: list[Ask] = []
    while len(asks) < batch:
        try:
            line = arrived.get(timeout=WAIT_S if asks else None)
        except queue.Empty:
            return asks, True
        if line is None:
            return asks, False
        if line.strip():
            ask = read_ask(line)
            if isinstance(ask, Ask):
                asks.append(ask)
            else:
                say(ask)
    return asks, True
