"""A step of the duel world as machine code: what duel.py does to a part's envs at once, done to one after another."""

from typing import Final, NamedTuple

import numpy as np

from planner.arena import rules as r
from planner.arena.compiled import compiled, kernel
from planner.arena.kernel import (
    BORN,
    CARD,
    HEALTH,
    OVER,
    POWER,
    TICK,
    WON,
    Bytes,
    Row,
    begin_duel,
    begin_play,
    draw_block,
    key,
    mix,
    tick,
    whole,
)
from planner.arena.kernel_observe import Sight, observe
from planner.arena.kernel_senses import FELT, KINDS, SEEN, perceive
from planner.arena.senses import FEATURES, ONE
from planner.arena.state import STATE_ROWS, Ints
from planner.brain.kernel import choose, give_orders
from planner.brain.scripted import Whole
from planner.train.pool import OPPONENT_STREAM, SEED_STREAM, SEEDS
from planner.train.rewards import GRID
from planner.train.rewards import TERMS as NAMED
from planner.train.rng import _ENV
from planner.train.world import U8


class Arrays(NamedTuple):
    """The world's own, of all envs."""

    state: Ints
    episode: Ints
    opponent: Ints
    acted: Ints


class Given(NamedTuple):
    """What does not change from step to step: the tables, the pool's weights and shares, the rewards."""

    lookup: Bytes
    weights: Whole  # (pool, 11, 10)
    ends: Ints  # running sums of shares
    pay: Ints  # (terms,)
    liked: Ints  # (2, 11)


class Out(NamedTuple):
    """world.Step, as machine code takes it."""

    obs: Sight
    reward: Sight
    terminated: U8
    truncated: U8
    final_obs: Sight
    score: Sight


TERMS: Final = len(NAMED)
_FAR_FELT: Final = FELT + FEATURES.index("distance")
_THREAT_FELT: Final = FELT + FEATURES.index("threat")
_HEALTHY: Final = ONE // r.HEALTH
_PAID: Final = 1.0 / (GRID * ONE)
_FIRST_SEED, _SEEDS = SEEDS.start, np.uint64(len(SEEDS))
_8, _32 = np.uint64(8), np.uint64(32)
_MARKS: Final = 6  # what a reward compares: health of both, own power, nearness, threat to both


@compiled
def bits(seed: int, stream: int, env: int, episode: int) -> np.uint64:
    return mix(mix(key(seed, stream) + np.uint64(env) * _ENV) + np.uint64(episode) * TICK)


@compiled
def begin_env(c: Row, lookup: Bytes, seed: int, env: int, episode: int, now: int) -> None:
    begin_play(c, _FIRST_SEED + whole((bits(seed, SEED_STREAM, env, episode) >> _8) % _SEEDS))
    begin_duel(c, lookup, now)
    draw_block(c, now)


@compiled
def draw_opponent(ends: Ints, seed: int, env: int, episode: int) -> int:
    """`ends` are the running sums of the pool's shares."""
    drawn = whole((bits(seed, OPPONENT_STREAM, env, episode) >> _32) % np.uint64(ends[-1]))
    at = 0
    while ends[at] <= drawn:
        at += 1
    return at


@compiled
def mark(c: Row, w: Row, m: Row) -> None:
    for me in range(2):
        m[me] = max(c[HEALTH + me], 0)
        m[4 + me] = w[_THREAT_FELT + KINDS * me]
    m[2], m[3] = c[POWER], ONE - w[_FAR_FELT]


@compiled
def value(c: Row, old: Row, new: Row, ended: int, v: Row) -> None:
    """The terms but for feedback, in the order of rewards.TERMS."""
    on = 1 - ended
    v[0], v[1] = c[WON] * ONE, c[WON + 1] * ONE
    v[2] = ONE if ended and c[WON] == c[WON + 1] else 0
    lost_0, lost_1 = (old[0] - new[0]) * _HEALTHY, (old[1] - new[1]) * _HEALTHY
    v[3], v[4], v[5] = max(lost_1, 0), max(lost_0, 0), max(-lost_0, 0)
    v[6] = ONE if new[2] > old[2] else 0
    v[7] = new[3] * on - old[3]
    v[8], v[9] = new[5] * on - old[5], new[4] * on - old[4]


