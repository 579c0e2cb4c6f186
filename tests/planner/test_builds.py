"""Builds that have made the same plays with the same scores are one game; one that differs in a single score is not."""

import json
from dataclasses import replace

import numpy as np
import pytest

from planner.builds import LEAST, compared, pooled
from planner.due import terms_of
from planner.facts import Facts
from planner.policy.screen import fitting
from planner.residuals import dealt
from planner.verdict import judge

from .policy.hills import Fleet, Hill, plan, space

NAMES = tuple(f"v{n}" for n in range(6))


def fleet(policy="screen", **changes):
    return Fleet(plan(space(*NAMES), policy, **changes), Hill(np.full(6, 2.0)))


def again(made, row, build, alter=None):
    """The same job's plays once more, by another build; `alter` is done to its reads."""
    result = row.body["result"] | {"build": build, "reads": [list(read) for read in row.body["result"]["reads"]]}
    if alter:
        alter(result["reads"])
    made.row("result", row.body | {"job": f"{row.body['job']}-{build}", "result": result})


def worse(reads):
    reads[-1][1] -= 1e-12


def fewer(reads):
    del reads[LEAST // 2 - 1 :]


def worked(policy="screen", **changes):
    """Two jobs by build a; the rows, and what comes next by build b in turn."""
    made = fleet(policy, floor=0.0, **changes)
    made.fill(3)
    for job in sorted(made.queue)[:2]:
        made.play(job, build="a")
    return made


def facts_of(made):
    facts = Facts(made.plan.name)
    facts.add(made.rows)
    return facts


@pytest.mark.parametrize(("alter", "agree"), [(None, True), (worse, False), (fewer, False)])
def test_two_builds_are_one_when_enough_plays_agree_and_none_differs(alter, agree):
    made = worked()
    again(made, made.rows[0], "b", alter)
    made.play(min(made.queue), build="b")
    (pair,) = compared(facts_of(made).attempts(), facts_of(made).screens())
    assert (pair.agree, pair.differs is None) == (agree, alter is not worse)
    seen = made.seen()
    pairs = {sheaf.told.n for sheaf in fitting(seen, terms_of(made.plan))}
    assert len(fitting(seen, terms_of(made.plan))) == (3 if agree else 2), pairs
    assert {sheaf.told.rules[1] for sheaf in fitting(seen, terms_of(made.plan))} == ({"a"} if agree else {"b"})


def test_a_pair_that_two_builds_have_read_counts_once():
    made = worked()
    before = made.seen().screened.sheaves
    again(made, made.rows[0], "b")
    after = made.seen().screened.sheaves
    assert [sheaf.opened().differences for sheaf in after] == [sheaf.opened().differences for sheaf in before]


def test_a_build_that_differs_from_one_of_those_that_agree_joins_none():
    made = worked()
    again(made, made.rows[0], "b")
    again(made, made.rows[0], "c")
    again(made, made.rows[1], "b")
    again(made, made.rows[1], "c", worse)
    assert {row.reads.build for row in pooled(facts_of(made))[1]} == {"a", "c"}
    assert made.seen() == made.shuffled(3)


def test_other_rules_are_another_game_whatever_the_scores():
    made = worked()
    again(made, made.rows[0], "b")
    made.rows[-1] = replace(
        made.rows[-1], body=made.rows[-1].body | {"result": made.rows[-1].body["result"] | {"rules": "2"}}
    )
    assert compared(facts_of(made).attempts(), facts_of(made).screens()) == []


def of_another_census(row):
    return replace(row, body=row.body | {"payload": row.body["payload"] | {"census": ["y"]}})


def test_slopes_are_of_the_census_that_plays_now_unless_both_have_made_the_same_plays():
    made = worked()
    old = {row.body["payload"]["screen"] for row in made.rows}
    made.fill(1)
    made.play(min(made.queue), build="a")
    made.rows[-1] = of_another_census(made.rows[-1])
    assert not old & {sheaf.told.id for sheaf in fitting(made.seen(), terms_of(made.plan))}
    again(made, made.rows[0], "a")
    made.rows[-1] = of_another_census(made.rows[-1])
    assert old < {sheaf.told.id for sheaf in fitting(made.seen(), terms_of(made.plan))}


def test_what_a_clock_that_was_ahead_has_dated_is_not_the_newest():
    made = worked()
    made.rows[0] = replace(made.rows[0], at="2099-01-01T00:00:00Z")
    made.fill(1)
    made.play(min(made.queue), build="b")
    assert {sheaf.told.rules[1] for sheaf in fitting(made.seen(), terms_of(made.plan))} == {"b"}


def test_a_build_whose_own_scores_differ_agrees_with_none():
    made = worked()
    again(made, made.rows[0], "a", worse)
    again(made, made.rows[0], "b")
    (pair,) = compared(facts_of(made).attempts(), facts_of(made).screens())
    assert "more than one score" in pair.differs


def test_trials_tell_of_builds_too_and_hosts_of_one_game_are_set_side_by_side():
    made = worked("rotate")
    again(made, made.rows[0], "b")
    made.rows[-1] = replace(made.rows[-1], host="other")
    assert {row.reads.build for row in pooled(facts_of(made))[0]} == {"a"}
    assert len(dealt(facts_of(made))) == 1


@pytest.mark.parametrize(("alter", "reason"), [(None, "past the gate"), (worse, "builds differ")])
def test_a_held_out_that_two_builds_have_read_counts_when_they_are_one(alter, reason):
    made = fleet(heldout=800, floor=0.0)
    while not made.seen().leaps:
        made.go(1)
    again(made, next(row for row in made.rows if "screen" in row.body["payload"]), "b", alter)
    made.fill(4)
    for job, build in zip([*made.queue], ("b", None), strict=False):
        made.play(job, build=build)
    assert judge(made.seen().leaps[0], current=True).reason == reason


def test_suggest_names_the_builds_that_it_compared(worked):
    (row, *_) = worked.rows("result")
    body = {key: row.body[key] for key in row.body.keys() - {"host", "seq", "at", "boot", "crc", "schema"}}
    worked.row(body | {"job": f"{body['job']}b", "result": body["result"] | {"build": "new"}})
    assert "agree on" in (said := worked.plan("suggest").stderr)
    assert "no build" in said
    account = json.loads(worked.plan("suggest", "--json").stdout.splitlines()[-1])
    (told,) = account["builds"]
    assert (told["builds"], told["agree"], told["differs"]) == (["new", None], True, None)
