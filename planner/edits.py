"""What a person edits while a watch goes on: plan.toml and its space. An edit with errors is told once and changes nothing."""

from collections.abc import Callable, Iterable
from pathlib import Path

from fleetd import FleetError
from planner.plan import Plan, read_plan

Mark = tuple[tuple[int, int, int] | None, ...]


class Edits:
    """The plan as it stands."""

    def __init__(self, plan: Plan, check: Callable[[Plan], None]) -> None:
        """`check` raises what is wrong with a plan besides what it says."""
        self.plan = plan
        self._check = check
        self._mark: Mark = ()
        self._wrong = ""

    def look(self, say: Callable[[str], None]) -> bool:
        """Read the files again when they changed, and as long as they are wrong; whether the plan is another now."""
        mark = _mark(self.plan.files)
        if mark == self._mark and not self._wrong:
            return False
        self._mark, before, told = mark, self.plan, self._wrong
        try:
            plan = read_plan(before.files[0])
            self._check(plan)
            self.plan, self._wrong = plan, ""
        except FleetError as error:
            self._wrong = str(error)
            if self._wrong != told:
                say(f"{error}\nthe old plan stays until that is mended")
        return self.plan != before


def _mark(files: Iterable[Path]) -> Mark:
    return tuple(_changed(path) for path in files)


def _changed(path: Path) -> tuple[int, int, int] | None:
    try:
        at = path.stat()
    except OSError:
        return None
    return at.st_mtime_ns, at.st_size, at.st_ino
