"""A judge refuses a net file that is not the row's or that no game can be played with: FAULTS 34. The real census plays."""

import hashlib
import sys
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from planner.arena.observe import OBS
from planner.brain.decide import HEADS
from planner.brain.net import Net, save_net
from planner.brain.shape import Shape, param_count
from planner.net_round import Judge, NetFile
from planner.plan import read_plan
from planner.round_jobs import round_job
from planner.seeds import Span

CENSUS = (sys.executable, "-m", "planner.treadcore", "census", "--kernel", "numpy")
SPAN = Span(1_000_000_000, 1_000_000_003)


def chance_net(path, obs=OBS, seed=1):
    shape = Shape(obs=obs, heads=HEADS, hidden=(8,))
    flat = np.random.default_rng(seed).normal(0, 1, param_count(shape)).astype(np.float32)
    return NetFile(net=str(path), sha256=save_net(path, Net(shape=shape, flat=flat)))


def hashed(path):
    return NetFile(net=str(path), sha256=hashlib.sha256(path.read_bytes()).hexdigest())


@pytest.fixture
def judged(farm, tmp_path):
    """Have a candidate judged beside a whole net: the row's outcome, its reason, the scores of its plays."""
    best = chance_net(tmp_path / "best.net")

    def judge(candidate, best=best):
        plan = read_plan(farm.spool.plan)
        task = Judge(
            round="r1", name=plan.name, census=CENSUS, seconds=2, seeds=SPAN, span=SPAN, candidate=candidate, best=best,
            play_timeout_s=60, deterministic=True,
        )  # fmt: skip
        farm.run_job(farm.spool.publish(round_job(task, plan, "me", datetime.now(UTC))))
        row = farm.rows("result")[-1].body
        reads = (row["result"] or {"reads": []})["reads"]
        return row["outcome"], row["reason"], [candidate for _, candidate, _ in reads if candidate is not None]

    return judge


def test_a_whole_net_is_judged(judged, tmp_path):
    outcome, _, scores = judged(chance_net(tmp_path / "a.net", seed=2))
    assert (outcome, len(scores)) == ("ok", 3)


def test_a_missing_net_is_refused(judged, tmp_path):
    net = chance_net(tmp_path / "a.net", seed=2)
    (tmp_path / "a.net").unlink()
    outcome, reason, scores = judged(net)
    assert (outcome, scores) == ("failed", [])
    assert f"{net.net}: the net {net.short} cannot be read: No such file" in reason


def test_a_net_cut_short_is_refused(judged, tmp_path):
    net, path = chance_net(tmp_path / "a.net", seed=2), tmp_path / "a.net"
    path.write_bytes(path.read_bytes()[:-9])
    outcome, reason, scores = judged(net)
    assert (outcome, scores) == ("failed", [])
    assert "another net: its SHA-256 is" in reason


def test_a_net_cut_short_is_refused_though_its_row_has_that_hash(judged, tmp_path):
    chance_net(path := tmp_path / "a.net", seed=2)
    path.write_bytes(path.read_bytes()[:-9])
    outcome, reason, scores = judged(hashed(path))
    assert (outcome, scores) == ("ok", []), "the best's plays are scored, the candidate's are not: the round is void"
    assert "void" in reason
    assert "not a whole net" in reason


def test_a_net_of_another_shape_is_refused(judged, tmp_path):
    _, reason, scores = judged(chance_net(tmp_path / "a.net", obs=7))
    assert scores == []
    assert "of another shape: it sees 7 numbers" in reason
    assert "void" in reason


@pytest.mark.parametrize("side", ["candidate", "best"])
def test_a_net_whose_hash_is_not_the_row_s_is_refused(judged, tmp_path, side):
    net = chance_net(tmp_path / "a.net", seed=2)
    other = replace(net, sha256=chance_net(tmp_path / "b.net", seed=3).sha256)
    outcome, reason, scores = judged(**({"candidate": net, "best": net} | {side: other}))
    assert (outcome, scores) == ("failed", [])
    assert f"another net: its SHA-256 is {net.sha256}" in reason
