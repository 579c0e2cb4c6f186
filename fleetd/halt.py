"""Stop files as this host answers them: acknowledged at once, carried through, told by a `stop` and a `resume` row."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from fleetd.ledger import Row
from fleetd.spool import STOPS


def outlived(pids: Iterable[int]) -> str:
    """Which processes SIGKILL has not ended, in words."""
    names = [str(pid) for pid in pids]
    return f"{'process' if len(names) == 1 else 'processes'} {', '.join(names)} outlived SIGKILL"


@dataclass(slots=True, kw_only=True)
class Seen:
    """One stop file: when this host saw it, whom it told to end, how many are left, who of them cannot be ended.

    `told`: the row is written.
    """

    seen: str
    ended: list[str] = field(default_factory=list)
    left: int = 0
    unkillable: list[str] = field(default_factory=list)
    told: bool = False


class Halt:
    """The stops that stand for this host."""

    def __init__(self, rows: Iterable[Row], beaten: Mapping[str, Any]) -> None:
        """`rows` and `beaten`, the stops in the last heartbeat, are this host's own.

        What an earlier daemon has told in a row is not told again; what it had only seen is carried through.
        """
        self._standing: dict[str, Seen] = {}
        told_before: set[tuple[str, str]] = set()
        for row in rows:
            body = row.body
            told_before.add((str(body.get("stop")), str(body.get("seen"))))
            if row.event == "stop" and body.get("stop") in STOPS:
                self._standing[body["stop"]] = Seen(seen=str(body.get("seen", row.at)), told=True)
            elif row.event == "resume":
                self._standing.pop(str(body.get("stop")), None)
        for name, said in beaten.items():
            if name in STOPS and isinstance(said, dict) and (name, str(said.get("seen"))) not in told_before:
                told = [str(id_) for id_ in said.get("ended") or ()]
                self._standing.setdefault(name, Seen(seen=str(said.get("seen")), ended=told))

    def see(self, stops: Set[str], at: str) -> bool:
        """Take note of new stop files; True when there are any."""
        new = [stop for stop in stops if stop not in self._standing]
        for stop in new:
            self._standing[stop] = Seen(seen=at)
        return bool(new)

    def halting(self) -> bool:
        """Whether a STOP_NOW is to be carried through still, its file there or not."""
        stop = self._standing.get("STOP_NOW")
        return stop is not None and not stop.told

    def ended(self, id_: str) -> None:
        """A job was told to end because of STOP_NOW."""
        self._standing["STOP_NOW"].ended.append(id_)

    def left(self, count: int, unkillable: Iterable[str] = ()) -> None:
        """How many of them are still there, and who of these will not go."""
        if stop := self._standing.get("STOP_NOW"):
            stop.left, stop.unkillable = count, list(unkillable)

    def rows(self, stops: Set[str], by: str) -> list[dict[str, Any]]:
        """What is now to be written: a stop row once nothing is left that can be ended, a resume row when its file is gone."""
        rows: list[dict[str, Any]] = []
        for name, stop in self._standing.items():
            if not stop.told and stop.left == len(stop.unkillable):
                said = {**self._said(stop), "unkillable": list(stop.unkillable)}
                rows.append({"event": "stop", "by": by, "stop": name, **said, "reason": f"{name} was made"})
            elif stop.told and name not in stops:
                rows.append({"event": "resume", "by": by, "stop": name, "reason": f"{name} is gone"})
        return rows

    def written(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Those rows are in the ledger."""
        for row in rows:
            if row["event"] == "stop":
                self._standing[row["stop"]].told = True
            else:
                del self._standing[row["stop"]]

    def heartbeat(self, stops: Set[str]) -> dict[str, Any]:
        """The `stops` of the heartbeat."""
        return {name: self._said(stop) for name, stop in self._standing.items() if name in stops or not stop.told}

    @staticmethod
    def _said(stop: Seen) -> dict[str, Any]:
        return {"seen": stop.seen, "ended": list(stop.ended), "left": stop.left}
