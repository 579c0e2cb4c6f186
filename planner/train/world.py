"""What a thing must be to be trained on: many envs at once, over a shared buffer, exact for any split of its envs.

A `Making` is what travels to a shard (it is pickled); each shard makes its own `World` over the same buffer and steps
its own envs, lo to hi-1. All of a world's state is in `arrays()`, views of that buffer: that is what a checkpoint holds.
Chance is a pure function of (seed, stream, env, tick, lane): what an env does depends on no other env and on no shard.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]
I32 = npt.NDArray[np.int32]
U8 = npt.NDArray[np.uint8]
Buffer = Any  # whatever np.frombuffer takes for writing: bytearray, mmap, RawArray


@dataclass(frozen=True, slots=True)
class Step:
    """Where `World.step` writes, one row per env lo..hi-1; all C-contiguous, all the caller's."""

    obs: F32  # (n, obs) what is seen next; of an env that ended, the first sight of its next play
    reward: F32  # (n,)
    terminated: U8  # (n,) 1: the play ended by its rules; nothing comes after
    truncated: U8  # (n,) 1: cut off by a time limit and not terminated: what would have come still counts
    final_obs: F32  # (n, obs) what was last seen of the play, in rows that ended; other rows may hold anything
    score: F32  # (n,) the play's score as people count it, in rows that ended; other rows may hold anything


class World(Protocol):
    """Environments side by side."""

    def reset(self, lo: int, hi: int, seed: int, obs: F32) -> None:
        """Begin the envs lo..hi-1 anew; `obs` (hi-lo, obs) gets their first sight."""

    def step(self, lo: int, hi: int, action: I32, seed: int, tick: int, out: Step) -> None:
        """One step of the envs lo..hi-1; `action` (hi-lo, heads), `tick` counts steps since the run's start.

        An env that ends begins again in the same step. Writes every row of obs, reward, terminated and truncated.
        """

    def arrays(self) -> Mapping[str, npt.NDArray[Any]]:
        """Its whole state by name, views of the buffer it was made over, the same in every shard."""


class Making(Protocol):
    """How to make a world of `envs` environments, each seen as `obs` float32 numbers and acted on by one choice per head.

    Picklable (a frozen dataclass will do); its fields are all that the world depends on, and its repr tells them: a
    checkpoint is refused for a making of another repr.
    """

    @property
    def obs(self) -> int: ...
    @property
    def heads(self) -> tuple[int, ...]: ...
    @property
    def envs(self) -> int: ...
    @property
    def kernel(self) -> str:
        """What computes the updates, and the world if it has both: numpy or numba, which give the same bits."""

    def size(self) -> int:
        """Bytes of buffer that the world needs."""

    def make(self, buffer: Buffer, offset: int) -> World:
        """A world over `buffer` from `offset` (a multiple of 64) on; writes nothing there."""
