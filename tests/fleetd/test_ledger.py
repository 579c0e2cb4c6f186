"""The ledger: gapless under concurrent writers, read on past every kind of damage, merged once."""

import json
import os
import subprocess
import sys
import zlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetd import Ledger
from fleetd.errors import BadData, IOFailed, NotFound, TryLater
from fleetd.lease import Turn
from fleetd.ledger import decode_row, encode_row, ledger_lines
from fleetd.merge import Merger

NOTE = {"event": "note", "by": "test"}
WRITER = """
import sys
from pathlib import Path
from fleetd import Ledger
ledger = Ledger(Path(sys.argv[1]))
for n in range(int(sys.argv[3])):
    ledger.append("calber", [{"event": "note", "by": sys.argv[2], "n": n}])
"""
MERGER = """
import sys
from pathlib import Path
from fleetd.ledger import Ledger
from fleetd.merge import Merger
Merger.alone(Ledger(Path(sys.argv[1])), Path(sys.argv[2])).merge()
"""
ROW = {"schema": "fleet.row/1", "host": "calber", "seq": 2, "event": "note", "at": "2026-11-30T16:52:00.123456Z"}


@pytest.fixture
def ledger(tmp_path):
    (tmp_path / "ledger.d").mkdir()
    return Ledger(tmp_path / "ledger.d")


@pytest.fixture
def segment(ledger):
    return ledger.root / "calber.jsonl"


@pytest.fixture
def merge(ledger):
    """`merge()`: one merger from its start to its end; how many lines it added."""

    def merged():
        merger = Merger.alone(Ledger(ledger.root), ledger.root.parent / "ledger.jsonl")
        try:
            return merger.merge()
        finally:
            merger.close()

    return merged


def write(ledger, count, host="calber"):
    return ledger.append(host, [NOTE | {"n": n} for n in range(count)])


def seqs(ledger):
    return [row.seq for row in Ledger(ledger.root).rows()]


def view(ledger):
    return (ledger.root.parent / "ledger.jsonl").read_bytes()


@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text())))
def test_a_row_reads_back_as_it_was_written(body):
    full = body | ROW
    full.pop("crc", None)
    line = encode_row(full)
    assert line.endswith(b"\n")
    assert line.isascii()
    assert {k: v for k, v in decode_row(line[:-1]).body.items() if k != "crc"} == full


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(data=st.data())
def test_any_changed_byte_makes_a_row_invalid(data):
    line = encode_row(ROW | {"text": "some words"})[:-1]
    at = data.draw(st.integers(0, len(line) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != line[at]))
    assert decode_row(line[:at] + bytes([other]) + line[at + 1 :]) is None


def test_a_line_is_as_the_page_says(ledger, segment):
    write(ledger, 1)
    line = segment.read_bytes()
    head, crc = line[: line.rindex(b',"crc"')] + b"}", json.loads(line)["crc"]
    assert crc == f"{zlib.crc32(head):08x}"
    assert line.isascii()
    assert list(json.loads(line))[-1] == "crc"
    assert {"schema", "event", "host", "boot", "seq", "at"} <= json.loads(line).keys()


def test_8_kib_of_nuls_in_the_middle_are_skipped_and_counted(ledger, segment):
    write(ledger, 3)
    with open(segment, "ab") as file:
        file.write(b"\0" * 8192)
    write(ledger, 2)
    reader = Ledger(ledger.root)
    assert [row.seq for row in reader.rows()] == [1, 2, 3, 4, 5]
    assert reader.skipped == 1


def test_nuls_over_rows_cost_those_rows_and_no_others(ledger, segment):
    write(ledger, 100)
    data = bytearray(segment.read_bytes())
    data[4000 : 4000 + 8192] = b"\0" * 8192
    segment.write_bytes(data)
    write(ledger, 1)
    reader = Ledger(ledger.root)
    found = [row.seq for row in reader.rows()]
    assert found[0] == 1
    assert found[-1] == 101
    assert 40 < len(found) < 90
    assert reader.skipped >= 1


def test_half_a_last_line_is_ended_and_its_number_given_anew(ledger, segment):
    write(ledger, 3)
    os.truncate(segment, segment.stat().st_size - 20)
    assert seqs(ledger) == [1, 2]
    write(ledger, 2)
    reader = Ledger(ledger.root)
    assert [row.seq for row in reader.rows()] == [1, 2, 3, 4]
    assert reader.skipped == 1


