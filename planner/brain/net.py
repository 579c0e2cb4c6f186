r"""A net in a file, and the net as it is played.

    {"bytes": …, "heads": […], "hidden": […], "notes": {…}, "obs": …, "schema": "treadcore.net/1", "sum": "…"}␠…␠\n
    float32, little-endian: the tensors in the order that `planner.brain.shape.tensors` walks, without gaps

The header is one line of ASCII JSON with sorted keys, filled up with spaces to a multiple of 64 bytes; `bytes` is the
length of what follows and `sum` its SHA-256. Same net, same notes: same bytes. A net is known by the SHA-256 of its file.

A net is played on a grid: weights in 2⁻¹⁶, what is seen and every activation in 2⁻¹². All products and sums are then
exact in float64, so the choice depends neither on what else is in the batch, nor on the BLAS, nor on the order of adding.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fleetd import BadData, IOFailed, decode_json, replace_file
from planner.brain.shape import Shape, param_count, views

SCHEMA: Final = "treadcore.net/1"
ALIGN: Final = 64
WEIGHT_GRID: Final = 65536.0
SEEN_GRID: Final = 4096.0
WEIGHT_LIMIT: Final = 1024.0  # of |weight|: widths up to 2¹¹ then keep every sum under 2⁵³ grid steps
SEEN_LIMIT: Final = 4.0  # of |seen|: what goes beyond is cut
WIDTH_LIMIT: Final = 2048
TANH_END: Final = 5.0  # beyond it tanh rounds to 1 on the grid

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Net:
    """A shape, its weights `flat` (P,) float32, and notes on where it comes from."""

    shape: Shape
    flat: npt.NDArray[np.float32]
    notes: Mapping[str, Any] = field(default_factory=dict)


def net_bytes(net: Net) -> bytes:
    """The file's bytes: a pure function of the net."""
    body = net.flat.astype("<f4").tobytes()
    head = json.dumps(
        {
            "schema": SCHEMA,
            "obs": net.shape.obs,
            "hidden": list(net.shape.hidden),
            "heads": list(net.shape.heads),
            "notes": dict(net.notes),
            "bytes": len(body),
            "sum": hashlib.sha256(body).hexdigest(),
        },
        sort_keys=True,
        allow_nan=False,
    ).encode("ascii")
    return head + b" " * (-(len(head) + 1) % ALIGN) + b"\n" + body


def save_net(path: Path, net: Net) -> str:
    """Write the file whole or not at all, and return its SHA-256; IOFailed where that cannot be."""
    whole = net_bytes(net)
    try:
        replace_file(path, whole, durable=True)
    except OSError as error:
        raise IOFailed(f"{path}: the net cannot be written: {error.strerror}") from error
    return hashlib.sha256(whole).hexdigest()


def load_net(path: Path, sha256: str | None = None, *, obs: int | None = None, heads: tuple[int, ...] = ()) -> Net:
    """The net in `path`. Raises BadData for what is missing, cut short, damaged, of another hash, or of another face."""
    try:
        whole = path.read_bytes()
    except OSError as error:
        raise BadData(f"{path}: no net can be read there: {error.strerror}") from error
    if sha256 is not None and (found := hashlib.sha256(whole).hexdigest()) != sha256:
        raise BadData(f"{path}: another net: its SHA-256 is {found}, not {sha256}")
    try:
        net = read_net(whole)
    except BadData as error:
        raise BadData(f"{path}: {error}") from error
    if obs is not None and net.shape.obs != obs:
        raise BadData(f"{path}: of another shape: it sees {net.shape.obs} numbers, and {obs} are shown here")
    if heads and net.shape.heads != heads:
        raise BadData(f"{path}: of another shape: its heads are {list(net.shape.heads)}, {list(heads)} are asked here")
    return net


