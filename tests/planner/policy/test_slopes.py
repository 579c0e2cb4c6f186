"""The filter of slopes: right within its own errors, wherever the centre has gone."""

from dataclasses import replace

import numpy as np

from planner.policy.slopes import begun, expected_gain, learned, moved, shrunken, way

D = 20


def pairs(rng, slope, n, noise=1.0, reach=1.5):
    """n mirrored pairs on a score that is linear: half of what sets them apart, and their differences."""
    half = reach * rng.choice([-1.0, 1.0], (n, len(slope)))
    return half, 2 * half @ slope + np.sqrt(noise) * rng.standard_normal(n)


def believed(seed, blocks=8, spread=0.09):
    """The slopes of a linear score, and what is believed of them after so many blocks of 55 pairs."""
    rng = np.random.default_rng(seed)
    slope = np.sqrt(spread) * rng.standard_normal(D)
    state = begun(np.zeros(D), spread, 0.1, 1.0)
    for _ in range(blocks):
        state = learned(state, *pairs(rng, slope, 55))
    return slope, state


def test_the_slopes_of_a_linear_score_are_recovered_within_their_errors():
    slope, state = believed(1)
    error = np.sqrt(state.variance)
    assert error.max() < 0.1 * np.abs(slope).max()
    assert (np.abs(state.slope - slope) < 4 * error).all()


def test_errors_are_as_large_as_they_are_said_to_be():
    z = np.concatenate([(state.slope - slope) / np.sqrt(state.variance) for slope, state in map(believed, range(40))])
    assert abs(z.std() - 1) < 0.08
    assert abs(z.mean()) < 4 / len(z) ** 0.5


def test_a_move_changes_each_slope_by_its_curvature():
    _, state = believed(2)
    to = np.linspace(-2.0, 2.0, D)
    gone = moved(state, to)
    assert np.allclose(gone.slope, state.slope - state.mean[D:] * to)
    assert (gone.variance >= state.variance - 1e-12).all()
    assert gone.centre is to


def test_curvature_is_learned_from_slopes_at_two_places():
    rng = np.random.default_rng(3)
    slope, curvature, to = rng.standard_normal(D), np.linspace(0.2, 2.0, D), np.full(D, 1.5)
    state = begun(np.zeros(D), 1.0, 1.0, 1.0)
    state = learned(state, *pairs(rng, slope, 1000))
    state = learned(moved(state, to), *pairs(rng, slope - curvature * to, 1000))
    assert np.corrcoef(state.curvature, curvature)[0, 1] > 0.98
    assert abs(state.curvature.mean() / curvature.mean() - 1) < 0.1


def test_the_order_of_screens_at_one_centre_does_not_matter():
    rng = np.random.default_rng(4)
    slope = rng.standard_normal(D)
    screens = [pairs(rng, slope, n) for n in (55, 1, 30)]
    ends = []
    for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0)):
        state = begun(np.zeros(D), 1.0, 0.1, 1.0)
        for at in order:
            state = replace(learned(state, *screens[at]), noise=1.0)
        ends.append(state)
    for other in ends[1:]:
        assert np.abs(other.mean - ends[0].mean).max() < 1e-9
        assert np.abs(other.covariance - ends[0].covariance).max() < 1e-9


def test_shrunken_slopes_are_never_larger_than_raw_ones():
    for seed in range(20):
        _, state = believed(seed, blocks=1, spread=10.0 ** (seed % 5 - 4))
        assert (np.abs(shrunken(state)) <= np.abs(state.slope)).all()
        assert (shrunken(state) * state.slope >= 0).all()
    assert shrunken(begun(np.zeros(D), 0.0, 0.0, 1.0)).tolist() == [0.0] * D


def test_no_variable_goes_farther_than_the_longest_move():
    _, state = believed(5)
    assert np.abs(way(state, 0.5, 0.2)).max() == 0.2
    near = way(state, 0.5, 1e9)
    assert np.allclose(near, 0.5 * shrunken(state) / state.curvature)


def test_the_expected_gain_is_that_of_the_slopes_and_curvatures():
    _, state = believed(6)
    state, a = moved(state, np.full(D, 0.3)), 0.3
    gain, sd = expected_gain(state, np.zeros(D))
    assert np.isclose(gain, (state.slope * a + state.curvature * a * a / 2).sum())
    assert sd > 0
    assert expected_gain(state, state.centre) == (0.0, 0.0)


def test_the_noise_is_learned_and_keeps_its_bounds():
    rng = np.random.default_rng(7)
    for noise, low, high in ((0.25, 0.2, 0.35), (0.0, 0.009, 0.1), (9.0, 1.8, 2.0)):
        state = begun(np.zeros(D), 1e-6, 0.1, 1.0)
        for _ in range(200):
            state = learned(state, *pairs(rng, np.zeros(D), 55, noise))
        assert low <= state.noise <= high
