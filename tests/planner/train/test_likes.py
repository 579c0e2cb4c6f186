"""What people said becomes how much each behaviour is liked and disliked."""

import pytest

from fleetd import BadData
from planner.train.likes import likes_of


def said(sign, text="", variable=None, from_=None, to=None):
    return {"sign": sign, "text": text, "variable": variable, "from": from_, "to": to}


def test_words_name_behaviours():
    assert likes_of([said("+", "Dodge, and flank!")]) == ({"flank": 0.5, "dodge": 0.5}, {})
    assert likes_of([said("-", "all it does is HOLD")]) == ({}, {"hold": 0.5})
    assert likes_of([said("+", "household")]) == ({}, {}), "only whole words"


@pytest.mark.parametrize(
    ("sign", "to", "liked"), [("+", 1.0, True), ("-", 0.0, True), ("-", 1.0, False), ("+", 0.0, False)]
)
def test_a_weight_raised_is_more_of_its_behaviour_and_one_lowered_less(sign, to, liked):
    told = likes_of([said(sign, "nice to see", "flank.threat", 0.5, to)])
    assert told == (({"flank": 0.5}, {}) if liked else ({}, {"flank": 0.5}))


def test_words_go_before_the_change():
    assert likes_of([said("+", "look how it can dodge", "flank.threat", 0.5, 1)]) == ({"dodge": 0.5}, {})


def test_what_names_nothing_counts_for_nothing():
    assert likes_of([said("+", "lovely"), said("-"), said("+", "", "speed", 0, 1)]) == ({}, {})


def test_many_opinions_weigh_more_and_contrary_ones_share():
    liked, disliked = likes_of([said("+", "hunt")] * 3 + [said("-", "hunt")])
    assert (liked, disliked) == ({"hunt": 0.6}, {"hunt": 0.2})


@pytest.mark.parametrize("told", [{}, [1], [{"text": "x"}], [{"sign": "?"}]])
def test_what_is_no_feedback_is_refused(told):
    with pytest.raises(BadData):
        likes_of(told)
