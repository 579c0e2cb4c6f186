"""What a trial's reads amount to, and the sentence for it."""

import pytest

from planner.seeds import Purpose, Span
from planner.standing import Course, Stage
from planner.stats import paired
from planner.trial import Change, Reads, Trial
from planner.verdict import Call, effect, judge, summary

CHANGE = Change(variable="flank", from_=0.25, to=0.35)
TRIAL = Trial(id="t1", changes=(CHANGE,), defaults="d", pass_=1, seconds=900)
HELDOUT_FROM = 500_000_000


def stage(differences, purpose=Purpose.SEARCH, build=None, **changes):
    low = 1 if purpose is Purpose.SEARCH else HELDOUT_FROM
    span = Span(low, low + len(differences))
    scores = {low + k: (None, 0.0) if d is None else (1.0 + d, 1.0) for k, d in enumerate(differences)}
    reads = {span: Reads(scores=scores, build=build, errors={"no luck": 1})}
    return Stage(**({"span": span, "looks": (len(span),), "reads": reads, "jobs": ("j1",)} | changes))


def spread_out(mean, se, n):
    """n differences with that mean and standard error."""
    sd = se * n**0.5
    ends = [mean + sd * ((n - 1) / n) ** 0.5 * (1 if k % 2 else -1) for k in range(n - n % 2)]
    return ends + [mean] * (n % 2)


def verdict(search=None, heldout=None, current=True):
    return judge(Course(trial=TRIAL, search=search, heldout=heldout), current=current)


def test_a_read_inside_two_errors_keeps_the_best_and_says_so():
    said = verdict(stage(spread_out(0.64, 0.40, 55)))
    assert (said.call, said.reason) == (Call.KEEP, "not past two standard errors")
    assert said.sentence.startswith("flank 0.25 → 0.35: +0.64 ± 0.40 over 55 seeds: t interval −0.1")
    assert said.sentence.endswith("the best stays")


def test_a_read_past_two_errors_gets_held_out_seeds():
    said = verdict(stage(spread_out(0.84, 0.40, 55)))
    assert (said.call, said.purpose) == (Call.MORE, Purpose.SEARCH)


def test_held_out_seeds_alone_decide():
    search = stage(spread_out(0.84, 0.40, 55))
    good = verdict(search, stage(spread_out(0.30, 0.10, 400), Purpose.HELDOUT))
    assert (good.call, good.read.n) == (Call.ADOPT, 400)
    assert "held-out +0.30 ± 0.10 over 400 seeds" in good.sentence
    assert "adopted (search +0.84 ± 0.40 over 55 seeds)" in good.sentence
    bad = verdict(search, stage(spread_out(0.10, 0.10, 400), Purpose.HELDOUT))
    assert (bad.call, bad.purpose) == (Call.KEEP, Purpose.HELDOUT)


def test_under_ten_seeds_the_best_stays_and_the_number_that_would_show_it_is_said():
    said = verdict(stage(spread_out(0.64, 0.40, 4)))
    assert (said.call, said.reason) == (Call.KEEP, "too few seeds")
    words = "+0.64 ± 0.40 over 4 seeds: t interval −0.63 to +1.91, the best stays; about 15 seeds would show it"
    assert said.sentence == f"flank 0.25 → 0.35: {words}"


def test_even_a_clear_gain_over_nine_seeds_waits():
    assert verdict(stage([0.5, 0.6] * 4 + [0.5])).reason == "too few seeds"


@pytest.mark.parametrize("n", [1, 4, 55])
def test_zero_differences_are_said_as_such(n):
    said = verdict(stage([0.0] * n))
    assert (said.call, said.reason) == (Call.KEEP, "no seed changed")
    assert "nan" not in said.sentence.lower()


def test_one_seed_is_no_division_by_zero():
    assert verdict(stage([0.5])).sentence == "flank 0.25 → 0.35: +0.50 ± 0.00 over 1 seed, the best stays"


def test_over_five_percent_of_pairs_missing_is_void():
    assert verdict(stage([None] * 2 + [0.5] * 53)).call is Call.MORE
    said = verdict(stage([None] * 3 + [0.5] * 52))
    assert (said.call, said.reason) == (Call.KEEP, "void")
    assert "void: 3 of 55 pairs failed (1 × no luck)" in said.sentence


def test_no_pair_at_all_is_void():
    assert verdict(stage([None] * 20)).reason == "void"


def test_a_trial_waits_while_any_of_its_jobs_is_out():
    assert verdict(stage([0.5] * 55, alive={"j2": Span(50, 56)})).call is Call.WAIT
    assert verdict(stage([0.5] * 55, span=Span(1, 101), looks=(100,))).call is Call.WAIT


def looked(differences, looks, purpose=Purpose.HELDOUT):
    return stage(differences, purpose, looks=(*looks, len(differences)))


@pytest.mark.parametrize(
    ("read", "looks", "call"),
    [
        ((0.31, 0.10, 100), (25, 50), Call.ADOPT),
        ((0.26, 0.10, 100), (25, 50), Call.ADOPT),
        ((0.22, 0.10, 100), (25, 50), Call.KEEP),
    ],
)
def test_held_out_seeds_are_looked_at_three_times_and_pass_at_their_own_bars(read, looks, call):
    assert verdict(stage([1.0, 1.2] * 20), looked(spread_out(*read), looks)).call is call


def test_a_read_that_is_kept_out_though_its_interval_is_above_zero_says_which_bar_it_missed():
    said = verdict(stage([1.0, 1.2] * 20), looked(spread_out(0.22, 0.10, 100), (25, 50)))
    assert said.sentence.endswith(" to +0.42, not past 2.4 standard errors, the best stays")


