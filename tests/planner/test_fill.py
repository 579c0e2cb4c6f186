"""fill: how much is queued, on which seeds, by whom, and what it settles."""

import json
import subprocess
import sys

import pytest

from fleetd import Talk, TryLater, allowed_cores
from planner.cli_fill import _add, lanes
from planner.due import Order


def payloads(farm):
    return [job.payload for job in farm.jobs()]


def spans(farm, purpose):
    return {tuple(p["span"]) for p in payloads(farm) if p["purpose"] == purpose}


def until_heldout(farm):
    """Work until held-out seeds are queued; the payloads of those jobs."""
    farm.write_space("good", "null")
    for _ in range(4):
        farm.plan("fill", "--depth", "4")
        if held := [p for p in payloads(farm) if p["purpose"] == "heldout"]:
            return held
        farm.run()
    raise AssertionError


def test_depth_counts_waiting_and_running_together(farm):
    farm.plan("fill", "--depth", "3")
    id_ = farm.spool.waiting()[0]
    home = farm.spool.running / "calber" / id_
    home.mkdir(parents=True)
    (farm.spool.queue / f"{id_}.json").rename(home / "job.json")
    for _ in range(5):
        farm.plan("fill", "--depth", "4")
    assert len(farm.spool.waiting()) == 3


def test_a_job_between_queue_and_host_still_counts(farm):
    farm.plan("fill", "--depth", "2")
    id_ = farm.spool.waiting()[0]
    (farm.spool.running / "ada").mkdir(parents=True)
    (farm.spool.queue / f"{id_}.json").rename(farm.spool.running / "ada" / f"{id_}~1~00ff00ff.json")
    farm.plan("fill", "--depth", "2")
    assert len(farm.spool.waiting()) == 1


def test_two_fills_at_once_queue_no_trial_twice(farm):
    fills = [
        subprocess.Popen(farm.command("fill", "--depth", "5"), env=farm.plan_environ(), stderr=subprocess.DEVNULL)
        for _ in range(4)
    ]
    assert [fill.wait(60) for fill in fills] == [0] * 4
    trials = [p["trial"] for p in payloads(farm)]
    assert len(trials) == len(set(trials)) == 5


def test_a_second_planner_waits_and_then_says_that_another_is_at_work(farm):
    late = pytest.raises(TryLater, match="another fleet-plan is at work")
    with farm.filler().alone(), late, farm.filler().alone(0.2):
        pass
    with farm.filler().alone():
        pass


def test_running_fill_again_writes_no_verdict_twice(farm):
    farm.plan("fill", "--depth", "6")
    farm.run()
    for _ in range(3):
        farm.plan("fill", "--depth", "1")
    named = [row.body["trial"] for row in farm.rows("keep", "adopt")]
    assert len(named) == len(set(named)) == 5


def test_every_verdict_names_its_jobs_and_says_why(farm):
    farm.plan("fill", "--depth", "6")
    farm.run()
    farm.plan("fill", "--depth", "1")
    for row in farm.rows("keep"):
        body = row.body
        assert body["by"].startswith("fleet-plan@")
        assert body["reason"]
        assert body["sentence"].startswith(f"{body['variable']} 0 → ")
        assert len(body["jobs"]) == 1
        assert {"effect", "se", "n", "interval", "e_value"} <= body.keys()


def test_trials_of_a_pass_share_their_search_seeds(farm):
    farm.plan("fill", "--depth", "9")
    assert [p["pass"] for p in payloads(farm)] == [1] * 6 + [2] * 3
    assert spans(farm, "search") == {(1, 21), (21, 41)}


def test_held_out_seeds_are_fresh_asked_for_look_by_look_and_first_in_the_queue(farm):
    held = until_heldout(farm)
    assert tuple(held[0]["seeds"]) == (500_000_000, 500_000_030)
    assert (held[0]["span"], held[0]["looks"]) == ([500_000_000, 500_000_120], [30, 60, 120])
    assert farm.spool.waiting()[0].startswith("40-")
    farm.run()
    farm.plan("fill", "--depth", "1")
    again = until_heldout(farm)
    assert min(p["span"][0] for p in again) >= max(p["span"][1] for p in held)


def test_an_adoption_brings_fresh_search_seeds_and_its_own_census_is_no_baseline(farm):
    until_heldout(farm)
    before = {tuple(row.body["payload"]["span"]) for row in farm.rows("result")} | spans(farm, "search")
    farm.run()
    farm.plan("fill", "--depth", "20")
    adopted = farm.rows("adopt")[0].body["adopted"]
    new = {tuple(p["span"]) for p in payloads(farm) if p["best"]["defaults"] == adopted}
    assert new
    assert not new & before


