"""One thread for numpy's linear algebra: matrices of a few hundred rows gain nothing by more, and jobs want the cores."""

from collections.abc import MutableMapping
from typing import Final

THREADS: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def one_thread(environ: MutableMapping[str, str]) -> None:
    """To be called before numpy is imported, which reads them once."""
    environ.update(dict.fromkeys(THREADS, "1"))
