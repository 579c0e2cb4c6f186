"""The sweep of ended/: attempts that are older than keep_ended_days go, but for those that a standing row names.

A row names an attempt when its result is kept beside it (`result_file`), or when a row that is no result says
"ended/…" in any of its values: so a planner's adopt row keeps the files it rests on. A void row lets go.

A clock alone proves no age: an attempt goes when, besides, the ledger has rows of that many days after its own. So a clock that
has jumped ahead takes a day of what is to be kept at the most, whatever rows are written by it.
"""

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from fleetd.files import scan
from fleetd.job import encode_json, seconds, utc
from fleetd.ledger import Row

DAY_S = 86400.0
EVERY_S = 600.0
AT_ONCE = 30
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_NAMED = re.compile(rb'"ended/(\d{4}-\d{2}-\d{2}/[^"/]+)')


class Named:
    """The attempts that standing rows name, the newest time in the ledger, and its days: a fold over rows in any order."""

    def __init__(self) -> None:
        self.newest_s = 0.0
        self._days: set[int] = set()  # since the epoch
        self._by: dict[tuple[str, int], frozenset[str]] = {}
        self._void: set[tuple[str, int]] = set()

    def add(self, row: Row) -> None:
        """Take in one row."""
        at_s = seconds(row.at)
        self.newest_s = max(self.newest_s, at_s)
        self._days.add(int(at_s // DAY_S))
        if row.event == "void":
            self._void |= {(of["host"], of["seq"]) for of in row.body["rows"]}
        elif named := _names(row.event, row.body):
            self._by[row.host, row.seq] = named

    def newest_days(self, count: int, now: float) -> float:
        """When the last `count` days with rows began, as of `now`, seconds since the epoch; 0 where there are fewer."""
        lived = sorted(day for day in self._days if day * DAY_S <= now)
        return lived[-count] * DAY_S if count <= len(lived) else 0.0

    def keeps(self, attempt: str) -> bool:
        """Whether a standing row names `attempt`, written <yyyy-mm-dd>/<id>~<attempt>."""
        return any(attempt in named for key, named in self._by.items() if key not in self._void)


def _names(event: str, body: Mapping[str, Any]) -> frozenset[str]:
    if event == "result":
        kept = str(body.get("result_file") or "").split("/")
        return frozenset(["/".join(kept[1:3])]) if kept[0] == "ended" else frozenset()
    return frozenset(name.decode() for name in _NAMED.findall(encode_json(body)))


def due(ended: Path, named: Named, days: float, now: float) -> Iterator[Path]:
    """The attempts to be removed at `now` (seconds since the epoch); none when the clock is a day ahead of the ledger."""
    if now > named.newest_s + DAY_S:
        return
    last = utc(now - days * DAY_S)[:10]
    kept = utc(named.newest_days(int(days), now))[:10] if days >= 1 else "9"
    for day in sorted(scan(ended), key=lambda entry: entry.name):
        if not _DAY.fullmatch(day.name) or day.name > last or day.name >= kept or not day.is_dir(follow_symlinks=False):
            continue
        with contextlib.suppress(FileNotFoundError), os.scandir(day.path) as attempts:
            for entry in attempts:  # neither the names nor what lstat says of them are kept: there may be a million
                with contextlib.suppress(FileNotFoundError):
                    old = os.lstat(entry.path).st_mtime < now - days * DAY_S
                    if old and not named.keeps(f"{day.name}/{entry.name}"):
                        yield Path(entry.path)


def remove(path: Path) -> None:
    """Remove an attempt's directory, and its day's when that is empty then; what another host removed is gone. Raises OSError."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=False, onerror=_pass_over_missing)
    else:
        path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        os.rmdir(path.parent)


def _pass_over_missing(_function: object, _path: str, error: tuple[type[BaseException], BaseException, object]) -> None:
    if not isinstance(error[1], FileNotFoundError):
        raise error[1]


class Sweeper:
    """Sweeps now and then, a few attempts a pass."""

    def __init__(self, ended: Path, named: Named) -> None:
        self._ended, self._named = ended, named
        self._next_at = float("-inf")
        self._at_work: Iterator[Path] | None = None

    def step(self, now: float, days: float) -> None:
        """Remove some of what is too old. `now`: monotonic seconds. Raises OSError."""
        if self._at_work is None and now >= self._next_at:
            self._next_at = now + min(EVERY_S, days * DAY_S / 10)
            self._at_work = due(self._ended, self._named, days, time.time())
        if self._at_work is not None:
            some = list(islice(self._at_work, AT_ONCE))
            for path in some:
                remove(path)
            if len(some) < AT_ONCE:
                self._at_work = None

    def is_at_work(self) -> bool:
        """Whether there is more to remove at once."""
        return self._at_work is not None
