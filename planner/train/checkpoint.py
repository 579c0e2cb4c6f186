r"""A run's state in a file: all that its next iteration depends on, so that it goes on to the same bits on any shards.

    {"arrays": [[name, dtype, shape], …], "run": {…}, "schema": "treadcore.checkpoint/1", "sum": "…", "state": {…}}\n
    the arrays' bytes, one after another, little-endian

`run` tells what the run depends on (a checkpoint is refused by a run that depends on anything else), `state` its
counters, `sum` the SHA-256 of the bytes below the header.
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
        "sum": hashlib.sha256(body).hexdigest(),
    }
    line = json.dumps(head, sort_keys=True, allow_nan=False).encode("ascii")
    try:
        replace_file(path, line + b"\n" + body, durable=True)
    except OSError as error:
        raise IOFailed(f"{path}: the checkpoint cannot be written: {error.strerror}") from error


def load_checkpoint(path: Path, run: Mapping[str, Any], arrays: Arrays) -> Mapping[str, Any]:
    """Fill `arrays` from the file and return its state; BadData for a file that is not whole or is another run's."""
    try:
        line, _, body = path.read_bytes().partition(b"\n")
    except OSError as error:
        raise BadData(f"{path}: no checkpoint can be read there: {error.strerror}") from error
    head = _header(path, line)
    if changed := [key for key in sorted(run.keys() | head["run"].keys()) if run.get(key) != head["run"].get(key)]:
        told = "; ".join(f"{key} was {head['run'].get(key)!r} and is {run.get(key)!r}" for key in changed)
        raise BadData(f"{path}: the checkpoint of another run: {told}")
    found = [(name, np.dtype(kind), tuple(size)) for name, kind, size in head["arrays"]]
    if [(name, kind.newbyteorder("="), size) for name, kind, size in found] != [
        (n, a.dtype, a.shape) for n, a in arrays.items()
    ]:
        raise BadData(f"{path}: its arrays are not this run's: another version wrote it")
    due = sum(math.prod(size) * kind.itemsize for _, kind, size in found)
    if len(body) != due:
        raise BadData(f"{path}: a checkpoint cut short: {len(body)} of its {due} bytes are there")
    if hashlib.sha256(body).hexdigest() != head["sum"]:
        raise BadData(f"{path}: a damaged checkpoint: its bytes have not the SHA-256 in its header")
    at = 0
    for name, kind, size in found:
        arrays[name][...] = np.frombuffer(body, kind, math.prod(size), at).reshape(size)
        at += math.prod(size) * kind.itemsize
    state: Mapping[str, Any] = head["state"]
    return state


def _header(path: Path, line: bytes) -> dict[str, Any]:
    head: Any
    try:
        head = decode_json(line)
    except ValueError as error:
        raise BadData(f"{path}: no checkpoint, or one cut short in its header ({error})") from error
    if not isinstance(head, dict) or head.get("schema") != SCHEMA:
        raise BadData(f"{path}: no checkpoint: no schema {SCHEMA!r} in its header")
    if missing := {"run", "state", "arrays", "sum"} - head.keys():
        raise BadData(f"{path}: no checkpoint: no {min(missing)} in its header")
    return head
