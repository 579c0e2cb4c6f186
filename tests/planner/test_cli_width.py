"""What fits a terminal: a change keeps its numbers, rounded where it must."""

import pytest

from planner.cli_width import short_change
from planner.trial import Change, Trial


@pytest.mark.parametrize(
    ("name", "from_", "to", "room", "shown"),
    [
        ("charge.sight", 0.0185948, -0.481405, 40, "charge.sight 0.0185948 → −0.481405"),
        ("charge.sight", 0.0185948, -0.481405, 28, "charge.sight 0.0186 → −0.481"),
        ("charge.enemy_loaded", -0.182049, 0.317951, 28, "charge.enemy… −0.182 → 0.318"),
        ("charge.sight", 1.0001, 1.0002, 24, "charge.… 1.0001 → 1.0002"),
    ],
)
def test_numbers_are_rounded_before_a_name_is_cut_and_never_into_one(name, from_, to, room, shown):
    change = Change(variable=name, from_=from_, to=to)
    trial = Trial(id="t0", changes=(change,), defaults="0", pass_=1, seconds=900)
    assert short_change(trial, room) == shown
