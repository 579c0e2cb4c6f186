"""The default policy from its first shake to an adopted leap, by the real commands, on a hill of known truth."""

import json
import subprocess

import pytest

from planner.trial import player_hash

from .conftest import plan_text


@pytest.fixture
def hill(farm):
    """A farm of the default policy."""
    farm.spool.plan.write_text(plan_text(policy="screen", seeds=40).replace("[trial]", "floor = 0\n[trial]"))
    farm.write_space("good", "bad", "null", low=-4.0, high=4.0)
    return farm


def climbed(farm, limit=20):
    """Fill and run until a leap has been adopted; its row."""
    for _ in range(limit):
        farm.plan("fill", "--depth", "6")
        if adopted := farm.rows("adopt"):
            return adopted[0]
        farm.run(6)
    raise AssertionError


@pytest.mark.timeout(300)
def test_screens_lead_to_a_leap_and_each_row_says_what_it_was(hill):
    adopted = climbed(hill)
    row, read = adopted.body, [r.body for r in hill.rows("result") if r.seq < adopted.seq]
    best = json.loads(hill.plan("best", "--json").stdout)["weights"]
    assert best == {"good": 0, "bad": 0, "null": 0, **row["candidate"]}
    assert best["good"] - best["bad"] > 0.25
    assert (row["variable"], row["stage"], row["search"]) == (None, "heldout", None)
    assert row["adopted"] == player_hash(best)
    assert f"along their slopes after {row['pairs']:,} pairs: held-out +" in row["sentence"]
    assert row["sentence"].endswith("standard errors, adopted")
    assert row["jobs"] == [r["job"] for r in read if r["payload"].get("trial") == row["trial"]]
    screens = [r["payload"] for r in read if r["kind"] == "screen"]
    assert [p["shake"] for p in screens][:4] == ["beside"] * 3 + ["mirrored"]
    assert row["pairs"] <= sum(p["seeds"][1] - p["seeds"][0] for p in screens if p["shake"] == "mirrored")
    assert "adopt" in hill.plan("log").stdout


def test_killed_between_jobs_and_filled_twice_nothing_is_asked_or_said_twice(hill, wait_for):
    for _ in range(2):
        before = len(hill.rows("result"))
        watch = subprocess.Popen(hill.command("fill", "--watch", "--depth", "4"), env=hill.plan_environ(),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        wait_for(lambda: len(hill.spool.waiting()) == 4, limit_s=60)
        hill.run(1)
        watch.kill()
        watch.wait()
        hill.run(1)
        hill.plan("fill", "--depth", "4")
        waiting = hill.spool.waiting()
        hill.plan("fill", "--depth", "4")
        assert hill.spool.waiting() == waiting
        assert len(waiting) == 4
        assert len(hill.rows("result")) == before + 2
    asked = [job.payload for job in hill.jobs()] + [row.body["payload"] for row in hill.rows("result")]
    screens = [tuple(p["seeds"]) for p in asked if "screen" in p]
    assert len(screens) == len(set(screens)) >= 4