def test_what_an_adoption_overtook_is_never_pooled_and_gets_its_turn_again(farm):
    until_heldout(farm)
    farm.plan("fill", "--depth", "6")
    waiting = farm.spool.waiting()
    for id_ in [id_ for id_ in waiting if id_.startswith("40-")]:
        farm.run_job(id_)
    farm.plan("fill", "--depth", "1")
    assert farm.rows("adopt")
    overtaken = [id_ for id_ in waiting if id_.startswith("50-")]
    plays = [farm.run_job(id_)["plays"] for id_ in overtaken]
    assert set(plays) == {0}
    farm.plan("fill", "--depth", "1")
    reasons = {job: row.body["reason"] for row in farm.rows("keep") for job in row.body["jobs"]}
    assert {reasons[id_] for id_ in overtaken} == {"replaced"}


def test_a_budget_is_plays_read_and_queued(farm):
    farm.plan("fill", "--plays", "75", "--depth", "40")
    assert len(payloads(farm)) == 3  # 40 with the best's, then 20 each: 40, 60, 80
    farm.plan("fill", "--plays", "75", "--depth", "40")
    assert len(payloads(farm)) == 3


def test_count_adds_so_many_jobs(farm):
    assert len(farm.plan("fill", "--count", "7").stdout.splitlines()) == 7
    assert len(farm.spool.waiting()) == 7


@pytest.mark.parametrize("stop", [None, "STOP_ADDING", "STOP_NOW"])
def test_a_count_of_nought_judges_and_queues_nothing(farm, stop):
    farm.plan("fill", "--count", "2")
    farm.run()
    farm.spool.plan.write_text(farm.spool.plan.read_text().replace(json.dumps(sys.executable), '"no-such-game"'))
    if stop:
        (farm.spool.root / stop).touch()
    farm.plan("fill", "--count", "0")
    assert (len(farm.rows("keep")), farm.spool.waiting()) == (2, [])


def test_a_census_that_is_nowhere_is_said_before_anything_is_queued(farm):
    right = farm.spool.plan.read_text()
    farm.spool.plan.write_text(right.replace(json.dumps(sys.executable), '"no-such-game"'))
    for words in (["fill"], ["fill", "--dry-run"], ["fill", "--watch"]):
        done = farm.plan(*words, ok=False)
        assert done.returncode == 66
        assert "no-such-game: no such program on the PATH, nor beside " in done.stderr
        assert farm.spool.waiting() == []
    farm.spool.plan.write_text(right.replace(json.dumps(sys.executable), '"{build}/game"'))
    farm.plan("fill", "--count", "1")
    assert len(farm.spool.waiting()) == 1


def cancelled(farm, id_):
    """What a person's cancel leaves: the row, and no job."""
    job = farm.spool.read_waiting(id_)
    (farm.spool.queue / f"{id_}.json").unlink()
    row = {"event": "result", "job": id_, "attempt": 1, "kind": job.kind, "outcome": "cancelled", "next": None}
    farm.row(row | {"reason": "by a person", "payload": job.payload, "result": None})


def test_a_cancelled_trial_gets_its_turn_again_in_the_same_pass(farm):
    farm.plan("fill", "--count", "2")
    (first, second), (trial, _) = farm.spool.waiting(), (p["trial"] for p in payloads(farm))
    cancelled(farm, first)
    farm.run_job(second)
    farm.plan("fill", "--count", "1")
    (job,) = farm.jobs()
    assert (job.payload["trial"], job.payload["pass"]) == (trial, 1)
    farm.run()
    farm.plan("fill", "--count", "0")
    assert "not read" not in [row.body["reason"] for row in farm.rows("keep")]
    assert len(farm.rows("keep")) + farm.plan("suggest").stdout.count("held-out next") == 2


def test_a_cancelled_held_out_block_is_asked_again_alone(farm):
    held = until_heldout(farm)
    id_ = next(id_ for id_ in farm.spool.waiting() if id_.startswith("40-"))
    cancelled(farm, id_)
    farm.run()
    farm.plan("fill", "--count", "1")
    assert [(p["trial"], p["seeds"]) for p in payloads(farm)] == [(held[0]["trial"], held[0]["seeds"])]


@pytest.mark.parametrize("stop", ["STOP_ADDING", "STOP_NOW"])
def test_while_a_stop_stands_nothing_is_added_and_that_is_no_failure(farm, stop):
    (farm.spool.root / stop).touch()
    done = farm.plan("fill")
    assert (done.returncode, farm.spool.waiting()) == (0, [])
    assert stop in done.stderr


def test_a_dry_run_writes_nothing(farm):
    farm.plan("fill", "--depth", "6")
    farm.run()
    files = sorted(p.name for p in farm.spool.root.rglob("*"))
    done = farm.plan("fill", "--dry-run", "--depth", "4")
    assert "would add" in done.stderr
    assert sorted(p.name for p in farm.spool.root.rglob("*")) == files


def heldout_row(farm, trial, low):
    """Append the row of a held-out read on twenty seeds from `low`; gives it back."""
    payload = farm.rows("result")[0].body["payload"]
    payload = payload | {"purpose": "heldout", "trial": trial, "span": [low, low + 20], "seeds": [low, low + 20]}
    head = {"event": "result", "job": f"40-{trial}", "attempt": 1, "outcome": "ok", "next": None}
    return farm.row(head | {"payload": payload, "result": None})[0]


