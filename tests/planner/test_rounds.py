"""Rounds of nets: train, judge, verdict; on a hill whose nets are as good as they were taught to be."""

import hashlib
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from .conftest import HILL, plan_text

NET = """
[net]
share = {share}
first = {first}
train = {train}
judge_seeds = 60
train_needs = ["gpu"]
judge_needs = ["cpu"]
"""


def command(gain, *more):
    return json.dumps([sys.executable, str(HILL), "learn", str(gain), "{seed}", *more])


def write(farm, share=1, first=None, train=None, **trial):
    net = NET.format(share=share, first=first or command(0), train=train or command(0.5, "{best}"))
    farm.spool.plan.write_text(plan_text(**trial) + net)


def work(farm, passes=1, limit=1000):
    for _ in range(passes):
        farm.plan("fill", "--depth", "3")
        farm.run(limit)


def best(farm):
    return json.loads(farm.plan("best", "--json").stdout)


def verdicts(farm):
    farm.plan("fill", "--count", "0")
    return [(r.event, r.body["reason"]) for r in farm.rows("adopt", "keep") if "round" in r.body]


def test_the_first_net_is_adopted_as_it_is(farm):
    write(farm)
    work(farm)
    assert verdicts(farm) == [("adopt", "first net")]
    net = best(farm)["net"]
    assert hashlib.sha256(Path(net["net"]).read_bytes()).hexdigest() == net["sha256"]
    (row,) = farm.rows("adopt")
    assert row.body["net"]["net"].startswith("ended/2026-11-30/"), "what keeps it from the sweep"


def test_a_better_net_is_adopted_and_the_next_begins_from_it(farm):
    write(farm)
    work(farm, 6)
    assert verdicts(farm)[:3] == [("adopt", "first net"), ("adopt", "past the gate"), ("adopt", "past the gate")]
    assert json.loads(Path(best(farm)["net"]["net"]).read_text())["good"] >= 1.0
    second = farm.rows("adopt")[1].body
    assert "held" not in second["sentence"]
    assert second["sentence"].startswith(f"net {farm.rows('adopt')[0].body['net']['sha256'][:8]} → ")
    assert (second["n"], len(second["rests_on"])) == (60, 3)
    assert second["from"] == farm.rows("adopt")[0].body["net"]["sha256"]


def test_a_net_that_is_no_better_is_kept_out(farm):
    write(farm, train=command(0.0, "{best}"))
    work(farm, 3)
    assert verdicts(farm)[-1] == ("keep", "not past two standard errors")
    assert best(farm)["net"]["sha256"] == farm.rows("adopt")[0].body["net"]["sha256"]


def test_needs_decide_where(farm):
    write(farm)
    farm.plan("fill", "--depth", "9")
    (job,) = farm.jobs()
    assert (job.kind, job.needs, job.payload["schema"]) == ("train", ("gpu",), "fleet.lesson/1")
    work(farm, 2)
    farm.plan("fill", "--depth", "9")
    jobs = farm.jobs()
    assert {(j.kind, j.needs, j.payload["purpose"]) for j in jobs} == {("judge", ("cpu",), "judge")}
    assert [(j.payload["seeds"], j.payload["span"][0]) for j in jobs] == [
        ([10**9, 10**9 + 30], 10**9),
        ([10**9 + 30, 10**9 + 60], 10**9),
    ]


def test_each_judge_has_seeds_of_its_own_and_each_lesson_a_seed(farm):
    write(farm)
    work(farm, 7)
    rows = farm.rows("result")
    spans = {tuple(r.body["payload"]["span"]) for r in rows if r.body["kind"] == "judge"}
    seeds = [r.body["payload"]["seed"] for r in rows if r.body["kind"] == "train"]
    assert len(spans) >= 2
    assert all(one[1] <= other[0] for one, other in zip(sorted(spans), sorted(spans)[1:], strict=False))
    assert seeds == list(range(1_500_000_000, 1_500_000_000 + len(seeds)))


@pytest.mark.parametrize("share", [0.2, 0.4])
def test_rounds_have_their_share_of_the_time(farm, share):
    write(farm, share=share, heldout=20)
    farm.write_space(*(f"v{i}" for i in range(40)))
    work(farm, 12)
    busy = Counter(row.body["kind"] in ("train", "judge") for row in farm.rows("result"))
    assert abs(busy[True] / busy.total() - share) < 0.12


def test_no_share_is_no_round(farm):
    write(farm, share=0)
    work(farm)
    assert {row.body["kind"] for row in farm.rows("result")} == {"trial"}
    assert best(farm)["net"] is None


