"""One BLAS thread in every process of the trainer: two in each of two shards ran eleven times slower."""

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fleetd import FleetError

LIBRARIES: Final = ("openblas", "mkl_rt", "blis")
SETTERS: Final = (
    *(f"{prefix}openblas_set_num_threads{suffix}" for prefix in ("", "scipy_") for suffix in ("", "64_", "_64")),
    "MKL_Set_Num_Threads",
    "bli_thread_set_num_threads",
)


def one_blas_thread(maps: Path = Path("/proc/self/maps")) -> int:
    """Bind every BLAS that this process has loaded to one thread, whatever its environment said; returns how many.

    Where none that is known is found (macOS's Accelerate), the environment must have bound it before numpy came.
    """
    bound = sum(_bind(path) for path in sorted(_loaded(maps)))
    if not bound and os.environ.get("VECLIB_MAXIMUM_THREADS", "1") != "1":
        raise FleetError("set VECLIB_MAXIMUM_THREADS=1: more threads make shards slower, and change the weights' bits")
    return bound


def _loaded(maps: Path) -> Iterator[str]:
    try:
        lines = maps.read_text().splitlines()
    except OSError:
        return
    paths = {line.split(maxsplit=5)[5] for line in lines if line.count("/")}
    yield from (path for path in paths if any(name in Path(path).name for name in LIBRARIES))


def _bind(path: str) -> bool:
    library = ctypes.CDLL(path)
    for name in SETTERS:
        if setter := getattr(library, name, None):
            setter(ctypes.c_int(1))
            return True
    return False