def read_net(whole: bytes) -> Net:
    """The net in a file's bytes; BadData says what is wrong with them."""
    line, end, body = whole.partition(b"\n")
    if not end:
        raise BadData(f"not a whole net: no header line in its {len(whole)} bytes")
    shape, head = _header(line)
    if len(body) != (due := param_count(shape) * 4) or head.get("bytes") != due:
        raise BadData(f"not a whole net: {len(body)} bytes of weights where its shape takes {due}")
    if head.get("sum") != (found := hashlib.sha256(body).hexdigest()):
        raise BadData(f"damaged: the SHA-256 of its weights is {found}, not {head.get('sum')} as its header says")
    flat = np.frombuffer(body, "<f4").astype(np.float32)
    if not np.all(np.abs(flat) < WEIGHT_LIMIT):  # NaN is not either
        raise BadData(f"a weight of it is not within ±{WEIGHT_LIMIT:g}")
    return Net(shape=shape, flat=flat, notes=head["notes"])


def _header(line: bytes) -> tuple[Shape, dict[str, Any]]:
    head: Any
    try:
        head = decode_json(line)
    except ValueError as error:
        raise BadData(f"not a net: its header is no JSON ({error})") from error
    if not isinstance(head, dict) or head.get("schema") != SCHEMA:
        raise BadData(f"not a net: no schema {SCHEMA!r} in its header")
    head = dict.fromkeys(("obs", "hidden", "heads", "notes")) | head
    obs, hidden, heads = head["obs"], head["hidden"], head["heads"]
    widths = [obs, *hidden, *heads] if isinstance(hidden, list) and isinstance(heads, list) and heads else [None]
    if not all(type(width) is int and 0 < width <= WIDTH_LIMIT for width in widths):
        raise BadData(f"not a net: obs {obs}, hidden {hidden}, heads {heads} are no widths from 1 to {WIDTH_LIMIT}")
    if not isinstance(head["notes"], dict):
        raise BadData("not a net: no notes in its header")
    return Shape(obs=obs, hidden=tuple(hidden), heads=tuple(heads)), head


@dataclass(frozen=True, slots=True)
class Player:
    """An actor on its grid: (in, out) weights and (out,) biases of each layer, float64."""

    shape: Shape
    weights: tuple[F64, ...]
    biases: tuple[F64, ...]


def player(net: Net) -> Player:
    policy = views(net.shape, np.rint(net.flat.astype(np.float64) * WEIGHT_GRID) / WEIGHT_GRID)
    layers = [(layer.weight[0], layer.bias[0]) for layer in policy.hidden] + [
        (policy.policy.weight, policy.policy.bias)
    ]
    return Player(
        net.shape, *(tuple(np.ascontiguousarray(part) for part in parts) for parts in zip(*layers, strict=True))
    )


def _tanh_table() -> F64:
    steps = int(TANH_END * SEEN_GRID)
    return np.rint(np.tanh(np.arange(-steps, steps + 1) / SEEN_GRID) * SEEN_GRID) / SEEN_GRID


TANH: Final = _tanh_table()


def logits(played: Player, obs: npt.NDArray[Any]) -> F64:
    """(N, sum of heads) exact pulls for `obs` (N, obs): a row's are the same in any company."""
    x = np.rint(np.clip(obs.astype(np.float64), -SEEN_LIMIT, SEEN_LIMIT) * SEEN_GRID) / SEEN_GRID
    for weight, bias in zip(played.weights[:-1], played.biases[:-1], strict=True):
        z = np.clip(x @ weight + bias, -TANH_END, TANH_END)
        x = TANH[np.rint((z + TANH_END) * SEEN_GRID).astype(np.int64)]
    return x @ played.weights[-1] + played.biases[-1]


def choose(played: Player, obs: npt.NDArray[Any], u: npt.NDArray[Any] | None = None) -> npt.NDArray[np.int32]:
    """(N, heads) choices for `obs`: those that pull most (the first of equals), or drawn by `u` (N, heads) in [0, 1)."""
    pulls = logits(played, obs)
    ends = np.cumsum(played.shape.heads)
    out = np.empty((len(obs), len(ends)), np.int32)
    for k, (end, width) in enumerate(zip(ends, played.shape.heads, strict=True)):
        z = pulls[:, end - width : end]
        if u is None:
            out[:, k] = z.argmax(axis=1)
            continue
        reach = np.cumsum(np.exp(z - z.max(axis=1, keepdims=True)), axis=1)
        out[:, k] = np.minimum((reach <= u[:, k, None] * reach[:, -1:]).sum(axis=1), width - 1)
    return out
