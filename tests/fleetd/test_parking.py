"""What may not start is looked at again when that changes which kept it from starting, and not before."""

import os
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetd.job import Job, encode_job, utc
from fleetd.lane import Fate, Offer, Until, blocked, short_of_gpus, until
from fleetd.parking import AT_ONCE, Parking
from fleetd.queue import Queue
from fleetd.rings import rings_from
from fleetd.spool import init_spool

HERE = Offer(host="calber", lanes=2, tags=frozenset({"avx"}), gpus=2)
IDS, NAMES = st.sampled_from("abc"), st.sampled_from("abcdef")


class Passes:
    """A real queue/ and passes over it that start nothing: each gives the ids that could start, and parks the others."""

    def __init__(self, root):
        self.spool, self.fates, self.others, self.gpus, self.offer = init_spool(root, home=None), {}, [], 2, HERE
        self.queue = Queue(self.spool, os.getuid(), self.fate)
        self.looked_at: list[str] = []

    def fate(self, id_):
        return self.fates.get(id_, Fate.OPEN)

    def put(self, id_, **keys):
        (self.spool.queue / f"{id_}.json").write_bytes(encode_job(Job(id=id_, argv=("true",), **keys)))
        self.queue.tell(f"{id_}.json")

    def end(self, id_, fate=Fate.OK):
        self.fates[id_] = fate
        return id_

    def __call__(self, *ended, at=0.0, events=True):
        now, self.looked_at = time.monotonic(), []
        self.queue.refresh(now, events=events)
        self.queue.wake(now, at, ended, self.others)
        startable = []
        for job in self.queue.jobs(now, lambda: self.gpus):
            self.looked_at.append(job.id)
            why = until(job, self.offer, self.others, self.fate, at, self.gpus)
            if why:
                self.queue.park(job, why)
            else:
                startable.append(job.id)
        return startable


@pytest.fixture
def passes(tmp_path):
    return Passes(tmp_path / "spool")


def test_what_is_parked_is_not_looked_at_again(passes):
    passes.put("a", after=("x",))
    passes.put("b", not_before=utc(100.0))
    passes.put("c", needs=("gpu",))
    passes.put("d", gpus=3)
    passes.put("e", away=("calber",))
    passes.put("f")
    passes.others = [Offer(host="other", lanes=1)]
    assert passes() == ["f"]
    assert passes.looked_at == list("abcdef")
    assert (passes(), passes.looked_at) == (["f"], ["f"])


def test_the_last_end_of_those_it_comes_after_wakes_a_job(passes):
    passes.put("a", after=("x", "y", "z"))
    assert passes() == []
    assert (passes(passes.end("x")), passes(passes.end("y")), passes.looked_at) == ([], [], [])
    assert passes(passes.end("z")) == ["a"]


def test_whichever_ends_last_a_job_is_not_forgotten(passes):
    passes.put("a", after=("x", "y", "z"))
    assert passes() == []
    assert [passes(passes.end(id_)) for id_ in "zyx"] == [[], [], ["a"]]


@pytest.mark.parametrize("failed", "xyz")
def test_the_first_failure_refuses_what_comes_after_it(passes, failed):
    passes.put("a", after=("x", "y", "z"))
    passes()
    passes.queue.wake(0.0, 0.0, [passes.end(failed, Fate.FAILED)], [])
    assert [id_ for id_, _ in passes.queue.refused] == ["a"]
    assert failed in passes.queue.refused[0][1]


def test_an_end_that_is_not_final_wakes_nobody(passes):
    passes.put("a", after=("x",))
    passes()
    assert (passes("x"), passes.looked_at) == ([], [])
    assert passes(passes.end("x")) == ["a"]


def test_its_time_wakes_a_job(passes):
    passes.put("late", not_before=utc(200.0))
    passes.put("soon", not_before=utc(100.0))
    assert passes(at=50.0) == []
    assert passes.queue.parking.due_in(50.0) == 50.0
    assert (passes(at=100.0), passes.looked_at) == (["soon"], ["soon"])
    assert passes(at=200.0) == ["late", "soon"]