def test_a_leap_that_is_kept_out_says_what_it_was_and_why():
    leap = Trial(id="t2", changes=(CHANGE, CHANGE), defaults="d", pass_=1, seconds=900, pairs=1234)
    held = looked(spread_out(-0.12, 0.10, 100), (25, 50))
    said = judge(Course(trial=leap, heldout=held), current=True).sentence
    assert said.startswith("2 variables along their slopes after 1,234 pairs: held-out −")
    assert said.endswith(", more seeds are not worth their time, the best stays")


def test_the_first_look_that_decides_is_the_verdict_whatever_comes_after():
    good, bad = [1.0, 1.1] * 15, [-9.0, -9.1] * 30
    assert verdict(None, looked([*good, *bad], (30, 60))).call is Call.ADOPT
    said = verdict(None, looked([-x for x in (*good, *bad)], (30, 60)))
    assert (said.call, said.reason, said.read.n) == (Call.KEEP, "hopeless", 30)


def test_a_look_that_does_not_decide_asks_for_the_next_ones_seeds_alone():
    some = spread_out(0.15, 0.10, 30)
    low = HELDOUT_FROM
    part = stage(some, Purpose.HELDOUT, span=Span(low, low + 120), looks=(30, 60, 120))
    assert verdict(None, part).call is Call.WAIT
    assert part.gaps(100) == (Span(low + 30, low + 60),)


@pytest.mark.parametrize(("mean", "single", "leap"), [(0.02, Call.KEEP, Call.WAIT), (-0.06, Call.KEEP, Call.KEEP)])
def test_a_leap_goes_on_where_a_single_change_is_hopeless_but_not_where_it_reads_as_a_loss(mean, single, leap):
    low = HELDOUT_FROM
    held = stage(spread_out(mean, 0.10, 30), Purpose.HELDOUT, span=Span(low, low + 120), looks=(30, 60, 120))
    many = Trial(id="t2", changes=(CHANGE, CHANGE), defaults="d", pass_=1, seconds=900, pairs=1234)
    calls = [judge(Course(trial=trial, heldout=held), current=True).call for trial in (TRIAL, many)]
    assert calls == [single, leap]


def test_a_raced_trial_without_any_effect_ends_after_its_first_look():
    said = verdict(looked([0.0] * 14, (), Purpose.SEARCH))
    assert said.reason == "no seed changed"
    raced = stage([0.0] * 14, span=Span(1, 221), looks=(14, 28, 55, 110, 220))
    assert (verdict(raced).call, verdict(raced).reason) == (Call.KEEP, "no seed changed")


@pytest.mark.parametrize(
    ("mean", "call", "reason"),
    [
        (0.02, Call.KEEP, "hopeless"),
        (0.05, Call.WAIT, ""),
        (0.60, Call.MORE, "past the gate"),
    ],
)
def test_a_raced_trial_that_is_neither_hopeless_nor_clear_goes_on_to_more_seeds(mean, call, reason):
    raced = stage(spread_out(mean, 0.10, 14), span=Span(1, 221), looks=(14, 28, 55, 110, 220))
    assert (verdict(raced).call, verdict(raced).reason) == (call, reason)


def test_a_job_that_failed_for_good_ends_its_trial():
    said = verdict(stage([0.5] * 20, failures={"j9": "failed: exit 3"}))
    assert (said.call, said.reason) == (Call.KEEP, "not read")
    assert "j9 failed: exit 3" in said.sentence


def test_blocks_of_two_builds_are_not_pooled():
    one = stage(spread_out(0.9, 0.1, 20), build="a")
    two = Reads(scores=dict.fromkeys(range(21, 41), (2.0, 1.0)), build="b")
    both = Stage(span=Span(1, 41), looks=(40,), reads={**one.reads, Span(21, 41): two})
    assert verdict(both).reason == "builds differ"


def test_blocks_of_two_census_commands_are_not_pooled():
    one = stage(spread_out(0.9, 0.1, 20))
    two = Reads(scores=dict.fromkeys(range(21, 41), (2.0, 1.0)), census=("another", "census"))
    both = Stage(span=Span(1, 41), looks=(40,), reads={**one.reads, Span(21, 41): two})
    assert verdict(both).reason == "census differs"


def test_blocks_under_two_sets_of_rules_are_not_pooled():
    one = stage(spread_out(0.9, 0.1, 20))
    two = Reads(scores=dict.fromkeys(range(21, 41), (2.0, 1.0)), rules=2)
    both = Stage(span=Span(1, 41), looks=(40,), reads={**one.reads, Span(21, 41): two})
    assert verdict(both).reason == "rules differ"


def test_a_trial_against_a_replaced_best_is_never_pooled():
    said = verdict(stage(spread_out(0.84, 0.1, 55)), current=False)
    assert (said.call, said.reason) == (Call.KEEP, "replaced")
    assert verdict(stage([], span=Span(1, 56), reads={}, alive={"j": Span(1, 56)}), current=False).call is Call.WAIT


@pytest.mark.parametrize(
    ("mean", "se", "words"),
    [
        (0.64, 0.40, "+0.64 ± 0.40 over 20 seeds"),
        (-0.0123, 0.0045, "−0.0123 ± 0.0045 over 20 seeds"),
        (123.0, 40.0, "+123 ± 40 over 20 seeds"),
        (-0.001, 0.4, "+0.00 ± 0.40 over 20 seeds"),
    ],
)
def test_numbers_have_the_digits_that_their_error_leaves(mean, se, words):
    assert effect(paired(spread_out(mean, se, 20))) == words


def test_the_interval_is_student_s():
    assert summary(paired(spread_out(0.64, 0.40, 56))).endswith(": t interval −0.16 to +1.44")
