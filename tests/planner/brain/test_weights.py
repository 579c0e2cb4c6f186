"""The table of 110 weights."""

from pathlib import Path

import numpy as np
import pytest

from planner.arena.senses import FEATURES, Senses
from planner.brain.scripted import choose
from planner.brain.weights import BEHAVIOURS, DEFAULT, GRID, NAMES, TABLE, whole_weights


def test_there_are_exactly_110_of_different_names():
    assert len(NAMES) == len(set(NAMES)) == len(TABLE) == len(BEHAVIOURS) * len(FEATURES) == 110
    assert len({w.meaning for w in TABLE}) == 110


@pytest.mark.parametrize("weight", TABLE, ids=lambda w: w.name)
def test_what_is_recorded_is_what_is_played(weight):
    for value in (weight.start, weight.low, weight.high, weight.step):
        assert value * GRID == int(value * GRID)
    assert weight.low <= weight.start - weight.step
    assert weight.start + weight.step <= weight.high


@pytest.mark.parametrize("weight", NAMES)
def test_each_weight_pulls_its_own_behaviour(weight):
    behaviour, feature = weight.split(".")
    features = np.zeros((11, 2, 1), dtype=np.int32)
    features[FEATURES.index(feature)] = 256
    nothing = np.zeros((2, 1), dtype=np.int64)
    senses = Senses(
        features=features, cell=nothing, bearing=nothing, distance=nothing, coming=nothing > 0, aside=nothing
    )
    weights = whole_weights({**dict.fromkeys(NAMES, 0.0), weight: 1 / GRID})
    both = np.stack([weights, weights], axis=2)[..., None]
    assert choose(both, senses)[:, 0].tolist() == [list(BEHAVIOURS).index(behaviour)] * 2


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"flank.enemy_helth": 1.0}, "no such weight: 'flank.enemy_helth'"),
        ({"flank.bias": float("nan")}, "'flank.bias' is not within"),
        ({"flank.bias": float("inf")}, "'flank.bias' is not within"),
        ({"flank.bias": -65}, "'flank.bias' is not within"),
        ({"flank.bias": 10**400}, "'flank.bias' is not within"),
        ({"flank.bias": "1"}, "'flank.bias' is not a number"),
        ({"flank.bias": True}, "'flank.bias' is not a number"),
        ({"flank.bias": None}, "'flank.bias' is not a number"),
    ],
)
def test_a_weight_that_is_none_is_named(change, reason):
    with pytest.raises(ValueError, match=reason):
        whole_weights({**DEFAULT, **change})


def test_a_missing_weight_is_named():
    with pytest.raises(ValueError, match=r"1 of 110 weights missing, the first: 'hunt\.sight'"):
        whole_weights({n: w for n, w in DEFAULT.items() if n != "hunt.sight"})


def test_every_weight_stands_on_its_page():
    page = (Path(__file__).parents[3] / "docs" / "reference" / "brain.md").read_text()
    rows = [f"| `{w.name}` | {w.meaning} | {w.low:g} | {w.high:g} | {w.step:g} | {w.start:g} |" for w in TABLE]
    assert [row for row in rows if row not in page] == []
