"""The next duel of each env, begun beforehand for many at once: numpy takes as long to begin one as to begin a hundred.

How a duel begins depends on its seed alone, and on the tick only through the date of its birth and where in a block its
chance begins to be used. Nothing here is state: it can be made again at any time from (seed, env, episode).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.arena.observe import OBS, Seen, observe
from planner.arena.rules import BLOCK
from planner.arena.senses import FEATURES, Senses, perceive
from planner.arena.state import STATE_ROWS, Ints, begin_state, state_over
from planner.arena.step import begin_within
from planner.train.pool import Opponent, draw_opponents, draw_seeds

Which = npt.NDArray[np.intp]
_ROWS = ("cell", "bearing", "distance", "coming", "aside")  # of Senses


class Starts:
    """Beginnings for the envs numbered `env`."""

    def __init__(self, pool: Sequence[Opponent], env: Ints) -> None:
        n = env.size
        self._pool, self._env, self._seed = pool, env, -1
        self._episode = np.full(n, -1, dtype=np.int64)
        self._block = np.empty((STATE_ROWS, n), dtype=np.int64)
        self.opponent = np.empty(n, dtype=np.int64)
        self.seen: Seen = np.empty((2, n, OBS), dtype=np.int32)
        two: dict[str, Any] = {name: np.empty((2, n), np.bool_ if name == "coming" else np.int64) for name in _ROWS}
        self.senses = Senses(features=np.empty((len(FEATURES), 2, n), dtype=np.int32), **two)

    def prepare(self, seed: int, episode: Ints, i: Which) -> None:
        """See to it that the next duels of envs `i` are begun, which have the numbers `episode` (N,) of every env."""
        if seed != self._seed:
            self._episode[:] = -1
            self._seed = seed
        stale = self._episode != episode
        if stale[i].any():
            self._make(np.flatnonzero(stale), episode)

    def _make(self, i: Which, episode: Ints) -> None:
        self._episode[i] = episode[i]
        env, drawn = self._env[i], (self._seed, self._env[i], episode[i])
        self.opponent[i] = draw_opponents(self._pool, *drawn)
        block = np.empty((STATE_ROWS, env.size), dtype=np.int64)
        s = begin_state(block, draw_seeds(*drawn))
        begin_within(s, np.arange(env.size), 0)
        self._block[:, i] = block
        senses = perceive(s)
        self.seen[:, i] = observe(s, senses, 0)
        self.senses.features[:, :, i] = senses.features
        for name in _ROWS:
            getattr(self.senses, name)[:, i] = getattr(senses, name)

    def block(self, i: Which, now: int) -> Ints:
        """(STATE_ROWS, K) the state of those envs, born at `now`."""
        block = self._block.take(i, axis=1)  # contiguous, as [:, i] is not
        s, at = state_over(block), now % BLOCK
        s.born[:] = now
        s.stray[at:] = s.stray[: BLOCK - at].copy()
        s.stray[:at] = 0
        return block

    def patch(self, senses: Senses, seen: Seen, i: Which) -> None:
        """Put what is seen at the beginning in place of what was seen at the end."""
        seen[:, i] = self.seen[:, i]
        senses.features[:, :, i] = self.senses.features[:, :, i]
        for name in _ROWS:
            getattr(senses, name)[:, i] = getattr(self.senses, name)[:, i]
