"""next, suggest, log and best tell the rounds: what is under way, what comes next, what was read."""

import json

from planner.cli_rounds import reward_table

from .test_reward_rounds import write
from .test_rounds import work


def told(farm):
    return json.loads(farm.plan("next", "--json").stdout)


def first_line(farm):
    return farm.plan("next").stdout.splitlines()[0]


def test_next_follows_a_round_from_its_beginning_to_its_end(farm):
    write(farm, ("help", 0, -1, 1))
    assert first_line(farm) == "round next: the first net, rewards as they stand"
    work(farm)
    assert "is made; not judged yet" in first_line(farm)
    farm.plan("fill", "--depth", "3")
    (job,) = farm.jobs()
    assert first_line(farm).endswith(f": being made by {job.id}")
    assert (told(farm)["round"]["state"], told(farm)["round"]["seeds"]) == ("train", None)
    farm.run()
    assert first_line(farm).endswith("is made; its judge seeds come next")
    farm.plan("fill", "--depth", "3")
    farm.run(1)
    assert "30 of 60 judge seeds read, so far " in first_line(farm)
    round_ = told(farm)["round"]
    assert (round_["state"], round_["seeds_read"], round_["read"]["n"]) == ("judge", 30, 30)
    farm.run()
    farm.plan("fill", "--count", "0")
    assert first_line(farm).endswith(", help 0 → 1")
    assert told(farm)["round"]["reward"] == {"variable": "help", "from": 0.0, "to": 1.0}


def test_next_has_each_reward_with_when_it_was_last_tried(farm):
    write(farm, ("help", 0, -1, 1), ("feedback.positive", 0, 0, 1))
    work(farm, 5)
    farm.plan("fill", "--count", "0")
    table = farm.plan("next").stdout.split("\n\n")[-1].splitlines()
    assert table[0].split() == ["REWARD", "NOW", "TO", "LAST", "TRIED"]
    up, down, feedback = (line.split() for line in table[1:4])
    assert up[:3] == ["help", "1", "–"]
    assert (up[-1], down[1:]) == ("adopted", ["1", "0", "never"])
    assert feedback[1:] == ["0", "–", "never"], "there is no feedback"
    rewards = told(farm)["rewards"]
    assert [(r["name"], r["to"]) for r in rewards[:2]] == [("help", None), ("help", 0.0)]
    assert rewards[0]["read"]["effect"] > 0
    assert rewards[1]["round"] is None


def test_best_suggest_and_log_tell_the_rounds(farm):
    write(farm, ("help", 0, -1, 1))
    work(farm, 5)
    farm.plan("fill", "--count", "0")
    best = farm.plan("best").stderr
    assert "reward help 0 → 1" in best
    assert "round next: a net from " in best
    suggest = farm.plan("suggest").stderr
    assert "past two standard errors, adopted" in suggest
    assert "2 nets adopted so far" in suggest
    assert "round next: " in farm.plan("log").stderr


def test_without_rounds_nothing_is_said_of_them(farm):
    for command in ("next", "best", "suggest", "log"):
        done = farm.plan(command)
        assert "round" not in done.stdout + done.stderr
    assert (told(farm)["round"], told(farm)["rewards"]) == (None, [])


def test_rounds_that_were_given_up_are_said(farm):
    write(farm)
    farm.spool.plan.write_text(farm.spool.plan.read_text().replace('"learn", "0", ', '"learn", "fail", '))
    work(farm, 4)
    assert "the last 3 nets could not be made" in first_line(farm)
    assert told(farm)["round"]["state"] == "given up"


def test_the_rewards_fit_a_narrow_terminal(farm):
    write(farm, ("a_reward_with_a_very_long_name_that_has_to_be_cut", 0, -1, 1))
    filler = farm.filler()
    filler.look()
    lines = reward_table(filler, 0.0, 40)
    assert max(map(len, lines)) <= 40
    assert "…" in lines[1]
