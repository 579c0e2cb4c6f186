"""What a run is made with depends on the net that it begins with."""

from pathlib import Path

import numpy as np
import pytest

from planner.arena.observe import OBS
from planner.brain.decide import HEADS
from planner.brain.net import Net
from planner.brain.shape import Shape, param_count
from planner.train.pool import SCRIPTED, Opponent
from planner.train.recipe import LR, LR_ON, duels_for, settings_for
from planner.train.rewards import Rewards

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


def shares(begin, *rivals):
    return [opponent.share for opponent in duels_for(8, begin, rivals, Rewards(), "numpy").pool]


def test_the_scripted_brain_sits_in_two_duels_of_three_whatever_nets_share_the_third():
    begin, rival = (Path("a"), "0" * 64), Opponent(net="b", sha256="1" * 64, share=3)
    assert duels_for(8, None, (), Rewards(), "numpy").pool == (SCRIPTED,)
    assert shares(begin) == [2, 1]
    assert shares(begin, rival) == [8, 1, 3]
    assert shares(None, rival) == [6, 3]
