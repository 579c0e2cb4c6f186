"""What `fleet up` shows of its run: one line that begins with the counts, and a last word that says how to go on."""

import io

import pytest

from fleetd import Ledger, Talk
from fleetd.cli_progress import Progress
from fleetd.cli_text import terminal_width, wrapped
from fleetd.spool import init_spool


@pytest.fixture
def spool(tmp_path):
    return init_spool(tmp_path / "spool", home="calber")


@pytest.fixture
def progress(spool):
    talk = Talk(io.StringIO(), io.StringIO(), json=False, quiet=False, verbose=False, color="never", environ={})
    with Progress(spool, "calber", talk) as made:
        yield made


@pytest.fixture
def rows(spool):
    """`rows(outcome, next)` appends one ended job; `rows()` a verdict of many words."""

    def append(outcome=None, then=None):
        ended = {"event": "result", "job": "j", "attempt": 1, "outcome": outcome, "next": then, "by": "x"}
        kept = {"event": "keep", "by": "x", "sentence": "kept " + "for so many reasons " * 20}
        Ledger(spool.ledger_d).append("calber", [ended if outcome else kept])

    return append


def said(progress):
    return progress._talk.err.getvalue()


def test_the_line_begins_with_the_counts_and_a_pipe_gets_100_columns(progress, rows):
    for outcome in ("ok", "ok", "failed", None):
        rows(outcome)
    progress.look()
    (line,) = said(progress).splitlines()
    assert "  2 done, 0 running, 0 queued, 1 failed · 0 adopted, 1 kept · kept for so many" in line
    assert (len(line), line[-1]) == (100, "…")


def test_a_stop_is_named_before_what_was_learned(progress, rows, spool):
    rows()
    (spool.root / "STOP_NOW").touch()
    progress.look()
    at = [progress.line().index(word) for word in ("0 done", "STOP_NOW stands", "1 kept", "reasons")]
    assert at == sorted(at)


def test_a_drain_is_called_so(progress, rows):
    rows("ok")
    progress.draining = True
    progress.look()
    assert progress.line().partition("  ")[2] == "draining: 0 running, 1 done, 0 queued"


def test_stopped_jobs_are_counted_and_those_that_stay_so_are_told_how_to_go_on(progress, rows):
    for outcome, then in (("stopped", 2), ("stopped", None), ("stopped", None), ("cancelled", None), ("failed", 2)):
        rows(outcome, then)
    rows("rejected")
    progress.look()
    progress.finish()
    total, again, gone = said(progress).splitlines()[-3:]
    assert "0 failed, 3 stopped, 1 cancelled, 1 rejected, 0 adopted" in total
    assert again == "1 stopped job may run twice and waits in the queue again"
    assert gone == "2 stopped jobs will not run again by themselves: fleet retry --stopped"


def test_words_stay_whole_and_a_line_s_indent_goes_on():
    assert wrapped("one two three\n    four five", 10) == "one two\n    three\n    four\n        five"
    assert wrapped("a-word-that-is-too-wide", 8) == "a-word-that-is-too-wide"


def test_a_stream_that_is_no_terminal_has_100_columns(tmp_path):
    with (tmp_path / "out").open("w") as file:
        assert (terminal_width({}, file), terminal_width({"COLUMNS": "72"}, file)) == (100, 72)
