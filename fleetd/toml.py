"""TOML with places: tomllib reads the values, a small scan says where each key stands, so that an error can point at it.

The scan relies on the text being valid TOML already: it only finds where keys begin and where values end.
"""

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleetd.errors import BadSettings, IOFailed, NotFound

Keys = tuple[str | int, ...]
_KEY = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*""")
_SKIP = re.compile(r"""[ \t\r\n]+|\#[^\n]*""")
_VALUE = re.compile(
    r'''"""(?:[^"\\]|\\.|"(?!""))*"{3,5}|\'\'\'(?:(?!\'\'\').)*\'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|\#[^\n]*|.''',
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Doc:
    """A TOML file as read: its path, its text and the decoded table."""

    path: Path
    text: str
    table: Mapping[str, Any]

    def complaint(self, keys: Keys, what: str) -> str:
        """`file:line:column: key: what`, then the line with a mark under the key."""
        return _pointed(self.path, self.text, locate(self.text, keys), f"{dotted(keys)}: {what}")

    def unknown(self, keys: Keys, known: Iterable[str]) -> str:
        """The complaint about a key nobody knows, with the nearest name offered."""
        near = difflib.get_close_matches(str(keys[-1]), list(known), 1)
        return self.complaint(keys, "unknown key" + (f"; did you mean {near[0]}?" if near else ""))


def read_toml(path: Path) -> Doc:
    """The file at `path`; raises BadSettings with file:line:column when it is no TOML, NotFound when it is not there."""
    try:
        if path.exists() and not path.is_file():
            raise BadSettings(f"{path}: no regular file")
        text = path.read_bytes().decode("utf-8")
        return Doc(path, text, tomllib.loads(text))
    except FileNotFoundError as error:
        raise NotFound(f"{path}: no such file") from error
    except UnicodeDecodeError as error:
        raise BadSettings(f"{path}: not UTF-8 (byte {error.start})") from error
    except OSError as error:
        raise IOFailed(f"{path}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise BadSettings(_syntax(path, text, str(error))) from error
    except ValueError as error:  # a NUL in the path, a number of thousands of digits
        raise BadSettings(f"{str(path)!r}: {error}") from error


def _syntax(path: Path, text: str, message: str) -> str:
    place = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)", message)
    what = message[: place.start()] if place else message
    at = (int(place[1]), int(place[2])) if place and place[1] else (text.count("\n") + 1, 1)
    return _pointed(path, text, at, f"no TOML: {what[:1].lower()}{what[1:]}")


def _pointed(path: Path, text: str, at: tuple[int, int], what: str) -> str:
    """`file:line:column: what`, then the line with a mark from that column to its end."""
    line, column = at
    lines = text.splitlines()
    shown = lines[line - 1] if line <= len(lines) else ""
    mark = " " * (column - 1) + "^" * max(1, len(shown.rstrip()) - column + 1)
    return f"{path}:{line}:{column}: {what}\n{line:5d} | {shown}\n      | {mark}"


def dotted(keys: Keys) -> str:
    """host.calber.lanes, variable[3].step."""
    return "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in keys).removeprefix(".")


def locate(text: str, keys: Keys) -> tuple[int, int]:
    """Line and column (from 1) of the key, of the nearest enclosing table where it isn't written, else 1, 1."""
    places: dict[Keys, int] = {}
    for found, at in _places(text):
        places.setdefault(found, at)
    for depth in range(len(keys), 0, -1):
        if keys[:depth] in places:
            before = text[: places[keys[:depth]]]
            return before.count("\n") + 1, len(before) - before.rfind("\n")
    return 1, 1


def _places(text: str) -> Iterator[tuple[Keys, int]]:
    at = 0
    prefix: Keys = ()
    counts: dict[Keys, int] = {}
    while (at := _skip(text, at)) < len(text):
        if text[at] == "[":
            array = text.startswith("[[", at)
            names, end = _key_path(text, at + (2 if array else 1))
            prefix = _resolve(names, counts, array=array)
            yield prefix, at
            at = text.index("]", end) + (2 if array else 1)
        else:
            names, end = _key_path(text, at)
            yield (*prefix, *names), at
            yield from _inline(text, end + 1, (*prefix, *names))
            at = _value_end(text, end + 1)


def _resolve(names: tuple[str, ...], counts: dict[Keys, int], *, array: bool) -> Keys:
    """The table's keys with the numbers of the arrays of tables it lies in."""
    keys: Keys = ()
    for depth, name in enumerate(names, 1):
        keys = (*keys, name)
        if array and depth == len(names):
            counts[keys] = counts.get(keys, -1) + 1
        if keys in counts:
            keys = (*keys, counts[keys])
    return keys


def _inline(text: str, at: int, keys: Keys) -> Iterator[tuple[Keys, int]]:
    """The keys inside an inline table that begins here, one level deep: enough for {name = value}."""
    at = _skip(text, at)
    if not text.startswith("{", at):
        return
    end, at = _value_end(text, at), _skip(text, at + 1)
    while at < end and text[at] != "}":
        names, after = _key_path(text, at)
        yield (*keys, *names), at
        at = _value_end(text, after + 1, stops=",}")
        at = _skip(text, at + 1) if text[at : at + 1] == "," else at


def _skip(text: str, at: int) -> int:
    while found := _SKIP.match(text, at):
        at = found.end()
    return at


def _key_path(text: str, at: int) -> tuple[tuple[str, ...], int]:
    names = []
    while found := _KEY.match(text, at):
        names.append(found[1] or found[2] or found[3] or "")
        at = found.end()
        if not text.startswith(".", at):
            break
        at += 1
    return tuple(names), at


def _value_end(text: str, at: int, stops: str = "\n") -> int:
    """Where the value that begins at or after `at` ends: at a stop outside brackets and strings."""
    depth = 0
    while at < len(text):
        token = _VALUE.match(text, at)
        piece = token[0] if token else text[at]
        if depth == 0 and piece in stops:
            return at
        depth += (piece in ("[", "{")) - (piece in ("]", "}"))
        at += len(piece)
    return at
