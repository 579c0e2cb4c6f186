"""race: each variable in turn, by a step that adapts to what became of it."""

from planner.verdict import Call

from .hills import Fleet, Hill, plan, space

KEEP, ADOPT, REPLACED = (Call.KEEP, "not past"), (Call.ADOPT, "past the gate"), (Call.KEEP, "replaced")


def steps(*verdicts, at=0.0):
    """How far the one variable goes next, up and down, after these verdicts on its trials; in steps."""
    made = Fleet(plan(space("a", start=at, low=-5.0, high=20.0), policy="race"), Hill([0.0]))
    for call, reason in verdicts:
        made.fill(1)
        made.play(min(made.queue))
        made.decide(call, reason)
    return {round((ask.to - ask.from_) / 0.5, 9) for ask in made.asks(4)}


def test_a_variable_is_first_tried_two_steps_to_each_side():
    assert steps() == {2, -2}


def test_what_was_adopted_is_tried_twice_as_far_up_to_eight_steps():
    assert [max(steps(*[ADOPT] * n)) for n in (1, 2, 3)] == [4, 8, 8]


def test_what_failed_on_both_sides_is_tried_again_and_then_four_steps_far_and_one():
    assert [max(steps(*[KEEP] * n)) for n in range(0, 9, 2)] == [2, 2, 4, 1, 2]


def test_what_failed_after_an_adoption_begins_again_at_two_steps():
    assert [max(steps(*[KEEP] * 4, ADOPT, *[KEEP] * n)) for n in (0, 2, 4, 6)] == [8, 2, 2, 4]


def test_what_an_adoption_overtook_is_no_failure():
    assert max(steps(KEEP, REPLACED)) == 2


def test_a_step_is_cut_at_the_bound_and_none_is_made_at_it():
    assert steps(at=19.5) == {1, -2}
    assert steps(at=20.0) == {-2}


def test_a_raced_trial_is_looked_at_before_all_its_seeds_are_read():
    made = Fleet(plan(space("a", "b"), policy="race"), Hill([0.0, 0.0]))
    (task,) = made.fill(1)
    assert (task.looks, len(task.seeds), len(task.span)) == ((14, 28, 55, 110, 220), 14, 220)


def test_what_passes_a_race_goes_to_held_out_seeds_and_they_decide():
    made = Fleet(plan(space("a"), policy="race"), Hill([2.0], curvature=0.1))
    made.go(12, depth=1)
    spans = {body["purpose"]: body["span"] for body in (r.body["payload"] for r in made.rows if r.event == "result")}
    assert [high - low for low, high in spans.values()] == [220, 400]
    assert next(row.body["stage"] for row in made.rows if row.event == "adopt") == "heldout"


def test_a_variable_that_does_nothing_costs_a_quarter_of_the_seeds():
    made = Fleet(plan(space("a"), policy="race"), Hill([0.0], curvature=0.0, sd=0.0))
    made.go(2, depth=1)
    kept = [row.body for row in made.rows if row.event == "keep"]
    assert [(body["reason"], body["n"]) for body in kept] == [("no seed changed", 14)] * 2
