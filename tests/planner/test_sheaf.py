"""Screens on the shelf: what is seen of them is what their rows say, and nothing of them is read again that is not asked for."""

from dataclasses import replace

import numpy as np
import pytest

from fleetd import Row
from planner.due import terms_of
from planner.facts import Facts
from planner.filing import lines_of
from planner.policy import POLICIES
from planner.policy.memory import Memory
from planner.policy.screen import fitting
from planner.residuals import dealt, rows_of
from planner.rounds import rounds_of
from planner.sheaf import Filed
from planner.standing import standing

from .policy.hills import Fleet, Hill, plan, space

NAMES = tuple(f"v{n}" for n in range(6))


class Shelved(Fleet):
    """A fleet whose facts lie on the shelf as far as they may; `opened` counts the rows that were read again."""

    def __init__(self, policy="screen"):
        super().__init__(plan(space(*NAMES), policy, floor=0.0, seeds=10), Hill(np.full(6, 2.0)))
        self.facts, self.opened = Facts(self.plan.name), 0

    def file(self):
        self.facts.add(self.rows)
        by_key = {(row.host, row.seq): row for row in self.rows}

        def fetch(places):
            self.opened += len(places)
            return [by_key[place[:2]] for place in places]

        filed = list(lines_of(self.facts, self.looked(), {key: (*key, 0, 0) for key in by_key}))
        self.facts.shelve(filed, fetch)
        return filed

    def looked(self):
        return standing(self.facts, self.plan.space, self.queue)

    def more(self, row):
        self.rows.append(row)
        self.facts.add([row])

    def is_right(self):
        """Whether it is all the same without a shelf."""
        fresh = Facts(self.plan.name)
        fresh.add(self.rows)
        seen, right = self.looked(), standing(fresh, self.plan.space, self.queue)
        assert seen == right
        assert [sheaf.opened() for sheaf in seen.screened.sheaves] == [
            sheaf.opened() for sheaf in right.screened.sheaves
        ]
        assert asked(self, seen) == asked(self, right)
        assert all(alike(*two) for two in zip(dealt(self.facts), dealt(fresh), strict=True))
        assert rows_of(self.facts, "h") == rows_of(fresh, "h")
        assert np.isclose(rounds_of(self.facts, {}).trials_s, rounds_of(fresh, {}).trials_s)
        assert [*map(self.facts.subject, all_keys(self))] == [*map(fresh.subject, all_keys(self))]
        return True


def asked(made, seen):
    return POLICIES[made.plan.policy](seen, terms_of(made.plan), 3)


def all_keys(made):
    return [(row.host, row.seq) for row in made.rows]


def alike(one, other):
    """What hosts read, to the last digits."""
    return one.keys() == other.keys() and all(
        (one[host].n, pytest.approx(one[host].mean), pytest.approx(one[host].se))
        == (other[host].n, other[host].mean, other[host].se)
        for host in one
    )


@pytest.fixture(params=["screen", "spsa"])
def made(request):
    """Two hosts' screens; all that may be is on the shelf."""
    fleet = Shelved(request.param)
    fleet.go(40, depth=3)
    fleet.rows = [
        replace(row, host="gh"[n % 2], body=row.body | {"wall_s": 1.5 + n}) for n, row in enumerate(fleet.rows)
    ]
    filed = [of for of in fleet.file() if isinstance(of, Filed)]
    assert len(filed) > 20
    return fleet


def screen_row(made, at=10):
    """One with a screen that lies there."""
    lines = [of.rows[0] for of in sorted(made.facts.shelf.screens.values())]
    host, seq = lines[at][:2]
    return next(row for row in made.rows if (row.host, row.seq) == (host, seq))


def after(made, event, body, host="h"):
    return Row(host, 1000 + len(made.rows), event, "2026-01-02T00:00:00Z", body)


def test_what_lies_there_says_what_its_rows_say(made):
    assert made.is_right()


def test_what_is_under_way_or_beside_the_best_does_not_lie_there(made):
    assert not {of.told.id for of in made.facts.shelf.screens.values()} & {task.id for task in made.queue.values()}
    assert {sheaf.is_beside for sheaf in fitting(made.looked(), terms_of(made.plan))} == {
        made.plan.policy == "screen",
        False,
    }
    assert all(of.told.shape for of in made.facts.shelf.screens.values())


def test_what_could_not_be_read_does_not_lie_there(made):
    """Else that the last five failed would be said once and then never again."""
    row = screen_row(made)
    screen = row.body["payload"] | {"screen": "s0123456789"}
    made.more(after(made, "result", row.body | {"payload": screen, "outcome": "failed", "result": None}))
    assert "s0123456789" not in {of.told.id for of in made.file() if isinstance(of, Filed)}


def test_a_void_row_takes_it_down(made):
    row = screen_row(made)
    before = made.looked()
    made.more(after(made, "void", {"reason": "bad memory", "rows": [{"host": row.host, "seq": row.seq}]}))
    assert len(made.looked().screened.sheaves) == len(before.screened.sheaves) - 1
    assert made.is_right()
    assert all(row.body["payload"]["screen"] != of.told.id for of in made.file() if isinstance(of, Filed))


@pytest.mark.parametrize("build", [None, "another"])
def test_one_more_row_of_it_takes_it_down(made, build):
    row = screen_row(made)
    reads = row.body["result"]["reads"]
    for result in ({"reads": reads[:4]}, {"reads": [[seed, one + 1.0, other] for seed, one, other in reads]}):
        made.more(
            after(made, "result", row.body | {"job": "again", "result": row.body["result"] | result | {"build": build}})
        )
        assert made.is_right()


def test_a_build_that_is_found_to_be_the_same_game_names_what_lies_there_too(made):
    for at in (10, 11):
        row = screen_row(made, at)
        made.more(after(made, "result", row.body | {"job": "again", "result": row.body["result"] | {"build": "a"}}))
    assert {sheaf.told.rules[1] for sheaf in made.looked().screened.sheaves} == {"a"}
    assert made.is_right()


def test_no_more_is_read_again_than_taught_nobody_yet(made):
    if made.plan.policy == "spsa":
        pytest.skip("it has no store")
    seen, terms = made.looked(), terms_of(made.plan)
    mirrored = [sheaf for sheaf in fitting(seen, terms) if not sheaf.is_beside]
    known = Memory().shaken([sheaf for sheaf in fitting(seen, terms) if sheaf.is_beside])
    first = Memory()
    first.followed(mirrored[:-2], known)
    made.opened = 0
    first.followed(mirrored, known)
    assert made.opened == 2


def test_their_time_counts_as_the_trials_does(made):
    """Else rounds of the net would be given a share of a tenth of the time."""
    told = sum(row.body["wall_s"] for row in made.rows if row.event == "result")
    assert np.isclose(rounds_of(made.facts, {}).trials_s, told)


def test_seeds_that_lie_there_are_not_drawn_again(made):
    highest = max(of.told.high for of in made.facts.shelf.screens.values())
    made.queue.clear()
    assert min(task.seeds.low for task in made.fill(4) if hasattr(task, "shake")) >= highest