def test_half_a_line_is_not_read_until_it_is_whole(ledger, segment):
    write(ledger, 1)
    whole = encode_row(ROW)
    reader = Ledger(ledger.root)
    assert len(reader.poll()) == 1
    with open(segment, "ab") as file:
        file.write(whole[:30])
    assert reader.poll() == []
    with open(segment, "ab") as file:
        file.write(whole[30:])
    assert [row.seq for row in reader.poll()] == [2]
    assert reader.skipped == 0


def test_a_line_that_parses_but_fails_its_crc_is_skipped_and_counted(ledger, segment):
    write(ledger, 3)
    lines = segment.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"n":1', b'"n":7')
    json.loads(lines[1])
    segment.write_bytes(b"".join(lines))
    write(ledger, 1)
    reader = Ledger(ledger.root)
    assert [row.seq for row in reader.rows()] == [1, 3, 4]
    assert reader.skipped == 1


def test_a_segment_of_damage_alone_starts_at_1(ledger, segment):
    segment.write_bytes(b"\0" * 8192 + b"\nnonsense\n\xff\xfe")
    assert write(ledger, 1)[0].seq == 1
    assert seqs(ledger) == [1]


def test_four_processes_appending_leave_no_gap(ledger):
    command = [sys.executable, "-c", WRITER, ledger.root]
    writers = [subprocess.Popen([*command, name, "100"]) for name in "abcd"]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    rows = list(Ledger(ledger.root).rows())
    assert [row.seq for row in rows] == list(range(1, 401))
    assert {(row.body["by"], row.body["n"]) for row in rows} == {(name, n) for name in "abcd" for n in range(100)}


def test_poll_gives_only_what_is_new_of_every_segment(ledger):
    write(ledger, 2)
    write(ledger, 1, "other")
    reader = Ledger(ledger.root)
    assert [(row.host, row.seq) for row in reader.poll()] == [("calber", 1), ("calber", 2), ("other", 1)]
    assert reader.poll() == []
    write(ledger, 1, "other")
    assert [(row.host, row.seq) for row in reader.poll()] == [("other", 2)]


def test_reading_has_reached_the_row_that_was_given_last_also_of_several_appended_at_once(ledger):
    ledger.poll()
    ledger.append("calber", [NOTE])
    ledger.poll()
    ledger.append("calber", [NOTE, NOTE | {"reason": "longer"}])
    ledger.append("ada", [NOTE])
    ledger.append("calber", [NOTE])
    for row, line in ledger.poll_lines():
        _, end = ledger.reached(row.host)
        (there,) = ledger.rows_at(row.host, [(end - 1 - len(line), end - 1)])
        assert (there.host, there.seq) == (row.host, row.seq)


def test_rows_are_given_once_also_after_an_append_of_one_s_own(ledger):
    ledger.append("calber", [NOTE])
    assert len(ledger.poll()) == 1
    ledger.append("calber", [NOTE])
    assert [row.seq for row in ledger.rows()] == [1, 2]
    assert ledger.poll() == []


def test_the_head_of_a_row_says_what_the_whole_row_says(ledger):
    tricky = {"event": "result", "job": "j", "attempt": 2, "outcome": "failed", "reason": ',"payload":{}', "next": 3}
    late = {"payload": {}, "event": "result", "job": "k", "attempt": 1, "outcome": "ok", "next": None, "reason": None}
    nested = tricky | {"result": {"a": 1, "payload": 2}, "payload": {"payload": 1}, "argv": [',"payload":']}
    rows = ledger.append("calber", [tricky | {"payload": {"payload": 1}}, tricky, late, nested, NOTE])[:4]
    kept = ("job", "attempt", "outcome", "reason", "next")
    heads = [(head.seq, head.at, *(head.body[key] for key in kept)) for head in ledger.heads()]
    assert heads == [(row.seq, row.at, *(row.body[key] for key in kept)) for row in rows]


def test_a_segment_put_in_its_place_anew_is_read_from_its_start(ledger, segment):
    write(ledger, 3)
    reader = Ledger(ledger.root)
    assert len(reader.poll()) == 3
    copy = segment.with_suffix(".new")
    copy.write_bytes(segment.read_bytes())
    copy.rename(segment)
    assert len(reader.poll()) == 3


