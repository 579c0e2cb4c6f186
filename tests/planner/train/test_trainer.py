"""The same weights to the bit on any number of shards, across a stop, and with other BLAS kernels; and a real PPO."""

import json
import os
import platform
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fleetd import BadData, IOFailed, Usage
from planner.brain.shape import Shape, param_count
from planner.train.settings import Settings
from planner.train.trainer import Keep, Talk, train

from .shas import ITERATION, ODD, SHORT, once
from .worlds import CartPole, Odd

COUNTS = (1, 2, 3, 4, 8)


def test_weights_and_optimiser_are_the_same_to_the_bit_on_any_number_of_shards():
    shas = {shards: once(shards).sha256 for shards in COUNTS}
    assert set(shas.values()) == {shas[1]}


def test_chunks_of_many_strips_are_the_same_too():
    settings = replace(SHORT, chunk_rows=8)  # 28 strips, the last one short, in 14 chunks
    assert once(1, settings=settings).sha256 == once(3, settings=settings).sha256


def test_numba_trains_to_the_bits_of_numpy():
    pytest.importorskip("numba")
    made = train(replace(ODD, kernel="numba"), SHORT, ITERATION * 3, shards=2)
    assert made.sha256 == once(1).sha256


def test_value_clip_and_kl_stop_are_the_same_too():
    settings = replace(SHORT, value_clip=0.1, kl_stop=1e-3, lr=0.02, anneal=False)
    assert once(1, settings=settings).sha256 == once(3, settings=settings).sha256


@pytest.mark.parametrize("core", ["Haswell", "Prescott"])
@pytest.mark.skipif(platform.machine() != "x86_64", reason="OpenBLAS's names of x86-64 cores")
def test_other_blas_kernels_agree_with_themselves(core):
    command = [sys.executable, "-m", "tests.planner.train.shas", "1", "3", "8"]
    root = Path(__file__).resolve().parents[3]
    environ = os.environ | {"OPENBLAS_CORETYPE": core}
    said = subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True, timeout=100, check=True)
    shas = said.stdout.split()
    assert len(shas) == 3
    assert len(set(shas)) == 1


@pytest.mark.parametrize(("before", "after"), [(3, 1), (1, 2)])
def test_a_run_resumed_on_other_shards_ends_as_if_unbroken(tmp_path, before, after):
    keep, count = Keep(path=tmp_path / "run.ckpt", every=2), iter(range(9))
    stopped = once(before, 5, keep=keep, talk=Talk(stop=lambda: next(count) == 3))
    assert stopped.iteration == 3
    ended = once(after, 5, keep=replace(keep, resume=True))
    assert (ended.sha256, ended.iteration) == (once(1, 5).sha256, 5)
    assert once(1, 5, keep=replace(keep, resume=True)).sha256 == ended.sha256
    assert [path.name for path in tmp_path.iterdir()] == ["run.ckpt"]


def test_an_iteration_is_reported_before_its_checkpoint_stands(tmp_path):
    keep = Keep(path=tmp_path / "run.ckpt", every=2)
    there = []
    once(1, 3, keep=keep, talk=Talk(report=lambda record: there.append((record.iteration, keep.path.exists()))))
    assert there == [(1, False), (2, False), (3, True)]


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    keep = Keep(path=tmp_path / "run.ckpt", resume=True)
    once(1, 1, keep=keep)
    with pytest.raises(BadData, match=r"run\.ckpt: the checkpoint of another run: iterations was 1 and is 2"):
        once(1, 2, keep=keep)
    with pytest.raises(BadData, match=r"making was 'Odd.*limit=7.*' and is 'Odd.*limit=8"):
        train(replace(ODD, limit=8), SHORT, ITERATION, keep=keep)


@pytest.mark.parametrize(
    ("kept", "said"), [(100, "cut short in its header"), (-1, "cut short: .* bytes"), (0, "cut short")]
)
def test_a_checkpoint_cut_short_is_told(tmp_path, kept, said):
    keep = Keep(path=tmp_path / "run.ckpt", resume=True)
    once(1, 1, keep=keep)
    keep.path.write_bytes(keep.path.read_bytes()[:kept])
    with pytest.raises(BadData, match=said):
        once(1, 1, keep=keep)


@pytest.mark.parametrize(("is_", "was"), [(b'n": 2,', b'n": 1,'), (b'"<f5"', b'"<f4"'), (b'ran": {', b'run": {')])
def test_a_checkpoint_whose_header_is_damaged_is_told(tmp_path, is_, was):
    keep = Keep(path=tmp_path / "run.ckpt", resume=True)
    once(1, 1, keep=keep)
    whole = keep.path.read_bytes()
    assert was in whole
    keep.path.write_bytes(whole.replace(was, is_, 1))
    with pytest.raises(BadData, match="a damaged checkpoint"):
        once(1, 1, keep=keep)


