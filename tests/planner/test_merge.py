"""Merging ledgers: a union by (host, seq) and by play, in any order, that writes nothing where rows contradict."""

import json
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetd import Ledger, Spool, encode_json, utc
from fleetd.ledger import encode_row
from planner.facts import Facts
from planner.plan import read_plan
from planner.seeds import Draw, Purpose, Span
from planner.standing import standing
from planner.union import Union, plays_of, shared_seeds

from .conftest import Farm, make_farm


@pytest.fixture
def other(worked, tmp_path):
    """Another fleet's spool: that of two hosts which have worked."""
    return worked


@pytest.fixture
def fresh(tmp_path):
    """A fleet of the same plan that has not begun."""
    return make_farm(tmp_path / "here")


def segments(farm):
    return {path.name: path.read_bytes() for path in farm.spool.ledger_d.glob("*.jsonl")}


def fold(farm):
    facts = Facts("hill")
    facts.add(Ledger(farm.spool.ledger_d).rows())
    return standing(facts, read_plan(farm.spool.plan).space, {})


def merge(farm, *words, code=0):
    done = farm.plan("merge", *map(str, words), ok=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def forge(farm, host, *bodies, seq=1):
    """A segment beside the spool with rows that nobody's ledger has written."""
    path = farm.spool.root.parent / "forged" / f"{host}.jsonl"
    path.parent.mkdir(exist_ok=True)
    head = {"schema": "fleet.row/1", "host": host, "boot": "b", "at": utc(datetime.now(UTC))}
    rows = [head | {"seq": n} | {k: v for k, v in body.items() if k not in ("host", "seq", "crc", "schema", "boot")}
            for n, body in enumerate(bodies, seq)]  # fmt: skip
    path.write_bytes(b"".join(map(encode_row, rows)))
    return path


NOTE = {"event": "note", "by": "a test", "note": "x"}


def test_rows_come_as_they_stand_and_merging_twice_adds_nothing(other, fresh):
    first = merge(fresh, other.spool.root)
    assert segments(fresh) == segments(other)
    assert f"added {len(other.rows('result', 'keep', 'adopt'))} rows of 2 hosts" in first.stderr
    assert fold(fresh) == fold(other)
    again = merge(fresh, other.spool.root, other.spool.ledger_d / "ada.jsonl")
    assert "nothing to add" in again.stderr
    assert segments(fresh) == segments(other)


def test_what_has_grown_there_is_added_behind_what_came_before(other, fresh):
    merge(fresh, other.spool.ledger_d)
    other.name = "ada"
    other.plan("fill", "--count", "2")
    other.run()
    said = json.loads(merge(fresh, other.spool.ledger_d, "--json").stdout)
    assert said["added"] == said["hosts"][0]["added"] >= 2
    assert segments(fresh) == segments(other)


def test_a_dry_run_says_the_same_and_writes_nothing(other, fresh):
    said = json.loads(merge(fresh, other.spool.root, "--dry-run", "--json").stdout)
    assert (said["schema"], said["dry_run"], segments(fresh)) == ("fleet.merge/1", True, {})
    assert said | {"dry_run": False} == json.loads(merge(fresh, other.spool.root, "--json").stdout)


def test_a_row_with_two_contents_is_listed_and_nothing_is_written(other, fresh):
    merge(fresh, other.spool.ledger_d / "ada.jsonl")
    before, path = segments(fresh), forge(fresh, "ada", NOTE)
    done = merge(fresh, path, other.spool.ledger_d / "calber.jsonl", code=65)
    assert done.stdout.startswith(f"ada:1: the row in {path} (note, ")
    assert "1 conflict, nothing was written" in done.stderr
    assert segments(fresh) == before


def twin(row, **result):
    """The body of another row about the same plays."""
    return {**row.body, "job": "50-twin-trial-1", "result": row.body["result"] | result}


def test_a_play_with_two_scores_is_listed_and_nothing_is_written(other, fresh):
    row = other.rows("result")[0]
    scores = [[seed, c + 1, b] for seed, c, b in row.body["result"]["reads"]]
    seq = len(other.spool.ledger_d.joinpath(f"{row.host}.jsonl").read_bytes().splitlines()) + 1
    path = forge(fresh, row.host, twin(row, reads=scores), seq=seq)
    said = json.loads(merge(fresh, other.spool.root, path, "--json", code=65).stdout)
    assert (
        [(c["kind"], c["rows"][1]["seq"]) for c in said["conflicts"]].count(("play", seq)) == len(said["conflicts"]) > 0
    )
    assert "the same play (player" in said["conflicts"][0]["sentence"]
    assert (said["added"], segments(fresh)) == (0, {})
    merge(fresh, other.spool.root)
    assert f"{row.host}:{row.seq} and {row.host}:{seq}: the same play" in merge(fresh, path, code=65).stdout
    fresh.name = "here"
    fresh.row({"event": "void", "by": "a test", "reason": "bad memory", "rows": [{"host": row.host, "seq": seq}]})
    assert "1 job voided" in merge(fresh, path).stderr


@pytest.mark.parametrize("change", [{"build": "b2"}, {"rules": "other"}])
def test_another_score_of_another_build_or_of_other_rules_is_no_conflict(other, fresh, change):
    row = other.rows("result")[0]
    scores = [[seed, c + 1, b + 2] for seed, c, b in row.body["result"]["reads"]]
    merge(fresh, other.spool.root)
    seq = len(segments(fresh)[f"{row.host}.jsonl"].splitlines()) + 1
    merge(fresh, forge(fresh, row.host, twin(row, reads=scores, **change), seq=seq))


def test_a_score_of_an_engine_on_a_clock_is_no_conflict(other):
    row = other.rows("result")[0]
    assert list(plays_of(row))
    body = {**row.body, "payload": row.body["payload"] | {"deterministic": False}}
    assert list(plays_of(type(row)(row.host, row.seq, row.event, row.at, body))) == []


def test_damaged_lines_are_skipped_and_counted(other, fresh, tmp_path):
    first, second, third, *_ = (other.spool.ledger_d / "ada.jsonl").read_bytes().splitlines(keepends=True)
    path = tmp_path / "copy.jsonl"
    path.write_bytes(
        first[:40] + b"\n" + first + b"\0" * 9 + second + third[:-10] + b'00000000"}\n' + third + first[:70]
    )
    said = json.loads(merge(fresh, path, "--json").stdout)
    assert (said["added"], said["skipped"]) == (3, {str(path): 4})
    assert segments(fresh)["ada.jsonl"] == first + second + third
    assert "4 damaged lines skipped" in merge(fresh, path).stderr


@pytest.mark.parametrize("what", ["no ledger at all\n", None])
def test_what_is_no_ledger_is_refused(fresh, tmp_path, what):
    path = tmp_path / "x"
    path.write_text(what) if what else path.mkdir()
    assert "no ledger" in merge(fresh, path, code=65 if what else 66).stderr
    assert merge(fresh, tmp_path / "nowhere.jsonl", code=66).stderr.endswith("no such ledger\n")


def test_a_gap_is_said_with_what_to_do_and_a_whole_ledger_fills_it(other, fresh, tmp_path):
    lines = (other.spool.ledger_d / "ada.jsonl").read_bytes().splitlines(keepends=True)
    holed, headless = tmp_path / "holed.jsonl", tmp_path / "headless.jsonl"
    holed.write_bytes(b"".join(lines[:2] + lines[3:]))
    headless.write_bytes(b"".join(lines[1:]))
    told = merge(fresh, headless, code=1).stderr
    assert "seq 1 is in none of these ledgers" in told
    assert f"0 rows of these ledgers stand here already, and {len(lines) - 1} cannot be taken" in told
    done = merge(fresh, holed, code=1)
    assert f"{len(lines) - 3} rows left out: seq 3 is in none of these ledgers" in done.stderr
    assert segments(fresh)["ada.jsonl"] == b"".join(lines[:2])
    merge(fresh, holed, headless)
    assert segments(fresh)["ada.jsonl"] == b"".join(lines)


def test_a_row_that_is_damaged_here_is_not_put_behind_later_ones(other, fresh, tmp_path):
    merge(fresh, other.spool.ledger_d)
    path = fresh.spool.ledger_d / "ada.jsonl"
    first, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"x" + first + b"".join(rest))
    assert "seq 1 is damaged here" in merge(fresh, other.spool.ledger_d, code=1).stderr
    assert path.read_bytes() == b"x" + first + b"".join(rest)


