"""Rounds of real nets in a real spool: treadcore trains and plays, fleetd runs it, a stop in the middle costs nothing."""

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from planner.brain.net import load_net

TREADCORE = [sys.executable, "-m", "planner.treadcore"]
TRAIN = [*TREADCORE, "train", "--envs", "16", "--kernel", "numpy", "--seed", "{seed}"]
FILES = ["--from", "{best}", "--rewards", "{rewards}", "--feedback", "{feedback}", "--rivals", "{rivals}"]
SPACE = """
[[variable]]
name = "charge.bias"
start = 0.75
low = -4
high = 4
step = 0.25

[[variable]]
name = "damage_dealt"
start = 0.25
low = -1
high = 1
step = 0.125
group = "reward"
"""
PLAN = """
name = "treadcore"
census = {census}

[trial]
seconds = 2

[net]
share = 1
first = {first}
train = {train}
judge_seeds = 10
"""
ITERATION = 2048  # ticks


def words(argv):
    return json.dumps(argv)


@pytest.fixture
def real(farm):
    """A farm whose plan is treadcore's, with nets that learn for an iteration."""
    write(farm, ITERATION)
    (farm.spool.root / "space.toml").write_text(SPACE)
    return farm


def write(farm, ticks):
    census = words([*TREADCORE, "census", "--kernel", "numpy"])
    first, train = words([*TRAIN, "--ticks", "1"]), words([*TRAIN, "--ticks", str(ticks), *FILES])
    farm.spool.plan.write_text(PLAN.format(census=census, first=first, train=train))


def daemon(farm, *more):
    command = [sys.executable, "-m", "fleetd.cli_daemon", "--lanes", "1", *more]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.Popen(command, env={**farm.plan_environ(), "PATH": path}, stderr=subprocess.DEVNULL)


def work(farm):
    farm.plan("fill", "--depth", "1")
    with daemon(farm, "--once") as process:
        assert process.wait(60) == 0


def lessons(farm):
    return [row.body for row in farm.rows("result") if row.body["kind"] == "train"]


def test_a_round_of_real_nets_from_the_first_to_a_verdict(real):
    for _ in range(3):
        work(real)
    real.plan("fill", "--count", "0")
    first, second = (row.body for row in real.rows("adopt", "keep"))
    assert (first["reason"], first["n"]) == ("first net", 0)
    assert second["n"] == 10
    assert second["from"] == first["net"]["sha256"]
    assert {row.body["outcome"] for row in real.rows("result")} == {"ok"}
    net = load_net(real.spool.root / second["net"]["net"], second["net"]["sha256"])
    assert (net.notes["from"], net.notes["rewards"]) == (first["net"]["sha256"], {"damage_dealt": 0.25})


def test_a_stop_in_the_middle_of_a_training_comes_to_the_same_net(real, wait_for):
    work(real)
    write(real, 12 * ITERATION)
    real.plan("fill", "--depth", "1")
    (job,) = real.jobs()
    with daemon(real) as process:
        running = real.spool.running / real.name
        wait_for(lambda: any(path.stat().st_size for path in running.glob("*/out/metrics.jsonl")), limit_s=60)
        (real.spool.root / "STOP_NOW").touch()
        wait_for(lambda: len(lessons(real)) == 2, limit_s=30)
        (real.spool.root / "STOP_NOW").unlink()
        wait_for(lambda: len(lessons(real)) == 3, limit_s=60)
        process.terminate()
    assert [row["outcome"] for row in lessons(real)] == ["ok", "stopped", "ok"]
    log = (real.spool.root / lessons(real)[2]["log"]).read_text()
    assert "the run begins at its beginning" not in log
    assert lessons(real)[2]["result"]["sha256"] == unbroken(real, job)


def unbroken(farm, job):
    """The hash of the net that the job's command makes when nobody stops it."""
    out = farm.spool.tmp / "unbroken"
    out.mkdir()
    (out / "job.json").write_text(json.dumps({"payload": dict(job.payload)}))
    environ = {**os.environ, "FLEET_SPOOL": str(farm.spool.root), "FLEET_JOB": str(out / "job.json")}
    environ |= {"FLEET_RESULT": str(out / "result.json"), "FLEET_OUT": str(out)}
    subprocess.run(farm.command("read"), env=environ, check=True, capture_output=True, timeout=60)
    net = Path(out, "train.net").read_bytes()
    assert json.loads((out / "result.json").read_text())["sha256"] == sha256(net).hexdigest()
    return sha256(net).hexdigest()
