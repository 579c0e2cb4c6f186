"""Fixtures for tests against real files and processes."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SETTINGS = ("FLEET_", "COLUMNS", "OMP_", "OPENBLAS_", "MKL_", "NUMBA_", "XDG_", "NO_COLOR", "FORCE_COLOR")


@pytest.fixture(autouse=True)
def _nobody_elses_fleet(monkeypatch, tmp_path_factory, pytestconfig):
    """No test sees the settings, the spool or the home of whoever runs it; compiled kernels are kept between runs."""
    for name in list(os.environ):
        if name.startswith(SETTINGS):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.setenv("XDG_CACHE_HOME", str(pytestconfig.rootpath / ".pytest_cache" / "kernels"))


@pytest.fixture(scope="session")
def wait_for() -> Callable[..., Any]:
    """`wait_for(fact, limit_s=10)`: what `fact()` gives once that is true; fails when it stays false."""

    def wait(fact: Callable[[], Any], limit_s: float = 10.0) -> Any:
        end = time.monotonic() + limit_s
        while not (found := fact()):
            assert time.monotonic() < end, f"not so within {limit_s} s: {getattr(fact, '__name__', fact)}"
            time.sleep(0.01)
        return found

    return wait


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The root of the source tree."""
    return Path(__file__).resolve().parent.parent
