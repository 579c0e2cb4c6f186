"""What luck may have adopted, what plays were spent on, and what the screens say: told by suggest and next."""

import json
import re

import numpy as np
import pytest

from planner.account import LUCK
from planner.cli_suggest import _last_of_each
from planner.screen import decode_screen
from planner.stats import normal_cdf, t_quantile
from planner.trial import READS
from planner.verdict import HELDOUT, LEAP, first_read

from .conftest import plan_text
from .policy.hills import Fleet, Hill, plan, space


def share_adopted(draws, looks, rules):
    """Of runs without any effect."""
    adopted, going = np.zeros(len(draws), dtype=bool), np.ones(len(draws), dtype=bool)
    for n, rule in zip(looks, rules[-len(looks) :], strict=True):
        t = draws[:, :n].mean(axis=1) / draws[:, :n].std(axis=1, ddof=1) * n**0.5
        adopted |= going & (t > t_quantile(normal_cdf(rule.passed), n - 1))
        going &= ~adopted & (t > rule.hopeless)
    return adopted.mean()


@pytest.mark.parametrize("leap", [False, True])
@pytest.mark.parametrize("looks", [(100, 200, 400), (30, 60, 120), (19, 38)])
def test_the_chance_that_luck_is_adopted_is_the_one_that_is_told(looks, leap):
    draws = np.random.default_rng(looks[0]).normal(size=(50_000, looks[-1]))
    adopted = share_adopted(draws, looks, LEAP if leap else HELDOUT)
    assert adopted == pytest.approx(LUCK[len(looks), leap], abs=0.0015)


def told(farm):
    return json.loads(farm.plan("suggest", "--json").stdout.splitlines()[-1])


def test_each_held_out_that_was_decided_adds_its_chance_of_luck(judged):
    decided = [row for row in judged.rows("adopt", "keep") if row.body["stage"] == "heldout"]
    said = told(judged)
    assert said["schema"] == "fleet.account/1"
    assert said["decided"] == len(decided) > 0
    assert said["false_adoptions"] == pytest.approx(0.0105 * len(decided))
    assert f"of the {len(decided)} held-out" in judged.plan("suggest").stderr


def played(side, draw):
    """The hill's score, with luck of its own."""
    return 0.5 * side["weights"]["good"] - 0.5 * side["weights"]["bad"] + float(draw.normal(0, 0.3))


def read_screens(farm):
    """Score the screens that wait, as their jobs would; single trials go."""
    draw = np.random.default_rng(3)
    for job in farm.jobs():
        if job.kind == "screen":
            screen = decode_screen(job.payload)
            seeds = range(screen.seeds.low, screen.seeds.high)
            reads = [[seed, *(played(side, draw) for side in screen.players_on(seed).values())] for seed in seeds]
            result = {"schema": READS, "reads": reads, "plays": 2 * len(reads)}
            row = {"event": "result", "job": job.id, "attempt": 1, "outcome": "ok", "next": None}
            farm.row(row | {"payload": dict(job.payload), "result": result})
        (farm.spool.queue / f"{job.id}.json").unlink()


@pytest.fixture
def screened(farm):
    """A farm that has read some hundred mirrored pairs."""
    farm.write_plan(seeds=100)
    farm.spool.plan.write_text(farm.spool.plan.read_text().replace("rotate", "screen"))
    for count in (2, 5):
        farm.plan("fill", "--count", str(count))
        read_screens(farm)
    return farm


def test_suggest_has_raw_slopes_beside_shrunken_ones_the_strongest_first(screened):
    slopes = told(screened)["slopes"]
    first, second, last = slopes["variables"]
    assert {first["name"], second["name"]} == {"good", "bad"}
    assert last["name"] == "null"
    assert abs(last["shrunk"]) < abs(last["slope"]) < 4 * last["se"]
    assert abs(first["slope"]) == pytest.approx(0.25, abs=4 * first["se"])
    head, *lines = screened.plan("suggest").stdout.splitlines()[-4:]
    assert head.split() == ["VARIABLE", "BEST", "CENTRE", "STEPS", "SLOPE", "A", "STEP", "EXPECTED"]
    assert [line.split()[0] for line in lines] == [first["name"], second["name"], "null"]


def test_suggest_says_how_much_luck_is_in_a_pair_of_one_change_and_of_all(screened):
    said = screened.plan("suggest").stderr
    near, far = re.search(r"is ([\d.]+) where one variable is changed by a step, ([\d.]+) where all", said).groups()
    assert float(near) == pytest.approx((2 * 0.3**2 + 2 / 3 * 0.25**2) ** 0.5, rel=0.45)  # four errors at 40 pairs
    assert float(far) == pytest.approx(0.3 * 2**0.5, rel=0.6)


def test_plays_of_screens_are_told_apart_from_those_of_single_trials(screened):
    plays = told(screened)["plays"]
    assert plays["screen"] == sum(2 * len(row.body["result"]["reads"]) for row in screened.rows("result"))
    assert plays["single"] == 0
    assert f"{plays['screen']:,} in screens" in screened.plan("suggest").stderr


def test_next_says_that_each_mirrored_pair_reads_all_variables(screened):
    pairs = json.loads(screened.plan("next", "--json").stdout)["pairs"]
    assert pairs >= 200
    assert (
        f"{pairs} mirrored pairs were read besides: each of them reads all 3 variables" in screened.plan("next").stderr
    )


def test_a_policy_without_screens_has_no_slopes(farm):
    farm.plan("fill", "--count", "1")
    assert told(farm)["slopes"] is None
    assert json.loads(farm.plan("next", "--json").stdout)["pairs"] is None


@pytest.mark.parametrize("policy", ["screen", "race"])
def test_the_power_of_a_raced_search_is_that_of_its_looks(farm, policy):
    farm.spool.plan.write_text(plan_text(policy=policy, seeds=55))
    looks = told(farm)["power"]["search"]
    assert [look["seeds"] for look in looks] == [14, 28, 55, 110, 220]
    assert [round(look["sd"], 2) for look in looks[-3:]] == [0.57, 0.34, 0.21]


def test_the_power_of_search_and_of_each_look_is_said_beforehand(farm):
    farm.write_plan(seeds=55, heldout=400)
    see = told(farm)["power"]
    assert [round(look["sd"], 2) for look in see["search"]] == [0.39]
    assert [look["seeds"] for look in see["heldout"]] == [100, 200, 400]
    assert (
        "search 0.39 after 55 seeds; held-out 0.39, 0.25, 0.16 after 100, 200, 400 seeds" in farm.plan("suggest").stderr
    )


def test_of_trials_of_one_change_the_one_read_last_is_suggested():
    made = Fleet(plan(space("a"), "rotate", seeds=12), Hill([0.0], curvature=0.0))
    made.go(6, depth=1)
    courses = made.seen().courses.values()
    reads = [(course, first_read(course)) for course in courses if first_read(course)]
    shown = [course for course, _ in _last_of_each(reads)]
    assert len(reads) > len(shown) == len({course.trial.change for course, _ in reads})
    for course in shown:
        assert course.read_at == max(c.read_at for c, _ in reads if c.trial.change == course.trial.change)
