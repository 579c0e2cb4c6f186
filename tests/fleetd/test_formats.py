"""The formats stay what they are: golden files of each version, and the examples in their pages."""

import json
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fleetd import BadData, Ledger, Outcome
from fleetd.job import decode_job, encode_job
from fleetd.ledger import decode_row, encode_row

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
JOB = ROOT / "tests" / "data" / "job-1.json"
ROWS = ROOT / "tests" / "data" / "row-1.jsonl"
ID = "50-20261130T165200.123456Z-trial-9f3a2c"


def examples(page: str) -> list[Any]:
    return [json.loads(block) for block in re.findall(r"```json\n(.*?)```", (REFERENCE / page).read_text(), re.DOTALL)]


def golden_lines() -> list[bytes]:
    return ROWS.read_bytes().splitlines()


def golden_segment(directory: Path, change: Callable[[bytes], bytes] = bytes) -> Ledger:
    (directory / "calber.jsonl").write_bytes(change(ROWS.read_bytes()))
    return Ledger(directory)


def test_a_golden_job_decodes_and_encodes_to_the_same_bytes():
    job = decode_job(JOB.read_bytes(), ID)
    assert encode_job(job) == JOB.read_bytes()
    assert (job.id, job.argv[3], job.timeout_s, job.away) == (ID, "", 1.5, ("mira",))


def test_a_key_nobody_knows_is_passed_on():
    job = decode_job(JOB.read_bytes(), ID)
    assert job.extra == {"colour": "blue"}
    assert json.loads(encode_job(job))["colour"] == "blue"


def test_a_job_of_another_format_is_refused():
    with pytest.raises(BadData, match=r'schema: expected "fleet\.job/1"'):
        decode_job(JOB.read_bytes().replace(b"fleet.job/1", b"fleet.job/2"), ID)


@pytest.mark.parametrize("line", golden_lines(), ids=lambda line: json.loads(line)["event"])
def test_a_golden_row_decodes_and_encodes_to_the_same_bytes(line):
    row = decode_row(line)
    assert row is not None
    assert encode_row({k: v for k, v in row.body.items() if k != "crc"}) == line + b"\n"


@pytest.mark.parametrize("line", golden_lines(), ids=lambda line: json.loads(line)["event"])
def test_the_crc_is_that_of_the_line_without_it(line):
    crc = json.loads(line)["crc"]
    cut = line.replace(f',"crc":"{crc}"'.encode(), b"")
    assert crc == f"{zlib.crc32(cut):08x}"
    assert decode_row(line.replace(b"2026", b"2027", 1)) is None


def test_the_golden_ledger_has_every_event_of_the_engine_and_the_planner():
    assert {"result", "stop", "resume", "breaker", "note", "adopt", "keep", "void"} == {
        json.loads(line)["event"] for line in golden_lines()
    }


def test_the_golden_ledger_is_read_whole_and_its_void_row_names_the_ok(tmp_path):
    ledger = golden_segment(tmp_path)
    rows = list(ledger.rows())
    assert ([row.seq for row in rows], ledger.skipped) == (list(range(1, 13)), 0)
    assert [row.seq for row in rows if row.body.get("outcome") == Outcome.OK] == [3]
    assert [row.body["rows"] for row in rows if row.event == "void"] == [[{"host": "calber", "seq": 3}]]


def test_a_spoilt_golden_line_is_skipped_counted_and_gone_on_after(tmp_path):
    ledger = golden_segment(tmp_path, lambda data: data.replace(b'"seq":7,', b'"seq":77,'))
    assert [row.seq for row in ledger.rows()] == [1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12]
    assert ledger.skipped == 1


def test_a_writer_goes_on_from_the_golden_ledgers_last_seq(tmp_path):
    ledger = golden_segment(tmp_path)
    ledger.append("calber", [{"event": "note", "by": "mira", "note": "hello"}])
    assert (tmp_path / "calber.jsonl").read_bytes().startswith(ROWS.read_bytes())
    assert [row.seq for row in ledger.rows()][-1] == 13


def test_the_examples_of_a_job_are_jobs():
    short, whole = examples("job.md")
    assert decode_job(json.dumps(short).encode(), "x").argv == ("echo", "hi")
    assert json.loads(encode_job(decode_job(json.dumps(whole).encode(), ID))) == whole


def test_the_example_of_a_row_is_a_row_to_its_crc():
    example, _ = examples("ledger.md")
    line = encode_row({k: v for k, v in example.items() if k != "crc"})
    row = decode_row(line[:-1])
    assert row is not None
    assert row.body == example


def test_the_example_of_a_heartbeat_has_the_keys_of_one():
    _, example = examples("ledger.md")
    page = (REFERENCE / "ledger.md").read_text()
    assert example["schema"] == "fleet.host/1"
    assert [key for key in example if f"`{key}`" not in page] == []
