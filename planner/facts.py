"""Facts: the rows of one plan, each under its (host, seq), without their weights.

What a void row names is as if it had never been: its trial, its pass and its seeds go with it. A row of the right form
with odd content (text for a number, a pass of 1e300) counts for nothing; `odd` names those.
"""

from collections.abc import Callable, Iterable, Sequence

from fleetd import BadData, Row
from planner.net_round import (
    LESSON,
    decode_judge,
    decode_lesson,
)
from planner.opinion import Feedback, Opinion, Subject, decode_feedback
from planner.rows import (
    LAPSING,
    VERDICTS,
    Attempt,
    Judged,
    Learned,
    Ruling,
    ScreenRow,
    attempt_of,
    judged_of,
    learned_of,
    ruling_of,
    screen_row_of,
    subject_of,
)
from planner.screen import SCREEN, decode_screen
from planner.seeds import Purpose
from planner.sheaf import Filed
from planner.shelf import Line, Shelf
from planner.trial import (
    TRIAL,
    Key,
    Place,
    decode_block,
)


class Facts:
    """The rows of one plan, by where they stand. Adding a row twice, or in another order, changes nothing.

    Those of the trials and screens on the `shelf` are facts as well: they are looked at when a row about one comes.
    """

    def __init__(self, name: str, shelf: Shelf | None = None) -> None:
        self.name = name
        self.shelf = shelf or Shelf()
        self._touched: set[str] = set()  # trials and screens that may be on the shelf
        self._attempts: dict[Key, Attempt] = {}
        self._screens: dict[Key, ScreenRow] = {}
        self._learned: dict[Key, Learned] = {}
        self._judged: dict[Key, Judged] = {}
        self._rulings: dict[Key, Ruling] = {}
        self._feedback: dict[Key, Feedback] = {}
        self._voids: set[Key] = set()  # the rows that void
        self._void: dict[Key, str] = {}  # what they name → the reason
        self._odd: set[Key] = set()

    def add(self, rows: Iterable[Row]) -> None:
        for row in rows:
            try:
                self._take(row)
            except BadData:
                self._odd.add((row.host, row.seq))
        self.open({id_ for id_ in self._touched if self.shelf.has(id_)})
        self._touched.clear()

    def open(self, ids: Iterable[str]) -> None:
        """Take these trials and screens from the shelf."""
        if rows := self.shelf.take(ids):
            self.add(rows)

    def shelve(self, lines: Iterable[Line | Filed], fetch: Callable[[Sequence[Place]], list[Row]]) -> None:
        """Put these trials and screens on the shelf; `fetch` reads their rows again."""
        trials, screens = dict(self.shelf.lines), dict(self.shelf.screens)
        for line in lines:
            for host, seq, *_ in line.rows:
                for rows in (self._attempts, self._screens, self._rulings):
                    rows.pop((host, seq), None)
            if isinstance(line, Filed):
                screens[line.told.id] = line
            else:
                trials[line.id] = line
        self.shelf = Shelf(trials, screens, fetch)

    def whole(self) -> "Facts":
        """The same with no trial on the shelf."""
        self.open(list(self.shelf.lines))
        return self

    def keys(self) -> set[Key]:
        """The rows that are facts here, those on the shelf not among them."""
        found = self._attempts, self._screens, self._learned, self._judged, self._rulings, self._feedback, self._voids
        return self._odd.union(*found)

    def _take(self, row: Row) -> None:
        key = (row.host, row.seq)
        if row.event == "void":
            reason = str(row.body.get("reason"))
            self._voids.add(key)
            for named in ((v["host"], v["seq"]) for v in row.body["rows"]):
                self._void[named] = min(reason, self._void.get(named, reason))
                self._touched.add(self.shelf.whose(named) or "")
        elif row.event in VERDICTS and row.body.get("plan") == self.name:
            self._rulings[key] = ruling = ruling_of(row)
            self._touched.add(ruling.trial)
        elif row.event == "feedback" and row.body.get("plan") == self.name:
            self._feedback[key] = decode_feedback(row)
        elif row.event == "result":
            self._take_result(key, row)

    def _take_result(self, key: Key, row: Row) -> None:
        payload = row.body.get("payload")
        if not isinstance(payload, dict) or payload.get("name") != self.name:
            return
        if payload.get("schema") == LESSON:
            self._learned[key] = learned_of(row, decode_lesson(payload))
        elif payload.get("schema") == TRIAL and payload.get("purpose") == Purpose.JUDGE:
            self._judged[key] = judged_of(row, decode_judge(payload))
        elif payload.get("schema") == SCREEN:
            self._screens[key] = read = screen_row_of(row, decode_screen(payload))
            self._touched.add(read.screen.id)
        elif payload.get("schema") == TRIAL:
            self._attempts[key] = attempt = attempt_of(row, decode_block(payload))
            self._touched.add(attempt.trial.id)

    @property
    def odd(self) -> list[Key]:
        """The rows of odd content that no void row has taken out."""
        return sorted(self._odd - self._void.keys())

    def attempts(self) -> list[Attempt]:
        """The result rows that no void row takes out, in the order of their keys."""
        return [attempt for key, attempt in sorted(self._attempts.items()) if key not in self._void]

    def voided(self) -> list[Attempt]:
        """Those that one does."""
        return [attempt for key, attempt in self._attempts.items() if key in self._void]

    def voided_screens(self) -> set[str]:
        """The screens of which a row was voided."""
        return {row.screen.id for key, row in self._screens.items() if key in self._void}

    def voided_to(self) -> dict[str, int]:
        """Of each host the last row with reads that a void row takes out: nothing up to it is to be used again."""
        found: dict[str, int] = {}
        for rows in (self._attempts, self._screens, self._judged):
            for host, seq in rows.keys() & self._void.keys():
                found[host] = max(seq, found.get(host, 0))
        return found

    def is_void(self, key: Key) -> bool:
        return key in self._void

    def screens(self) -> list[ScreenRow]:
        return [row for key, row in self._screens.items() if key not in self._void]

    def learned(self) -> list[Learned]:
        return [attempt for key, attempt in self._learned.items() if key not in self._void]

    def judged(self) -> list[Judged]:
        return [attempt for key, attempt in self._judged.items() if key not in self._void]

    def subject(self, key: Key) -> Subject | None:
        """What the row is about; None: no such row of this plan, or it was voided."""
        if key in self._void:
            return None
        if shelved := self.shelf.whose(key):
            line = self.shelf.lines.get(shelved)
            return Subject(id=shelved, change=line.trial.single if line else None)
        if found := self._attempts.get(key):
            return Subject(id=found.trial.id, change=found.trial.single)
        if screened := self._screens.get(key):
            return Subject(id=screened.screen.id)
        rounds = self._learned.get(key), self._judged.get(key)
        if told := next((row for row in rounds if row), None):
            return Subject(id=told.lesson.round if isinstance(told, Learned) else told.judge.round)
        return subject_of(ruling) if (ruling := self._rulings.get(key)) else None

    def feedback(self) -> list[Feedback]:
        """What was said of rows that stand, oldest first; of what one said of one row, the last counts."""
        said = (f for key, f in self._feedback.items() if key not in self._void and self.subject(f.row))
        last = {(f.by, f.row): f for f in sorted(said, key=lambda f: (f.at, f.key))}
        return sorted(last.values(), key=lambda f: (f.at, f.key))

    def opinions(self) -> list[Opinion]:
        """The same, with what the rows are about."""
        told = ((f, self.subject(f.row)) for f in self.feedback())
        return [Opinion(sign=f.sign, text=f.text, subject=subject) for f, subject in told if subject]

    def history(self) -> list[Ruling]:
        """Every verdict, oldest first, also those that stand no more."""
        return sorted(self._rulings.values(), key=lambda r: (r.at, r.key))

    def undone(self) -> dict[Key, str]:
        """The verdicts that were taken back → why: voided, or resting on reads that were."""
        return {key: f"taken back: {why}" for key, ruling in self._rulings.items() if (why := self._why_not(ruling))}

    def shaken(self) -> list[tuple[Ruling, str]]:
        """The verdicts whose reads were voided and which no void row names yet, with the reason."""
        return [(r, why) for r in self.history() if r.key not in self._void and (why := self._why_not(r))]

    def _why_not(self, ruling: Ruling) -> str | None:
        if ruling.key in self._void:
            return self._void[ruling.key]
        gone = ruling.rests_on & self._void.keys()
        return f"the reads that it rests on were voided ({self._void[min(gone)]})" if gone else None

    def rulings(self) -> list[Ruling]:
        """The standing verdicts, oldest first; of two on one trial the first that its reads decided, else the last."""
        first: dict[str, Ruling] = {}
        for ruling in self.history():
            known = first.get(ruling.trial)
            if not self._why_not(ruling) and (known is None or known.reason in LAPSING):
                first.pop(ruling.trial, None)
                first[ruling.trial] = ruling
        return list(first.values())