@pytest.mark.parametrize(
    ("low", "told"),
    [(11, "meet the search seeds"), (10**9, "meet the judge")],
)
def test_held_out_seeds_that_meet_others_are_an_error_before_anything_runs(farm, low, told):
    farm.plan("fill", "--count", "1")
    farm.run()
    heldout_row(farm, "t2", 500_000_000)
    bad = heldout_row(farm, "t3", low)
    done = farm.plan("fill", ok=False)
    assert (done.returncode, farm.spool.waiting(), farm.rows("keep")) == (65, [], [])
    assert told in done.stderr
    assert farm.plan("log").returncode == 0
    farm.row({"event": "void", "by": "a test", "reason": "seeds", "rows": [{"host": bad.host, "seq": bad.seq}]})
    farm.plan("fill", "--count", "1")
    assert len(farm.spool.waiting()) == 1


def test_a_job_that_fails_for_good_ends_its_trial_in_a_sentence(farm):
    farm.write_plan([f"error:{seed}" for seed in range(1, 21)])
    farm.plan("fill", "--count", "1")
    farm.run()
    farm.plan("fill", "--depth", "1")
    (row,) = farm.rows("keep")
    assert (row.body["reason"], row.body["n"], row.body["effect"]) == ("not read", 0, None)
    assert "40 × no luck" in row.body["sentence"]


def test_a_job_removed_by_hand_is_queued_again_not_lost(farm):
    farm.plan("fill", "--count", "1")
    trial = payloads(farm)[0]["trial"]
    (farm.spool.queue / f"{farm.spool.waiting()[0]}.json").unlink()
    farm.plan("fill", "--count", "1")
    assert payloads(farm)[0]["trial"] == trial


def test_long_searches_are_cut_in_blocks_and_judged_whole(farm):
    farm.write_plan(seeds=150)
    farm.plan("fill", "--count", "1")
    assert [p["seeds"] for p in payloads(farm)] == [[1, 76]]
    farm.plan("fill", "--count", "1")
    assert [p["seeds"] for p in payloads(farm)] == [[1, 76], [76, 151]]
    farm.run()
    farm.plan("fill", "--depth", "1")
    assert json.dumps([p["purpose"] for p in payloads(farm)]) == '["heldout"]'


def test_under_ten_seeds_every_trial_is_kept_out_with_advice(farm):
    farm.write_plan(seeds=4)
    farm.plan("fill", "--depth", "6")
    farm.run()
    farm.plan("fill", "--depth", "1")
    assert len(farm.rows("keep")) == 6
    assert not farm.rows("adopt")
    assert any("seeds would show it" in row.body["sentence"] for row in farm.rows("keep"))


def test_a_daemon_that_has_ended_has_no_lanes_to_fill(farm):
    beat = {"host": "gone", "pid": 1, "counter": 1, "lanes": 64, "busy": [], "tags": [], "breaker": {}, "stops": {}}
    beat |= {"at": "2026-11-30T00:00:00.000000Z", "claims": None, "gpus": 0}
    (farm.spool.hosts / "gone.json").write_text(json.dumps(beat))
    assert lanes(farm.spool) == 64
    (farm.spool.hosts / "gone.json").write_text(json.dumps(beat | {"ended": beat["at"]}))
    assert lanes(farm.spool) == allowed_cores().cores


def talk(farm):
    return Talk(
        sys.stdout, sys.stderr, json=False, quiet=True, verbose=False, color="never", environ=farm.plan_environ()
    )


def test_what_another_host_queues_at_the_same_time_is_not_asked_for_twice(farm):
    """Where two mounts of a share do not share their locks, both look, and then both queue."""
    late = farm.filler()
    seen = late.look()
    farm.name = "ada"
    farm.plan("fill", "--depth", "3")
    added, _ = _add(late, seen, Order(depth=5), talk(farm))
    assert added == 2
    asked = [(payload["trial"], tuple(payload["seeds"])) for payload in payloads(farm)]
    assert len(asked) == len(set(asked)) == 5


def test_another_host_that_fills_is_named(farm):
    farm.plan("fill", "--depth", "1")
    assert "jobs of " not in farm.plan("fill", "--depth", "2").stderr
    farm.name = "ada"
    assert (
        "jobs of fleet-plan@calber wait or run here: where locks do not hold"
        in farm.plan("fill", "--depth", "3").stderr
    )


@pytest.mark.parametrize("seeds", [[1, 10**25], [1, 10**7], [-5, 5], [2**62, 2**62 + 5]])
def test_a_waiting_job_that_asks_for_seeds_that_nobody_can_draw_is_not_the_plan_s(farm, seeds):
    farm.plan("fill", "--count", "1")
    (id_,) = farm.spool.waiting()
    path = farm.spool.queue / f"{id_}.json"
    job = json.loads(path.read_text())
    path.write_text(json.dumps(job | {"payload": job["payload"] | {"seeds": seeds}}))
    assert "added 1 job" in farm.plan("fill", "--count", "1").stderr
    assert farm.plan("next").returncode == 0