def beat(farm, host, **more):
    body = {"schema": "fleet.host/1", "host": host, "boot": "b", "pid": 1, "counter": 1, "lanes": 1, "busy": [], "tags": [],
            "breaker": {"open": False, "until": None, "reason": None}, "stops": {}, "at": utc(datetime.now(UTC)),
            "claims": None, "ended": None} | more  # fmt: skip
    (farm.spool.hosts / f"{host}.json").write_bytes(encode_json(body))


def test_the_segment_of_a_host_that_is_alive_here_stays_as_it_is(other, fresh):
    lines = (other.spool.ledger_d / "ada.jsonl").read_bytes().splitlines(keepends=True)
    (fresh.spool.ledger_d / "ada.jsonl").write_bytes(lines[0])
    beat(fresh, "ada")
    done = merge(fresh, other.spool.root, code=1)
    assert f"ada: {len(lines) - 1} rows left out: ada is alive here and writes its own segment" in done.stderr
    assert segments(fresh) == segments(other) | {"ada.jsonl": lines[0]}
    beat(fresh, "ada", ended=utc(datetime.now(UTC)))
    merge(fresh, other.spool.root)
    assert segments(fresh) == segments(other)


def test_a_live_host_whose_rows_are_all_here_is_no_hindrance(other, fresh):
    merge(fresh, other.spool.root)
    beat(fresh, "ada")
    assert "nothing to add" in merge(fresh, other.spool.root).stderr


