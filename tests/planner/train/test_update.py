"""The gradient against finite differences, the fixed sum, and minibatches that have nothing to scale by."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from planner.brain.shape import Shape, param_count, views
from planner.train.adam import adam, clip_norm
from planner.train.passes import Then
from planner.train.settings import Settings, chunk_height, minibatch_bounds
from planner.train.update import Minibatch, Rows, Stat, Work, accumulate, add_grads, add_within, norm_of

SHAPE = Shape(obs=5, heads=(2, 3), hidden=(7, 6))
PLAIN = Settings(entropy=0.03, value=0.7)
COUNT = 45
HEIGHT = 10  # the last chunk is half of one


def net(kind, seed=0):
    return np.random.default_rng(seed).normal(0, 0.5, param_count(SHAPE)).astype(kind)


def batch(seed=1, count=COUNT, strip=HEIGHT):
    """Ratios within the clip, beyond it on both sides, and never on its very edge."""
    draw = np.random.default_rng(seed)
    obs = draw.normal(0, 1, (60, 5)).astype(np.float32)
    then = Then(
        action=np.stack([draw.integers(0, 2, 60), draw.integers(0, 3, 60)], axis=1).astype(np.int32),
        logp=draw.normal(-1.8, 0.5, 60).astype(np.float32),
        value=draw.normal(0, 1, 60).astype(np.float32),
        advantage=draw.normal(0.3, 1, 60).astype(np.float32),
        ret=draw.normal(0, 1, 60).astype(np.float32),
    )
    order = draw.permutation(60)[:count].astype(np.int32)
    return Minibatch(Rows(obs, then), order, HEIGHT, strip, *norm_of(then.advantage[order]), SHAPE.heads)


def gradient(flat, found, settings):
    found = replace(found, rows=replace(found.rows, obs=found.rows.obs.astype(flat.dtype)))
    grads, stats = np.full((found.chunks, len(flat)), np.nan, flat.dtype), np.full((found.chunks, len(Stat)), np.nan)
    accumulate(views(SHAPE, flat), found, (0, found.chunks), settings, (grads, stats), Work(SHAPE, flat.dtype))
    return add_grads(grads), stats.sum(axis=0)


def loss(flat, found, settings):
    stats = gradient(flat, found, settings)[1]
    return stats[Stat.POLICY_LOSS] + settings.value * stats[Stat.VALUE_LOSS] - settings.entropy * stats[Stat.ENTROPY]


def differences(flat, found, settings, step=1e-5):
    steps = np.eye(len(flat)) * step
    return np.array([(loss(flat + s, found, settings) - loss(flat - s, found, settings)) / (2 * step) for s in steps])


def apart(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


@pytest.mark.parametrize("settings", [PLAIN, replace(PLAIN, value_clip=0.2), replace(PLAIN, clip=0.05)])
def test_the_gradient_is_that_of_finite_differences(settings):
    flat, found = net(np.float64), batch()
    exact, stats = gradient(flat, found, settings)
    assert 0.2 < stats[Stat.CLIPPED] < 0.98
    assert apart(exact, differences(flat, found, settings)) < 1e-7
    single, _ = gradient(flat.astype(np.float32), found, settings)
    assert apart(single, gradient(flat.astype(np.float32).astype(np.float64), found, settings)[0]) < 1e-5


def test_any_split_of_the_chunks_gives_the_same_bits():
    flat, found = net(np.float32), batch()
    whole = np.zeros((5, len(flat)), np.float32), np.zeros((5, len(Stat)))
    accumulate(views(SHAPE, flat), found, (0, 5), PLAIN, whole, Work(SHAPE))
    for cuts in ((0, 1, 5), (0, 2, 3, 5), (0, 1, 2, 3, 4, 5)):
        parts = np.zeros_like(whole[0]), np.zeros_like(whole[1])
        for span in pairwise(cuts):
            accumulate(views(SHAPE, flat), found, span, PLAIN, parts, Work(SHAPE))
        assert [a.tobytes() for a in parts] == [a.tobytes() for a in whole]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13, 16])
def test_gradients_are_added_in_one_fixed_tree(n):
    parts = np.random.default_rng(n).normal(0, 1, (n, 50)).astype(np.float32)

    def tree(lo, size):
        if size == 1:
            return parts[lo]
        left = tree(lo, size // 2)
        return left + tree(lo + size // 2, size // 2) if lo + size // 2 < n else left

    assert np.array_equal(tree(0, 16), add_grads(parts.copy()))
    for cuts in ((0, n), (0, n // 2, n), (0, n // 3, n - n // 3, n)):
        shared = parts.copy()
        for span in pairwise(cuts):
            add_within(shared, span)
        assert np.array_equal(tree(0, 16), add_grads(shared, list(pairwise(cuts))))


def test_one_sample_is_left_as_it_is_and_makes_no_nan():
    flat, found = net(np.float32), batch(count=1)
    grad, stats = gradient(flat, found, PLAIN)
    assert (found.mean, found.inverse) == (0.0, 1.0)
    assert np.isfinite(grad).all()
    assert np.isfinite(stats).all()


@pytest.mark.parametrize("value", [0.0, 0.1, -3e7])
def test_equal_advantages_pull_at_no_action(value):
    flat, found = net(np.float32), batch()
    found.rows.then.advantage.fill(value)
    mean, inverse = norm_of(found.rows.then.advantage[found.order])
    grad, stats = gradient(flat, replace(found, mean=mean, inverse=inverse), replace(PLAIN, entropy=0.0))
    assert stats[Stat.POLICY_LOSS] == 0
    assert not views(SHAPE, grad).policy.weight.any()
    assert np.isfinite(grad).all()


def test_a_gradient_is_cut_to_its_limit_and_not_stretched():
    grad = np.array([3.0, 4.0], np.float32)
    assert clip_norm(grad, 10.0) == 5.0
    assert grad.tolist() == [3, 4]
    assert clip_norm(grad, 1.0) == 5.0
    assert grad == pytest.approx([0.6, 0.8])


def test_adam_is_that_of_the_paper():
    flat, m, v = np.ones(3), np.zeros(3), np.zeros(3)
    expected, mean, square = np.ones(3), np.zeros(3), np.zeros(3)
    for t in range(1, 6):
        grad = np.array([0.1, -2.0, 0.0]) * t
        mean, square = 0.9 * mean + 0.1 * grad, 0.999 * square + 0.001 * grad**2
        expected = expected - 0.01 * (mean / (1 - 0.9**t)) / (np.sqrt(square / (1 - 0.999**t)) + 1e-5)
        adam(flat, (m, v), grad, t, 0.01)
    assert flat == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("rows", "minibatches"), [(2048, 4), (2013, 3), (5, 8), (1, 4)])
def test_minibatches_share_out_every_row_once(rows, minibatches):
    bounds = minibatch_bounds(rows, minibatches)
    assert [bounds[0][0], *(last for _, last in bounds)] == [*(first for first, _ in bounds), rows]
    assert all(first < last for first, last in bounds)
    largest = max(last - first for first, last in bounds)
    assert -(-largest // chunk_height(rows, Settings(minibatches=minibatches))) <= 16


@pytest.mark.parametrize("settings", [PLAIN, replace(PLAIN, value_clip=0.2), replace(PLAIN, clip=0.05)])
def test_numba_gives_the_bits_of_numpy(settings):
    pytest.importorskip("numba")
    flat, found = net(np.float32), batch()
    each = []
    for kernel in ("numpy", "numba"):
        out = np.full((5, len(flat)), np.nan, np.float32), np.full((5, len(Stat)), np.nan)
        accumulate(views(SHAPE, flat), found, (0, 5), settings, out, Work(SHAPE, kernel=kernel))
        each.append([a.tobytes() for a in out])
    assert each[0] == each[1]


def test_a_chunk_is_the_fixed_sum_of_its_strips():
    flat, fine, coarse = net(np.float32), batch(), replace(batch(), height=4 * HEIGHT)
    assert (fine.chunks, coarse.chunks) == (5, 2)
    found = [gradient(flat, some, PLAIN) for some in (fine, coarse)]
    assert found[0][0].tobytes() == found[1][0].tobytes()
    assert found[0][1] == pytest.approx(found[1][1], rel=1e-12)
