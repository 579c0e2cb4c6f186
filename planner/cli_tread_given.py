"""What `treadcore train` is given as files: the net to begin with, rivals, reward terms' weights, feedback."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fleetd import BadData, NotFound, decode_json

if TYPE_CHECKING:
    from planner.brain.net import Net
    from planner.train.pool import Opponent
    from planner.train.rewards import Rewards

SHARE_DIGITS: Final = 4


def read_net(named: str | None) -> "tuple[Path, str, Net] | None":
    """The net to begin with: where it lies, its hash, itself. Raises NotFound, BadData."""
    if named is None:
        return None
    path = Path(named)
    if not path.exists():
        raise NotFound(f"--from {path}: there is no such file; `treadcore clone` makes a first net")
    return (path, *_known(path))


def _known(path: Path) -> "tuple[str, Net]":
    """A net's hash, and itself. Raises BadData."""
    from hashlib import sha256

    from planner.train.recipe import load_duellist

    net = load_duellist(path)
    return sha256(path.read_bytes()).hexdigest(), net


def read_rivals(named: Sequence[str]) -> "list[Opponent]":
    """The nets to duel besides, each with its share: NET or NET=SHARE. Raises NotFound, BadData."""
    from planner.train.pool import Opponent

    rivals = []
    for word in named:
        name, _, share = word.rpartition("=")
        path, count = (Path(name), int(share)) if name and _is_share(share) else (Path(word), 1)
        if not path.exists():
            raise NotFound(f"--rivals {word}: there is no file {path}")
        rivals.append(Opponent(share=count, net=str(path), sha256=_known(path)[0]))
    return rivals


def _is_share(text: str) -> bool:
    return len(text) <= SHARE_DIGITS and text.isascii() and text.isdigit() and int(text) > 0


def read_rewards(named: str | None, feedback: str | None) -> "Rewards":
    """The weights of the reward terms in a JSON file, and what people like in another. Raises NotFound, BadData."""
    from planner.train.likes import likes_of
    from planner.train.rewards import Rewards, check_rewards

    value = {} if named is None else _decoded("--rewards", named)
    if not isinstance(value, dict):
        raise BadData(f'--rewards {named}: no JSON object of terms and weights, like {{"win": 1.0}}')
    rewards = Rewards(weights=value)
    try:
        check_rewards(rewards)
    except BadData as error:
        raise BadData(f"--rewards {named}: {error}") from error
    if feedback is None:
        return rewards
    told = _decoded("--feedback", feedback)
    try:
        liked, disliked = likes_of(told)
    except BadData as error:
        raise BadData(f"--feedback {feedback}: {error}") from error
    return replace(rewards, liked=liked, disliked=disliked)


def _decoded(option: str, named: str) -> Any:
    path = Path(named)
    try:
        return decode_json(path.read_bytes())
    except OSError as error:
        raise NotFound(f"{option} {path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BadData(f"{option} {path}: no JSON: {error}") from error
