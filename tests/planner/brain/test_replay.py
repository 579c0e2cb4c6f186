"""A recorded play as a picture."""

import math

from planner.brain.record import duels, record, shots
from planner.brain.replay import impact
from planner.brain.weights import DEFAULT, whole_weights


def test_a_drawn_shell_ends_at_the_wall_or_at_the_edge_of_the_tank_it_hits():
    brain = whole_weights(DEFAULT)
    seen = record(brain, brain, 11, 120)
    for shot in (shot for duel in duels(seen) for shot in shots(seen, duel)):
        (x, y), far = impact(seen, shot), math.dist(shot.start, shot.end)
        inward = [s + 0.97 * (e - s) for s, e in zip(shot.start, (x, y), strict=True)]
        assert seen.map.rows[int(inward[1])][int(inward[0])] != "#"
        assert not shot.hit or math.isclose(math.dist(shot.start, (x, y)), far - 0.375, abs_tol=1e-6)