@pytest.mark.parametrize(
    ("reads", "said"), [({"schema": "treadcore.checkpoint/2"}, "no schema"), ({}, "no bytes in its")]
)
def test_a_checkpoint_of_another_version_is_told(tmp_path, reads, said):
    keep = Keep(path=tmp_path / "run.ckpt", resume=True)
    once(1, 1, keep=keep)
    line, _, body = keep.path.read_bytes().partition(b"\n")
    head = {key: value for key, value in json.loads(line).items() if key != "bytes"} | reads
    keep.path.write_bytes(json.dumps(head).encode() + b"\n" + body)
    with pytest.raises(BadData, match=said):
        once(1, 1, keep=keep)


def test_a_damaged_checkpoint_is_told(tmp_path):
    keep = Keep(path=tmp_path / "run.ckpt", resume=True)
    once(1, 1, keep=keep)
    whole = bytearray(keep.path.read_bytes())
    whole[-20] ^= 4
    keep.path.write_bytes(whole)
    with pytest.raises(BadData, match="a damaged checkpoint"):
        once(1, 1, keep=keep)


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_rewards_that_are_all_equal_make_no_nan(reward):
    records = []
    made = train(replace(ODD, reward=reward), SHORT, ITERATION * 2, talk=Talk(report=records.append))
    assert np.isfinite(made.flat).all()
    assert all(np.isfinite(value) for record in records for value in vars_of(record) if value is not None)


def vars_of(record):
    return [getattr(record, name) for name in record.__slots__]


def test_one_row_in_a_minibatch_makes_no_nan():
    made = train(Odd(envs=1), replace(SHORT, steps=1, minibatches=1), 5)
    assert made.iteration == 5
    assert np.isfinite(made.flat).all()


def test_a_reward_that_is_no_number_is_told():
    with pytest.raises(BadData, match="iteration 1: the gradient is not finite"):
        train(replace(ODD, reward=np.nan), SHORT, ITERATION)


@pytest.mark.parametrize("shards", [0, 9])
def test_more_shards_than_chunks_are_refused(shards):
    with pytest.raises(Usage, match=f"{shards} shards: 61 envs and a minibatch of 10 chunks are work for 1 to 8"):
        once(shards)


@pytest.mark.parametrize("change", [{"steps": 0}, {"minibatches": 0}, {"chunk_rows": 4}, {"hidden": ()}])
def test_settings_that_no_training_can_have_are_refused(change):
    with pytest.raises(Usage, match="must be at least"):
        once(1, settings=replace(SHORT, **change))


def test_the_kl_divergence_stops_an_iteration_before_the_step():
    settings, records = replace(SHORT, kl_stop=0.0), []
    start = np.full(param_count(Shape(obs=5, heads=(2, 3), hidden=(16, 12))), 0.01, np.float32)
    once(1, settings=replace(settings, kl_stop=-1.0), start=start, talk=Talk(report=records.append))
    assert [record.updates for record in records] == [0, 0, 0]
    assert once(1, settings=replace(settings, kl_stop=-1.0), start=start).flat.tobytes() == start.tobytes()
    records.clear()
    once(1, settings=replace(SHORT, kl_stop=1e-4, lr=0.05, anneal=False), talk=Talk(report=records.append))
    assert all(0 < record.updates < 6 for record in records)


def test_it_learns_to_balance_a_pole():
    records = []
    settings = Settings(lr=1e-3, anneal=False, steps=64)
    train(CartPole(envs=16), settings, 60_000, talk=Talk(report=records.append))
    assert records[0].score < 30
    assert np.mean([record.score for record in records[-8:] if record.score]) > 150


def test_a_checkpoint_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(IOFailed, match=r"none/run\.ckpt: the checkpoint cannot be written: No such file or directory"):
        once(1, 1, keep=Keep(path=tmp_path / "none" / "run.ckpt"))


def test_first_weights_of_another_shape_are_refused():
    with pytest.raises(Usage, match=r"the net to begin with has 7 weights, and Shape\(.*\) takes"):
        once(1, 1, start=np.zeros(7, np.float32))


def test_a_run_begun_with_other_weights_refuses_the_checkpoint(tmp_path):
    keep = Keep(path=tmp_path / "run.ckpt", resume=True)
    made = once(1, 1, keep=keep)
    with pytest.raises(BadData, match="the checkpoint of another run: start was None and is '"):
        once(1, 1, keep=keep, start=made.flat)
