"""Reward variables take turns in rounds of nets; on a hill where `help` teaches what is good and `harm` the contrary."""

import json
from dataclasses import replace

import pytest

from planner.net_round import decode_lesson, encode_lesson
from planner.plan import read_plan
from planner.reward_turns import next_move, standing_rewards, turns

from .conftest import plan_text, space_text
from .test_rounds import command, work

REWARD = """
[[variable]]
name = "{}"
start = {}
low = {}
high = {}
step = 1
group = "reward"
"""
NET = """
[net]
share = 1
first = {first}
train = {train}
judge_seeds = 60
"""


def write(farm, *rewards, gain=0.0, more=()):
    """A space with these rewards (name, start, low, high), and rounds that are told them."""
    tables = "".join(REWARD.format(*reward) for reward in rewards)
    (farm.spool.root / "space.toml").write_text(space_text("null") + tables)
    train = command(gain, "{best}", "{rewards}", *more)
    farm.spool.plan.write_text(plan_text() + NET.format(first=command(0), train=train))


def round_rows(farm):
    farm.plan("fill", "--count", "0")
    return [row.body for row in farm.rows("adopt", "keep") if "round" in row.body]


def rewards(farm):
    """Where the rewards stand."""
    return {reward["name"]: reward["now"] for reward in json.loads(farm.plan("next", "--json").stdout)["rewards"]}


def moves(farm):
    """The change of each round after the first: variable and direction, or None."""
    told = [body["reward"] for body in round_rows(farm)[1:]]
    return [move and (move["variable"], move["to"] - move["from"]) for move in told]


def test_plain_and_changed_rounds_take_turns_and_the_changes_rotate(farm):
    write(farm, ("other", 0, -1, 1), ("bound", 1, 0, 1))
    work(farm, 13)
    assert moves(farm) == [None, ("other", 1), None, ("other", -1), None, ("bound", -1)]


def test_a_reward_stands_with_the_net_that_it_made_and_not_before(farm):
    write(farm, ("help", 0, -1, 1))
    work(farm, 5)
    first, plain, changed = round_rows(farm)[:3]
    assert (first["reward"], plain["event"], plain["rewards"]) == (None, "keep", {"help": 0.0})
    assert (changed["event"], changed["reward"]) == ("adopt", {"variable": "help", "from": 0.0, "to": 1.0})
    assert changed["plain"]["round"] == plain["round"]
    assert changed["plain"]["effect"] == plain["effect"]
    assert rewards(farm) == {"help": 1.0}
    work(farm)
    lesson = [row for row in farm.rows("result") if row.body["kind"] == "train"][-1].body["payload"]
    assert (lesson["rewards"], lesson["reward"]) == ({"help": 1.0}, None), "from a new net the first round is plain"


def test_the_sentence_tells_the_change_beside_the_plain_round(farm):
    write(farm, ("help", 0, -1, 1))
    work(farm, 5)
    plain, changed = round_rows(farm)[1:3]
    assert ", help 0 → 1: +0." in changed["sentence"]
    assert f"; plain round {plain['round']} made " in changed["sentence"]
    assert ", so the reward made +0." in changed["sentence"]
    assert "the reward made" not in plain["sentence"]


def test_a_reward_whose_net_is_no_better_leaves_the_rewards_as_they_were(farm):
    write(farm, ("harm", 0, 0, 1))
    work(farm, 7)
    rows = round_rows(farm)
    assert [body["event"] for body in rows[1:4]] == ["keep"] * 3
    assert rows[2]["rewards"] == {"harm": 1.0}
    assert rows[3]["rewards"] == {"harm": 0.0}
    assert rewards(farm) == {"harm": 0.0}


def test_a_reward_whose_adoption_was_voided_stands_no_more(farm):
    write(farm, ("help", 0, -1, 1))
    work(farm, 5)
    farm.plan("fill", "--count", "0")
    row = next(row for row in farm.rows("adopt") if row.body["reward"])
    farm.row({"event": "void", "by": "me", "reason": "bad memory", "rows": [{"host": row.host, "seq": row.seq}]})
    assert rewards(farm) == {"help": 0.0}


