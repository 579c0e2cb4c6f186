"""The best: the starts of the space, overlaid with the adoptions in order of time.

An adoption leads from weights to weights. It holds as long as what it leads from is what stands, on the variables that
both know: so a variable that is new begins at its start, one that left takes its own adoptions with it, and all others
stay. One that cannot be applied is no error and no secret: `lapsed` says why.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from planner.rows import Ruling
from planner.space import Space, Variable
from planner.trial import Key, player_hash


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The defaults adopted so far, as they are played. `notes` are for a person."""

    weights: Mapping[str, float]
    defaults: str
    adoptions: tuple[Ruling, ...] = ()
    lapsed: Mapping[Key, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def best_of(space: Space, rulings: Iterable[Ruling]) -> Best:
    """Apply the oldest adoption that fits, again and again: an adoption is found although its host's clock was wrong."""
    known = {variable.name: variable for variable in space.weights()}
    weights = space.starts()
    pending = [ruling for ruling in rulings if ruling.event == "adopt"]
    applied: list[Ruling] = []
    while (at := next((i for i, r in enumerate(pending) if not _clash(r, weights, known)), None)) is not None:
        applied.append(pending.pop(at))
        before = applied[-1].weights or {}
        weights |= {k: v for k, v in {**before, **applied[-1].candidate}.items() if k in known}
    lapsed = {ruling.key: f"no longer applies: {_clash(ruling, weights, known)}" for ruling in pending}
    played = _played(weights, known)
    return Best(
        weights=played,
        defaults=player_hash(played),
        adoptions=tuple(applied),
        lapsed=lapsed,
        notes=(
            *(f"adoption {ruling.trial} {lapsed[ruling.key]}" for ruling in pending),
            *(_moved(known[name], weights[name]) for name in known if played[name] != weights[name]),
        ),
    )


def _clash(ruling: Ruling, weights: Mapping[str, float], known: Mapping[str, Variable]) -> str | None:
    """Why the adoption does not lead on from these weights."""
    if not ruling.candidate.keys() & known.keys():
        return f"{', '.join(sorted(ruling.candidate)) or 'its variable'} is not in the space"
    played = _played(weights, known)
    if ruling.weights is None:
        fits = ruling.body.get("defaults") in (player_hash(weights), player_hash(played))
        return None if fits else "it leads from other weights"
    for name in known.keys() & ruling.weights.keys():
        if (read := ruling.weights[name]) not in (weights[name], played[name]):
            return f"it was read with {name} at {read:g}, and that is {played[name]:g} now"
    return None


def _played(weights: Mapping[str, float], known: Mapping[str, Variable]) -> dict[str, float]:
    return {name: known[name].inside(value) for name, value in weights.items()}


def _moved(variable: Variable, value: float) -> str:
    whole = "whole numbers from " if variable.type == "int" else ""
    allowed = f"{whole}{variable.low:g} to {variable.high:g}"
    return (
        f"{variable.name}: the best is {value:g}, outside its range ({allowed}): {variable.inside(value):g} is played"
    )
