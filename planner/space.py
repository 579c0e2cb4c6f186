"""Variables: where each starts, how far it may go, its smallest change. The format of space.toml."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleetd import BadSettings, Doc, Keys, read_toml

TYPES = ("float", "int")
GROUPS = ("weight", "reward")
NUMBERS = ("start", "low", "high", "step")
DIRECTIONS = (1, -1)  # of a change: up, down
FIELDS = ("name", *NUMBERS, "type", "group")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One number that the planner varies; `step` is the smallest change worth trying."""

    name: str
    start: float
    low: float
    high: float
    step: float
    type: str = "float"
    group: str = "weight"

    def typed(self, value: float) -> float:
        """The value as it is played and recorded: whole for an int, else to twelve digits of the step."""
        if self.type == "int":
            return round(value)
        return round(value, 11 - math.floor(math.log10(self.step))) + 0.0

    def inside(self, value: float) -> float:
        """The value, or where it is played when the range or the type no longer allows it."""
        bounded = min(max(value, self.low), self.high)
        return value if bounded == value and self.type == "float" else self.typed(bounded)

    def moved(self, value: float, direction: int, steps: int = 1) -> float | None:
        """The value so many steps up (+1) or down (-1), cut at the bound; None at the bound: under half a step is left."""
        bound = self.high if direction > 0 else self.low
        room, far = (bound - value) * direction, steps * self.step
        if room < self.step * (0.5 - 1e-9) or room <= 0.0:
            return None
        to = self.typed(bound if room < far else value + direction * far)
        return None if to == value else to


@dataclass(frozen=True, slots=True)
class Space:
    """The variables in the order of the file."""

    variables: tuple[Variable, ...]

    def weights(self) -> tuple[Variable, ...]:
        """What a player is made of; rewards belong to training."""
        return tuple(v for v in self.variables if v.group == "weight")

    def rewards(self) -> tuple[Variable, ...]:
        """The weights of reward terms, as training is told them."""
        return tuple(v for v in self.variables if v.group == "reward")

    def has(self, weights: Mapping[str, float]) -> bool:
        """Whether they can be played as they are."""
        known = {v.name: v for v in self.weights()}
        return all(name in known and known[name].inside(value) == value for name, value in weights.items())

    def starts(self) -> dict[str, float]:
        """The first best."""
        return {v.name: v.typed(v.start) for v in self.weights()}


def read_space(path: Path) -> Space:
    """The variables in the file at `path`; raises BadSettings with every error as file:line:column."""
    doc = read_toml(path)
    if wrong := list(complaints(doc)):
        raise BadSettings("\n".join(wrong))
    return Space(tuple(Variable(**table) for table in doc.table["variable"]))


def complaints(doc: Doc) -> Iterator[str]:
    """Everything wrong with the tables of a space.toml."""
    for key in doc.table.keys() - {"variable"}:
        yield doc.unknown((key,), ("variable",))
    tables = doc.table.get("variable")
    if not isinstance(tables, list) or not tables or not all(isinstance(t, dict) for t in tables):
        yield doc.complaint(("variable",), "expected [[variable]] tables, at least one")
        return
    seen: set[str] = set()
    for at, table in enumerate(tables):
        yield from _of_table(doc, ("variable", at), table)
        name = table.get("name")
        if isinstance(name, str) and name in seen:
            yield doc.complaint(("variable", at, "name"), f'"{name}" is the name of an earlier variable')
        seen.add(str(name))


def _of_table(doc: Doc, keys: Keys, table: Mapping[str, Any]) -> Iterator[str]:
    for key in table:
        if key not in FIELDS:
            yield doc.unknown((*keys, key), FIELDS)
    for key in ("name", *NUMBERS):
        if key not in table:
            yield doc.complaint((*keys, key), "is missing")
    yield from _words(doc, keys, table)
    kind = table.get("type", "float")
    wrong = {key: why for key in NUMBERS if key in table and (why := _number(key, table[key], kind))}
    for key, why in wrong.items():
        yield doc.complaint((*keys, key), why)
    if not wrong and all(key in table for key in NUMBERS):
        yield from _range(doc, keys, table)


MOST = 1e100  # sums and squares of such numbers are finite
WHOLE_MOST = 2**53  # whole numbers that a double tells apart


def _words(doc: Doc, keys: Keys, table: Mapping[str, Any]) -> Iterator[str]:
    name = table.get("name", "-")
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        yield doc.complaint((*keys, "name"), f"expected a name that can be printed, got {name!r}")
    for key, allowed in (("type", TYPES), ("group", GROUPS)):
        if table.get(key, allowed[0]) not in allowed:
            yield doc.complaint((*keys, key), f'expected "{allowed[0]}" or "{allowed[1]}", got {table[key]!r}')


def _number(key: str, value: Any, kind: Any) -> str | None:
    """Why the value cannot stand at the key, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"expected a finite number, got {value!r}"
    most = WHOLE_MOST if kind == "int" else MOST
    if not abs(value) <= most:
        return (
            f"expected a finite number, at most ±{most:g}, got {value if isinstance(value, float) else 'a larger one'}"
        )
    if key == "step" and value <= 0:
        return f"expected a step above 0, got {value!r}"
    if kind == "int" and value != int(value):
        return f"expected a whole number, for the type is int, got {value!r}"
    return None


def _range(doc: Doc, keys: Keys, table: Mapping[str, Any]) -> Iterator[str]:
    low, high, start = table["low"], table["high"], table["start"]
    if low > high:
        yield doc.complaint((*keys, "low"), f"the range is inverted: low {low!r} is above high {high!r}")
    elif not low <= start <= high:
        yield doc.complaint((*keys, "start"), f"{start!r} is outside the range {low!r} to {high!r}")
    elif low < high and (why := _step(table["step"], low, high)):
        yield doc.complaint((*keys, "step"), why)


def _step(step: float, low: float, high: float) -> str | None:
    """Why no variable of that range can ever move by the step, or not everywhere."""
    if step > high - low:
        return f"{step!r} is larger than the range {low!r} to {high!r}: it could never be made"
    far = max(abs(low), abs(high))
    return f"{step!r} is lost in rounding beside {far!r}" if float(far) - step == far else None