def test_tail_gives_the_last_rows_oldest_first(ledger):
    write(ledger, 50)
    found = [row.seq for row in ledger.tail("calber", 2000)]
    assert found == list(range(found[0], 51))
    assert 1 < len(found) < 50
    assert ledger.tail("nobody", 2000) == []


def test_a_row_longer_than_a_look_back_still_counts(ledger):
    ledger.append("calber", [NOTE | {"text": "x" * 300_000}])
    assert Ledger(ledger.root).append("calber", [NOTE])[0].seq == 2


def test_merging_adds_each_row_once(ledger, merge):
    write(ledger, 3)
    write(ledger, 2, "other")
    assert merge() == 5
    assert merge() == 0
    write(ledger, 1)
    assert merge() == 1
    assert len(view(ledger).splitlines()) == 6


def test_merging_mends_a_torn_view_and_repeats_nothing(ledger, merge):
    write(ledger, 5)
    merge()
    os.truncate(ledger.root.parent / "ledger.jsonl", len(view(ledger)) - 30)
    assert merge() == 1
    assert merge() == 0
    rows = [row.seq for line in view(ledger).split(b"\n") if (row := decode_row(line))]
    assert sorted(rows) == [1, 2, 3, 4, 5]


def test_only_one_merges_at_a_time(ledger):
    first = Merger.alone(Ledger(ledger.root), ledger.root.parent / "ledger.jsonl")
    assert Merger.alone(Ledger(ledger.root), ledger.root.parent / "ledger.jsonl") is None
    first.close()
    again = Merger.alone(Ledger(ledger.root), ledger.root.parent / "ledger.jsonl")
    assert again is not None
    again.close()


@pytest.mark.parametrize("name", ["ledger.d/calber.jsonl", "ledger.jsonl"])
def test_a_symbolic_link_in_a_ledger_s_place_is_never_written_through(ledger, merge, name, tmp_path):
    write(ledger, 1, "other")
    target = tmp_path / "target"
    target.write_bytes(b"mine")
    (tmp_path / name).symlink_to(target)
    with pytest.raises((IOFailed, OSError), match=r"\.jsonl"):
        write(ledger, 1) if name != "ledger.jsonl" else merge()
    assert target.read_bytes() == b"mine"


def test_a_fifo_as_segment_blocks_no_reader(ledger, segment):
    os.mkfifo(segment)
    write(ledger, 1, "other")
    assert [row.host for row in Ledger(ledger.root).rows()] == ["other"]
    script = "import sys, fleetd, pathlib; fleetd.Ledger(pathlib.Path(sys.argv[1])).tail('calber', 1000)"
    subprocess.run([sys.executable, "-c", script, ledger.root], timeout=5, check=True)


def test_a_fifo_as_view_blocks_no_merger(ledger, tmp_path):
    os.mkfifo(tmp_path / "ledger.jsonl")
    command = [sys.executable, "-c", MERGER, ledger.root, tmp_path / "ledger.jsonl"]
    done = subprocess.run(command, timeout=5, check=False, capture_output=True, text=True)
    assert "ledger.jsonl: no regular file; move it away" in done.stderr


