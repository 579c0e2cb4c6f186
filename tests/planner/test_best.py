"""The best outlives edits of the space: adoptions hold for each variable, and what no longer applies is said."""

import json

import pytest

from planner.best import best_of
from planner.rows import Ruling
from planner.space import Space, Variable
from planner.trial import player_hash


def space(**changes):
    """Variables by name: {"a": {"high": 2.0}}."""
    table = {"start": 0.0, "low": -1.0, "high": 1.0, "step": 0.1}
    return Space(tuple(Variable(**{**table, "name": name, **change}) for name, change in changes.items()))


def adoption(number, before, **candidate):
    return Ruling(
        event="adopt", at=f"2026-11-30T00:00:{number:02}Z", key=("h", number), trial=f"t{number}", reason="",
        sentence="", body={}, candidate=candidate, weights=before,
    )  # fmt: skip


CHAIN = (
    adoption(1, {"a": 0.0, "b": 0.0}, a=0.5),
    adoption(2, {"a": 0.5, "b": 0.0}, b=-0.5),
    adoption(3, {"a": 0.5, "b": -0.5}, a=0.8),
)


@pytest.mark.parametrize(
    ("edited", "weights", "held"),
    [
        ({"a": {}, "b": {}}, {"a": 0.8, "b": -0.5}, 3),
        ({"a": {}, "b": {}, "c": {"start": 0.3}}, {"a": 0.8, "b": -0.5, "c": 0.3}, 3),
        ({"b": {}, "a": {"step": 0.25}}, {"a": 0.8, "b": -0.5}, 3),
        ({"b": {}}, {"b": -0.5}, 1),
        ({"a": {}}, {"a": 0.8}, 2),
        ({"a": {"start": 0.5}, "b": {}}, {"a": 0.8, "b": -0.5}, 2),
        ({"a": {"start": 0.1}, "b": {}}, {"a": 0.1, "b": 0.0}, 0),
        ({"z": {}}, {"z": 0.0}, 0),
    ],
)
def test_adoptions_hold_for_each_variable_and_the_rest_is_said(edited, weights, held):
    best = best_of(space(**edited), CHAIN)
    assert (best.weights, best.defaults) == (weights, player_hash(weights))
    assert len(best.adoptions) == held
    assert len(best.notes) == len(best.lapsed) == 3 - held
    assert all(note.startswith("adoption t") and "no longer applies: " in note for note in best.notes)


def test_an_adoption_with_a_wrong_clock_still_finds_its_place():
    late = adoption(0, {"a": 0.8, "b": -0.5}, b=-0.6)
    assert best_of(space(a={}, b={}), (late, *CHAIN)).weights == {"a": 0.8, "b": -0.6}


def test_of_two_adoptions_that_lead_from_the_same_best_the_first_holds():
    best = best_of(space(a={}, b={}), (CHAIN[0], adoption(2, {"a": 0.0, "b": 0.0}, b=0.5)))
    assert best.weights == {"a": 0.5, "b": 0.0}
    assert best.notes == ("adoption t2 no longer applies: it was read with a at 0, and that is 0.5 now",)


def test_an_adoption_whose_row_has_no_weights_holds_by_its_hash():
    bare = Ruling(
        event="adopt", at="", key=("h", 1), trial="t1", reason="", sentence="", candidate={"a": 0.5},
        body={"defaults": player_hash({"a": 0.0})},
    )  # fmt: skip
    assert best_of(space(a={}), (bare,)).weights == {"a": 0.5}
    assert best_of(space(a={}, b={}), (bare,)).notes == ("adoption t1 no longer applies: it leads from other weights",)


def test_outside_a_narrowed_range_the_best_is_moved_and_what_is_adopted_there_holds():
    narrow = space(a={"high": 0.2}, b={})
    best = best_of(narrow, CHAIN)
    assert best.weights == {"a": 0.2, "b": -0.5}
    assert best.notes == ("a: the best is 0.8, outside its range (-1 to 0.2): 0.2 is played",)
    later = best_of(narrow, (*CHAIN, adoption(4, best.weights, b=-0.6)))
    assert (later.weights, later.notes) == ({"a": 0.2, "b": -0.6}, ())


def test_a_best_that_is_no_whole_number_is_rounded_for_an_int():
    whole = space(a={"type": "int", "step": 1.0, "start": 0}, b={})
    assert best_of(whole, CHAIN).weights["a"] == 1


def best(farm):
    done = farm.plan("best", "--json")
    return json.loads(done.stdout), done.stderr


def test_a_variable_more_leaves_every_adoption(worked):
    before, _ = best(worked)
    worked.write_space("good", "bad", "null", "odd")
    after, said = best(worked)
    assert before["adoptions"] >= 1
    assert after["weights"] == before["weights"] | {"odd": 0.0}
    assert (after["adoptions"], said) == (before["adoptions"], "")
    worked.plan("fill", "--depth", "1")
    assert worked.jobs()[-1].payload["best"]["weights"] == after["weights"]


def test_an_edited_start_is_said_by_best_fill_and_log(worked):
    space_file = worked.spool.root / "space.toml"
    space_file.write_text(space_file.read_text().replace("start = 0", "start = 0.25"))
    trial = worked.rows("adopt")[0].body["trial"]
    for words in (["best"], ["fill", "--count", "1"], ["log"]):
        assert f"adoption {trial} no longer applies: it was read with" in worked.plan(*words).stderr
    line = next(line for line in worked.plan("log").stdout.splitlines() if trial in line)
    assert "(no longer applies: " in line


def test_what_is_played_after_a_range_was_narrowed_is_inside_of_it(worked):
    (adopted,) = worked.rows("adopt")[0].body["candidate"]
    worked.write_space("good", "bad", "null", low=-0.2, high=0.2, step=0.1)
    value = best(worked)[0]["weights"][adopted]
    assert abs(value) == 0.2
    assert f"{adopted}: the best is" in worked.plan("fill", "--count", "6").stderr
    payloads = [job.payload for job in worked.jobs() if job.payload["best"]["weights"][adopted] == value]
    moved = {(p["from"], p["to"]) for p in payloads if p["variable"] == adopted}
    assert moved == {(value, value - 0.1 if value > 0 else value + 0.1)}


def test_a_range_that_moves_the_best_back_to_what_was_replaced_is_read_all_the_same(worked):
    replaced, text = worked.rows("adopt")[0].body["defaults"], []
    for name, value in best(worked)[0]["weights"].items():
        worked.write_space(name, **{"low" if value < 0 else "high": 0.0})
        text.append((worked.spool.root / "space.toml").read_text())
    (worked.spool.root / "space.toml").write_text("\n".join(text))
    for id_ in worked.spool.waiting():
        (worked.spool.queue / f"{id_}.json").unlink()
    worked.plan("fill", "--count", "1")
    assert best(worked)[0]["defaults"] == replaced
    assert worked.run_job(worked.spool.waiting()[0])["plays"] > 0
