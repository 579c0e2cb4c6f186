"""kill -9 of the daemon at random moments over many short jobs: each exactly one ok row, none run twice."""

import random
import time
from collections import Counter

import pytest


def killed_at_random(rig, wait_for, *, jobs, kills, seed):
    print(f"seed {seed}")  # shown when it fails
    chance = random.Random(seed)
    (rig.root / "ran").mkdir()
    for n in range(jobs):
        script = f"echo x >> {rig.root}/ran/{n}; sleep 0.0{chance.randint(0, 3)}"
        rig.shell(f"j{n:04d}", script, rerun_safe=n % 2 == 0)
    for _ in range(kills):
        rig.start(ready=False)
        moment = time.monotonic() + 0.15 + chance.random() * 0.35
        wait_for(lambda: time.monotonic() >= moment)  # noqa: B023 - waited for at once
        rig.kill()
    rig.start(ready=False)
    ok = wait_for(lambda: enough(rig, jobs), 120)
    wait_for(lambda: not list((rig.spool.running / "calber").iterdir()))
    return ok


def enough(rig, jobs):
    ok = [row["job"] for row in rig.rows() if row["outcome"] == "ok"]
    return ok if len(set(ok)) >= jobs else None


def check(rig, wait_for, ok, jobs):
    assert set(Counter(ok).values()) == {1}
    assert {row["outcome"] for row in rig.rows()} == {"ok"}
    assert [len((rig.root / f"ran/{n}").read_text().split()) for n in range(jobs)] == [1] * jobs
    assert [row["seq"] for row in rig.rows()] == list(range(1, len(rig.rows()) + 1))
    assert rig.spool.waiting() == []
    assert len(list(rig.spool.ended.glob("*/*"))) == jobs
    assert not rig.jobs()
    rig.kill()
    wait_for(lambda: not rig.parents())


def test_eight_kills_over_eighty_jobs_lose_nothing_and_run_nothing_twice(rig, wait_for):
    ok = killed_at_random(rig, wait_for, jobs=80, kills=8, seed=time.time_ns())
    check(rig, wait_for, ok, 80)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_fifty_kills_over_five_hundred_jobs_lose_nothing_and_run_nothing_twice(rig, wait_for):
    ok = killed_at_random(rig, wait_for, jobs=500, kills=50, seed=1)
    check(rig, wait_for, ok, 500)
