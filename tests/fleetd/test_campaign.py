"""The campaign of tests/bench/engine_kill.py, short: kills, stops, resumes, cancels and a disk that fills, at random."""

import json
import os
import subprocess
import sys
import time

import pytest


def campaign(checkout, *words):
    """What must be 0, with what was done."""
    seed = str(time.time_ns() % 100_000)
    command = [sys.executable, checkout / "tests/bench/engine_kill.py", "--json", "--seed", seed, *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    found = json.loads(ran.stdout or "{}")
    assert ran.returncode == 0, f"{found}\n{ran.stderr}"
    assert sum(found["done"][name] for name in found["done"] if name.startswith("kill_")) == found["kills"]
    assert sum(found["outcomes"].values()) >= found["jobs"]
    assert set(found["held"].values()) == {0}


def test_kills_at_random_moments_lose_nothing_and_run_nothing_twice(checkout):
    campaign(checkout, "--jobs", "120", "--kills", "14")


def test_kills_and_a_disk_that_fills_lose_nothing_and_run_nothing_twice(checkout):
    if os.getuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("mounting needs root")
    campaign(checkout, "--jobs", "120", "--kills", "14", "--disk-mb", "12")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_many_kills_over_many_jobs_lose_nothing_and_run_nothing_twice(checkout):
    campaign(checkout, "--jobs", "1000", "--kills", "100")
