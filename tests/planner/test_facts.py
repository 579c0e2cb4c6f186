"""Rows of odd content and rows that were voided count for nothing; neither is ever a crash."""

import json

import pytest

from fleetd import Ledger
from planner.facts import Facts
from planner.plan import read_plan
from planner.seeds import Span
from planner.standing import standing
from planner.trial import PASS_MOST

COMMANDS = (["next"], ["suggest"], ["log"], ["best", "--json"], ["fill", "--dry-run", "--count", "2"])
KEPT_OUT = ("host", "seq", "at", "boot", "crc", "schema")


def read_once(farm):
    """The body of a result row, as it may be appended again."""
    farm.plan("fill", "--count", "1")
    farm.run()
    return {k: v for k, v in farm.rows("result")[0].body.items() if k not in KEPT_OUT}


def fold(farm):
    facts = Facts("hill")
    facts.add(Ledger(farm.spool.ledger_d).rows())
    return facts, standing(facts, read_plan(farm.spool.plan).space, {})


def void(farm, *rows):
    named = [{"host": row.host, "seq": row.seq} for row in rows]
    farm.row({"event": "void", "by": "a test", "reason": "bad memory", "rows": named})


PAYLOADS = [
    {"from": "x"}, {"to": None}, {"candidate": {"good": "x"}}, {"candidate": {"good": None}}, {"candidate": 3},
    {"pass": 1e300}, {"pass": 0}, {"pass": PASS_MOST + 1}, {"pass": None}, {"seconds": "x"}, {"seeds": [1]},
    {"span": ["a", "b"]}, {"best": []}, {"best": {"defaults": "x", "weights": {"good": "q"}}}, {"purpose": "fun"},
    {"play_timeout_s": "x"}, {"census": 5}, {"to": 10**400},
]  # fmt: skip
RESULTS = [
    {"reads": [[1, 1e308, -1e308], [2, -1e308, 1e308]]}, {"reads": [[1, "x", 3]]}, {"reads": [[1, 2]]},
    {"reads": ["x"]}, {"reads": [[1, True, 2.0]]}, {"reads": [[1, 1e101, 0.0]]}, {"reads": [[1, 1e-101, 0.0]]},
]  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [*({"payload": p} for p in PAYLOADS), *({"result": r} for r in RESULTS)],
    ids=lambda change: json.dumps(change)[:50],
)
def test_a_result_row_of_odd_content_is_passed_over_and_counted(farm, change):
    body = read_once(farm)
    before = fold(farm)[1]
    odd = farm.row({**body, "job": "50-odd-trial-1", **{k: body[k] | v for k, v in change.items()}})[0]
    facts, seen = fold(farm)
    assert seen == before
    assert facts.odd == [(odd.host, odd.seq)]


@pytest.mark.parametrize(
    "body",
    [
        {"event": "adopt", "candidate": {"good": "x"}},
        {"event": "adopt", "candidate": {"good": None}, "sentence": 5},
        {"event": "adopt"},
        {"event": "adopt", "candidate": {"good": 0.5}, "weights": [1]},
        {"event": "keep", "rests_on": [1]},
        {"event": "keep", "rests_on": 7},
    ],
)
def test_a_verdict_of_odd_content_is_passed_over_and_counted(farm, body):
    read_once(farm)
    before = fold(farm)[1]
    farm.row({"by": "a test", "plan": "hill", "trial": "t1", "defaults": before.best.defaults} | body)
    facts, seen = fold(farm)
    assert (seen, len(facts.odd)) == (before, 1)


def test_odd_rows_end_no_command_and_verbose_says_how_many(farm):
    body = read_once(farm)
    odd = [
        {"payload": body["payload"] | {"from": "x"}},
        {"payload": body["payload"] | {"pass": 1e300}},
        {"result": body["result"] | {"reads": [[1, 1e308, -1e308]]}},
        {"result": body["result"] | {"errors": {"x": "y"}, "plays": "x", "build": [1], "players": 5}},
    ]
    farm.row(*({**body, "job": f"50-odd-trial-{k}", **change} for k, change in enumerate(odd)))
    farm.row({"event": "adopt", "by": "x", "plan": "hill", "trial": "q", "candidate": {"zz": 1}, "defaults": "D"})
    for words in COMMANDS:
        done = farm.plan("-v", *words)
        assert "3 rows of odd content skipped (host and seq: calber 2, calber 3, calber 4)" in done.stderr
    assert "odd content" not in farm.plan("next").stderr
    assert "adoption q no longer applies: zz is not in the space" in farm.plan("best").stderr


