"""The census contract against real processes: any order, any noise, and a reason for every play that fails."""

import json
import sys
import time
from pathlib import Path

import pytest

from fleetd import NotFound
from planner.census import Play, collect

HILL = Path(__file__).resolve().parent.parent / "rigs" / "hill.py"
SEEDS = range(1, 11)


def ask(*trouble, silence_s=5.0, enough=lambda: False, command=None):
    """(scores by seed, reasons by seed, what the collection counted) of ten plays."""
    plays = [Play(id=n, player={"weights": {"good": 0.5}}, seed=seed, seconds=1) for n, seed in enumerate(SEEDS)]
    answers = {}

    def hear(answer):
        assert answer.id not in answers
        answers[answer.id] = answer

    count = collect(command or [sys.executable, str(HILL), "census", *trouble], plays, silence_s, hear, enough)
    scores = {plays[a.id].seed: a.score for a in answers.values() if a.score is not None}
    return scores, {plays[a.id].seed: a.why for a in answers.values() if a.why}, count


def test_an_id_answered_twice_counts_once():
    scores, failed, count = ask("twice")
    assert (len(scores), failed, count.starts) == (10, {}, 1)
    assert count.noise >= 9


@pytest.mark.parametrize("way", ["", "batch", "backwards", "chatter"])
def test_every_order_gives_the_same_scores(way):
    scores, failed, count = ask(*([way] if way else []))
    assert (sorted(scores), failed) == (list(SEEDS), {})
    assert scores == ask()[0]
    assert count.starts == 1
    assert count.noise == (30 if way == "chatter" else 0)


@pytest.mark.parametrize(("trouble", "why"), [("nan:3", "not finite: nan"), ("error:3", "no luck")])
def test_a_play_without_a_score_fails_with_its_reason(trouble, why):
    scores, failed, count = ask(trouble)
    assert failed == {3: why}
    assert len(scores) == 9
    assert count.starts == 1


def test_a_play_never_answered_is_asked_again_once():
    scores, failed, count = ask("mute:3", "mute:7")
    assert failed == {3: "never answered", 7: "never answered"}
    assert (len(scores), count.starts) == (8, 2)


def test_a_crash_costs_only_the_play_that_crashes():
    scores, failed, count = ask("die:3")
    assert failed == {3: "the census ended with exit 3"}
    assert sorted(scores) == [s for s in SEEDS if s != 3]
    assert count.starts == 3


def test_a_play_that_hangs_is_given_up_after_its_time():
    began = time.monotonic()
    scores, failed, _ = ask("hang:9", silence_s=0.5)
    assert failed == {9: "no answer for 0.5 s"}
    assert len(scores) == 9
    assert time.monotonic() - began < 10


def test_enough_failures_end_the_asking():
    heard = []
    plays = [Play(id=n, player={"weights": {}}, seed=1, seconds=1) for n in range(50)]
    command = [sys.executable, str(HILL), "census", "die:1"]
    collect(command, plays, 5.0, heard.append, lambda: len(heard) >= 2)
    assert len(heard) == 2


def test_scores_of_other_kinds_are_no_scores():
    reply = 'import json,sys\nfor l in sys.stdin: print(json.dumps({"id": json.loads(l)["id"], "score": WHAT}))'
    for what, told in (
        ("True", "no number"),
        ("'1'", "no number"),
        ("10**400", "beyond ±1e+100"),
        ("1e200", "beyond ±1e+100"),
        ("None", "no number"),
        ("1e-200", "not 0 and within ±1e-100"),
    ):
        scores, failed, _ = ask(command=[sys.executable, "-c", reply.replace("WHAT", what)])
        assert (scores, len(failed)) == ({}, 10)
        assert told in failed[1]


def test_an_answer_that_is_nested_too_deep_is_told_from_one_that_is_not_finite():
    deep = "[" * 150 + "]" * 150
    reply = f'import json,sys\nfor l in sys.stdin: print(\'{{"score": 1, "more": {deep}, "id": %d}}\' % json.loads(l)["id"])'
    scores, failed, _ = ask(command=[sys.executable, "-c", reply])
    assert (scores, set(failed.values())) == ({}, {"NaN or Infinity beside the score, or nested too deep"})


def test_what_a_census_says_of_a_failure_is_one_line_that_no_terminal_obeys():
    error = r'"\x1b[31mred\n at  last"'
    reply = f'import json,sys\nfor l in sys.stdin: print(json.dumps({{"id": json.loads(l)["id"], "error": {error}}}))'
    _, failed, _ = ask(command=[sys.executable, "-c", reply])
    assert failed[1] == "\N{REPLACEMENT CHARACTER}[31mred at last"


def test_a_census_that_cannot_start_is_said():
    with pytest.raises(NotFound, match="no-such-game: No such file"):
        ask(command=["/no-such-game"])


def test_endless_noise_is_no_answer_and_fills_no_memory():
    began = time.monotonic()
    scores, failed, count = ask(command=["yes"], silence_s=0.3, enough=lambda: time.monotonic() - began > 0.5)
    assert scores == {}
    assert set(failed.values()) <= {"no answer for 0.3 s"}
    assert count.noise > 1000


def test_a_last_line_without_its_newline_counts():
    answers = "".join(json.dumps({"id": n, "score": n}) + "\n" for n in range(10)).rstrip()
    scores, failed, _ = ask(command=["printf", "%s", answers])
    assert (len(scores), failed) == (10, {})


def test_a_census_that_ends_without_reading_is_no_broken_pipe():
    scores, failed, _ = ask(command=["true"])
    assert (scores, set(failed.values())) == ({}, {"never answered"})
