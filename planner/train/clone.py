"""A first net, by supervised learning: it chooses what the scripted brain chooses, in the states that this one visits.

Both tanks of many plays are watched. For a quarter of the time, in stretches of 4 s, a tank does something at random, so
that the net has also seen where a brain that errs ends up; what it learns is always what the scripted brain would do.
The loss is the cross-entropy of the choice; only the actor is taught, the critic keeps its first weights. Seed and
settings decide the net, to the bit on one machine.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from planner.arena.observe import OBS, observe
from planner.arena.rules import BLOCK, THINK, TICKS_PER_S
from planner.arena.senses import perceive
from planner.arena.state import new_state
from planner.arena.step import begin_block, hold_orders, tick
from planner.brain.decide import HEADS, SCALE
from planner.brain.net import Net, choose, player
from planner.brain.scripted import give_orders, strongest
from planner.brain.shape import Shape, views
from planner.brain.weights import BEHAVIOURS, DEFAULT, whole_weights
from planner.train.adam import adam, clip_norm
from planner.train.forward import forward
from planner.train.init import first_weights
from planner.train.pool import draw_seeds
from planner.train.rng import bits, shuffle
from planner.train.update import Work, backward

_STRETCH: Final = 4 * TICKS_PER_S  # ticks that a tank errs for
_ERRS: Final = 4  # one stretch in so many
_APART: Final = 4  # decisions from one that is learned from to the next: neighbours say the same
_STRAY, _PLAYS = 18, 1 << 40  # stream; episodes that no duel of a training comes to
_NORM: Final = 1.0  # limit on the gradient's norm

Sights = npt.NDArray[np.int16]  # (M, OBS) observations in 256ths
Labels = npt.NDArray[np.uint8]  # (M,) the scripted brain's choices


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloning:
    """How to make the net."""

    seed: int = 1
    plays: int = 768
    seconds: float = 300.0  # of each
    hidden: tuple[int, ...] = (64, 64)
    epochs: int = 30
    rows: int = 1024  # of a minibatch
    lr: float = 3e-3  # at the beginning; falls to 0
    soft: float = 0.3  # times every pull, at last: it chooses alike, but draws from it try more, which PPO learns by


def watch_scripted(seed: int, plays: int, seconds: float, *, errs: int = _ERRS) -> tuple[Sights, Labels]:
    """What both tanks saw in plays of the scripted brain, and what it chose; `errs` 0: it never does otherwise."""
    index = np.arange(plays)
    s, orders = new_state(draw_seeds(seed, index, np.full(plays, _PLAYS))), hold_orders(plays)
    weights = whole_weights(DEFAULT)[:, :, None, None]
    sights, labels = [], []
    for now in range(round(seconds * TICKS_PER_S)):
        if now % BLOCK == 0:
            begin_block(s, now)
        if now % THINK == 0:
            senses = perceive(s)
            behaviour = strongest(weights, senses.features)
            if now % (_APART * THINK) == 0:
                sights.append(observe(s, senses, now).reshape(-1, OBS).astype(np.int16))
                labels.append(behaviour.astype(np.uint8).ravel())
            give_orders(s, senses, _err(behaviour, seed, now, errs) if errs else behaviour, orders)
        tick(s, orders, now)
    return np.concatenate(sights), np.concatenate(labels)


def _err(behaviour: npt.NDArray[np.intp], seed: int, now: int, errs: int) -> npt.NDArray[np.intp]:
    """Some behaviour in the stretches in which a tank errs."""
    rows, plays = behaviour.shape
    drawn = bits(seed, _STRAY, np.arange(plays), now // _STRETCH, np.arange(rows)[:, None])
    other = (drawn >> np.uint64(32)) % np.uint64(len(BEHAVIOURS))
    return np.where(drawn % np.uint64(errs) == 0, other.astype(np.intp), behaviour)


def clone(how: Cloning) -> Net:
    """The net."""
    sights, labels = watch_scripted(how.seed, how.plays, how.seconds)
    shape = Shape(obs=OBS, heads=HEADS, hidden=how.hidden)
    flat = first_weights(shape, how.seed)
    grad, moments = np.zeros_like(flat), (np.zeros_like(flat), np.zeros_like(flat))
    lesson, policy, into = Work(shape), views(shape, flat), views(shape, grad[None])
    steps = how.epochs * (len(labels) // how.rows)
    for t, chosen in enumerate(_minibatches(how, len(labels)), 1):
        block = lesson.block(1, how.rows)
        np.multiply(sights[chosen], SCALE, out=block.x[0])
        forward(policy, block.x, block.trace)
        block.loss.d_logits[...] = _slope(block.trace.logits, labels[chosen])[0]
        block.loss.d_value[...] = 0
        backward(policy, block, into)
        clip_norm(grad, _NORM)
        adam(flat, moments, grad, t, how.lr * (1 - (t - 1) / steps))
    policy.policy.weight[...] *= how.soft
    policy.policy.bias[...] *= how.soft
    return Net(shape=shape, flat=flat, notes={"made_by": "clone", **asdict(how), "hidden": list(how.hidden)})


def _minibatches(how: Cloning, count: int) -> Iterator[npt.NDArray[np.int32]]:
    """Whole minibatches of every epoch; what is left of an epoch is left out."""
    for epoch in range(how.epochs):
        order = shuffle(how.seed, -1, epoch, count)
        for first in range(0, count - how.rows + 1, how.rows):
            yield order[first : first + how.rows]


def _slope(logits: npt.NDArray[np.float32], labels: Labels) -> npt.NDArray[np.float32]:
    """What the mean cross-entropy changes by with each logit (1, R, A)."""
    share: npt.NDArray[np.float32] = np.exp(logits - logits.max(axis=2, keepdims=True))
    share /= share.sum(axis=2, keepdims=True)
    share[0, np.arange(len(labels)), labels] -= 1
    share /= len(labels)
    return share


def agreement(net: Net, seed: int, plays: int = 64, seconds: float = 120.0) -> float:
    """In how many of the states that the scripted brain visits by itself the net chooses what it does."""
    sights, labels = watch_scripted(seed, plays, seconds, errs=0)
    return float((choose(player(net), sights * SCALE)[:, 0] == labels).mean())
