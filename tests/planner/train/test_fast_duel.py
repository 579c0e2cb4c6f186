"""The duel world as machine code is the duel world, to the bit."""

import numpy as np
import pytest

from planner.arena.observe import OBS
from planner.brain.net import Net, save_net
from planner.brain.shape import Shape, param_count
from planner.brain.weights import BEHAVIOURS
from planner.train.duel import Duels
from planner.train.pool import SCRIPTED, Opponent
from planner.train.rewards import TERMS, Rewards
from planner.train.world import Step

pytest.importorskip("numba", reason="the extra `fast` is not installed")

ODD = Opponent(weights={"dodge.shell": -1.0, "hunt.bias": 3.0}, share=2)
PAID = Rewards(
    weights={term: (i - 4) * 0.37 for i, term in enumerate(TERMS)},
    liked={"charge": 0.5, "hunt": 1.0},
    disliked={"cover": 0.3},
)
ALWAYS, ENDED = ("obs", "reward", "terminated", "truncated"), ("final_obs", "score")


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    """The scripted brain, another, and a net of chance."""
    shape = Shape(obs=OBS, heads=(len(BEHAVIOURS),), hidden=(16,))
    flat = np.random.default_rng(4).normal(0, 1, param_count(shape)).astype(np.float32)
    path = tmp_path_factory.mktemp("nets") / "net"
    return SCRIPTED, ODD, Opponent(net=str(path), sha256=save_net(path, Net(shape=shape, flat=flat)))


def steps(making, parts, count, seed=3):
    """(outputs, whole state) of each step, the envs stepped in `parts`; the buffer begins absurd."""
    buffer = bytearray(b"\xa5" * making.size())
    world = making.make(buffer, 0)
    obs = np.empty((making.envs, OBS), np.float32)
    for lo, hi in parts:
        world.reset(lo, hi, seed, obs[lo:hi])
    yield [obs.tobytes()], bytes(buffer)
    for t in range(count):
        actions = np.random.default_rng(t).integers(0, len(BEHAVIOURS), (making.envs, 1)).astype(np.int32)
        told = []
        for lo, hi in parts:
            out = empty(hi - lo)
            world.step(lo, hi, actions[lo:hi], seed, t, out)
            told += [getattr(out, name) for name in ALWAYS]
            told += [getattr(out, name)[out.terminated > 0] for name in ENDED]
        yield [a.tobytes() for a in told], bytes(buffer)


def empty(n):
    flags = [np.full(n, 7, np.uint8) for _ in range(2)]
    return Step(np.empty((n, OBS), np.float32), np.empty(n, np.float32), *flags,
                np.empty((n, OBS), np.float32), np.empty(n, np.float32))  # fmt: skip


@pytest.mark.parametrize("parts", [[(0, 24)], [(0, 5), (5, 6), (6, 24)]])
def test_every_step_and_the_whole_state_are_numpy_s(pool, parts):
    ways = [steps(Duels(envs=24, pool=pool, rewards=PAID, kernel=k), parts, 300) for k in ("numpy", "numba")]
    assert all(numpy == numba for numpy, numba in zip(*ways, strict=True))


@pytest.mark.slow
def test_every_step_is_numpy_s_for_64_envs_and_2000_ticks(pool):
    ways = [steps(Duels(envs=64, pool=pool, rewards=PAID, kernel=k), [(0, 64)], 1000) for k in ("numpy", "numba")]
    assert all(numpy == numba for numpy, numba in zip(*ways, strict=True))


def test_a_run_may_go_on_with_the_other_kernel():
    assert repr(Duels(envs=8, kernel="numba")) == repr(Duels(envs=8))
