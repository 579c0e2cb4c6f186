"""Job files as they arrive: what is accepted, what is refused and with which words, and what follows an attempt."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetd.errors import BadData
from fleetd.job import (
    MAX_BYTES,
    NAME,
    Job,
    Outcome,
    Result,
    decode_fields,
    decode_job,
    decode_json,
    encode_job,
    encode_json,
    new_id,
    next_attempt,
    utc,
)

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=8,
)


def job(**keys):
    return Job(**({"id": "a", "argv": ("true",)} | keys))


def why(data, name="a"):
    with pytest.raises(BadData) as refused:
        decode_job(data if isinstance(data, bytes) else json.dumps(data).encode(), name)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def ended(outcome):
    return Result(outcome=outcome, ended=utc(0.0))


def test_argv_is_all_that_a_job_file_needs():
    made = decode_job(b'{"argv": ["echo", "hi"]}', "x")
    assert made == Job(id="x", argv=("echo", "hi"))
    assert (made.kind, made.cores, made.rerun_safe, made.retries) == ("job", 1, False, 0)


@given(
    argv=st.lists(TEXT, min_size=1).filter(lambda argv: argv[0]),
    payload=st.dictionaries(TEXT, JSON),
    extra=st.dictionaries(st.from_regex(r"x_[a-z]{1,8}", fullmatch=True), JSON),
    cores=st.integers(1, 1 << 31),
)
def test_a_job_reads_back_as_it_was_written(argv, payload, extra, cores):
    made = job(argv=tuple(argv), payload=payload, extra=extra, cores=cores, after=("b",), env={"K": "v = 1"})
    line = encode_job(made)
    assert decode_job(line, "a") == made
    assert line.isascii()
    assert line.count(b"\n") == 1


@pytest.mark.parametrize("left_out", [{"id", "argv"}, {"id"}, set()])
def test_what_stands_at_its_default_may_as_well_be_left_out(left_out):
    said = {name: value for name, value in json.loads(encode_job(job())).items() if name not in left_out}
    assert decode_job(json.dumps(said | {"argv": ["true"]}).encode(), "a") == job()
    assert Job(**decode_fields(encode_job(job(cores=2)), "a")) == job(cores=2)


def test_unknown_keys_are_kept():
    made = decode_job(b'{"argv": ["true"], "colour": {"r": 1}}', "a")
    assert json.loads(encode_job(made))["colour"] == {"r": 1}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("argv", []),
        ("argv", "true"),
        ("argv", [1]),
        ("argv", [""]),
        ("argv", ["a\0b"]),
        ("cwd", "relative/dir"),
        ("cwd", 3),
        ("env", {"K": 1}),
        ("env", {"A=B": "v"}),
        ("env", {"": "v"}),
        ("env", ["K=V"]),
        ("needs", "gpu"),
        ("cores", 0),
        ("cores", 1.5),
        ("cores", True),
        ("gpus", -1),
        ("timeout_s", 0),
        ("timeout_s", "60"),
        ("timeout_s", True),
        ("retries", -1),
        ("rerun_safe", 1),
        ("after", ["../x"]),
        ("after", ["a"]),
        ("not_before", "tomorrow"),
        ("not_before", "2026-11-30T16:52:00"),
        ("payload", []),
        ("commit", 7),
        ("attempt", 0),
        ("schema", "fleet.job/2"),
        ("schema", None),
        ("argv", None),
        ("env", []),
        ("payload", ""),
        ("payload", None),
        ("needs", {}),
        ("after", ""),
        ("away", False),
        ("rerun_safe", 0),
        ("failed", False),
        ("retries", 0.0),
        ("created", None),
        ("kind", "a/b"),
        ("id", "b"),
        ("id", 5),
    ],
)
def test_a_key_of_the_wrong_type_is_named_in_the_reason(key, value):
    assert key in why({"argv": ["true"]} | {key: value})


def test_all_that_is_wrong_is_said_at_once():
    said = why({"argv": [], "cores": 0, "env": 3})
    assert all(key in said for key in ("argv", "cores", "env"))


@pytest.mark.parametrize(
    "data", [b"", b"{", b'{"argv": ["tr', b"\xff\xfe", b"nonsense", b'{"argv": ["true"], "x": NaN}']
)
def test_what_is_not_json_is_refused(data):
    assert "JSON" in why(data)


@pytest.mark.parametrize("value", [[], ["true"], "true", 3, None, True])
def test_json_that_is_no_object_is_refused(value):
    assert "object" in why(value)


def test_hopeless_nesting_is_refused_not_a_crash():
    assert "nested" in why(b'{"argv": ["true"], "payload": ' + b"[" * 100_000)


def test_over_1_mib_is_refused_with_its_size():
    assert str(MAX_BYTES + 1) in why(b" " * (MAX_BYTES + 1))


@pytest.mark.parametrize("name", ["..", ".hidden", "a/b", "../up", "-dash", "a b", "a\n", "x" * 129, "", "é"])
def test_a_name_with_dots_ahead_or_slashes_is_no_id(name):
    assert not NAME.fullmatch(name)
    assert "id" in why({"argv": ["true"]}, name)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "[1e999]", '{"a": NaN}'])
def test_nan_and_infinity_are_not_json(text):
    with pytest.raises(ValueError, match=r"not JSON|too large"):
        decode_json(text)


@pytest.mark.parametrize("many", ["", "1.5," * 50])
@pytest.mark.parametrize("number", ["1e999", "-1E+400", "2.5e9999", "1" * 400 + ".0", "1e0400"])
def test_a_number_beyond_a_double_is_refused_whatever_stands_beside_it(number, many):
    with pytest.raises(ValueError, match="too large"):
        decode_json(f"[{many}{number}]")


@pytest.mark.parametrize("many", ["", "1.5," * 50])
@pytest.mark.parametrize("number", ["1e308", "-1.5E+3", "1e-999", "1" * 400, '"1e999"', '"50-20261130T1652"'])
def test_every_other_number_is_taken(number, many):
    assert decode_json(f"[{many}{number}]") == json.loads(f"[{many}{number}]")


@pytest.mark.parametrize("depth", [1, 99, 100])
def test_what_can_be_decoded_can_be_written_to_the_ledger(depth):
    text = "[" * depth + "]" * depth
    assert encode_json({"result": decode_json(text)}) == b'{"result":%s}' % text.encode()


@pytest.mark.parametrize("text", ["[" * 101 + "]" * 101, '{"a":' * 101 + "1" + "}" * 101, "[" * 5000 + "]" * 5000])
def test_over_a_hundred_levels_are_refused(text):
    with pytest.raises(ValueError, match="nested"):
        decode_json(text)


def test_many_brackets_side_by_side_are_no_depth():
    assert len(decode_json("[" + "[]," * 500 + "[]]")) == 501


@given(at=st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1)))  # noqa: DTZ001 - made aware below
def test_ids_sort_by_priority_then_by_time(at):
    early, late = at.replace(tzinfo=UTC), at.replace(tzinfo=UTC, year=2101, day=1)
    names = [new_id("trial", 10, late), new_id("job", 50, early), new_id("a", 50, late)]
    assert names == sorted(names)
    assert all(NAME.fullmatch(name) for name in names)


def test_a_failure_goes_again_as_often_as_retries_say():
    first = job(retries=1)
    second = next_attempt(first, ended(Outcome.FAILED), "calber")
    assert (second.attempt, second.failed) == (2, 1)
    assert next_attempt(second, ended(Outcome.TIMEOUT), "calber") is None


@pytest.mark.parametrize("outcome", [Outcome.STOPPED, Outcome.LOST])
def test_only_what_is_rerun_safe_goes_again_after_a_stop_or_a_loss(outcome):
    assert next_attempt(job(rerun_safe=True), ended(outcome), "calber").attempt == 2
    assert next_attempt(job(rerun_safe=False, retries=5), ended(outcome), "calber") is None


def test_the_third_loss_is_final():
    following, losses = job(rerun_safe=True), 0
    while following is not None:
        following, losses = next_attempt(following, ended(Outcome.LOST), "calber"), losses + 1
    assert losses == 3


def test_a_refusal_is_carried_to_the_next_attempt_and_counts_as_no_failure():
    second = next_attempt(job(away=("one",)), ended(Outcome.DECLINED), "calber")
    assert second.away == ("one", "calber")
    assert second.failed == 0


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.CANCELLED, Outcome.SUPERSEDED, Outcome.REJECTED])
def test_other_outcomes_are_final(outcome):
    assert next_attempt(replace(job(), retries=3, rerun_safe=True), ended(outcome), "calber") is None
