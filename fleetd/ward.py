"""The attempts that run on this host: found by listing running/<host>/, judged, ended when asked for."""

import contextlib
import os
import re
import signal
import time
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleetd import claim, reap
from fleetd.claim import Claim
from fleetd.crew import Answer, Crew, Lane
from fleetd.errors import BadData
from fleetd.files import look, scan
from fleetd.halt import outlived
from fleetd.history import History
from fleetd.job import NAME, Outcome, Result, decode_job, utc
from fleetd.lease import lives
from fleetd.ledger import Ledger
from fleetd.orphan import Orphan
from fleetd.reap import End, State, Verdict
from fleetd.settings import Settings
from fleetd.spool import Spool
from fleetd.tree import send, unkillable

RECALL_S = 0.25
_AGAIN_S = 0.25  # how often a parent that is to end its job is continued, should it be stopped
_CLAIM = re.compile(NAME.pattern + r"~\d+~[0-9a-f]+\.json", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One that runs here: where, the lanes it takes, and its parent's pid (None: nobody is its parent any more).

    Of an attempt that is not `known` the disk or the share doesn't tell now what became of it: it keeps its lane.
    """

    path: Path
    cores: int
    parent: int | None
    pid: Mapping[str, Any]
    known: bool = True

    @property
    def gpus(self) -> frozenset[int]:
        """The numbers of the GPUs it has."""
        return frozenset(self.pid.get("gpus") or ())

    @property
    def id(self) -> str:
        """The job's id."""
        return self.path.name


class Ward:
    """What is claimed or runs on one host. `running` is as of the last look; `unknown` says what couldn't be judged."""

    def __init__(
        self,
        spool: Spool,
        ledger: Ledger,
        host: str,
        crew: Crew,
        history: History,
        settings: Settings,
        shelters: tuple[Path, ...],
    ) -> None:
        self._spool, self._ledger, self._host, self._crew = spool, ledger, host, crew
        self._history, self.settings, self._shelters = history, settings, shelters
        self._found: list[Attempt] = []
        self.unknown: list[str] = []
        self.returned: list[str] = []  # what was put back into queue/ and not yet asked for
        self.cancelling = False  # whether to `heed` again soon
        self.has_ends = False  # whether to `look`: something was called back
        self._told: set[str] = set()
        self._orphans: dict[str, Orphan] = {}
        self._unkillable: dict[str, tuple[int, ...]] = {}

    @property
    def running(self) -> list[Attempt]:
        """What runs: of each lane its oldest order, and what was found besides."""
        own = [(next(iter(lane.orders.values())), lane) for lane in self._crew.lanes if lane.orders]
        ours = [
            Attempt(path=taken.path, cores=taken.job.cores, parent=lane.pid, pid={"gpus": lane.gpus})
            for taken, lane in own
        ]
        return ours + self._found

    @property
    def found(self) -> list[Attempt]:
        """What runs here without an order of this daemon: adopted, being ended, or unknown."""
        return self._found

    def look(self, now: float, ended: Set[str]) -> list[End]:
        """List and judge all that no lane has an order for and that isn't among the `ended`; put back what never started.

        What has ended is given back, to be finished.
        """
        self._found, self.unknown, ends = [], [], []
        self.has_ends = False
        self._restore()
        ordered = self._crew.ordered()
        for entry in sorted(scan(self._spool.running / self._host), key=lambda entry: entry.name):
            path = Path(entry.path)
            if not _is_attempt(entry) or entry.path in ordered or entry.path in ended:
                continue
            try:
                if "~" in entry.name:
                    path = self._enter(path)
                ends += self._act(path, reap.judge(path), now)
            except (OSError, BadData) as error:
                self.unknown.append(f"{path}: {error}")
                self._found.append(Attempt(path=path, cores=1, parent=None, pid={}, known=False))
        here = {str(attempt.path) for attempt in self.running}
        self._told &= here
        for gone in set(self._orphans) - here:
            self._orphans.pop(gone).close()
        return ends

    def _restore(self) -> None:
        for taken in list(self._crew.orphaned):
            try:
                reap.restore(taken)
                self._crew.orphaned.remove(taken)
            except OSError as error:
                self.unknown.append(f"{taken.path}: {error}")

    def heard(self, answer: Answer) -> End:
        """The end of an attempt as its parent told it: nothing needs to be read again."""
        self._told.discard(str(answer.taken.path))
        result = reap.result_of(answer.said["exit"])
        return reap.ended(answer.taken.path, self._host, result, answer.said["pid"], utc(time.time()), answer.taken.job)

    def _enter(self, taken: Path) -> Path:
        """Go on with a claim that was never made a directory. Raises OSError; BadData when the file was spoilt."""
        id_, _, token = taken.name.removesuffix(".json").split("~")
        found = look(taken)
        try:
            job = decode_job(found.data if found else b"", id_)
        except BadData:
            claim.requeue(self._spool, taken, id_)
            raise
        with contextlib.suppress(FileNotFoundError):
            if not (taken.parent / job.id / "job.json").exists():
                claim.clear(taken.parent / job.id)
        return claim.enter(taken, job, token).path

    def _act(self, path: Path, verdict: Verdict, now: float) -> list[End]:
        try:
            match verdict.state:
                case State.DONE:
                    return [self._end(path, verdict)]
                case State.RUNNING:
                    self._found.append(_attempt(path, verdict))
                case State.LOST:
                    self._lose(path, verdict, now)
                case State.UNSTARTED if os.path.exists(path / "cancel"):
                    reap.write_exit(path, reap.cancelled())
                    return [self._end(path, verdict)]
                case State.UNSTARTED:
                    claim.unclaim(self._spool, path)
                    self.returned.append(path.name)
                case State.EMPTY:
                    claim.clear(path)
            return []
        finally:
            if verdict.lease is not None:
                os.close(verdict.lease)

    def _end(self, path: Path, verdict: Verdict) -> End:
        job = reap.read_job(path, verdict.pid)
        if job.attempt <= self._history.attempt(path.name):
            row = reap.recorded(self._ledger, path, self._host, job.attempt)
            if row is not None:
                return End(path=path, row=row, following=None, done_before=True)
        return reap.ended(path, self._host, reap.read_exit(path), verdict.pid, utc(time.time()), job)

    def _lose(self, path: Path, verdict: Verdict, now: float) -> None:
        """Nobody saw its end: what still bears its mark is ended first, then exit.json says so."""
        why = "its parent died before it could say how it ended"
        if reap.other_boot(path, verdict.pid):
            why = "the host was restarted while it ran"
        attempt = _attempt(path, verdict)
        self._orphan(attempt).end(reap.lost(why), self.settings.grace_s, now)
        self._found.append(attempt)

    def _orphan(self, attempt: Attempt) -> Orphan:
        """The attempt as one without a parent. Raises OSError."""
        at = str(attempt.path)
        if at not in self._orphans:
            cap = int(self.settings.log_max_mb * (1 << 20))
            self._orphans[at] = Orphan(attempt.path, attempt.pid, cap, self._shelters)
        return self._orphans[at]

    def end(self, attempt: Attempt, outcome: Outcome, now: float) -> bool:
        """See to it that the attempt ends; True the first time. Its parent, told by SIGTERM, does it, or else we do.

        A parent that is to end what was cancelled, and nothing else, finds that out itself; one that is stopped goes on.
        """
        if not attempt.known:
            return False
        first = str(attempt.path) not in self._told
        if outcome is not Outcome.CANCELLED:
            self._told.add(str(attempt.path))
        if attempt.parent is None:
            reason = "its parent had died; what was left of it was ended"
            result = Result(outcome=outcome, reason=reason, ended=utc(time.time()))
            with contextlib.suppress(OSError):  # the next pass tries again
                self._orphan(attempt).end(result, self.settings.grace_s, now)
        elif first and outcome is not Outcome.CANCELLED:
            send([attempt.parent], signal.SIGTERM, signal.SIGCONT)
        else:
            send([attempt.parent], signal.SIGCONT)
        return first

    def heed(self, now: float) -> None:
        """What was left in the attempts' directories: a file `cancel` by somebody, word of what it cannot end by a parent."""
        self.cancelling = False
        for lane in self._crew.lanes:
            self._heed_cancels(lane, now)
        for attempt in self.running:
            if attempt.parent is not None:  # it looks for `cancel` itself, and goes on if somebody stopped it
                send([attempt.parent], signal.SIGCONT)
            elif os.path.exists(attempt.path / "cancel"):
                self.end(attempt, Outcome.CANCELLED, now)
        said = {attempt.id: unkillable(attempt.path) for attempt in self.running}
        self._unkillable = {id_: pids for id_, pids in said.items() if pids}

    @property
    def unkillable(self) -> dict[str, tuple[int, ...]]:
        """What has outlived SIGKILL, by the job's id: it keeps its lanes."""
        return (
            {a.id: self._unkillable[a.id] for a in self.running if a.id in self._unkillable} if self._unkillable else {}
        )

    def outlived(self) -> list[str]:
        """The same in words."""
        return [f"{id_} cannot be ended: {outlived(pids)}" for id_, pids in self.unkillable.items()]

    def all_held(self, lanes: int) -> str | None:
        """Why nothing can start on `lanes` lanes, or None: what cannot be ended has them all."""
        if not self._unkillable:
            return None
        held = sum(attempt.cores for attempt in self.running if attempt.id in self._unkillable)
        return f"no lane is left: {'; '.join(self.outlived())}" if held >= lanes else None

    def stand_in(self, now: float) -> None:
        """Keep the time limit and the log's cap of attempts whose parent has died."""
        for attempt in self._found:
            if attempt.parent is None and attempt.known:
                deadline = attempt.pid.get("deadline")
                if isinstance(deadline, float) and now >= deadline:
                    self.end(attempt, Outcome.TIMEOUT, now)
                with contextlib.suppress(OSError):
                    self._orphan(attempt).keep_log(now)

    def recall(self, now: float) -> None:
        """Take back what waits at the door of a lane whose job takes long after all; nothing comes to that door meanwhile."""
        for lane in self._crew.lanes:
            if not lane.orders or now - lane.since <= RECALL_S:
                continue
            lane.quick_s = float("inf")
            for taken in list(lane.orders.values())[1:]:
                self._take_back(lane, taken, now)

    def _heed_cancels(self, lane: Lane, now: float) -> None:
        """Of the lane's orders the cancelled ones end before they start; one that runs, its parent ends."""
        for taken in list(lane.orders.values()):
            if os.path.exists(f"{taken.path}/cancel"):
                self.cancelling = True
                with contextlib.suppress(OSError):
                    self._take_back(lane, taken, now)

    def _take_back(self, lane: Lane, taken: Claim, now: float) -> None:
        """Take the claim from the lane if its parent has not started it. Raises OSError."""
        verdict = reap.judge(taken.path)
        if verdict.state is State.UNSTARTED:
            self.has_ends |= bool(self._act(taken.path, verdict, now))
            del lane.orders[str(taken.path)]
        elif verdict.lease is not None:
            os.close(verdict.lease)  # it has run by now, and its parent's answer is on the way

    def due_in(self, now: float) -> float:
        """Seconds until something must be done again for what is being ended, or has no parent."""
        if self.has_ends:
            return 0.0
        due = min((orphan.due_in(now) for orphan in self._orphans.values()), default=float("inf"))
        return min(due, _AGAIN_S) if self.cancelling or self._told else due


def _attempt(path: Path, verdict: Verdict) -> Attempt:
    pid = verdict.pid
    parent = pid["parent"] if lives(pid.get("parent"), pid.get("parent_born")) else None
    return Attempt(path=path, cores=reap.read_job(path, pid).cores, parent=parent, pid=pid)


def _is_attempt(entry: os.DirEntry[str]) -> bool:
    """Whether the entry is a claim or an attempt's directory, and no .nfs file or stranger's link."""
    if entry.is_symlink():
        return False
    return bool((NAME if entry.is_dir() else _CLAIM).fullmatch(entry.name))
