"""rotate: each variable up and down in turn, complete pass after pass."""

from itertools import islice

from planner.best import Best
from planner.policy import Terms
from planner.policy import rotate as rotated
from planner.rows import Ruling
from planner.seeds import Purpose, Span
from planner.space import Space, Variable
from planner.standing import Course, Stage, Standing, line_of
from planner.tally import tally_of
from planner.trial import Change, Trial, player_hash


def space(*names, **changes):
    table = {"start": 0.0, "low": -1.0, "high": 1.0, "step": 0.5} | changes
    return Space(tuple(Variable(name=name, **table) for name in names))


def standing(space_, trials=(), reasons=(), pass_=1):
    weights = space_.starts()
    courses = {}
    for trial, reason in zip(trials, [*reasons, *[None] * len(trials)], strict=False):
        ruling = Ruling(event="keep", at="", key=("h", 1), trial=trial.id, reason=reason, sentence="", body={})
        courses[trial.id] = Course(
            trial=trial, search=Stage(span=Span(1, 21), looks=(20,)), ruling=ruling if reason else None
        )
    best = Best(weights=weights, defaults=player_hash(weights))
    tally = tally_of(sorted(map(line_of, courses.values())), best.defaults, pass_)
    plays = dict.fromkeys(Purpose, 0)
    return Standing(best=best, courses=courses, draws=(), overlap=None, plays=plays, pass_=pass_, tally=tally)


def trial(variable, to, space_, pass_=1, defaults=None):
    defaults = defaults or player_hash(space_.starts())
    change = Change(variable=variable, from_=0.0, to=to)
    return Trial(id=f"{variable}{to}{pass_}", changes=(change,), defaults=defaults, pass_=pass_, seconds=1)


def rotate(standing_, names, room):
    return rotated(standing_, Terms(space=names, seeds=20, seconds=1, heldout=40, floor=0.1, horizon=1000), room)


def changes(moves):
    return [(move.variable, move.to, move.pass_) for move in moves]


def test_each_variable_goes_up_and_down_in_turn():
    names = space("a", "b")
    assert changes(rotate(standing(names), names, 4)) == [("a", 0.5, 1), ("a", -0.5, 1), ("b", 0.5, 1), ("b", -0.5, 1)]


def test_what_was_tried_in_this_pass_is_not_tried_again():
    names = space("a", "b")
    tried = [trial("a", 0.5, names), trial("b", -0.5, names)]
    assert changes(rotate(standing(names, tried), names, 2)) == [("a", -0.5, 1), ("b", 0.5, 1)]


def test_a_complete_pass_is_followed_by_the_next():
    names = space("a")
    tried = [trial("a", 0.5, names), trial("a", -0.5, names)]
    assert changes(rotate(standing(names, tried), names, 3)) == [("a", 0.5, 2), ("a", -0.5, 2), ("a", 0.5, 3)]


def test_what_an_adoption_overtook_gets_its_turn_again():
    names = space("a", "b")
    overtaken = [trial("a", 0.5, names, defaults="older"), trial("a", -0.5, names)]
    assert changes(rotate(standing(names, overtaken, ["replaced"]), names, 1)) == [("a", 0.5, 1)]
    assert changes(rotate(standing(names, overtaken), names, 1)) == [("a", 0.5, 1)]


def test_a_trial_decided_against_an_older_best_was_its_turn():
    names = space("a", "b")
    decided = [trial("a", 0.5, names, defaults="older"), trial("a", -0.5, names)]
    assert changes(rotate(standing(names, decided, ["no seed changed"]), names, 1)) == [("b", 0.5, 1)]


def test_at_its_bound_a_variable_is_not_tried():
    names = space("a", start=1.0)
    assert changes(rotate(standing(names), names, 2)) == [("a", 0.5, 1), ("a", 0.5, 2)]


def test_with_nothing_left_to_move_there_is_no_trial():
    names = space("a", "b", low=0.0, high=0.0)
    assert rotate(standing(names), names, 40) == []


def test_rewards_are_not_varied_as_weights():
    names = Space((*space("a").variables, *space("r", group="reward").variables))
    assert {move.variable for move in islice(rotate(standing(names), names, 9), 9)} == {"a"}
