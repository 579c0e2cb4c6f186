"""Filing: what goes on the shelf, and the cache of a ledger. What lies there is read again where it is asked for."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from fleetd import BadData, Ledger, Row
from planner.builds import rules_of
from planner.cache import Cache, Gap, Kept
from planner.facts import Facts
from planner.residuals import by_host
from planner.rows import Attempt, Ruling, ScreenRow
from planner.screen import Shake, stray_screen
from planner.screened import told_of
from planner.seeds import Draw, Purpose, stray
from planner.sheaf import Filed
from planner.shelf import Line, Shelf
from planner.standing import Standing, line_of
from planner.trial import Key, Place
from planner.verdict import read_of

LONG = 1_000_000  # bytes that were read anew: so much is worth to be kept
PART = 32_000_000  # bytes of rows that are read at a time: as much is held before what it decided is shelved
LINE = 32  # and so many for each line that is written again with it


class Reader:
    """Reads one ledger into facts, by the cache where that is good, and keeps what it has read."""

    def __init__(self, ledger: Ledger, cache: Cache) -> None:
        self._ledger, self._cache = ledger, cache
        self._places: dict[Key, Place] = {}
        self._ends: dict[str, int] = {}  # of the last row of a segment
        self._gaps: dict[str, list[Gap]] = {}
        self._new = 0  # bytes read since the cache was written
        self._looked = False
        self._coming: Iterator[Row] = iter(())

    def look(self, facts: Facts) -> bool:
        """Add what is new, the first time what was kept before it; at most PART of it. Whether there is more."""
        if not self._looked:
            self._looked = True
            self._recall(facts)
        end = self._new + PART
        facts.add(self._until(end))
        return self._new >= end

    def _until(self, end: int) -> Iterator[Row]:
        """What comes, until so much was read; a next call goes on from there."""
        for rows in (self._coming, self._polled()):
            self._coming = rows
            for row in rows:
                yield row
                if self._new >= end:
                    return

    def shelve(self, facts: Facts, seen: Standing) -> bool:
        """Put what is decided on the shelf. Whether that can be: rows of this process's own may be unread yet."""
        if known := facts.keys() <= self._places.keys():
            facts.shelve(list(lines_of(facts, seen, self._places)), self._fetch)
        return known

    def keep(self, facts: Facts, seen: Standing) -> None:
        """When much was read anew, shelve what is decided and write the cache."""
        if self._new < max(LONG, LINE * (len(facts.shelf.lines) + len(facts.shelf.screens))):
            return
        self._new = 0
        if not self.shelve(facts, seen):
            return
        left = facts.keys()
        places = sorted((self._places[key] for key in left), key=tuple)
        lines, screens = sorted(facts.shelf.lines.values()), sorted(facts.shelf.screens.values())
        reached = {host: at for host in self._ledger.hosts() if (at := self._ledger.reached(host))[0]}
        for host, (_, offset) in reached.items():
            self._gap_to(host, offset)
        self._cache.write(Kept(reached=reached, lines=lines, screens=screens, places=places, gaps=self._gaps))

    def _recall(self, facts: Facts) -> None:
        if (kept := self._cache.read()) is None:
            return
        try:
            rows = self._fetch(kept.places)
        except BadData:
            return
        self._ledger.go_on(kept.reached)
        self._ends = {host: offset for host, (_, offset) in kept.reached.items()}
        self._gaps = {host: [*gaps] for host, gaps in kept.gaps.items()}
        lines, screens = {line.id: line for line in kept.lines}, {filed.told.id: filed for filed in kept.screens}
        facts.shelf = Shelf(lines, screens, self._fetch)
        facts.add(rows)

    def _polled(self) -> Iterator[Row]:
        for row, line in self._ledger.poll_lines():
            end = self._ledger.reached(row.host)[1] - 1
            start = end - len(line)
            self._places[row.host, row.seq] = row.host, row.seq, start, end
            self._gap_to(row.host, start)
            self._ends[row.host] = end + 1
            self._new += len(line)
            yield row

    def _gap_to(self, host: str, start: int) -> None:
        """What lies before it and after the last row is none."""
        if start > (end := self._ends.get(host, 0)):
            self._gaps.setdefault(host, []).append((end, start))
            self._ends[host] = start

    def _fetch(self, places: Sequence[Place]) -> list[Row]:
        """The rows that stand there. Raises BadData, without a cache then, when others do."""
        found: list[Row] = []
        try:
            for host, of in _segments(places).items():
                for (_, seq, _, _), row in zip(of, self._ledger.rows_at(host, [p[2:] for p in of]), strict=True):
                    found += [row] if row and (row.host, row.seq) == (host, seq) else []
        except (OSError, ValueError, OverflowError):
            found = []
        if len(found) < len(places):
            self._cache.remove()
            raise BadData(f"{self._ledger.root}: rows are not where they were read before; try again")
        self._places |= {(place[0], place[1]): place for place in places}
        return found


