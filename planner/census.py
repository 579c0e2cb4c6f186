"""A census: plays in, scores out. One process for all plays of a job; the contract is on docs/reference/plan.toml.md.

JSON lines in, {"id", "player", "seed", "seconds"}; JSON lines out in any order, {"id", "score"} or
{"id", "error"}. What else it prints is ignored and counted. End of input ends it.

A play without an answer is asked again once. When the census ends of itself, that holds for every play it left out;
when it crashes or falls silent, the first play that was due is to blame, and the others are asked in a new process.
"""

import contextlib
import json
import math
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, cast

from fleetd import NotFound, decode_json, encode_json
from planner.stats import SCORE_LEAST, SCORE_MOST, beyond

ASKED_MOST = 2
LINE_MAX = 1 << 20
CHUNK = 1 << 16
LEAVE_S = 5.0  # for a census that has answered everything to end by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """One game of one player on one seed."""

    id: int
    player: Mapping[str, Any]  # {"weights": {…}}, or {"net": path, "sha256": …}
    seed: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A play's score, or why there is none; `extra` is what the census said besides."""

    id: int
    score: float | None = None
    why: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


Hear = Callable[[Answer], None]


@dataclass(slots=True)
class Count:
    """What one collection saw besides scores: lines that were no answer, and processes started."""

    noise: int = 0
    starts: int = 0
    asked: dict[int, int] = field(default_factory=dict)


def collect(
    command: Sequence[str], plays: Sequence[Play], silence_s: float, hear: Hear, enough: Callable[[], bool]
) -> Count:
    """Have every play answered, or say by `hear` why not; stops early once `enough()`. Raises NotFound.

    `silence_s` is how long a census may go without an answer before the play that is due is taken for hung.
    """
    due = {play.id: play for play in plays}
    count = Count()

    def heard(answer: Answer) -> None:
        del due[answer.id]
        hear(answer)

    while due and not enough():
        count.starts += 1
        ended = _run(command, due, silence_s, heard, count)
        blamed = list(due) if ended is None else list(due)[:1]
        for id_ in blamed:
            count.asked[id_] = count.asked.get(id_, 0) + 1
            if count.asked[id_] == ASKED_MOST:
                heard(Answer(id=id_, why=ended or "never answered"))
    return count


def _run(command: Sequence[str], due: Mapping[int, Play], silence_s: float, hear: Hear, count: Count) -> str | None:
    """One process over what is due. None when it ended of itself, else how it ended."""
    asked = [_ask(play) for play in due.values()]
    with _process(command, asked) as process:
        tail, limit = b"", time.monotonic() + silence_s
        while due:
            data = _read(process, limit)
            if data is None:
                return f"no answer for {silence_s:g} s"
            *lines, tail = (tail + data).split(b"\n") if data else [tail, b""]
            for line in lines:
                if (answer := _answer(line, due)) is None:
                    count.noise += bool(line.strip())
                else:
                    hear(answer)
                    limit = time.monotonic() + silence_s
            if not data:
                return _how(process)
            tail = tail if len(tail) < LINE_MAX else b""
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LEAVE_S)
        return None


def _read(process: subprocess.Popen[bytes], limit: float) -> bytes | None:
    """What stdout has; empty at its end, None when nothing comes before `limit` on the monotonic clock."""
    left = limit - time.monotonic()
    stdout = _pipe(process.stdout)
    if left <= 0 or not select.select([stdout], [], [], left)[0]:
        return None
    return os.read(stdout.fileno(), CHUNK)


def _ask(play: Play) -> bytes:
    ask = {"id": play.id, "player": play.player, "seed": play.seed, "seconds": play.seconds}
    return encode_json(ask) + b"\n"


@contextlib.contextmanager
def _process(command: Sequence[str], asked: Sequence[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """The census, fed by a thread, in a process group of its own that has ended when the block is left."""
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0)
    except OSError as error:
        raise NotFound(f"the census cannot be started: {command[0]}: {error.strerror}") from error
    feeder = threading.Thread(target=_feed, args=(_pipe(process.stdin), asked), daemon=True)
    try:
        feeder.start()
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        feeder.join(LEAVE_S)
        _pipe(process.stdout).close()


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    """The census's end of a pipe: both are asked for at its start, which its type does not say."""
    return cast("IO[bytes]", stream)


def _feed(stdin: IO[bytes], asked: Sequence[bytes]) -> None:
    with contextlib.suppress(OSError, ValueError), stdin:
        stdin.writelines(asked)


def _how(process: subprocess.Popen[bytes]) -> str | None:
    """After the end of its output: None for exit 0 or a census that only closed it, else what happened."""
    try:
        code = process.wait(LEAVE_S)
    except subprocess.TimeoutExpired:
        return None
    if code < 0:
        return f"the census died of signal {-code}"
    return f"the census ended with exit {code}" if code else None


def _answer(line: bytes, due: Mapping[int, Play]) -> Answer | None:
    """What the line says of a play that is due, or None."""
    value = _decode(line)
    if not isinstance(value, dict):
        return None
    id_ = value.pop("id", None)
    if isinstance(id_, bool) or not isinstance(id_, int) or id_ not in due:
        return None
    if "error" in value:
        return Answer(id=id_, why=_line(str(value["error"])))
    if "score" not in value:
        return None
    score = value.pop("score")
    wrong = _wrong_score(score)
    return Answer(id=id_, why=wrong) if wrong else Answer(id=id_, score=float(score), extra=value)


def _line(text: str) -> str:
    """As much of a census's words as is shown, in one line and without what a terminal would obey."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(text[:1000].split()))[:200]


def _wrong_score(score: Any) -> str | None:
    if isinstance(score, bool) or not isinstance(score, int | float):
        return f"the score is no number: {str(score)[:40]!r}"
    if not beyond(score):
        return None
    return f"the score is {f'beyond ±{SCORE_MOST:g}' if abs(score) > 1 else f'not 0 and within ±{SCORE_LEAST:g}'}"


def _decode(line: bytes) -> Any:
    """The line's value; of one that has NaN or Infinity in it, or is nested too deep, only the play and its failure."""
    with contextlib.suppress(ValueError):
        return decode_json(line)
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(line)
        if isinstance(value, dict):
            return {"id": value.get("id"), "error": _why_not(value.get("score"))}
    return None


def _why_not(score: Any) -> str:
    finite = not isinstance(score, float) or math.isfinite(score)
    return "NaN or Infinity beside the score, or nested too deep" if finite else f"not finite: {score}"
