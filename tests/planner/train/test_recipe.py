"""What a run is made with depends on the net that it begins with."""

import numpy as np
import pytest

from planner.arena.observe import OBS
from planner.brain.decide import HEADS
from planner.brain.net import Net
from planner.brain.shape import Shape, param_count
from planner.train.recipe import LR, LR_ON, settings_for

SHAPE = Shape(obs=OBS, heads=HEADS, hidden=(32, 16))


@pytest.mark.parametrize(("made_by", "lr"), [("clone", LR), ("train", LR_ON), (None, LR)])
def test_a_trained_net_is_trained_on_by_smaller_steps(made_by, lr):
    net = Net(shape=SHAPE, flat=np.zeros(param_count(SHAPE), np.float32), notes={"made_by": made_by})
    assert settings_for(1, net).lr == lr


def test_a_net_to_begin_with_says_how_large_the_net_is():
    net = Net(shape=SHAPE, flat=np.zeros(param_count(SHAPE), np.float32))
    assert settings_for(1, net).hidden == SHAPE.hidden


def test_from_nothing_steps_are_large():
    assert settings_for(1, None).lr == LR