def test_a_start_that_was_edited_means_from_here(farm):
    write(farm, ("help", 0, -1, 1))
    work(farm, 5)
    farm.plan("fill", "--count", "0")
    write(farm, ("help", -1, -1, 1))
    assert rewards(farm) == {"help": -1.0}
    write(farm, ("help", 0, -1, 0.5))
    assert rewards(farm) == {"help": 0.5}, "outside of its range it is told at the bound"


def test_weight_trials_know_nothing_of_rewards(farm):
    write(farm, ("help", 0, -1, 1))
    farm.spool.plan.write_text(plan_text() + NET.format(first=command(0), train=command(0)).replace("= 1", "= 0", 1))
    work(farm, 2)
    rows = farm.rows("result")
    assert {row.body["payload"]["variable"] for row in rows} == {"null"}
    assert {tuple(row.body["payload"]["best"]["weights"]) for row in rows} == {("null",)}


def test_lessons_of_before_there_were_changes_are_decoded(farm):
    write(farm, ("help", 0, -1, 1))
    farm.plan("fill", "--depth", "1")
    (job,) = farm.jobs()
    old = {k: v for k, v in job.payload.items() if k not in ("reward", "rivals")}
    lesson = decode_lesson(old)
    assert (lesson.move, lesson.rivals, lesson.rewards) == (None, (), {"help": 0.0})
    assert decode_lesson(encode_lesson(lesson)) == lesson


def test_old_verdicts_of_rounds_are_read(farm):
    write(farm, ("help", 0, -1, 1))
    work(farm, 3)
    (first,) = [row for row in farm.rows("adopt") if row.body["reason"] == "first net"]
    known = farm.filler()
    before = {k: v for k, v in first.body.items() if k not in ("reward", "plain", "crc", "seq", "boot", "host")}
    farm.row(before | {"at": first.at.replace("20", "19", 1)})
    other = farm.filler()
    assert known.look().best == other.look().best
    assert other.rounds.net == known.rounds.net
    space = read_plan(farm.spool.plan).space
    assert standing_rewards(space, other.rounds) == {"help": 0.0}


def test_turns_are_a_function_of_the_rows(farm):
    write(farm, ("help", 0, -1, 1), ("other", 0, -1, 1))
    work(farm, 7)
    one, other = farm.filler(), farm.filler()
    one.look(), other.look()
    space = one.plan.space
    assert next_move(one.rounds, space) == next_move(other.rounds, space)
    assert turns(one.rounds, space) == turns(other.rounds, space)
    assert next_move(replace(one.rounds, net=None), space) is None


def test_rivals_are_the_nets_of_before_and_one_that_is_gone_is_left_out(farm):
    write(farm, gain=0.5, more=["{rivals}"])
    work(farm, 8)
    adopted = [body["net"] for body in round_rows(farm) if body["event"] == "adopt"]
    jobs = [row.body for row in farm.rows("result") if row.body["kind"] == "train"]
    assert len(adopted) >= 3
    assert [rival["sha256"] for rival in jobs[3]["payload"]["rivals"]] == [adopted[1]["sha256"], adopted[0]["sha256"]]
    told = (farm.spool.root / jobs[3]["log"]).parent / "out" / "rivals"
    assert told.read_text().split() == [str(farm.spool.root / net["net"]) for net in (adopted[1], adopted[0])]
    (farm.spool.root / adopted[0]["net"]).unlink()
    work(farm, 2)
    last = [row.body for row in farm.rows("result") if row.body["kind"] == "train"][-1]
    told = (farm.spool.root / last["log"]).parent / "out" / "rivals"
    assert str(farm.spool.root / adopted[0]["net"]) not in told.read_text()
    assert len(told.read_text().split()) == len(last["payload"]["rivals"]) - 1


@pytest.mark.parametrize(("setting", "cores"), [("", 1), ("cores = 3\n", 3)])
def test_a_net_is_made_on_its_own_number_of_cores(farm, setting, cores):
    write(farm)
    farm.spool.plan.write_text(farm.spool.plan.read_text() + setting)
    farm.plan("fill", "--depth", "9")
    assert [(job.kind, job.cores) for job in farm.jobs()] == [("train", cores)]
    work(farm, 2)
    farm.plan("fill", "--depth", "9")
    assert {(job.kind, job.cores) for job in farm.jobs()} == {("judge", 1)}