def test_a_voided_row_takes_its_trial_its_pass_and_its_seeds_with_it(farm):
    body = read_once(farm)
    before = fold(farm)[1]
    payload = body["payload"] | {"trial": "t9", "pass": PASS_MOST, "span": [400, 420], "seeds": [400, 420]}
    reads = [[seed, *scores] for seed, (_, *scores) in zip(range(400, 420), body["result"]["reads"], strict=True)]
    result = body["result"] | {"reads": reads}
    wild = farm.row({**body, "job": "50-wild-trial-1", "payload": payload, "result": result})[0]
    assert fold(farm)[1].pass_ == PASS_MOST
    void(farm, wild)
    after = fold(farm)[1]
    assert (after.pass_, after.draws, after.courses) == (before.pass_, before.draws, before.courses)
    assert [draw.span for draw in after.draws] == [Span(1, 21)]


def rests(farm):
    """The adoption, and the rows that it rests on."""
    adopted = farm.rows("adopt")[-1]
    keys = {(key["host"], key["seq"]) for key in adopted.body["rests_on"]}
    return adopted, [row for row in farm.rows("result") if (row.host, row.seq) in keys]


def test_an_adoption_names_the_weights_it_leads_from_and_the_rows_it_rests_on(worked):
    adopted, rows = rests(worked)
    assert {row.body["payload"]["purpose"] for row in rows} == {"heldout"}
    assert sorted(row.body["job"] for row in rows) == sorted(j for j in adopted.body["jobs"] if j.startswith("40-"))
    assert all(row.body["payload"]["best"]["weights"] == adopted.body["weights"] for row in rows)


def asked(farm, trial):
    """The jobs of that trial that wait."""
    payloads = {id_: farm.spool.read_waiting(id_).payload for id_ in farm.spool.waiting()}
    return [id_ for id_, payload in payloads.items() if payload["trial"] == trial]


def test_an_adoption_whose_held_out_reads_are_voided_stands_no_more_and_is_read_again(worked):
    worked.plan("fill", "--count", "0")
    adopted, rows = rests(worked)
    trial, before = adopted.body["trial"], fold(worked)[1].best
    void(worked, *rows)
    assert adopted.body["trial"] not in [a.trial for a in fold(worked)[1].best.adoptions]
    worked.plan("fill", "--count", "0")
    taken = [row for row in worked.rows("void") if row.body.get("trial") == trial]
    assert [row.body["rows"] for row in taken] == [[{"host": adopted.host, "seq": adopted.seq}]]
    assert "taken back: the reads that it rests on were voided (bad memory)" in worked.plan("log").stdout
    worked.plan("fill", "--depth", "20")
    assert len(asked(worked, trial)) == 1  # up to the first look
    while again := asked(worked, trial):
        assert all(worked.run_job(id_)["plays"] for id_ in again)
        worked.plan("fill", "--depth", "20")
    assert fold(worked)[1].best.defaults == before.defaults
    worked.plan("fill", "--count", "0")
    assert len([row for row in worked.rows("void") if row.body.get("trial") == trial]) == 1


def test_a_verdict_whose_reads_were_voided_is_judged_again(farm):
    read_once(farm)
    farm.plan("fill", "--count", "0")
    (row,) = farm.rows("result")
    void(farm, row)
    farm.plan("fill", "--count", "1")
    assert farm.jobs()[0].payload["trial"] == row.body["payload"]["trial"]
    farm.run()
    farm.plan("fill", "--count", "0")
    assert [kept.body["rests_on"][0]["seq"] for kept in farm.rows("keep")] == [row.seq, farm.rows("result")[1].seq]


@pytest.mark.parametrize(("how", "said"), [({"exit": 3}, "failed: exit 3"), ({"signal": 9}, "failed: signal 9")])
def test_a_job_that_failed_without_a_word_is_told_by_what_it_ended_with(farm, how, said):
    body = read_once(farm) | {"exit": None, "signal": None, "outcome": "failed", "reason": None, "result": None}
    void(farm, farm.rows("result")[0])
    farm.row({**body, "job": "50-mute-trial-1", **how})
    (course,) = fold(farm)[1].courses.values()
    assert course.search.failures["50-mute-trial-1"] == said


@pytest.mark.parametrize("seed", [-5, 2**70, 21])
def test_scores_of_seeds_that_nobody_asked_for_are_odd(farm, seed):
    body = read_once(farm)
    result = body["result"] | {"reads": [*body["result"]["reads"], [seed, 1.0, 0.0]]}
    farm.row({**body, "job": "50-odd-trial-1", "result": result})
    assert fold(farm)[0].odd == [("calber", 2)]
    assert farm.plan("suggest").returncode == 0
