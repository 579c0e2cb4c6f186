"""numba, where it is installed: one typed decorator, and a cache that notices what numba's own does not.

numba's cache looks only at the file of the function that is called. The directory's name therefore says all that the
machine code was made of: the sources of the kernels and of all that they take constants from, numba's and Python's version, and
the processor. Nothing in an old directory is ever read again; all of `treadcore-*` may be removed at any time.
"""

import hashlib
import importlib
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from fleetd import NotFound

F = TypeVar("F", bound=Callable[..., Any])

_PLANNER: Final = Path(__file__).resolve().parent.parent
_SOURCES: Final = ("arena/*.py", "brain/kernel*.py", "brain/scripted.py", "brain/weights.py", "train/kernel*.py")


def numba_trouble() -> str | None:
    """Why numba cannot be used here, None if it can."""
    try:
        numba = importlib.import_module("numba")
    except ImportError as error:  # not there, or not with this numpy
        return f"{error} (the extra `fast` brings it)"
    return "NUMBA_DISABLE_JIT is set: it would compile nothing" if numba.config.DISABLE_JIT else None


def cache_home(environ: Mapping[str, str]) -> Path:
    """Where compiled kernels are kept, of every version: NUMBA_CACHE_DIR, or the user's cache."""
    if own := environ.get("NUMBA_CACHE_DIR"):
        return Path(own)
    return Path(environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or "/nonexistent") / ".cache")


def cache_name() -> str:
    """The directory's name, from everything that machine code depends on."""
    numba, llvm = importlib.import_module("numba"), importlib.import_module("llvmlite.binding")
    made_of = hashlib.sha256()
    for path in sorted(path for pattern in _SOURCES for path in _PLANNER.glob(pattern)):
        made_of.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    for word in (numba.__version__, sys.version, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()):
        made_of.update(word.encode() + b"\0")
    return f"treadcore-{made_of.hexdigest()[:16]}"


def cache_trouble(environ: Mapping[str, str]) -> str | None:
    """Why compiled kernels cannot be kept, None if they can: then the directory is there."""
    place = cache_home(environ) / cache_name()
    try:
        place.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=place).close()
    except OSError as error:
        return f"{place}: {error.strerror}"
    return None


@dataclass(frozen=True, slots=True)
class Kernel:
    """What computes the ticks, why, and whether that is less than was asked for."""

    name: str
    why: str
    trouble: bool = False


def choose_kernel(asked: str | None, environ: Mapping[str, str]) -> Kernel:
    """The kernel that is `asked` for, or with None numba where it is installed and can keep what it compiles.

    Raises NotFound where numba is asked for and not there.
    """
    if asked == "numpy":
        return Kernel("numpy", "kernel numpy, as asked")
    if missing := numba_trouble():
        if asked == "numba":
            raise NotFound(f"no numba here: {missing}; --kernel numpy gives the same answers")
        return Kernel("numpy", f"kernel numpy, for there is no numba: {missing}")
    unkept = cache_trouble(environ)
    if asked == "numba":
        why = (
            f"kernel numba, compiled anew each time: it cannot be kept in {unkept}"
            if unkept
            else "kernel numba, as asked"
        )
        return Kernel("numba", why, trouble=unkept is not None)
    if unkept:
        return Kernel("numpy", f"kernel numpy, for what numba compiles cannot be kept in {unkept}")
    return Kernel("numba", f"kernel numba, kept in {cache_home(environ) / cache_name()}")


@lru_cache
def _numba() -> tuple[Any, bool]:
    """numba, told where to keep what it compiles, and whether it can be kept there."""
    numba = importlib.import_module("numba")
    keep = cache_trouble(os.environ) is None
    if keep:
        numba.config.CACHE_DIR = str(cache_home(os.environ) / cache_name())
    return numba, keep


def compiled(function: F) -> F:
    """`function` as machine code, to be called by such. Nothing is checked: every index is in range.

    It may make no arrays. Arrays are lent, not counted: counting who holds them took two thirds of the time.
    """
    known = importlib.import_module("numba.core.options").DefaultOptions
    lean = {name: value for name, value in {"_nrt": False, "forceinline": True}.items() if hasattr(known, name)}
    return cast("F", _numba()[0].njit(error_model="numpy", boundscheck=False, **lean)(function))


def kernel(function: F) -> F:
    """`function` as machine code for Python to call, compiled when it is first called, and kept."""
    numba, keep = _numba()
    return cast("F", numba.njit(cache=keep, error_model="numpy", boundscheck=False)(function))
