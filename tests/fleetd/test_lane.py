"""Which waiting jobs start now, and the one reason why each of the others doesn't."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetd.job import Job, utc
from fleetd.lane import Fate, Offer, blocked, choose, misfit, offer_of

HERE = Offer(host="calber", lanes=4, tags=frozenset({"gpu"}), gpus=1)


def job(name="a", **keys):
    return Job(id=name, argv=("true",), **keys)


def why(made, others=(), fates=None, now=0.0):
    return blocked(made, HERE, others, lambda id_: (fates or {}).get(id_, Fate.OPEN), now)


def chosen(jobs, free, blocked_ids=()):
    return [made.id for made in choose(jobs, free, lambda made: "no" if made.id in blocked_ids else None)]


def test_jobs_start_in_order_while_lanes_are_free():
    assert chosen([job("a"), job("b"), job("c")], 2) == ["a", "b"]


def test_no_lane_free_starts_nothing():
    assert chosen([job("a")], 0) == []


def test_a_wide_job_reserves_lanes_that_come_free():
    jobs = [job("wide", cores=3), job("narrow")]
    assert chosen(jobs, 2) == []
    assert chosen(jobs, 3) == ["wide"]
    assert chosen(jobs, 4) == ["wide", "narrow"]


def test_a_blocked_job_reserves_nothing():
    assert chosen([job("wide", cores=4), job("a"), job("b")], 2, {"wide"}) == ["a", "b"]


def test_ten_thousand_blocked_jobs_hold_up_nobody():
    jobs = [job(f"x{n}", cores=4) for n in range(10_000)]
    assert chosen([*jobs, job("last")], 1, {made.id for made in jobs}) == ["last"]


@given(st.lists(st.tuples(st.integers(1, 4), st.booleans()), max_size=12), st.integers(0, 6))
def test_never_more_lanes_are_given_than_are_free(shapes, free):
    jobs = [job(f"j{n:02d}", cores=cores) for n, (cores, _) in enumerate(shapes)]
    closed = {f"j{n:02d}" for n, (_, shut) in enumerate(shapes) if shut}
    started = chosen(jobs, free, closed)
    assert sum(made.cores for made in jobs if made.id in started) <= free
    assert not closed.intersection(started)
    assert started == sorted(started)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"needs": ("gpu", "avx")}, "avx"),
        ({"cores": 5}, "5 lanes"),
        ({"gpus": 2}, "2 GPUs"),
        ({"not_before": utc(10.0)}, "not before"),
        ({"after": ("first",)}, "waits for first"),
        ({"after": ("first", "second")}, "and 1 more"),
    ],
)
def test_what_is_missing_is_said(keys, said):
    assert said in why(job(**keys))


def test_nothing_missing_is_none():
    fates = {"first": Fate.OK}
    assert why(job(needs=("gpu",), cores=4, gpus=1, after=("first",), not_before=utc(0.0)), fates=fates) is None


def test_after_a_refusal_another_host_that_fits_goes_first():
    assert "waits for other" in why(job(away=("calber",)), [Offer(host="other", lanes=1)])


@pytest.mark.parametrize("other", [Offer(host="small", lanes=1), Offer(host="asked", lanes=8, tags=frozenset({"gpu"}))])
def test_with_no_other_host_that_fits_this_one_goes_again(other):
    assert why(job(cores=2, needs=("gpu",), away=("calber", "asked")), [other]) is None


def test_a_heartbeat_s_missing_keys_are_nothing_on_offer():
    assert offer_of("x", {}) == Offer(host="x", lanes=0)
    assert misfit(job(), offer_of("x", {})) is not None
