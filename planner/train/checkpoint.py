r"""A run's state in a file: all that its next iteration depends on, so that it goes on to the same bits on any shards.

    {"arrays": [[name, dtype, shape], …], "bytes": …, "run": {…}, "schema": "treadcore.checkpoint/1", "state": {…}, "sum": "…"}\n
    the arrays' bytes, one after another, little-endian

`run` tells what the run depends on (a checkpoint is refused by a run that depends on anything else), `state` its
counters, `bytes` the length of what follows, `sum` the SHA-256 of the header without `sum` and of what follows.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fleetd import BadData, IOFailed, decode_json, replace_file

SCHEMA: Final = "treadcore.checkpoint/1"
Arrays = Mapping[str, npt.NDArray[Any]]


def save_checkpoint(path: Path, run: Mapping[str, Any], state: Mapping[str, Any], arrays: Arrays) -> None:
    """Write the file whole or not at all; IOFailed where that cannot be."""
    little = {name: np.ascontiguousarray(array, array.dtype.newbyteorder("<")) for name, array in arrays.items()}
    body = b"".join(array.tobytes() for array in little.values())
    head = {
        "schema": SCHEMA,
        "run": run,
        "state": state,
        "arrays": [[name, array.dtype.str, list(array.shape)] for name, array in little.items()],
        "bytes": len(body),
    }
    whole = _line(head | {"sum": _sum(head, body)}) + b"\n" + body
    try:
        replace_file(path, whole, durable=True)
    except OSError as error:
        raise IOFailed(f"{path}: the checkpoint cannot be written: {error.strerror}") from error


def load_checkpoint(path: Path, run: Mapping[str, Any], arrays: Arrays) -> Mapping[str, Any]:
    """Fill `arrays` from the file and return its state; BadData for a file that is not whole or is another run's."""
    head, body = read_checkpoint(path)
    if changed := [key for key in sorted(run.keys() | head["run"].keys()) if run.get(key) != head["run"].get(key)]:
        told = "; ".join(f"{key} was {head['run'].get(key)!r} and is {run.get(key)!r}" for key in changed)
        raise BadData(f"{path}: the checkpoint of another run: {told}")
    found = [(name, np.dtype(kind), tuple(size)) for name, kind, size in head["arrays"]]
    if [(name, kind.newbyteorder("="), size) for name, kind, size in found] != [
        (n, a.dtype, a.shape) for n, a in arrays.items()
    ]:
        raise BadData(f"{path}: its arrays are not this run's: another version wrote it")
    at = 0
    for name, kind, size in found:
        arrays[name][...] = np.frombuffer(body, kind, math.prod(size), at).reshape(size)
        at += math.prod(size) * kind.itemsize
    state: Mapping[str, Any] = head["state"]
    return state


def read_checkpoint(path: Path) -> tuple[dict[str, Any], bytes]:
    """Its header and the arrays' bytes; BadData for a file that is not whole."""
    try:
        line, _, body = path.read_bytes().partition(b"\n")
    except OSError as error:
        raise BadData(f"{path}: no checkpoint can be read there: {error.strerror}") from error
    return _header(path, line, body), body


def _line(head: Mapping[str, Any]) -> bytes:
    return json.dumps(head, sort_keys=True, allow_nan=False).encode("ascii")


def _sum(head: Mapping[str, Any], body: bytes) -> str:
    return hashlib.sha256(_line(head) + b"\n" + body).hexdigest()


def _header(path: Path, line: bytes, body: bytes) -> dict[str, Any]:
    """The header, as it was written: what it says is then to be relied on."""
    head: Any
    try:
        head = decode_json(line)
    except ValueError as error:
        raise BadData(f"{path}: no checkpoint, or one cut short in its header ({error})") from error
    if not isinstance(head, dict) or head.get("schema") != SCHEMA:
        raise BadData(f"{path}: no checkpoint: no schema {SCHEMA!r} in its header")
    if missing := {"bytes", "sum"} - head.keys():
        raise BadData(f"{path}: no checkpoint of this version: no {min(missing)} in its header")
    if head["bytes"] != len(body):
        raise BadData(f"{path}: a checkpoint cut short: {len(body)} of its {head['bytes']} bytes are there")
    told = head.pop("sum")
    if told != _sum(head, body):
        raise BadData(f"{path}: a damaged checkpoint: its header and bytes have not the SHA-256 that it tells")
    return head