def test_a_net_of_another_hash_is_refused(farm):
    write(farm)
    work(farm)
    farm.plan("fill", "--count", "0")
    net = Path(best(farm)["net"]["net"])
    work(farm)
    net.write_text("another")
    work(farm)
    said = [row.body["reason"] for row in farm.rows("result") if row.body["kind"] == "judge"]
    assert all("another net: its SHA-256 is" in reason for reason in said)
    assert verdicts(farm)[-1] == ("keep", "not read")


def test_no_round_begins_while_the_best_net_is_not_there(farm):
    """As after a merge, before it is copied: three lessons that fail at once would end all rounds for good."""
    write(farm)
    work(farm, 1)
    farm.plan("fill", "--count", "0")
    path = Path(best(farm)["net"]["net"])
    there = path.rename(path.with_suffix(".away"))
    for _ in range(4):
        farm.plan("fill", "--depth", "2")
        farm.run()
    assert len([row for row in farm.rows("result") if row.body["kind"] == "train"]) == 1
    assert "none begins before its net is there" in farm.plan("next").stdout
    there.rename(path)
    work(farm, 1)
    assert len([row for row in farm.rows("result") if row.body["kind"] == "train"]) == 2


def test_three_nets_that_cannot_be_made_are_enough(farm):
    write(farm, first=command("fail"))
    work(farm, 5)
    assert verdicts(farm) == [("keep", "not trained")] * 3
    assert farm.rows("keep")[0].body["sentence"].endswith("nothing learned")
    assert "trial" in {row.body["kind"] for row in farm.rows("result")}, "the time is the trials' then"


def test_a_command_that_tells_no_net_has_made_none(farm):
    write(farm, first=command("mute"))
    work(farm)
    assert verdicts(farm) == [("keep", "not trained")]
    assert "told no net" in farm.rows("keep")[0].body["sentence"]


@pytest.mark.parametrize(
    ("trouble", "why"),
    [("fifo", "is no file"), ("gone", "cannot be read"), ("surrogate", "has a name"), ("long", "cannot be read")],
)
def test_a_first_net_that_is_not_there_as_a_file_does_not_stand(farm, trouble, why):
    write(farm, first=command(trouble))
    work(farm)
    assert verdicts(farm) == [("keep", "not trained")]
    assert why in farm.rows("keep")[0].body["sentence"]


def test_the_same_rows_are_the_same_rounds_without_any_cache(farm):
    write(farm)
    work(farm, 3, limit=2)
    one, other = farm.filler(), farm.filler()
    assert one.look() == other.look()
    assert one.rounds == other.rounds
    farm.plan("fill", "--depth", "3")
    farm.plan("fill", "--depth", "3")
    assert len(farm.jobs()) <= 3


def test_a_verdict_whose_reads_were_voided_is_taken_back(farm):
    write(farm)
    work(farm, 3)
    adopted = [row for row in farm.rows("adopt") if row.body["reason"] == "past the gate"]
    farm.plan("fill", "--count", "0")
    adopted = [row for row in farm.rows("adopt") if row.body["reason"] == "past the gate"][-1]
    key = adopted.body["rests_on"][-1]
    farm.row({"event": "void", "by": "me", "reason": "bad memory", "rows": [key]})
    assert best(farm)["net"]["sha256"] == adopted.body["from"]
    farm.plan("fill", "--depth", "3")
    assert {job.kind for job in farm.jobs()} == {"judge"}, "what was voided is read again"


def test_a_share_without_commands_is_told(farm):
    farm.spool.plan.write_text(plan_text() + "[net]\nshare = 0.5\n")
    said = farm.plan("fill", ok=False)
    assert said.returncode == 78
    assert "plan.toml" in said.stderr
    assert "net.first: is missing" in said.stderr
    assert "net.train: is missing" in said.stderr


def test_a_judge_s_reads_by_two_censuses_are_not_pooled(farm):
    """One job by the census as it was, the other as it was edited to be: another game, for all that anybody knows."""
    write(farm)
    while not farm.rows("adopt"):
        farm.plan("fill", "--depth", "1")
        farm.run(1)
    while not any(row.body["kind"] == "judge" for row in farm.rows("result")):
        farm.plan("fill", "--depth", "1")
        farm.run(1)
    write(farm, trouble=["chatter"])
    farm.plan("fill", "--depth", "1")
    farm.run(1)
    assert verdicts(farm)[-1] == ("keep", "census differs")