def _segments(places: Iterable[Place]) -> dict[str, list[Place]]:
    found: dict[str, list[Place]] = {}
    for place in places:
        found.setdefault(place[0], []).append(place)
    return found


def lines_of(facts: Facts, seen: Standing, places: Mapping[Key, Place]) -> Iterator[Line | Filed]:
    """What may lie on the shelf, of all that is not there yet."""
    yield from _trials(facts, seen, places)
    yield from _screens(facts, seen, places)


def _screens(facts: Facts, seen: Standing, places: Mapping[Key, Place]) -> Iterator[Filed]:
    """The screens of mirrored pairs that were read, by one build, and have nothing odd about them."""
    read: dict[str, list[ScreenRow]] = {}
    for row in sorted(facts.screens(), key=lambda row: row.key):
        read.setdefault(row.screen.id, []).append(row)
    barred = {screen.id for screen in seen.screened.alive.values()} | facts.voided_screens()
    for id_ in read.keys() - barred:
        rows = read[id_]
        if (
            rows[0].screen.shake is Shake.MIRRORED
            and any(row.differences for row in rows)
            and len(set(map(rules_of, rows))) == 1
            and not stray_screen(rows[0].screen)
        ):
            yield Filed(
                told=told_of(rows),
                plays=sum(row.reads.plays for row in rows),
                busy_s=math.fsum(row.busy_s for row in rows),
                hosts=[(host, of.n, of.mean, of.se) for host, of in by_host((r.key[0], r.reads) for r in rows).items()],
                rows=[places[row.key] for row in rows],
            )


def _trials(facts: Facts, seen: Standing, places: Mapping[Key, Place]) -> Iterator[Line]:
    """Those of one variable that have one verdict, which keeps the best, and nothing odd about them."""
    attempts: dict[str, list[Attempt]] = {}
    for attempt in facts.attempts():
        attempts.setdefault(attempt.trial.id, []).append(attempt)
    rulings: dict[str, list[Ruling]] = {}
    for ruling in facts.history():
        rulings.setdefault(ruling.trial, []).append(ruling)
    voided = {attempt.trial.id for attempt in facts.voided()}
    for id_ in attempts.keys() & rulings.keys() - voided:
        decided = seen.courses[id_].ruling is not None  # a verdict that lapsed decides nothing
        if decided and len(rulings[id_]) == 1 and _is_plain(attempts[id_], rulings[id_][0], facts):
            keys = [*(attempt.key for attempt in attempts[id_]), rulings[id_][0].key]
            yield _line(seen, id_, attempts[id_], [places[key] for key in keys])


def _is_plain(attempts: Sequence[Attempt], ruling: Ruling, facts: Facts) -> bool:
    own = {attempt.key for attempt in attempts}
    if ruling.event != "keep" or ruling.is_round or facts.is_void(ruling.key) or not ruling.rests_on <= own:
        return False
    draws = [draw for a in attempts for draw in (a.draw, Draw(a.seeds, a.purpose, a.trial.id))]
    builds = {
        (str(a.reads.rules), a.reads.build, a.reads.census) for a in attempts
    }  # two: what shows whether they are one game
    drawn = {(a.purpose, a.draw) for a in attempts}  # two fleets may have drawn for one trial
    if len(builds) > 1 or len(drawn) > len({a.purpose for a in attempts}):
        return False
    return attempts[0].trial.single is not None and not any(map(stray, draws))


def _line(seen: Standing, id_: str, attempts: Sequence[Attempt], rows: Sequence[Place]) -> Line:
    course = seen.courses[id_]
    held = [attempt for attempt in attempts if attempt.purpose is Purpose.HELDOUT]
    spans = [course.heldout.span, *(attempt.seeds for attempt in held)] if course.heldout else []
    read = read_of(course.search or course.heldout)
    return line_of(course)._replace(
        plays=sum(attempt.reads.plays for attempt in attempts if attempt.purpose is Purpose.SEARCH),
        held_plays=sum(attempt.reads.plays for attempt in held),
        busy_s=[attempt.busy_s for attempt in attempts],
        held=[[span.low, span.high] for span in spans],
        rows=rows,
        n=read.n if read else 0,
        mean=read.mean if read else 0.0,
        se=read.se if read else 0.0,
        hosts=[*_by_host(attempts)],
    )


def _by_host(attempts: Sequence[Attempt]) -> Iterator[tuple[str, str, int, float, float]]:
    for purpose in (Purpose.SEARCH, Purpose.HELDOUT):
        hosts = by_host((a.key[0], a.reads) for a in attempts if a.purpose is purpose)
        if len(hosts) > 1:
            yield from ((str(purpose), host, read.n, read.mean, read.se) for host, read in hosts.items())