def test_of_those_that_want_gpus_only_the_first_is_looked_at(passes):
    passes.gpus = 0
    for n in range(9):
        passes.put(f"a{n}", gpus=1 + n % 2)
    assert passes() == []
    passes.gpus = 1
    job = next(passes.queue.jobs(0.0, lambda: passes.gpus))
    passes.queue.taken(job.id)
    passes.gpus = 0
    assert (job.id, passes(), passes.looked_at) == ("a0", [], [])
    passes.gpus = 2
    assert passes()[:3] == ["a1", "a2", "a3"]


def test_new_settings_wake_what_this_host_could_not_run(passes):
    passes.put("wide", cores=3)
    assert passes() == []
    passes.offer = Offer(host="calber", lanes=4)
    passes.queue.offer_changed()
    assert passes() == ["wide"]


def test_a_change_of_other_hosts_wakes_what_was_left_to_them(passes):
    passes.put("a", away=("calber",))
    passes.others = [Offer(host="other", lanes=1)]
    assert (passes(), passes(), passes.looked_at) == ([], [], [])
    passes.others = []
    assert passes() == ["a"]


def test_a_parked_file_that_is_changed_is_read_anew(passes):
    passes.put("a", needs=("gpu",))
    assert passes() == []
    passes.put("a")
    assert passes() == ["a"]


def test_a_change_of_which_no_event_tells_is_found_by_listing(passes, wait_for):
    passes.put("a", needs=("gpu",))
    passes.put("b", needs=("gpu",))
    assert passes(events=False) == []
    (passes.spool.tmp / "a").write_bytes(encode_job(Job(id="a", argv=("true",))))
    (passes.spool.tmp / "a").rename(passes.spool.queue / "a.json")
    (passes.spool.queue / "b.json").unlink()
    (passes.spool.queue / "c.json").write_bytes(encode_job(Job(id="c", argv=("true",))))
    assert wait_for(lambda: passes(events=False)) == ["a", "c"]
    passes.put("b")
    assert passes() == ["a", "b", "c"]


def test_a_ring_is_refused_by_whichever_of_it_comes_last(passes):
    for ids in ("abc", "bca", "cab", "cba"):
        for id_ in ids:
            passes.put(f"{ids}-{id_}", after=(f"{ids}-{dict(zip('abc', 'bca', strict=True))[id_]}", "x"))
            passes()
    assert [id_ for id_, _ in passes.queue.refused] == ["abc-a", "bca-a", "cab-a", "cba-a"]
    assert "abc-a → abc-b → abc-c → abc-a" in passes.queue.refused[0][1]


@pytest.mark.parametrize("ends", [False, True])
def test_a_chain_in_whatever_order_is_parked_in_no_time_and_a_ring_that_closes_it_is_found(passes, ends):
    """The odd ones first, then the even ones from one end."""
    names = [f"a{n:04d}" if n % 2 else f"b{n if ends else 2000 - n:04d}" for n in range(2001)]
    for id_, following in pairwise(names):
        passes.put(id_, after=(following,))
    longest = 0.0
    began = time.monotonic()
    while passes() or passes.queue.cut or passes.queue.refused:
        at = time.monotonic()
        longest, began = max(longest, at - began), at
        assert not passes.queue.refused
    assert longest < 0.5
    passes.put(names[-1], after=(names[0],))
    while passes() or passes.queue.cut:
        pass
    assert [id_ for id_, _ in passes.queue.refused] == [min(names)]


def test_a_ring_that_was_mended_is_none(passes):
    passes.put("a", after=("b",))
    assert passes() == []
    passes.put("a", after=("x",))
    passes.put("b", after=("a",))
    assert (passes(), passes.queue.refused) == ([], [])


def test_a_pass_ends_in_time_and_the_next_one_goes_on(passes):
    for n in range(4000):
        passes.put(f"a{n:04d}", needs=("gpu",))
    passes.put("b")
    began, rounds = time.monotonic(), 1
    while passes() != ["b"]:
        assert passes.queue.cut
        rounds += 1
    assert rounds > 1
    assert (time.monotonic() - began) / rounds < 0.2
    assert (passes(), passes.queue.cut) == (["b"], False)


