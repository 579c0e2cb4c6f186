"""A net's file, and that a net plays the same in any company."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from fleetd import BadData, IOFailed
from planner.brain.net import TANH, Net, choose, load_net, logits, net_bytes, player, read_net, save_net
from planner.brain.shape import Shape, named, param_count, policy_over, tensors, views

SHAPE = Shape(obs=40, heads=(10,))


def some_net(shape=SHAPE, seed=0):
    flat = np.random.default_rng(seed).normal(0, 0.3, param_count(shape)).astype(np.float32)
    return Net(shape=shape, flat=flat, notes={"seed": seed})


def seen(rows, seed=1):
    return np.random.default_rng(seed).integers(-256, 257, (rows, SHAPE.obs)) / np.float32(256)


def test_tensors_lie_in_the_order_of_the_walk_without_gaps():
    flat = np.arange(param_count(SHAPE), dtype=np.float32)
    assert np.array_equal(np.concatenate([view.ravel() for _, view in named(SHAPE, flat)]), flat)
    assert [(name, view.shape) for name, view in named(SHAPE, flat)] == list(tensors(SHAPE))


def test_a_policy_is_a_view_of_its_buffer():
    buffer = bytearray(param_count(SHAPE) * 4 + 64)
    policy = policy_over(SHAPE, buffer, 64)
    policy.hidden[1].weight[1, 2, 3] = 7
    assert policy.flat.sum() == 7 == np.frombuffer(buffer, np.float32).sum()


def test_many_vectors_are_viewed_at_once():
    assert views(SHAPE, np.zeros((3, param_count(SHAPE)))).hidden[0].weight.shape == (3, 2, 40, 64)


def test_a_net_comes_back_as_it_went(tmp_path):
    net = some_net()
    sha = save_net(tmp_path / "a.net", net)
    back = load_net(tmp_path / "a.net", sha, obs=40, heads=(10,))
    assert back.shape == net.shape
    assert back.notes == net.notes
    assert np.array_equal(back.flat, net.flat)
    assert sha == hashlib.sha256((tmp_path / "a.net").read_bytes()).hexdigest()
    assert [path.name for path in tmp_path.iterdir()] == ["a.net"]


def test_a_net_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(IOFailed, match=r"none/a\.net: the net cannot be written: No such file"):
        save_net(tmp_path / "none" / "a.net", some_net())


def test_the_same_net_makes_the_same_bytes():
    assert net_bytes(some_net()) == net_bytes(some_net())
    assert net_bytes(some_net()).index(b"\n") % 64 == 63


def test_a_missing_net_is_refused(tmp_path):
    with pytest.raises(BadData, match=r"none\.net: no net can be read there: No such file"):
        load_net(tmp_path / "none.net")


@pytest.mark.parametrize("keep", [0, 10, 300, 1000, -4, -1])
def test_a_net_cut_short_is_refused(tmp_path, keep):
    path = tmp_path / "short.net"
    path.write_bytes(net_bytes(some_net())[:keep])
    with pytest.raises(BadData, match=r"short\.net: not a whole net"):
        load_net(path)


def test_a_net_of_another_hash_is_refused(tmp_path):
    save_net(tmp_path / "a.net", some_net())
    with pytest.raises(BadData, match=r"a\.net: another net: its SHA-256 is .*, not 00"):
        load_net(tmp_path / "a.net", "00" * 32)


def test_a_flipped_bit_is_told():
    whole = bytearray(net_bytes(some_net()))
    whole[-9] ^= 1
    with pytest.raises(BadData, match="damaged"):
        read_net(bytes(whole))


@pytest.mark.parametrize(
    ("face", "said"), [({"obs": 41}, "sees 40 numbers, and 41"), ({"heads": (9,)}, r"\[10\], \[9\]")]
)
def test_a_net_of_another_shape_is_refused(tmp_path, face, said):
    save_net(tmp_path / "a.net", some_net())
    with pytest.raises(BadData, match=said):
        load_net(tmp_path / "a.net", **face)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": "treadcore.net/9"}, "no schema"),
        ({"obs": 0}, "no widths"),
        ({"heads": []}, "no widths"),
        ({"hidden": [1 << 40]}, "no widths"),
        ({"hidden": 64}, "no widths"),
        ({"obs": 41}, "takes"),
        ({"notes": 3}, "no notes"),
    ],
)
def test_a_header_that_lies_is_refused(change, said):
    line, _, body = net_bytes(some_net()).partition(b"\n")
    with pytest.raises(BadData, match=said):
        read_net(json.dumps(json.loads(line) | change).encode() + b"\n" + body)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1024])
def test_a_weight_out_of_bounds_is_refused(bad):
    net = some_net()
    net.flat[5] = bad
    with pytest.raises(BadData, match="a weight of it is not within ±1024"):
        read_net(net_bytes(net))


def test_a_choice_depends_on_nothing_else_in_the_batch():
    played, rows = player(some_net()), seen(97)
    u = np.random.default_rng(3).random((97, 1))
    whole = logits(played, rows)
    for start, stop in ((0, 1), (5, 12), (90, 97), (3, 96)):
        assert np.array_equal(logits(played, rows[start:stop]), whole[start:stop])
        assert np.array_equal(choose(played, rows[start:stop], u[start:stop]), choose(played, rows, u)[start:stop])


def test_the_played_net_is_exact_in_any_order_of_adding():
    played, rows = player(some_net()), seen(5)
    x = np.rint(rows.astype(float) * 4096) / 4096
    for weight, bias in zip(played.weights[:-1], played.biases[:-1], strict=True):
        z = bias + sum(x[:, k, None] * weight[k] for k in reversed(range(len(weight))))
        x = TANH[np.rint((np.clip(z, -5, 5) + 5) * 4096).astype(int)]
    last = played.biases[-1] + sum(x[:, k, None] * played.weights[-1][k] for k in reversed(range(64)))
    assert np.array_equal(last, logits(played, rows))


def test_the_tanh_table_is_the_same_with_any_tanh():
    raw = np.tanh(np.arange(-20480, 20481) / 4096) * 4096
    assert np.abs(np.abs(raw - np.floor(raw)) - 0.5).min() > 1e-9
    assert TANH[0] == -1
    assert TANH[-1] == 1


def test_the_played_net_is_close_to_the_trained_one():
    net, rows = some_net(), seen(50)
    policy = views(net.shape, net.flat.astype(float))
    h = np.tanh(rows @ policy.hidden[0].weight[0] + policy.hidden[0].bias[0])
    h = np.tanh(h @ policy.hidden[1].weight[0] + policy.hidden[1].bias[0])
    assert np.abs(h @ policy.policy.weight + policy.policy.bias - logits(player(net), rows)).max() < 0.01


def test_a_drawn_choice_follows_the_pulls():
    net = some_net(Shape(obs=3, heads=(2, 3), hidden=()))
    rows = np.ones((20000, 3))
    u = np.random.default_rng(0).random((20000, 2))
    drawn = choose(player(net), rows, u)
    pulls = np.exp(logits(player(net), rows[:1])[0])
    assert np.bincount(drawn[:, 0]) / 20000 == pytest.approx(pulls[:2] / pulls[:2].sum(), abs=0.02)
    assert np.bincount(drawn[:, 1]) / 20000 == pytest.approx(pulls[2:] / pulls[2:].sum(), abs=0.02)


def test_a_net_of_version_1_is_read_and_written_as_it_was():
    path = Path(__file__).resolve().parents[2] / "data" / "net-1.net"
    net = load_net(path, "53e4a7f8ba6cbcafb810a29b4a1b96a93223381c55ab46f1b53bde1763b7d7ec", obs=5, heads=(2, 3))
    assert net.shape == Shape(obs=5, heads=(2, 3), hidden=(4,))
    assert net.flat.tolist() == [(i % 17 - 8) / 8 for i in range(param_count(net.shape))]
    assert net_bytes(net) == path.read_bytes()
