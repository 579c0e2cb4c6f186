"""What people said of rows: a like or a dislike, with a few words. `feedback` rows, and what a lesson is told of them.

What it means for training, the program says that trains: the planner passes on the sign, the words, and what the row
was about: the change of a weight, where it was a trial's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fleetd import BadData, Row
from planner.trial import NO_CHANGE, Change, Key, decode_change

SIGNS: Final = ("+", "-")
TEXT_MOST: Final = 200
OPINIONS_MOST: Final = 50  # that a lesson is told of: the newest
TERMS: Final = ("feedback.positive", "feedback.negative")  # the reward variables that mean nothing without any


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """A `feedback` row; `row` is the one that it is about."""

    key: Key
    at: str
    row: Key
    sign: str
    text: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a row is about: a trial with its change, or a round."""

    id: str
    change: Change | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """Feedback as a lesson is told of it."""

    sign: str
    text: str
    subject: Subject

    @property
    def told(self) -> dict[str, Any]:
        """As JSON, in a payload and in the file that {feedback} stands for."""
        change = self.subject.change.told if self.subject.change else NO_CHANGE
        return {"sign": self.sign, "text": self.text, "about": self.subject.id, **change}


def decode_feedback(row: Row) -> Feedback:
    """Raises BadData when the row does not say whom it likes."""
    body = row.body
    try:
        about = str(body["row"]["host"]), int(body["row"]["seq"])
        sign, text = body["sign"], str(body.get("text") or "")[:TEXT_MOST]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise BadData(f"the feedback names no row: {type(error).__name__}: {error}") from error
    if sign not in SIGNS:
        raise BadData(f"the feedback's sign is neither + nor -: {str(sign)[:20]!r}")
    return Feedback(key=(row.host, row.seq), at=row.at, row=about, sign=sign, text=text, by=str(body.get("by")))


def decode_opinion(value: Mapping[str, Any]) -> Opinion:
    """Raises KeyError, TypeError or ValueError when it is none."""
    change = None if value["variable"] is None else decode_change(value)
    subject = Subject(id=str(value["about"]), change=change)
    return Opinion(sign=str(value["sign"]), text=str(value["text"]), subject=subject)
