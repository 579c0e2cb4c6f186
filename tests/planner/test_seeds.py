"""Seeds of different purposes cannot meet, and the account says who drew what."""

import itertools

import pytest

from fleetd import BadData
from planner.seeds import RANGES, Draw, Purpose, Span, astray, fresh


def test_the_ranges_of_the_purposes_are_disjoint():
    for one, two in itertools.combinations(RANGES.values(), 2):
        assert max(one.start, two.start) >= min(one.stop, two.stop)


def test_fresh_seeds_are_ones_that_nobody_drew():
    draws = [Draw(fresh(Purpose.HELDOUT, 400, []), Purpose.HELDOUT, "a")]
    span = fresh(Purpose.HELDOUT, 400, draws)
    assert len(span) == 400
    assert not span.meets(draws[0].span)


def test_seeds_at_the_end_of_the_range_leave_the_gaps_before_them():
    """As where a merged row has drawn the last ones."""
    allowed = RANGES[Purpose.SEARCH]
    drawn = [Span(allowed.stop - 5, allowed.stop), Span(allowed.start, 300), Span(305, 400), Span(350, 420)]
    draws = [Draw(span, Purpose.SEARCH, str(span)) for span in drawn]
    assert fresh(Purpose.SEARCH, 5, draws) == Span(300, 305)
    assert fresh(Purpose.SEARCH, 6, draws) == Span(420, 426)


def test_a_used_up_range_is_said_and_not_left():
    end = RANGES[Purpose.SEARCH].stop
    with pytest.raises(BadData, match="used up"):
        fresh(Purpose.SEARCH, 10, [Draw(Span(9, end - 5), Purpose.SEARCH, "a")])


@pytest.mark.parametrize("span", [Span(7, 62), Span(499_999_990, 500_000_010), Span(1_000_000_000, 1_000_000_055)])
def test_heldout_seeds_that_meet_search_or_judge_seeds_are_an_error(span):
    assert "not all in" in astray([Draw(span, Purpose.HELDOUT, "t1")])


@pytest.mark.parametrize(("count", "blocks"), [(400, 4), (55, 1), (100, 1), (101, 2), (1, 1)])
def test_blocks_cover_the_span_evenly(count, blocks):
    cut = Span(5, 5 + count).blocks(100)
    assert len(cut) == blocks
    assert [s for b in cut for s in range(b.low, b.high)] == list(range(5, 5 + count))
    assert max(map(len, cut)) - min(map(len, cut)) <= 1
