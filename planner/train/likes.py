"""What people said of rows → how much each behaviour is liked and disliked, as the reward terms feedback.… take it.

Words decide: a behaviour that is named is what the sign is for. Where none is named, a weight's change says it: the weight
`flank.threat` raised is more of flank, lowered it is less, and who likes less of it dislikes it. What names nothing, as a
net's row without a word, counts for nothing here: nobody can tell which of its behaviours was meant.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from fleetd import BadData
from planner.brain.weights import BEHAVIOURS

WORD: Final = re.compile(r"[a-z]+")


def likes_of(told: Any) -> tuple[dict[str, float], dict[str, float]]:
    """(liked, disliked): of n opinions on a behaviour each that likes it counts 1/(n+1), and so does each that does not.

    Raises BadData for what is no list of {"sign", "text", "variable", "from", "to"}.
    """
    if not isinstance(told, list) or not all(isinstance(opinion, dict) for opinion in told):
        raise BadData('no JSON list of {"sign", "text", "variable", "from", "to"}')
    signs = [found for opinion in told for found in meant(opinion)]
    count = Counter(name for name, _ in signs)
    likes, dislikes = (Counter(name for name, s in signs if s == sign) for sign in (1, -1))
    return _parts(likes, count), _parts(dislikes, count)


def _parts(of: Mapping[str, int], count: Mapping[str, int]) -> dict[str, float]:
    return {name: of[name] / (count[name] + 1) for name in BEHAVIOURS if of.get(name)}


def meant(opinion: Mapping[str, Any]) -> Iterable[tuple[str, int]]:
    """The behaviours that it is about, each with 1 for liked or -1."""
    if opinion.get("sign") not in ("+", "-"):
        raise BadData(f"a sign is + or -, not {str(opinion.get('sign'))[:20]!r}")
    sign = 1 if opinion["sign"] == "+" else -1
    words = WORD.findall(str(opinion.get("text") or "").lower())
    if named := [name for name in BEHAVIOURS if name in words]:
        return [(name, sign) for name in named]
    behaviour, change = str(opinion.get("variable")).partition(".")[0], _change(opinion)
    return [(behaviour, sign * change)] if behaviour in BEHAVIOURS and change else []


def _change(opinion: Mapping[str, Any]) -> int:
    """1 for a weight raised, -1 for one lowered, 0 for none."""
    from_, to = opinion.get("from"), opinion.get("to")
    if not isinstance(from_, int | float) or not isinstance(to, int | float):
        return 0
    return (to > from_) - (to < from_)
