"""`fleet-plan read`, run as the engine runs it: what is played, what is reused, what is kept."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from planner.trial import decode_reads, player_hash

HILL = Path(__file__).resolve().parent.parent / "rigs" / "hill.py"


def first(farm, trouble=(), **trial):
    """The id of a job whose census has that trouble."""
    farm.write_plan(trouble, **trial)
    farm.plan("fill", "--count", "1")
    return farm.spool.waiting()[-1]


def test_both_players_are_read_on_the_same_seeds(farm):
    result = farm.run_job(first(farm))
    assert len(decode_reads(result).pairs()) == 20
    assert (result["plays"], result["reused"], result["failed"], result["void"]) == (40, 0, 0, False)
    assert result["players"]["candidate"] != result["players"]["best"]


def test_all_that_the_census_says_is_kept_beside_the_job(farm):
    id_ = first(farm)
    farm.run_job(id_)
    lines = next(farm.spool.ended.glob(f"*/{id_}~1/out/plays.jsonl")).read_text().splitlines()
    plays = [json.loads(line) for line in lines]
    assert len(plays) == 40
    assert {"player", "seed", "score", "extra"} == set(plays[0])


def test_the_best_is_read_once_a_pass_on_each_host(farm):
    farm.plan("fill", "--count", "3")
    one, two, three = farm.spool.waiting()
    assert farm.run_job(one)["plays"] == 40
    assert farm.run_job(two)["plays"] == 20
    farm.name = "other"
    assert farm.run_job(three)["plays"] == 40


def test_on_a_clock_a_seed_read_again_is_news(farm):
    farm.write_plan(deterministic=False)
    farm.plan("fill", "--count", "2")
    assert [farm.run_job(id_)["plays"] for id_ in farm.spool.waiting()] == [40, 40]


def test_a_build_reads_for_itself(farm):
    farm.plan("fill", "--count", "2")
    one, two = farm.spool.waiting()
    farm.run_job(one)
    farm.environ = {"FLEET_BUILD": "/builds/4f2a"}
    result = farm.run_job(two)
    assert (result["plays"], result["build"]) == (40, "/builds/4f2a")


def test_scores_under_other_rules_are_played_again(farm):
    farm.plan("fill", "--count", "3")
    one, two, three = farm.spool.waiting()
    farm.run_job(one)
    farm.environ = {"HILL_RULES": "2"}
    result = farm.run_job(two)
    assert (result["plays"], result["reused"], result["rules"]) == (40, 0, "2")
    assert len(decode_reads(result).pairs()) == 20
    result = farm.run_job(three)
    assert (result["plays"], result["reused"], result["rules"]) == (20, 20, "2")


@pytest.mark.parametrize("rules", ["", "2"])
def test_a_census_that_names_other_rules_from_play_to_play_has_failed_and_none_of_its_reads_count(farm, rules):
    farm.environ = {"HILL_RULES": rules} if rules else {}
    result = farm.run_job(first(farm, ["flip:5"]))
    row = farm.rows("result")[-1].body
    assert (row["outcome"], result["reads"]) == ("failed", [])
    assert result["errors"] == {"the census names other rules from play to play": 1}
    assert "the census names other rules from play to play: its scores cannot be told apart" in row["reason"]


def test_long_rules_are_known_by_their_digest(farm):
    farm.plan("fill", "--count", "2")
    one, two = farm.spool.waiting()
    farm.environ = {"HILL_RULES": "r" * 70_000}
    result = farm.run_job(one)
    assert len(result["rules"]["sha256"]) == 64
    assert len(decode_reads(result).pairs()) == 20
    assert farm.run_job(two)["reused"] == 20


def test_one_bad_pair_of_twenty_is_dropped_on_both_sides(farm):
    result = farm.run_job(first(farm, ["nan:5"]))
    assert (result["failed"], result["void"], result["errors"]) == (1, False, {"not finite: nan": 2})
    assert len(decode_reads(result).pairs()) == 19


def test_over_five_percent_of_bad_pairs_is_void_and_counted(farm):
    result = farm.run_job(first(farm, ["error:5", "error:9"]))
    assert (result["failed"], result["void"], result["errors"]) == (2, True, {"no luck": 4})
    assert len(decode_reads(result).pairs()) == 18


def test_thirty_four_answers_are_no_full_read_and_the_rest_is_asked_again(farm):
    result = farm.run_job(first(farm, ["half"]))
    assert (result["plays"], result["void"]) == (40, False)
    assert len(decode_reads(result).pairs()) == 20


def test_nothing_scored_is_a_failure_with_its_reason(farm):
    id_ = first(farm, [f"error:{seed}" for seed in range(1, 21)])
    farm.run_job(id_)
    row = farm.rows("result")[-1].body
    assert (row["exit"], row["outcome"]) == (1, "failed")
    assert "40 × no luck" in row["reason"]
    assert row["result"]["failed"] == 20


def test_a_stop_keeps_the_scores_that_came(farm, wait_for):
    id_ = first(farm, ["slow"])
    home, process = farm.run_job(id_, wait=False)
    wait_for(lambda: (home / "result.json").exists() and json.loads((home / "result.json").read_text())["plays"] >= 6)
    process.send_signal(signal.SIGTERM)
    result = farm.ended(home, process, outcome="stopped")
    assert process.returncode == 143
    assert 6 <= result["plays"] < 40
    assert len(decode_reads(result).pairs()) >= 3


def test_the_next_attempt_plays_only_what_the_stop_left(farm, wait_for):
    id_ = first(farm, ["slow"], deterministic=False)
    home, process = farm.run_job(id_, wait=False)
    wait_for(lambda: (home / "result.json").exists() and json.loads((home / "result.json").read_text())["plays"] >= 6)
    process.send_signal(signal.SIGTERM)
    job = json.loads((home / "job.json").read_text())
    kept = farm.ended(home, process, outcome="stopped")["plays"]
    (farm.spool.queue / f"{id_}.json").write_text(json.dumps(job | {"attempt": 2}))
    again = farm.run_job(id_)
    assert (again["plays"], again["reused"]) == (40 - kept, kept)


def test_a_trial_whose_best_was_replaced_ends_without_a_play(farm):
    id_ = first(farm)
    block = farm.jobs()[0].payload
    farm.row({"event": "adopt", "by": "a test", "plan": "hill", "trial": "t1", "defaults": block["best"]["defaults"]})
    assert farm.run_job(id_) == {"schema": "fleet.reads/1", "reads": [], "plays": 0, "replaced": "t1"}


def test_an_adoption_before_the_job_was_made_replaces_nothing(farm):
    best = player_hash(dict.fromkeys(("good", "bad", "null"), 0.0))
    farm.row({"event": "adopt", "by": "a test", "plan": "hill", "trial": "t1", "defaults": best})
    id_ = first(farm)
    assert farm.jobs()[0].payload["best"]["defaults"] == best
    assert farm.run_job(id_)["plays"] == 40


@pytest.mark.parametrize("seeds", [[1, 21], [1_000_000_000, 1_000_000_020]])
def test_heldout_seeds_from_another_range_are_refused_before_a_play(farm, seeds):
    id_ = first(farm)
    job = farm.jobs()[0]
    farm.job_of(id_, payload={**job.payload, "purpose": "heldout", "seeds": seeds, "span": seeds})
    assert farm.run_job(id_) is None
    row = farm.rows("result")[-1].body
    assert row["exit"] == 65
    assert "not all in 500000000" in row["reason"]


def test_outside_a_job_read_says_what_it_is_for(farm):
    done = farm.plan("read", ok=False)
    assert done.returncode == 2
    assert "FLEET_JOB is not set" in done.stderr


def test_a_census_is_looked_for_on_the_path_first(farm, tmp_path):
    mine = tmp_path / "bin" / "treadcore"
    mine.parent.mkdir()
    mine.write_text(f'#!/bin/sh\nexec {sys.executable} {HILL} "$@"\n')
    mine.chmod(0o755)
    farm.environ = {"PATH": f"{mine.parent}:{os.environ['PATH']}"}
    farm.spool.plan.write_text(
        farm.spool.plan.read_text().replace(json.dumps([sys.executable, str(HILL)])[1:-1], '"treadcore"')
    )
    farm.plan("fill", "--count", "1")
    assert len(decode_reads(farm.run_job(farm.spool.waiting()[0])).pairs()) == 20


def test_a_census_that_is_nowhere_is_said_with_where_it_was_looked_for(farm):
    id_ = first(farm)
    farm.job_of(id_, payload={**farm.jobs()[0].payload, "census": ["no-such-game"]})
    farm.run()
    row = farm.rows("result")[-1].body
    assert row["exit"] == 66
    assert "no-such-game: no such program on the PATH, nor beside " in row["reason"]


def test_a_job_file_without_a_payload_is_65(farm, tmp_path):
    (tmp_path / "job.json").write_text('{"argv": ["true"]}')
    environ = {"FLEET_JOB": str(tmp_path / "job.json"), "FLEET_RESULT": str(tmp_path / "result.json")}
    command = farm.command("read")
    done = subprocess.run(command, env=farm.plan_environ() | environ, capture_output=True, text=True, check=False)
    assert (done.returncode, "no job with a payload" in done.stderr) == (65, True)


def test_a_hosts_first_read_with_a_build_plays_one_play_in_two_processes(farm):
    farm.plan("fill", "--count", "2")
    one, two = farm.spool.waiting()
    result = farm.run_job(one)
    first, second = result["probe"]["scores"]
    assert (first == second, result["plays"], len(result["reads"])) == (True, 40, 20)
    assert farm.run_job(two)["probe"] == result["probe"]


@pytest.mark.parametrize("trouble", [["unsteady"], ["unsteady", "backwards"]])
def test_a_census_that_scores_a_play_in_two_ways_is_refused_and_none_of_its_reads_count(farm, trouble):
    result = farm.run_job(first(farm, trouble))
    row = farm.rows("result")[-1].body
    assert (row["exit"], row["outcome"], result["reads"]) == (1, "failed", [])
    assert len(set(result["probe"]["scores"])) == 2
    assert "not deterministic: seed " in row["reason"]
    assert "set deterministic = false in plan.toml" in row["reason"]


def test_a_failed_probe_is_no_probe_for_the_next_job(farm):
    farm.write_plan(["unsteady"])
    farm.plan("fill", "--count", "2")
    assert [farm.run_job(id_)["reads"] for id_ in farm.spool.waiting()] == [[], []]


def test_on_a_clock_nothing_is_played_twice(farm):
    result = farm.run_job(first(farm, ["unsteady"], deterministic=False))
    assert (result["probe"], len(result["reads"])) == (None, 20)


def test_another_host_and_another_build_are_probed_for_themselves(farm):
    farm.plan("fill", "--count", "3")
    one, two, three = farm.spool.waiting()
    seeds = [farm.run_job(one)["probe"]["seed"]]
    farm.row({"event": "void", "by": "a test", "reason": "a test", "rows": []})
    farm.environ = {"FLEET_BUILD": "/builds/4f2a"}
    seeds.append(farm.run_job(two)["probe"]["seed"])
    farm.name = "other"
    assert [*seeds, farm.run_job(three)["probe"]["seed"]] == [1, 1, 1]


def test_a_probe_whose_play_fails_probes_nothing_and_the_reads_count(farm):
    result = farm.run_job(first(farm, ["error:1"]))
    assert (result["probe"], len(decode_reads(result).pairs())) == (None, 19)


def test_voided_scores_are_not_used_again_however_far_back_the_void_row_is(farm):
    farm.plan("fill", "--count", "1")
    farm.run()
    (read,) = farm.rows("result")
    farm.name = "other"
    farm.row({"event": "void", "by": "me", "reason": "bad memory", "rows": [{"host": read.host, "seq": read.seq}]})
    farm.row(*[{"event": "note", "by": "me", "note": "x" * 9000}] * 40)
    farm.name = read.host
    farm.plan("fill", "--count", "1")
    assert farm.jobs()[0].payload["voided"] == {read.host: read.seq}
    farm.run()
    again = farm.rows("result")[-1]
    assert (again.body["payload"]["trial"], again.body["result"]["reused"]) == (read.body["payload"]["trial"], 0)


@pytest.mark.parametrize("voided", [None, [], {"calber": "1"}, {"other": 9}])
def test_a_job_whose_voided_rows_are_oddly_told_reads_as_one_without(farm, voided):
    farm.plan("fill", "--count", "2")
    one, two = farm.spool.waiting()
    farm.run_job(one)
    path = farm.spool.queue / f"{two}.json"
    job = json.loads(path.read_text())
    path.write_text(json.dumps(job | {"payload": job["payload"] | {"voided": voided}}))
    assert farm.run_job(two)["reused"] == 20