@compiled
def decide(c: Row, lookup: Bytes, w: Row, now: int, behaviours: tuple[int, int]) -> None:
    """THINK ticks from `now` on."""
    if now % r.BLOCK == 0:
        draw_block(c, now)
    for me in range(2):
        give_orders(c, lookup, w, me, behaviours[me])
    for after in range(r.THINK):
        tick(c, lookup, now + after)


@compiled
def show_first(a: Arrays, c: Row, w: Row, lookup: Bytes, e: int, now: int, obs: Sight) -> None:
    """What is seen first of a duel that has begun; the card goes back to its column."""
    perceive(c, lookup, w)
    observe(c, lookup, w, 0, now, obs)
    put(a.state, e, c)


@compiled
def take(state: Ints, e: int, c: Row) -> None:
    for k in range(STATE_ROWS):
        c[k] = state[k, e]


@compiled
def put(state: Ints, e: int, c: Row) -> None:
    for k in range(STATE_ROWS):
        state[k, e] = c[k]


@compiled
def begin_next(a: Arrays, c: Row, lookup: Bytes, ends: Ints, seed: int, e: int, now: int) -> None:
    """The next duel of env `e`."""
    a.episode[e] += 1
    a.acted[e] = -1
    a.opponent[e] = draw_opponent(ends, seed, e, a.episode[e])
    begin_env(c, lookup, seed, e, a.episode[e], now)


@kernel
def begin_envs(a: Arrays, lo: int, hi: int, lookup: Bytes, ends: Ints, seed: int, obs: Sight) -> None:
    """duel.Duel.reset."""
    c, w = np.zeros(CARD, np.int64), np.empty(SEEN, np.int64)
    for e in range(lo, hi):
        a.episode[e] = -1
        begin_next(a, c, lookup, ends, seed, e, 0)
        show_first(a, c, w, lookup, e, 0, obs[e - lo])


@kernel
def step_envs(a: Arrays, lo: int, hi: int, behaviours: Ints, g: Given, seed: int, now: int, out: Out) -> None:
    """duel.Duel.step; `behaviours` (2, hi-lo), in row 1 -1 where the opponent's weights decide."""
    c, w, v = np.zeros(CARD, np.int64), np.empty(SEEN, np.int64), np.empty(TERMS, np.int64)
    old, new = np.empty(_MARKS, np.int64), np.empty(_MARKS, np.int64)
    after = now + r.THINK
    for e in range(lo, hi):
        i = e - lo
        take(a.state, e, c)
        perceive(c, g.lookup, w)
        mark(c, w, old)
        mine, theirs = behaviours[0, i], behaviours[1, i]
        if theirs < 0:
            theirs = choose(g.weights, a.opponent[e], w, 1)
        decide(c, g.lookup, w, now, (mine, theirs))
        perceive(c, g.lookup, w)
        observe(c, g.lookup, w, 0, after, out.obs[i])
        mark(c, w, new)
        ended = 1 if c[OVER] != 0 or after - c[BORN] >= r.DUEL_LIMIT else 0
        value(c, old, new, ended, v)
        out.reward[i] = pay(g, v, ended, mine, a.acted[e])
        out.terminated[i], out.truncated[i] = ended, 0
        a.acted[e] = mine
        if ended:
            out.final_obs[i] = out.obs[i]
            out.score[i] = np.float32(1 + c[WON] - c[WON + 1]) * np.float32(0.5)
            begin_next(a, c, g.lookup, g.ends, seed, e, after)
            show_first(a, c, w, g.lookup, e, after, out.obs[i])
        put(a.state, e, c)


@compiled
def pay(g: Given, v: Row, ended: int, mine: int, acted: int) -> float:
    """The weighted sum of all terms, rounded once."""
    for k in range(2):
        v[TERMS - 2 + k] = g.liked[k, mine] * (1 - ended) - g.liked[k, acted]
    paid = 0
    for k in range(TERMS):
        paid += g.pay[k] * v[k]
    return paid * _PAID


@kernel
def show_rivals(state: Ints, envs: Ints, lookup: Bytes, now: int, obs: Sight) -> None:
    """What the opponents see in `envs`."""
    c, w = np.zeros(CARD, np.int64), np.empty(SEEN, np.int64)
    for i in range(envs.size):
        take(state, envs[i], c)
        perceive(c, lookup, w)
        observe(c, lookup, w, 1, now, obs[i])