def test_a_view_that_cannot_be_looked_at_is_no_empty_one(ledger, tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    merger = Merger.alone(ledger, place / "ledger.jsonl")
    ledger.append("calber", [NOTE])
    merger.take(ledger.poll_lines())
    merger.merge()
    place.rename(tmp_path / "aside")
    place.write_text("in the way")
    ledger.append("calber", [NOTE])
    merger.take(ledger.poll_lines())
    with pytest.raises(IOFailed, match="cannot merge"):
        merger.merge()
    place.unlink()
    (tmp_path / "aside").rename(place)
    merger.merge()
    merger.close()
    assert (place / "ledger.jsonl").read_bytes() == (ledger.root / "calber.jsonl").read_bytes()


def test_a_full_disk_loses_nothing_that_was_said_to_be_written(small_disk):
    ledger = Ledger(small_disk("64k"))
    written = []
    with pytest.raises(IOFailed, match=r"free some space|No space"):
        written += (ledger.append("calber", [NOTE | {"text": "x" * 700}])[0].seq for _ in range(100))
    assert len(written) > 10
    assert seqs(ledger) == written
    assert (ledger.root / "calber.jsonl").read_bytes().endswith(b"\n")


def test_once_there_is_room_again_writing_goes_on_without_a_gap(small_disk):
    ledger = Ledger(small_disk("64k"))
    (ledger.root / "ballast").write_bytes(b"x" * 40_000)
    with pytest.raises(IOFailed):
        ledger.append("calber", [NOTE | {"text": "x" * 1000} for _ in range(100)])
    (ledger.root / "ballast").unlink()
    ledger.append("calber", [NOTE])
    assert seqs(ledger) == list(range(1, len(seqs(ledger)) + 1))


def test_no_ledger_is_not_found(tmp_path):
    with pytest.raises(NotFound, match="fleet init"):
        list(Ledger(tmp_path / "none").rows())


@pytest.mark.parametrize(
    "wrong",
    [
        {"schema": "fleet.row/2"},
        {"seq": "7"},
        {"seq": 0},
        {"event": []},
        {"event": "result"},
        {"event": "result", "job": "j", "attempt": 1, "outcome": ["ok"]},
        {"event": "void", "rows": [{"host": [], "seq": 1}]},
        {"at": "now"},
        {"host": None},
    ],
)
def test_what_readers_rely_on_is_there_or_it_is_no_row(wrong):
    assert decode_row(encode_row(ROW)[:-1]) is not None
    assert decode_row(encode_row(ROW | wrong)[:-1]) is None


@pytest.mark.slow
def test_a_writer_waits_for_the_lock_and_says_who_has_it(ledger):
    from fleetd import only_one  # noqa: PLC0415 - for this test alone

    with only_one(ledger.root / "calber.lock", "this test"), pytest.raises(TryLater, match=r"calber\.jsonl"):
        Ledger(ledger.root).append("calber", [NOTE])


@pytest.fixture
def elsewhere(tmp_path):
    """The lines of a segment that calber has written in another spool."""
    (tmp_path / "elsewhere").mkdir()
    Ledger(tmp_path / "elsewhere").append("calber", [NOTE] * 4)
    return [line for _, line in ledger_lines(tmp_path / "elsewhere" / "calber.jsonl")]


def test_rows_of_elsewhere_are_put_behind_the_last_one_here_as_they_stand(ledger, segment, elsewhere):
    assert ledger.graft("calber", elsewhere[:2]) == 2
    assert ledger.graft("calber", elsewhere[2:]) == 2
    assert segment.read_bytes().splitlines() == elsewhere
    assert [row.seq for row in ledger.append("calber", [NOTE])] == [5]


def test_rows_of_elsewhere_come_on_a_line_of_their_own_behind_a_torn_one(ledger, segment, elsewhere):
    segment.write_bytes(elsewhere[0] + b"\n" + elsewhere[1][:30])
    ledger.graft("calber", elsewhere[1:])
    assert [row.seq for row in Ledger(ledger.root).rows()] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("host", "cut"), [("calber", slice(1, None)), ("ada", slice(None)), ("calber", slice(None, None, 2))]
)
def test_rows_of_elsewhere_that_leave_a_gap_or_are_of_another_host_are_refused(ledger, elsewhere, host, cut):
    with pytest.raises(BadData, match="nothing was written"):
        ledger.graft(host, elsewhere[cut])
    assert list(ledger.rows()) == []


def test_rows_of_elsewhere_wait_for_the_lock_of_their_segment(ledger, elsewhere):
    ledger.append("calber", [])
    with Turn(ledger.root / "calber.lock", "a test", 0), pytest.raises(TryLater):
        Ledger(ledger.root, patience_s=0.05).graft("calber", elsewhere)


def test_a_ledger_file_is_read_line_by_line_with_its_damage(tmp_path, elsewhere):
    path, (one, two, three, four) = tmp_path / "x", elsewhere
    path.write_bytes(one[:-3] + b"\n" + one + b"\n" + b"\0\0" + two + b"\n" + three + b"\n\n" + four)
    assert [row and row.seq for row, _ in ledger_lines(path)] == [None, 1, None, 2, 3, 4]
    path.write_bytes(four[:-1])
    assert [row for row, _ in ledger_lines(path)] == [None]


def test_what_is_no_file_is_no_ledger(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path, error in ((tmp_path, IOFailed), (tmp_path / "fifo", IOFailed), (tmp_path / "none", NotFound)):
        with pytest.raises(error, match=str(path)):
            list(ledger_lines(path))
