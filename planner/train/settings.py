"""The trainer's settings: with a making and a first net, all that its result depends on."""

from dataclasses import dataclass
from typing import Final

from fleetd import Usage

ENV_CHUNK: Final = 8  # envs that go forward together
CHUNKS: Final = 16  # chunks that a minibatch's gradient is summed of, at most

LEAST_ROWS: Final = 8  # numpy adds up a single column in another order than many side by side


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """PPO's settings, named as in the literature; the defaults are those that most of it uses."""

    seed: int = 1
    steps: int = 128  # of each env in an iteration
    epochs: int = 4
    minibatches: int = 4
    lr: float = 2.5e-4
    anneal: bool = True  # lr falls to 0 over the run
    gamma: float = 0.99
    lam: float = 0.95
    clip: float = 0.2  # of the ratio
    value_clip: float | None = None  # of the value's change, as the first PPO code did
    entropy: float = 0.01
    value: float = 0.5
    grad_limit: float = 0.5  # of the gradient's norm
    kl_stop: float | None = None  # no more steps in an iteration once the KL divergence is over this
    hidden: tuple[int, ...] = (64, 64)
    chunk_rows: int = 128  # rows that go through the net together in an update; least rows of a gradient's chunk


def check(settings: Settings) -> None:
    """Raise Usage for settings that no training can have."""
    least = {"steps": settings.steps, "epochs": settings.epochs, "minibatches": settings.minibatches}
    least |= {"hidden layers": len(settings.hidden)}
    for name, value in least.items():
        if value < 1:
            raise Usage(f"{name} must be at least 1, not {value}")
    if settings.chunk_rows < LEAST_ROWS:
        raise Usage(f"chunk_rows must be at least {LEAST_ROWS}, not {settings.chunk_rows}")


def minibatch_bounds(rows: int, minibatches: int) -> list[tuple[int, int]]:
    """First and last row of each minibatch; as many as asked, or one a row where rows are fewer."""
    count = min(minibatches, rows)
    return [(rows * i // count, rows * (i + 1) // count) for i in range(count)]


def chunk_height(rows: int, settings: Settings) -> int:
    """Rows of a gradient's chunk, of the `rows` in a rollout: the same for every minibatch of the run.

    chunk_rows, doubled until there are no more than CHUNKS chunks: strips of chunk_rows add up in the chunks' own tree.
    """
    largest = -(-rows // min(settings.minibatches, rows))
    height = settings.chunk_rows
    while largest > CHUNKS * height:
        height *= 2
    return height


def chunk_count(rows: int, settings: Settings) -> int:
    """Chunks in the largest minibatch."""
    largest = -(-rows // min(settings.minibatches, rows))
    return -(-largest // chunk_height(rows, settings))


def share(count: int, index: int, shards: int) -> tuple[int, int]:
    """First and last of `count` chunks that are the shard's."""
    return count * index // shards, count * (index + 1) // shards


def env_share(envs: int, index: int, shards: int) -> tuple[int, int]:
    """First and last env of the shard: whole chunks of them."""
    lo, hi = share(-(-envs // ENV_CHUNK), index, shards)
    return lo * ENV_CHUNK, min(hi * ENV_CHUNK, envs)