def test_no_more_are_due_at_once_than_a_pass_can_take():
    parking = Parking()
    for n in range(AT_ONCE + 5):
        parking.at(f"a{n}", 10.0)
    assert len(parking.due(10.0)) == AT_ONCE
    assert (parking.due_in(10.0), len(parking.due(10.0)), parking.due_in(10.0)) == (0.0, 5, float("inf"))


def test_what_no_longer_waits_takes_no_room():
    parking = Parking()
    for id_ in ("a", "b"):
        parking.after(id_, ["x", "y"])
        parking.at(id_, 10.0)
        parking.gpus(id_, 1)
        parking.offer(id_)
        parking.others(id_)
    parking.after("b", ["z"])
    parking.keep_only({"a"})
    assert "z" not in parking
    assert (set(parking.ended("y", ok=True)), set(parking.ended("x", ok=False))) == ({"a"}, {"a"})
    assert (parking.due(10.0), parking.first_for(1), parking.offer_changed(), parking.others_changed()) == (
        ["a"],
        "a",
        ["a"],
        ["a"],
    )


@given(
    job=st.builds(
        Job,
        id=st.just("a"),
        argv=st.just(("true",)),
        needs=st.lists(st.sampled_from(["avx", "gpu"])).map(tuple),
        cores=st.integers(1, 3),
        gpus=st.integers(0, 3),
        after=st.lists(IDS).map(tuple),
        not_before=st.none() | st.sampled_from([utc(5.0), utc(15.0)]),
        away=st.lists(st.sampled_from(["calber", "other"])).map(tuple),
    ),
    fates=st.dictionaries(IDS, st.sampled_from(Fate)),
    free=st.integers(0, 2),
)
def test_what_is_parked_and_what_has_a_reason_are_the_same(job, fates, free):
    others, fate = [Offer(host="other", lanes=4, tags=frozenset({"avx", "gpu"}), gpus=4)], fates.get
    why = blocked(job, HERE, others, lambda id_: fate(id_, Fate.OPEN), 10.0) or short_of_gpus(job, range(free))
    parked = until(job, HERE, others, lambda id_: fate(id_, Fate.OPEN), 10.0, free)
    assert (why is None) == (parked is None)
    assert parked in (None, *Until)


@given(after=st.dictionaries(NAMES, st.lists(NAMES).map(tuple)), starts=st.lists(NAMES))
def test_a_ring_is_found_exactly_when_there_is_one_and_each_of_them_comes_after_one_that_is(after, starts):
    def reached(here):
        found, todo = set(), list(after.get(here, ()))
        while todo:
            if (following := todo.pop()) not in found:
                found.add(following)
                todo += after.get(following, ())
        return found

    rings = [ring for ring in rings_from(starts, lambda id_: after.get(id_, ())) if ring]
    for ring in rings:
        assert ring[0] == min(ring)
        assert all(following in after[id_] for id_, following in pairwise([*ring, ring[0]]))
    lowest = {ring[0] for ring in rings}
    for id_ in {*starts}.union(*map(reached, starts)):
        assert id_ not in reached(id_) or reached(id_) & lowest


def test_a_job_that_changes_no_stamp_of_the_queue_is_seen_all_the_same(passes, wait_for):
    """Where stamps are whole seconds, or two, what comes within one leaves queue/ as it was stamped."""
    whole_s = int(time.time())
    for id_ in "abc":
        (passes.spool.queue / f"{id_}.json").write_bytes(encode_job(Job(id=id_, argv=("true",))))
        os.utime(passes.spool.queue, (whole_s, whole_s))
        wait_for(lambda id_=id_: id_ in passes(events=False))


def test_many_job_files_of_what_has_ended_ok_cost_no_listing_of_ended(passes):
    days = [passes.spool.ended / f"2026-11-{day}" for day in (28, 29)]
    for n in range(2000):
        (days[n % 2] / f"j{n:04d}~1").mkdir(parents=True)
    for n in range(400):
        passes.put(passes.end(f"j{n:04d}"))
    began = time.monotonic()
    while passes() or passes.queue.cut:
        pass
    assert time.monotonic() - began < 2
    said = dict(passes.queue.refused)
    assert ("2026-11-28" in said["j0000"], "2026-11-29" in said["j0001"], len(said)) == (True, True, 400)
