"""The probe of a deterministic plan: one play in two census processes, before a host's reads with a build count.

Whoever says `deterministic = true` has scores read once and used again. Where that is not so on a host (a clock, a thread, an
uninitialised array), each difference would have another game's luck in it. The first process plays that one play alone,
the second among all the others, so that what depends on its neighbours is found, too.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleetd import Row
from planner.trial import is_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A play, and its scores in one process after another."""

    player: str
    seed: int
    scores: tuple[float, ...]

    @property
    def open(self) -> bool:
        """Whether the second score is still to come."""
        return len(self.scores) == 1

    @property
    def differs(self) -> bool:
        return len(set(self.scores)) > 1

    @property
    def sentence(self) -> str:
        """What is wrong, and what to do."""
        one, other = self.scores
        return (
            f"not deterministic: seed {self.seed} scored {one!r}, then {other!r}; no read counts: "
            "mend the census on this host, or set deterministic = false in plan.toml"
        )

    def encode(self) -> dict[str, Any]:
        return {"player": self.player, "seed": self.seed, "scores": list(self.scores)}


def known_probe(rows: Iterable[Row], census: Sequence[str], build: str | None) -> Probe | None:
    """The one that a host with this census and build has passed, by its rows."""
    for row in rows:
        result, payload = row.body.get("result"), row.body.get("payload")
        if isinstance(result, dict) and isinstance(payload, dict) and result.get("build") == build:
            probe = _decoded(result.get("probe")) if payload.get("census") == list(census) else None
            if probe and not probe.open and not probe.differs:
                return probe
    return None


def _decoded(value: Any) -> Probe | None:
    if not isinstance(value, Mapping) or not isinstance(scores := value.get("scores"), list):
        return None
    if not isinstance(seed := value.get("seed"), int) or len(scores) not in (1, 2) or not all(map(is_number, scores)):
        return None
    return Probe(player=str(value.get("player")), seed=seed, scores=tuple(scores))
