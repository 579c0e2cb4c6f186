"""The tally: what policies and views ask of all trials together, in one pass over their lines. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from planner.seeds import Span
from planner.shelf import Line

Way = tuple[str, int]  # a variable, and up (1) or down (-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Trials of one variable, by what has become of them."""

    tried: frozenset[Way] = frozenset()  # in this pass, against the best that stands
    ended: Mapping[str, tuple[bool, ...]] = field(default_factory=dict)  # variable → adopted or not, in order
    last: Mapping[Way, str] = field(default_factory=dict)  # the trial whose search was read last
    spans: Mapping[tuple[int, float, int], Span] = field(default_factory=dict)  # pass, seconds, seeds → the last
    read: frozenset[Span] = frozenset()  # of searches
    searched: Mapping[Span, str] = field(default_factory=dict)  # seeds → the least id that drew them
    decided: Mapping[tuple[int, bool], int] = field(
        default_factory=dict
    )  # looks, whether a leap → held-outs that decided


def tally_of(lines: Iterable[Line], defaults: str, pass_: int) -> Tally:
    """`lines` in the order of the trials; `defaults` and `pass_` are those that stand."""
    tried: set[Way] = set()
    ended: dict[str, list[bool]] = {}
    last: dict[Way, tuple[str, str]] = {}
    spans: dict[tuple[int, float, int], tuple[int, int]] = {}
    searched: dict[tuple[int, int], tuple[str, bool]] = {}
    decided: dict[tuple[int, bool], int] = {}
    for _, id_, of_pass, against, seconds, of, variable, from_, to, event, low, high, read, read_at, looks, *_ in lines:
        current, way = against == defaults, (variable, 1 if to > from_ else -1)
        if variable and not (event == "replaced" or (not event and not current)):
            if of_pass == pass_ and of is None:
                tried.add(way)
            if event:
                ended.setdefault(variable, []).append(event == "adopt")
        if high:
            seeds = low, high
            least, was_read = searched.get(seeds, (id_, False))
            searched[seeds] = min(id_, least), was_read or read
            if current:
                kind = of_pass, seconds, high - low
                spans[kind] = max(seeds, spans.get(kind, seeds))
        if looks:
            kind_of = looks, not variable
            decided[kind_of] = decided.get(kind_of, 0) + 1
        if variable and read_at and read_at >= last.get(way, ("",))[0]:
            last[way] = read_at, id_
    return Tally(
        tried=frozenset(tried),
        ended={name: tuple(adopted) for name, adopted in ended.items()},
        last={way: id_ for way, (_, id_) in last.items()},
        spans={kind: Span(*seeds) for kind, seeds in spans.items()},
        read=frozenset(Span(*seeds) for seeds, (_, read) in searched.items() if read),
        searched={Span(*seeds): least for seeds, (least, _) in searched.items()},
        decided=decided,
    )
