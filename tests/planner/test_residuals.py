"""Whether one host reads otherwise than the others, on reads that were made up."""

import json

import numpy as np
import pytest

from planner.residuals import alarm, residuals
from planner.stats import paired


def fleet(draw, *, trials=8, off=0.0, hosts=("ada", "bo", "calber")):
    """Trials of an effect of their own, dealt to the hosts; the last one's reads are off by so many sd."""
    worth = draw.normal(0, 0.3, trials)
    return [
        {host: paired(draw.normal(effect + off * (host == hosts[-1]), 1.0, 60)) for host in hosts} for effect in worth
    ]


@pytest.mark.parametrize("hosts", [("ada", "calber"), ("ada", "bo", "calber"), tuple("abcde")])
def test_an_honest_fleet_gives_no_alarm(hosts):
    draw = np.random.default_rng(len(hosts))
    runs = 200
    assert sum(alarm(residuals(fleet(draw, hosts=hosts))) is not None for _ in range(runs)) <= 0.03 * runs


def test_a_host_that_is_off_by_half_a_standard_deviation_is_named():
    draw = np.random.default_rng(2)
    named = [alarm(residuals(fleet(draw, off=0.5))) for _ in range(100)]
    assert sum(found is not None and found.host == "calber" for found in named) >= 99
    assert np.mean([found.sd for found in named if found]) == pytest.approx(0.5, abs=0.05)


def test_few_reads_of_skewed_games_give_no_more_alarms():
    draw = np.random.default_rng(3)
    runs = 200
    trials = (
        [{h: paired(1 - draw.exponential(1.0, 10)) for h in ("a", "b", "c")} for _ in range(20)] for _ in range(runs)
    )
    assert sum(alarm(residuals(t)) is not None for t in trials) <= 0.05 * runs


def test_what_one_host_alone_read_says_nothing_of_it():
    assert residuals([{"ada": paired([1.0] * 50)}, {"calber": paired([9.0, 8.0] * 50)}]) == []


def test_reads_in_which_no_seed_changed_are_no_division_by_zero():
    assert residuals([{"ada": paired([0.0] * 50), "calber": paired([0.0] * 50)}]) == []


def poisoned(farm, hosts, off):
    """Held-out rows of one trial by several hosts; the last one's candidate scores are off."""
    farm.write_space("null")
    for words in (("--depth", "1"), ("--count", "0")):
        farm.plan("fill", *words)
        farm.run()
    farm.plan("fill", "--heldout", next(row.body["trial"] for row in farm.rows("keep")), "--count", "9")
    (job, *_) = (job for job in farm.jobs() if job.kind == "heldout")
    draw, (low, high) = np.random.default_rng(5), job.payload["span"]
    for i, host in enumerate(hosts):
        seeds = range(low + i * (high - low) // len(hosts), low + (i + 1) * (high - low) // len(hosts))
        payload = {**job.payload, "seeds": [seeds.start, seeds.stop]}
        reads = [[seed, float(draw.normal(off * (host == hosts[-1]), 1)), 0.0] for seed in seeds]
        farm.name = host
        result = {"schema": "fleet.reads/1", "reads": reads, "plays": 2 * len(reads)}
        row = {"event": "result", "job": f"{job.id}{i}", "attempt": 1, "outcome": "ok", "next": None}
        farm.row(row | {"payload": payload, "result": result})


@pytest.mark.parametrize("command", ["suggest", "log"])
def test_the_host_is_named_with_the_row_that_takes_its_reads_out(farm, command):
    poisoned(farm, ["ada", "bo", "calber"], off=3.0)
    said = farm.plan(command).stderr
    assert "calber reads otherwise than the others: +3." in said
    assert '{"event": "void", "rows": [{"host": "calber", "seq": ' in said


def test_hosts_that_read_alike_are_not_named(farm):
    poisoned(farm, ["ada", "bo", "calber"], off=0.0)
    assert "otherwise" not in farm.plan("suggest").stderr
    told = json.loads(farm.plan("suggest", "--json").stdout.splitlines()[-1])["hosts"]
    assert {host["host"] for host in told["residuals"]} == {"ada", "bo", "calber"}
    assert told["alarm"] is None