def test_merged_held_out_reads_make_a_verdict(farm, tmp_path):
    """The queue was copied to another machine, which has read what this one asked for."""
    farm.write_space("good")
    farm.plan("fill", "--depth", "1")
    farm.run()
    farm.plan("fill", "--count", "9")
    asked = [job for job in farm.jobs() if job.kind == "heldout"]
    away = Farm(Spool(shutil.copytree(farm.spool.root, tmp_path / "away")), name="ada")
    away.run()
    assert farm.rows("adopt") == []
    said = json.loads(merge(farm, away.spool.root, "--json").stdout)
    assert said["reads"]["current"] >= len(asked) == 1  # as far as the first look
    farm.plan("fill", "--count", "0")
    (adopted,) = farm.rows("adopt")
    assert {key["host"] for key in adopted.body["rests_on"]} == {"ada"}
    assert adopted.body["n"] == 30


def test_the_same_reads_of_another_fleet_count_once(farm, tmp_path):
    """Two fleets of one plan draw the same search seeds for the same change: it is the same trial."""
    twin_ = make_farm(tmp_path / "twin")
    twin_.name = "ada"
    for each in (farm, twin_):
        each.plan("fill", "--count", "1")
        each.run()
    before = fold(farm)
    done = merge(farm, twin_.spool.root)
    assert "1 job read beside the best that stands, on seeds that were read here too" in done.stderr
    ((id_, course),) = fold(farm).courses.items()
    assert course.search.pairs() == before.courses[id_].search.pairs()
    assert len(course.search.pairs()) == 20


@pytest.mark.parametrize("sort", ["defaults", "space", "build", "plan"])
def test_reads_of_another_best_space_build_or_plan_are_kept_and_not_pooled(farm, tmp_path, sort):
    away = make_farm(tmp_path / "away")
    away.name, away.environ = "ada", {"FLEET_BUILD": "b2", "HILL_MORE": "0.1"} if sort == "build" else {}
    if sort == "space":
        away.write_space("good", "bad", "null", "odd")
    elif sort == "plan":
        away.spool.plan.write_text(away.spool.plan.read_text().replace('"hill"', '"dale"'))
    elif sort == "defaults":
        path = away.spool.root / "space.toml"
        path.write_text(path.read_text().replace("start = 0", "start = 0.5"))
    for each in (farm, away):
        each.plan("fill", "--count", "1")
        each.run()
    before = fold(farm)
    said = json.loads(merge(farm, away.spool.root, "--json").stdout)
    after = fold(farm)
    assert said["reads"] == {sort: 1}
    assert len([row for row in farm.rows("result") if row.host == "ada"]) == 1
    for id_, course in before.courses.items():
        assert after.courses[id_].search.pairs() == course.search.pairs()
        assert {reads.build for reads in after.courses[id_].search.reads.values()} == {None}
    assert after.best == before.best


