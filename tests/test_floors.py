"""Imports point down, the engine knows nothing of training, and only the command lines print."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ENGINE_FLOORS = (
    ("errors", "toml", "job", "cores", "settings", "log", "spawn", "table", "xdg"),
    ("files", "lane", "parking", "breaker", "stops", "history", "rings"),
    ("lease", "tree", "shelter"),
    ("spool", "ledger", "merge", "exitfile"),
    (
        "claim",
        "intake",
        "queue",
        "halt",
        "order",
        "reap",
        "child",
        "watch",
        "crew",
        "sweep",
        "peers",
        "pulse",
        "books",
        "machine",
        "orphan",
    ),
    ("ward", "recall", "keeper", "loop"),
)
PLANNER_FLOORS = (
    ("arena", "threads"),
    ("brain",),
    ("census", "space", "seeds", "stats", "trial", "opinion", "screen", "sheaf", "shelf", "net_round", "train"),
    (
        "rows",
        "facts",
        "builds",
        "cache",
        "tally",
        "filing",
        "screened",
        "best",
        "standing",
        "policy",
        "plan",
        "edits",
        "verdict",
        "probe",
        "residuals",
        "reading",
        "rounds",
        "union",
    ),
    ("account", "due", "fill", "reward_turns", "round_due", "round_jobs", "shared"),
)


def numbered(floors: tuple[tuple[str, ...], ...]) -> dict[str, int]:
    return {room: number for number, rooms in enumerate(floors) for room in rooms}


ENGINE, PLANNER = numbered(ENGINE_FLOORS), numbered(PLANNER_FLOORS)
FLOORS = {"fleetd": (ENGINE, 6), "planner": (PLANNER, 7)}
FILES = sorted(path for package in FLOORS for path in (ROOT / package).rglob("*.py"))


def names(path: Path) -> tuple[str, str]:
    """The package and the room (its first part below the package) that `path` is in."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[0], parts[1]


def floor(package: str, room: str) -> int | None:
    table, top = FLOORS[package]
    return top if room.startswith("cli") or room in {"treadcore", "__init__"} else table.get(room)


def is_cli(path: Path) -> bool:
    return path.name.startswith("cli") or path == ROOT / "planner" / "treadcore.py"


def imports(path: Path) -> Iterator[tuple[str, tuple[str, ...], int]]:
    """Each import of `path`, absolute: dotted module, names taken from it, line."""
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, (), node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*above, *((node.module or "").split(".") if node.module else [])])
            yield module, tuple(alias.name for alias in node.names), node.lineno


def rooms(module: str, taken: tuple[str, ...]) -> list[str]:
    """The rooms of this project that an import enters; `from fleetd import spool` enters spool."""
    package, *below = module.split(".")
    if package not in FLOORS:
        return []
    return [below[0]] if below else [name for name in taken if (ROOT / package / name).with_suffix(".py").exists()]


def test_every_room_has_a_floor():
    homeless = {f"{p}/{r}" for p, r in map(names, FILES) if floor(p, r) is None}
    assert not homeless, "give each a floor in tests/test_floors.py"


def test_every_floor_has_its_rooms():
    named = {(package, room) for package, (table, _) in FLOORS.items() for room in table}
    assert named - set(map(names, FILES)) == set()


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path):
    package, room = names(path)
    here = floor(package, room)
    up = [
        f"line {line}: {module} ({there})"
        for module, taken, line in imports(path)
        if module.split(".")[0] == package
        for other in rooms(module, taken)
        if room != "__init__" and (there := floor(package, other)) is not None and there > here
    ]
    assert not up, f"{package}/{room} is on floor {here}"


@pytest.mark.parametrize("path", [p for p in FILES if names(p)[0] == "fleetd"], ids=lambda p: p.name)
def test_the_engine_knows_nothing_of_training(path):
    known = {module.split(".")[0] for module, _, _ in imports(path)}
    assert not known & {"numpy", "numba", "planner"}


@pytest.mark.parametrize("path", [p for p in FILES if names(p)[0] == "planner"], ids=lambda p: str(p.relative_to(ROOT)))
def test_the_planner_uses_the_public_face_only(path):
    import fleetd  # noqa: PLC0415

    used = [(module, taken) for module, taken, _ in imports(path) if module.split(".")[0] == "fleetd"]
    assert all(module == "fleetd" and taken for module, taken in used), "only `from fleetd import …`"
    assert {name for _, taken in used for name in taken} <= set(fleetd.__all__)


def test_all_of_the_public_face_is_there():
    import fleetd  # noqa: PLC0415

    assert len(fleetd.__all__) == len(set(fleetd.__all__)) > 0
    assert [name for name in fleetd.__all__ if not hasattr(fleetd, name)] == []


@pytest.mark.parametrize("path", [p for p in FILES if not is_cli(p)], ids=lambda p: str(p.relative_to(ROOT)))
def test_only_command_lines_print_and_exit(path):
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    spoken = {ast.unparse(call.func) for call in calls} & {"print", "sys.exit", "exit", "quit", "SystemExit"}
    assert not spoken


def test_no_ring_of_imports():
    edges: dict[str, set[str]] = {}
    for path in FILES:
        package, room = names(path)
        if room != "__init__":
            below = {r for m, t, _ in imports(path) if m.split(".")[0] == package for r in rooms(m, t)}
            edges.setdefault(f"{package}.{room}", set()).update(f"{package}.{r}" for r in below if r != room)
    while leaves := {room for room, below in edges.items() if not below & edges.keys()}:
        edges = {room: below for room, below in edges.items() if room not in leaves}
    assert not edges


def test_no_file_outgrows_the_house():
    assert [str(p.relative_to(ROOT)) for p in FILES if p.read_text().count("\n") > 400] == []


def test_no_function_outgrows_the_house():
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno + 1 > 40
    ]
    assert long == []
