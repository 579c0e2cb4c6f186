"""What people like and dislike about rows: rows of their own, shown beside, told to lessons."""

import json

import pytest

from .test_reward_rounds import moves, write
from .test_rounds import command, work


def first_row(farm, kind):
    return next(row for row in farm.rows("result") if row.body["kind"] == kind)


def lessons(farm):
    return [row.body["payload"] for row in farm.rows("result") if row.body["kind"] == "train"]


def test_feedback_is_a_row_and_the_log_shows_it_below_the_verdict(judged):
    row = first_row(judged, "trial")
    trial = row.body["payload"]["trial"]
    said = judged.plan("feedback", f"{row.host}:{row.seq}", "+", "it", "looks", "alive")
    assert f"{trial} liked: it looks alive" in said.stdout
    (written,) = judged.rows("feedback")
    assert written.body["row"] == {"host": row.host, "seq": row.seq}
    assert (written.body["sign"], written.body["text"], written.body["plan"]) == ("+", "it looks alive", "hill")
    lines = judged.plan("log").stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if trial in line)
    assert lines[at + 1].split()[0] == "+"
    assert lines[at + 1].endswith(": it looks alive")
    told = [json.loads(line) for line in judged.plan("log", "--json").stdout.splitlines()]
    assert [f["text"] for v in told if v["trial"] == trial for f in v["feedback"]] == ["it looks alive"]


def test_a_row_may_be_named_by_its_trial(judged):
    ruling = judged.rows("keep")[0]
    said = json.loads(judged.plan("feedback", ruling.body["trial"][:9], "-", "--json").stdout)
    assert said["row"] == {"host": ruling.host, "seq": ruling.seq}
    assert (said["sign"], said["about"]) == ("-", ruling.body["trial"])


@pytest.mark.parametrize(
    "row", ["calber:99999", "nowhere:1", "t0000000000", ":1", "", "calber:x", f"calber:{'9' * 5000}"]
)
def test_no_such_row_is_66_and_writes_nothing(judged, row):
    assert judged.plan("feedback", row, "+", ok=False).returncode == 66
    assert judged.rows("feedback") == []


@pytest.mark.parametrize(
    "words", [("calber:1",), ("calber:1", "!"), ("calber:1", "+", "x" * 201), ("calber:1", "+", "a\nb")]
)
def test_wrong_usage_is_2(judged, words):
    assert judged.plan("feedback", *words, ok=False).returncode == 2


def test_a_voided_row_takes_its_feedback_with_it(judged):
    row = first_row(judged, "trial")
    name = {"host": row.host, "seq": row.seq}
    judged.plan("feedback", f"{row.host}:{row.seq}", "+")
    judged.row({"event": "void", "by": "me", "reason": "bad memory", "rows": [name]})
    filler = judged.filler()
    filler.look()
    assert filler.feedback() == []
    assert judged.plan("feedback", f"{row.host}:{row.seq}", "+", ok=False).returncode == 66


def test_of_what_one_said_of_a_row_the_last_counts(judged):
    row = first_row(judged, "trial")
    for sign in "+-":
        judged.plan("feedback", f"{row.host}:{row.seq}", sign)
    filler = judged.filler()
    filler.look()
    assert [said.sign for said, _ in filler.feedback()] == ["-"]


def test_a_lesson_is_told_what_was_said_and_the_file_has_it(farm):
    write(farm)
    farm.spool.plan.write_text(farm.spool.plan.read_text().replace("{rewards}", "{feedback}"))
    work(farm, 2)
    row = first_row(farm, "train")
    farm.plan("feedback", f"{row.host}:{row.seq}", "+", "bold")
    work(farm, 2)
    told = [
        {"sign": "+", "text": "bold", "about": row.body["payload"]["round"], "variable": None, "from": None, "to": None}
    ]
    assert lessons(farm)[0]["feedback"] == []
    assert lessons(farm)[-1]["feedback"] == told
    log = [row.body["log"] for row in farm.rows("result") if row.body["kind"] == "train"][-1]
    assert json.loads((farm.spool.root / log).parent.joinpath("out", "feedback.json").read_text()) == told


def test_what_feedback_is_worth_is_varied_only_where_there_is_any(farm):
    write(farm, ("feedback.positive", 0, 0, 1))
    work(farm, 5)
    assert moves(farm) == [None, None]
    row = first_row(farm, "train")
    farm.plan("feedback", f"{row.host}:{row.seq}", "+", "bold")
    work(farm, 4)
    assert ("feedback.positive", 1) in moves(farm)


def test_odd_feedback_counts_for_nothing(judged):
    bodies = [{"row": 7}, {"row": {"host": "calber", "seq": 1}, "sign": "?"}, {"sign": "+"}]
    judged.row(*({"event": "feedback", "by": "me", "plan": "hill"} | body for body in bodies))
    filler = judged.filler()
    filler.look()
    assert filler.feedback() == []
    assert len(filler.odd) == 3


def test_a_command_of_before_feedback_still_runs(farm):
    write(farm)
    farm.spool.plan.write_text(
        farm.spool.plan.read_text().replace(command(0.0, "{best}", "{rewards}"), command(0, "{best}"))
    )
    work(farm, 3)
    assert {row.body["outcome"] for row in farm.rows("result")} == {"ok"}
