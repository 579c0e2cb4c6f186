"""A training as it is followed: a line on the terminal, a line of metrics for each iteration, and its stop."""

import contextlib
import json
import math
import signal
import time
from dataclasses import asdict
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from fleetd import IOFailed, StatusLine, Talk, replace_file

if TYPE_CHECKING:
    from planner.train.trainer import Record

REDRAW_S: Final = 0.25
LINE_S: Final = 30.0
SMOOTH: Final = 0.1  # weight of the newest iteration in the score that is shown


class Stop:
    """Asked before each iteration; true once SIGTERM or Ctrl-C has come. A second Ctrl-C interrupts at once."""

    def __init__(self) -> None:
        self.by: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __call__(self) -> bool:
        return self.by is not None

    @property
    def is_term(self) -> bool:
        return self.by == signal.SIGTERM

    def _note(self, number: int, _: FrameType | None) -> None:
        if self.by == number == signal.SIGINT:
            raise KeyboardInterrupt
        self.by = number


class Follow:
    """What a run's records come to: `score` is that of the last iterations, those of long ago counting less."""

    def __init__(self, metrics: Path, ticks: int, resumed: bool, talk: Talk) -> None:  # noqa: FBT001 - named by the caller
        self._path, self._ticks, self._resumed, self._talk = metrics, ticks, resumed, talk
        self._file: Any = None
        self._line = StatusLine(talk)
        self._shown, self._before, self._said = 0.0, 0, 0
        self._last: Record | None = None
        self.score: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.erase()
        if self._file:
            self._file.close()

    def take(self, record: "Record") -> None:
        """A report of the trainer's."""
        try:
            if self._file is None:
                self._file = self._open(record.iteration)
                self._before = record.ticks - record.ticks // record.iteration
            self._file.write(_line(asdict(record)))
            self._file.flush()
        except OSError as error:
            raise IOFailed(f"{self._path}: the metrics cannot be written: {error.strerror}") from error
        self._last = record
        self._count(record.score)
        if time.monotonic() >= self._shown + (REDRAW_S if self._line.is_wanted else LINE_S):
            self._show()

    def finish(self) -> None:
        """The last line stays."""
        self._line.erase()
        if self._last is None:  # the checkpoint was the last iteration's
            self._before_it(math.inf)
        if self._last and self._said != self._last.ticks:
            self._talk.say(self._told(self._last))

    def speed(self, seconds: float) -> float:
        """Ticks a second of this process, all in all."""
        return (self._last.ticks - self._before) / seconds if self._last and seconds > 0 else 0.0

    def _count(self, score: float | None) -> None:
        if score is not None:
            self.score = score if self.score is None else self.score + SMOOTH * (score - self.score)

    def _open(self, iteration: int) -> Any:
        """The file with the lines of the iterations before this one: those after a checkpoint are trained anew."""
        replace_file(self._path, "".join(self._before_it(iteration)).encode())
        return self._path.open("a")

    def _before_it(self, iteration: float) -> list[str]:
        """The lines that the run's earlier parts left of the iterations before this one; their scores count."""
        kept = []
        if self._resumed and self._path.exists():
            for line in self._path.read_text(errors="replace").splitlines(keepends=True):
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    told = json.loads(line)
                    if told["iteration"] < iteration:
                        self._count(told["score"])
                        kept.append(line)
        return kept

    def _told(self, record: "Record") -> str:
        score = "-" if self.score is None else f"{self.score:.3f}"
        part, left = record.ticks / self._ticks, max(0, self._ticks - record.ticks)
        rest = f", {left / record.ticks_per_s:,.0f} s left" if left and record.ticks_per_s else ""
        return (
            f"{min(1.0, part):4.0%}  {record.ticks:,} ticks, {record.ticks_per_s:,.0f} a second, "
            f"score {score} against the pool, reward {record.reward:+.4f}, entropy {record.entropy:.2f}{rest}"
        )

    def _show(self) -> None:
        self._shown = time.monotonic()
        if self._last is None:
            return
        if self._line.is_wanted:
            self._line.draw(self._told(self._last))
        else:
            self._talk.say(self._told(self._last))
            self._said = self._last.ticks


def _line(record: dict[str, Any]) -> str:
    finite = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in record.items()}
    return json.dumps(finite, allow_nan=False) + "\n"
