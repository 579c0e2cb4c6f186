"""The default policy by the real commands, where plays fail, nothing changes, nothing can move, or fill is run too often."""

import json
import math
import subprocess

import pytest

from .conftest import plan_text


def write(farm, *trouble, policy="screen", **settings):
    farm.spool.plan.write_text(plan_text(trouble=trouble, policy=policy, **settings))
    return farm


def screens(farm):
    return [row.body for row in farm.rows("result") if row.body["kind"] == "screen"]


def test_fill_run_every_second_never_has_more_than_its_depth(farm):
    write(farm, seeds=2)
    for taken in (0, 3, 0, 2):
        for id_ in farm.spool.waiting()[:taken]:
            home = farm.spool.running / "calber" / id_
            home.mkdir(parents=True)
            (farm.spool.queue / f"{id_}.json").rename(home / "job.json")
        farm.plan("fill", "--depth", "40")
        assert len(farm.spool.waiting()) + len(list((farm.spool.running / "calber").glob("*"))) == 40


def test_two_fills_at_once_queue_no_screen_twice(farm):
    write(farm, seeds=4)
    fills = [subprocess.Popen(farm.command("fill", "--depth", "12"), env=farm.plan_environ(), stderr=subprocess.DEVNULL)
             for _ in range(3)]  # fmt: skip
    assert [fill.wait(60) for fill in fills] == [0] * 3
    asked = [job.payload.get("screen") or job.payload["trial"] for job in farm.jobs()]
    assert len(asked) == len(set(asked)) == 12


@pytest.mark.parametrize("trouble", ["nan:3", "error:3", "mute:3", "die:3"])
def test_a_play_that_fails_drops_its_pair_on_both_sides_and_is_counted(farm, trouble):
    write(farm, trouble)
    farm.plan("fill", "--count", "1")
    result = farm.run_job(farm.spool.waiting()[0])
    assert (result["failed"], result["void"]) == (1, False)
    assert [seed for seed, up, down in result["reads"] if up is not None and down is not None] == [1, 2, *range(4, 21)]
    farm.plan("fill", "--count", "0")
    assert json.loads(farm.plan("best", "--json").stdout)["plays"] == result["plays"]


def test_a_play_that_hangs_is_given_up_after_its_time(farm):
    write(farm, "hang:3", play_timeout_s=1)
    farm.plan("fill", "--count", "1")
    assert farm.run_job(farm.spool.waiting()[0])["errors"] == {"no answer for 1 s": 2}


def test_over_five_percent_of_failures_void_the_job_and_the_pairs_that_came_count(farm):
    write(farm, "error:3", "error:9")
    farm.plan("fill", "--count", "1")
    assert farm.run_job(farm.spool.waiting()[0])["void"]
    farm.plan("fill", "--count", "1")
    (sheaf,) = farm.filler().look().screened.sheaves
    assert {3, 9}.isdisjoint(sheaf.opened().differences)
    assert 1 <= len(sheaf.opened().differences) <= 18


def test_scores_that_never_change_are_no_division_by_zero(farm):
    farm.write_space("null")
    write(farm, seeds=40)
    for _ in range(3):
        farm.plan("fill", "--depth", "4")
        farm.run()
    assert {a - b for body in screens(farm) for _, a, b in body["result"]["reads"]} == {0.0}
    assert len(screens(farm)) >= 9
    assert all(math.isfinite(axis[2]) for body in screens(farm) for axis in body["payload"]["variables"])
    farm.plan("fill", "--depth", "1")
    assert {row.body["reason"] for row in farm.rows("keep")} == {"no seed changed"}
    assert farm.rows("adopt") == []


@pytest.mark.parametrize("policy", ["screen", "race", "spsa"])
def test_nothing_left_to_try_is_a_sentence_not_a_spin(farm, policy):
    write(farm, policy=policy)
    farm.write_space("good", "bad", low=0.0, high=0.0)
    for watch in ([], ["--watch"]):
        assert "at its bounds" in farm.plan("fill", *watch).stderr
    assert farm.spool.waiting() == []


def test_a_fixed_variable_is_played_where_it_stands_beside_those_that_move(farm):
    write(farm)
    farm.write_space("good", low=0.0)
    fixed = '[[variable]]\nname = "fixed"\nstart = 0.5\nlow = 0.5\nhigh = 0.5\nstep = 0.1\n'
    path = farm.spool.root / "space.toml"
    path.write_text(path.read_text() + fixed)
    for _ in range(3):
        farm.plan("fill", "--count", "4")
        farm.run()
    assert "fixed" not in {row.body["payload"].get("variable") for row in farm.rows("result")}
    axes = {tuple(axis) for body in screens(farm) for axis in body["payload"]["variables"] if axis[0] == "fixed"}
    assert {axis[1] for axis in axes} == {0.5}


def test_the_same_row_twice_counts_once(farm):
    write(farm)
    farm.plan("fill", "--count", "1")
    farm.run()
    before = farm.filler().look().screened.sheaves
    row = farm.rows("result")[0]
    farm.name = "ada"
    farm.row(
        {key: value for key, value in row.body.items() if key not in ("host", "seq", "at", "boot", "crc", "schema")}
    )
    assert [sheaf.opened().differences for sheaf in farm.filler().look().screened.sheaves] == [
        s.opened().differences for s in before
    ]


def test_screens_queued_before_an_adoption_are_read_and_count(farm):
    write(farm)
    farm.plan("fill", "--count", "3")
    queued = [job.id for job in farm.jobs() if job.kind == "screen"]
    weights = {"good": 0, "bad": 0, "null": 0}
    adopt = {"event": "adopt", "by": "x", "plan": "hill", "trial": "t1", "reason": "r", "sentence": "s"}
    farm.row(adopt | {"candidate": {"good": 0.5}, "weights": weights})
    assert {farm.run_job(id_)["plays"] for id_ in queued} == {40}
    seen = farm.filler().look()
    assert seen.best.weights["good"] == 0.5
    assert sum(len(sheaf.opened().differences) for sheaf in seen.screened.sheaves) == 20 * len(queued)
