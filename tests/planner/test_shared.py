"""Held-out seeds that two fleets drew for two trials: what is decided stays, what is open draws fresh ones."""

import pytest

from fleetd import Ledger
from planner.seeds import Draw, Purpose, Span, meetings

LOW, LOOKS = 500_000_000, [30, 60, 120]


def rows_of(farm, payloads, host, purpose, gain=0.2, later=0):
    """A row for each: of a search past the gate, or of held-out seeds as far as the first look, which does not decide."""
    for at, asked in enumerate(payloads, later):
        payload = asked
        if purpose == "heldout":
            seeds, span = [LOW, LOW + 30], {"span": [LOW, LOW + 120], "looks": LOOKS}
            payload = payload | {"purpose": purpose, "seeds": seeds} | span
        reads = [[seed, gain + (0.8 if seed % 2 else -0.8), 0.0] for seed in range(*payload["seeds"])]
        job = f"40-2026113{at}T000000.000000Z-{purpose}-{payload['trial']}"
        head = {"event": "result", "job": job, "attempt": 1, "outcome": "ok", "next": None, "kind": purpose}
        farm.name = host
        farm.row(head | {"payload": payload, "result": {"reads": reads, "plays": 1}})


def heldout(farm, host):
    found = [row for row in farm.rows("result") if row.host == host and row.body["payload"]["purpose"] == "heldout"]
    return {(row.host, row.seq) for row in found}


def voided(farm):
    return [{(named["host"], named["seq"]) for named in row.body["rows"]} for row in farm.rows("void")]


@pytest.fixture
def two(farm):
    """A farm that has merged another: two trials are past the search, and at their first look on the same held-out seeds."""
    farm.plan("fill", "--count", "2")
    payloads = [job.payload for job in farm.jobs()]
    for id_ in farm.spool.waiting():
        (farm.spool.queue / f"{id_}.json").unlink()
    rows_of(farm, payloads, "calber", "search", gain=1.0)
    rows_of(farm, payloads[:1], "calber", "heldout")
    return farm, payloads


def merged(farm, payloads):
    rows_of(farm, payloads[1:], "ada", "heldout", later=1)
    farm.name = "calber"


def test_of_two_open_trials_the_one_queued_first_keeps_its_reads(two):
    farm, payloads = two
    merged(farm, payloads)
    said = " ".join(farm.plan("fill", "--count", "0").stderr.split())
    first, second = (payload["trial"] for payload in payloads)
    assert f"held-out seeds {LOW} to {LOW + 119} were drawn for {first}, too" in said
    assert voided(farm) == [heldout(farm, "ada")]
    assert farm.rows("void")[0].body["trial"] == second
    farm.plan("fill", "--count", "0")
    assert len(farm.rows("void")) == 1


def test_an_open_trial_gives_way_to_one_that_is_decided_and_that_stays(two):
    farm, payloads = two
    first, second = (payload["trial"] for payload in payloads)
    merged(farm, payloads)
    farm.row({"event": "keep", "by": "x", "plan": "hill", "trial": second, "reason": "hopeless", "sentence": "no"})
    farm.plan("fill", "--count", "0")
    assert voided(farm) == [heldout(farm, "calber")]
    assert farm.rows("void")[0].body["trial"] == first
    assert [row.body["trial"] for row in farm.rows("keep")] == [second]


def test_two_that_are_decided_stay(two):
    farm, payloads = two
    merged(farm, payloads)
    for payload in payloads:
        farm.row(
            {"event": "keep", "by": "x", "plan": "hill", "trial": payload["trial"], "reason": "r", "sentence": "s"}
        )
    assert farm.plan("fill", "--count", "1").returncode == 0
    assert farm.rows("void") == []
    assert len(farm.spool.waiting()) == 1


def test_what_gave_way_is_read_again_on_seeds_that_nobody_drew(two):
    farm, payloads = two
    merged(farm, payloads)
    farm.plan("fill", "--count", "9")
    held = {job.payload["trial"]: job.payload for job in farm.jobs() if job.kind == "heldout"}
    first, second = (held[payload["trial"]] for payload in payloads)
    assert (first["span"], first["seeds"]) == ([LOW, LOW + 120], [LOW + 30, LOW + 60])
    assert (second["span"], second["seeds"]) == ([LOW + 120, LOW + 240], [LOW + 120, LOW + 150])


def test_while_its_jobs_are_under_way_it_waits_and_asks_for_no_more(two):
    farm, payloads = two
    merged(farm, payloads)
    other = Ledger(farm.spool.ledger_d).tail("ada", 1 << 20)
    void = {"event": "void", "by": "x", "reason": "not merged yet", "rows": [{"host": "ada", "seq": other[0].seq}]}
    farm.row(void)
    farm.plan("fill", "--count", "9")
    job = next(j for j in farm.jobs() if j.kind == "heldout" and j.payload["trial"] == payloads[1]["trial"])
    changes = {"span": [LOW, LOW + 120], "seeds": [LOW + 30, LOW + 60]}
    farm.job_of(job.id, payload=dict(job.payload) | changes)
    before = farm.spool.waiting()
    farm.plan("fill", "--count", "0")
    assert len(farm.rows("void")) == 1
    farm.name = "ada"
    farm.run_job(job.id)
    farm.name = "calber"
    farm.plan("fill", "--count", "0")
    assert len(farm.rows("void")) == 2
    assert set(farm.spool.waiting()) == set(before) - {job.id}


def test_adopting_what_gave_way_by_hand_is_refused_with_the_reason(two):
    farm, payloads = two
    merged(farm, payloads)
    trial = payloads[1]["trial"]
    done = farm.plan("adopt", trial, ok=False)
    assert done.returncode == 1
    assert "has no held-out reads" in done.stderr
    assert voided(farm) == [heldout(farm, "ada")]


def draw(low, high, whose):
    return Draw(Span(low, high), Purpose.HELDOUT, whose)


def test_meetings_are_found_in_pairs_of_two_owners():
    a, b, c = draw(0, 400, "a"), draw(100, 200, "b"), draw(300, 500, "c")
    assert list(meetings([c, b, a, a, draw(500, 600, "d")])) == [(a, b), (a, c)]
    assert list(meetings([draw(0, 9, "a"), draw(5, 20, "a"), draw(20, 30, "b")])) == []
    assert list(meetings([Draw(Span(1, 9), Purpose.SEARCH, name) for name in "ab"])) == []