def test_reads_of_another_build_that_scores_the_same_plays_the_same_are_pooled(farm, tmp_path):
    away = make_farm(tmp_path / "away")
    away.name, away.environ = "ada", {"FLEET_BUILD": "b2"}
    for each, jobs in ((farm, "1"), (away, "2")):
        each.plan("fill", "--count", jobs)
        each.run()
    assert json.loads(merge(farm, away.spool.root, "--json").stdout)["reads"] == {"again": 1, "current": 1}
    assert {reads.build for c in fold(farm).courses.values() for reads in c.search.reads.values()} == {"b2"}


def test_held_out_seeds_that_two_fleets_drew_for_different_trials_are_a_warning(farm, tmp_path):
    away = make_farm(tmp_path / "away")
    away.name = "ada"
    for each, names in ((farm, ("good",)), (away, ("other", "good"))):
        each.write_space(*names)
        each.plan("fill", "--depth", "1")
        each.run()
        trial = each.rows("result")[0].body["payload"]["trial"]
        each.plan("fill", "--heldout", trial, "--count", "9")
        each.run()
    done = merge(farm, away.spool.root)
    assert "warning: t" in done.stderr
    assert "were drawn for" in done.stderr
    assert "verdicts by the same games share their luck" in " ".join(done.stderr.split())
    farm.plan("fill", "--count", "0")


def test_seeds_that_one_trial_drew_in_two_fleets_are_no_overlap():
    here = [Draw(Span(500_000_000, 500_000_100), Purpose.HELDOUT, "t1")]
    other = Draw(Span(500_000_050, 500_000_150), Purpose.HELDOUT, "t2")
    assert shared_seeds(here, here) == []
    assert len(shared_seeds([other, other], here)) == 1
    assert shared_seeds([Draw(Span(1, 9), Purpose.SEARCH, "t3")], [Draw(Span(1, 9), Purpose.SEARCH, "t4")]) == []


def test_an_adoption_whose_net_is_not_here_is_said(fresh):
    net = {"net": "ended/2026-11-30/x~1/out/a.net", "sha256": "0" * 64}
    body = {"event": "adopt", "by": "x", "plan": "hill", "round": "r1", "from": None, "net": net, "sentence": "s"}
    done = merge(fresh, forge(fresh, "ada", body))
    assert "the net 00000000 cannot be read" in done.stderr


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_order_of_merging_does_not_matter(other, data):
    lines = list(Ledger(other.spool.ledger_d).poll_lines())
    hosts = sorted({row.host for row, _ in lines})
    pieces = []
    for _ in range(data.draw(st.integers(1, 4))):
        host = data.draw(st.sampled_from(hosts))
        own = [pair for pair in lines if pair[0].host == host]
        pieces.append(own[: data.draw(st.integers(0, len(own)))])
    space = read_plan(other.spool.plan).space
    results = [merged(order, space) for order in (pieces, pieces[::-1], data.draw(st.permutations(pieces)))]
    assert results[0] == results[1] == results[2]


def merged(pieces, space):
    """What stands once the pieces have come one after another, each by a merge of its own into real segments."""
    with tempfile.TemporaryDirectory() as root:
        for piece in pieces:
            union, ledger = Union(), Ledger(Path(root))
            for row, line in ledger.poll_lines():
                union.stands(row, line)
            for row, line in piece:
                union.comes(row, line, "a piece")
            assert union.clashes == []
            for part in union.parts({}):
                assert part.left_out == 0
                ledger.graft(part.host, part.added)
        facts = Facts("hill")
        facts.add(Ledger(Path(root)).rows())
        held = {path.name: data for path in Path(root).glob("*.jsonl") if (data := path.read_bytes())}
        return standing(facts, space, {}), held
