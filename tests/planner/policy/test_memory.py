"""What was worked out before: it changes no result, takes little memory, and outlives the process."""

from dataclasses import replace

import numpy as np
import pytest

from planner.cache import Cache
from planner.due import terms_of
from planner.policy import memory
from planner.policy.memory import Memory, joined
from planner.policy.screen import believed, fitting
from planner.policy.trail import NEWEST, Trail, marks
from planner.sheaf import Sheaf, Told, mark_of, sheaf_of

from .hills import Fleet, Hill, plan, space

NAMES = tuple(f"v{n}" for n in range(6))


@pytest.fixture(scope="module")
def read():
    """What many mirrored pairs told, screen by screen, and what pairs beside the best told."""
    made = Fleet(plan(space(*NAMES), floor=0.0, seeds=10), Hill(np.full(6, 2.0)))
    made.go(90, depth=1)
    seen, terms = made.seen(), terms_of(made.plan)
    return [sheaf for sheaf in fitting(seen, terms) if not sheaf.is_beside], believed(seen, terms).shaken


class Kept:
    """A store that a test can look into."""

    def __init__(self):
        self.data, self.times = None, 0

    def recall(self):
        return self.data

    def store(self, data):
        self.data, self.times = data, self.times + 1


class Counting(Memory):
    """How many screens taught it."""

    taught = 0

    def _taught(self, state, sheaf):
        self.taught += 1
        return super()._taught(state, sheaf)


def same(one, other):
    return all(np.array_equal(getattr(one, part), getattr(other, part)) for part in ("centre", "mean", "covariance"))


def test_a_second_process_goes_on_where_the_first_one_stored(read):
    mirrored, known = read
    store = Kept()
    Memory(store).followed(mirrored[:-5], known)
    second = Counting(store)
    assert same(second.followed(mirrored, known), Memory().followed(mirrored, known))
    assert (second.taught, store.times) == (5, 1)


def test_a_screen_that_came_late_takes_the_second_process_back_no_further_than_it_must(read):
    mirrored, known = read
    store = Kept()
    Memory(store).followed([*mirrored[:-5], *mirrored[-4:]], known)
    second = Counting(store)
    assert same(second.followed(mirrored, known), Memory().followed(mirrored, known))
    assert second.taught < 40


def other_reads(sheaf):
    opened = sheaf.opened()
    differences = {seed: d + 1e-9 for seed, d in opened.differences.items()}
    return sheaf_of(sheaf.told._replace(mark=mark_of(differences)), opened.screen, differences)


@pytest.mark.parametrize("asked", [True, False])
def test_the_growth_goes_on_too_where_it_was_asked_for(read, asked, monkeypatch):
    mirrored, known = read
    monkeypatch.setattr(memory, "SILENT", 35)  # a batch of four, and one is begun where it is stored
    store = Kept()
    first, second = Memory(store), Memory(store)
    if asked:
        first.growth(mirrored[:-3], known)
    first.followed(mirrored[:-3], known)
    assert second.growth(mirrored, known) == Memory().growth(mirrored, None) > 1


def test_what_was_stored_for_other_reads_counts_for_nothing(read):
    mirrored, known = read
    store = Kept()
    Memory(store).followed(mirrored, known)
    changed = [other_reads(mirrored[0]), *mirrored[1:]]
    assert same(Memory(store).followed(changed, known), Memory().followed(changed, known))
    assert not same(Memory(store).followed(changed, known), Memory().followed(mirrored, known))


def test_it_is_stored_again_when_enough_came(read, monkeypatch):
    mirrored, known = read
    monkeypatch.setattr(memory, "STORED", 16)
    store = Kept()
    long_lived = Memory(store)
    for n in range(40, 40 + 2 * 16 + 1):
        long_lived.followed(mirrored[:n], known)
    assert store.times == 3


def test_a_trail_keeps_a_few_states_and_the_newest():
    trail = Trail()
    told = Told(0, "s", ("", "", ""), "", 1.0, "", 1, 2, 1, b"")
    sheaves = [Sheaf(told, None)] * 5000
    assert trail.followed(sheaves, int, lambda state, _: state + 1) == 5000
    assert all(n == state for n, state in trail.states.items())
    assert {*range(5000 - NEWEST + 1, 5001)} <= trail.states.keys()
    assert len(trail.states) < 6 * NEWEST


def test_a_trail_that_goes_back_comes_to_what_it_would_have_come_to(read):
    mirrored, _ = read
    trail, draw = Trail(), np.random.default_rng(1)

    def teach(state, sheaf):
        return (state * 31 + sheaf.told.low) % 1_000_003

    for _ in range(50):
        some = [sheaf for sheaf in mirrored if draw.random() < 0.97]
        assert trail.followed(some, int, teach) == Trail().followed(some, int, teach)


def test_a_mark_tells_every_screen_before_it(read):
    mirrored, known = read
    right = [*marks(known, mirrored)]
    assert [*marks(known, mirrored[:9])] == right[:9]
    assert [a == b for a, b in zip(marks(known, [*mirrored[:3], *mirrored[4:9]]), right, strict=False)] == [
        True
    ] * 3 + [False] * 5
    assert next(marks(replace(known, curvature=known.curvature + 1e-9), mirrored)) != right[0]


def test_growth_is_the_same_batch_by_batch(read):
    mirrored, _ = read
    long_lived = Memory()
    for n in range(1, len(mirrored)):
        told = long_lived.growth(mirrored[:n], None)
    assert told == Memory().growth(mirrored[:n], None)
    assert len(joined([long_lived.read(sheaf) for sheaf in mirrored])[1]) == sum(s.told.n for s in mirrored)


BAD = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "empty": lambda path: path.write_bytes(b""),
    "another byte": lambda path: path.write_bytes(path.read_bytes()[:-1] + b"?"),
    "another plan's": lambda path: path.write_bytes(path.read_bytes().replace(b'"plan":"hill"', b'"plan":"dale"', 1)),
    "others may write it": lambda path: path.chmod(0o666),
    "a directory": lambda path: (path.unlink(), path.mkdir()),
}  # fmt: skip


@pytest.mark.parametrize("how", BAD)
def test_what_is_stored_beside_a_cache_is_read_past_when_it_is_not_good(tmp_path, how):
    beside = Cache(home=tmp_path / "home", ledger=tmp_path, plan="hill")
    beside.store(b"all\nof it")
    assert beside.recall() == b"all\nof it"
    (path,) = (tmp_path / "home").iterdir()
    BAD[how](path)
    assert beside.recall() is None
    assert Cache(home=None, ledger=tmp_path, plan="hill").recall() is None
