"""The command line of `fleet` where no daemon runs: options, exit codes, streams."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fleetd import Ledger, Row
from fleetd.cli_state import keep_newest
from fleetd.job import utc

BIN = Path(sys.executable).parent


@pytest.fixture
def root(tmp_path):
    return tmp_path / "spool"


@pytest.fixture
def spool(fleet, root):
    assert fleet("init", "-q").stdout.strip() == str(root)
    return root


def objects(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_missing_spool_is_66_with_the_command_that_makes_one(fleet, root):
    done = fleet("status")
    assert done.returncode == 66
    assert f"fleet init --spool {root}" in done.stderr
    assert done.stdout == ""


def test_init_twice_keeps_what_is_there(fleet, spool):
    (spool / "fleet.toml").write_text("poll_s = 0.5\n")
    assert fleet("init").returncode == 0
    assert (spool / "fleet.toml").read_text() == "poll_s = 0.5\n"


def test_a_bare_command_is_status(fleet, spool):
    assert fleet().stdout == fleet("status").stdout == "0 queued, 0 running, 0 done, 0 failed\n"


@pytest.mark.parametrize("arguments", [["--json", "status"], ["status", "--json"], ["--json"]])
def test_common_options_stand_before_and_after_the_command(fleet, spool, arguments):
    (only,) = objects(fleet(*arguments))
    assert (only["schema"], only["queued"], only["hosts"]) == ("fleet.status/1", 0, [])


def test_spool_option_goes_before_the_environment(fleet, spool, tmp_path):
    other = tmp_path / "other"
    assert fleet("init", "--spool", str(other)).returncode == 0
    assert objects(fleet("--spool", str(other), "--json"))[0]["spool"] == str(other)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--jso"],
        ["ls", "--verb"],
        ["statsu"],
        ["submit"],
        ["submit", "echo"],
        ["submit", "--priority", "100", "--", "x"],
        ["submit", "--env", "A", "--", "x"],
        ["hosts", "drain"],
        ["up", "--seconds", "-1"],
        ["up", "--seconds", "nan"],
        ["up", "--seconds", "inf"],
        ["stop"],
        ["stop", "later"],
        ["retry"],
    ],
)
def test_wrong_usage_is_2_and_says_nothing_on_stdout(fleet, spool, arguments):
    done = fleet(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr


def test_an_unknown_command_names_the_nearest(fleet, spool):
    assert "did you mean status?" in fleet("statsu").stderr


def test_an_unknown_name_runs_the_program_of_that_name(fleet, spool, tmp_path):
    program = tmp_path / "fleet-hello"
    program.write_text('#!/bin/sh\nprintf "%s|" "$@"; exit 7\n')
    program.chmod(0o755)
    done = fleet("hello", "a b", "--", "-x", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert (done.returncode, done.stdout) == (7, "a b|--|-x|")


def test_a_command_arrives_as_it_was_given(fleet, spool):
    argv = ["sh", "-c", 'echo "$1"\n`x` $HOME', "--", "", "-n", "a b", "'", "--json"]
    id_ = fleet("submit", "-q", "--", *argv).stdout.strip()
    assert json.loads((spool / "queue" / f"{id_}.json").read_text())["argv"] == argv


def test_options_of_submit_are_keys_of_the_job(fleet, spool, tmp_path):
    options = [
        "--priority",
        "7",
        "--kind",
        "film",
        "--cwd",
        "sub",
        "--env",
        "A=b=c",
        "--env",
        "E=",
        "--needs",
        "gpu",
        "--cores",
        "2",
        "--gpus",
        "1",
        "--timeout",
        "1.5",
        "--retries",
        "3",
        "--rerun-safe",
        "--after",
        "x",
        "--not-before",
        "2026-12-01T08:00:00Z",
    ]
    id_ = fleet("submit", "-q", *options, "--", "true").stdout.strip()
    job = json.loads((spool / "queue" / f"{id_}.json").read_text())
    assert id_.startswith("07-")
    assert "-film-" in id_
    assert (job["cwd"], job["env"]) == (str(tmp_path / "sub"), {"A": "b=c", "E": ""})
    assert (job["kind"], job["needs"], job["cores"], job["gpus"]) == ("film", ["gpu"], 2, 1)
    assert (job["timeout_s"], job["retries"], job["rerun_safe"], job["after"]) == (1.5, 3, True, ["x"])
    assert (job["not_before"], job["by"].split("@")[1]) == ("2026-12-01T08:00:00Z", "calber")


def test_a_file_holds_one_object_or_one_a_line(fleet, spool, tmp_path):
    assert len(fleet("submit", "--from", "-", stdin='{\n "argv":\n ["a"]}\n').stdout.split()) == 1
    (tmp_path / "jobs").write_text('{"argv": ["a"], "id": "first"}\n\n{"argv": ["b"], "id": "second"}\n')
    assert fleet("submit", "--from", "jobs").stdout.split() == ["first", "second"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"argv": ["a"]}\n{"argv": []}\n', "standard input:2: argv"),
        ('{"argv": ["a"]}\nx\n', "standard input:2: not JSON"),
        ("[1]", "standard input:1: a job is a JSON object"),
        ("\n\n", "empty"),
        ('{"id": "../x", "argv": ["a"]}', "'../x'"),
        ('{"argv": ["a"], "id": "x"}\n{"argv": ["a"], "id": 3}', "standard input:2: id"),
    ],
)
def test_with_one_wrong_job_none_is_queued(fleet, spool, text, place):
    done = fleet("submit", "--from", "-", stdin=text)
    assert done.returncode == 65
    assert place in done.stderr
    assert list((spool / "queue").iterdir()) == []


def test_nothing_is_queued_while_a_stop_stands(fleet, spool):
    assert fleet("stop", "adding").returncode == 0
    done = fleet("submit", "--", "true")
    assert (done.returncode, done.stdout) == (75, "")
    assert "STOP_ADDING stands: nothing is added; fleet resume lifts it" in done.stderr
    assert "STOP_ADDING" in fleet().stdout
    assert fleet("resume").returncode == 0
    assert fleet("submit", "--", "true").returncode == 0


def test_stop_waits_for_nobody_when_no_daemon_runs(fleet, spool):
    fleet("submit", "--", "true")
    assert fleet("stop", "adding", "--wait").returncode == 69


def test_each_waiting_job_has_its_reason(fleet, spool):
    fleet("submit", "--", "true")
    assert [job["why"] for job in objects(fleet("ls", "--json"))] == ["no daemon runs"]
    (spool / "STOP_NOW").touch()
    assert [job["why"] for job in objects(fleet("ls", "--json"))] == ["STOP_NOW stands"]


def test_control_characters_of_a_job_never_reach_the_terminal(fleet, spool):
    id_ = fleet("submit", "-q", "--", "\x1b[31mred\x07").stdout.strip()
    for arguments in (["ls"], ["show", id_], ["status"]):
        assert "\x1b" not in fleet(*arguments).stdout
    assert "\\x1b[31mred" in fleet("ls").stdout


def test_a_job_is_found_by_the_end_of_its_name(fleet, spool):
    id_ = fleet("submit", "-q", "--", "true").stdout.strip()
    assert objects(fleet("show", "--json", id_[-6:]))[0]["job"] == id_
    fleet("submit", "-q", "--", "true")
    assert fleet("show", id_[:4]).returncode == 2
    assert fleet("show", "nothing").returncode == 66
    assert fleet("log", id_).returncode == 66


def test_colour_only_where_it_is_wanted(fleet, spool):
    (spool / "STOP_NOW").touch()
    assert "\x1b" not in fleet().stdout
    assert "\x1b" in fleet("--color", "always").stdout
    assert "\x1b" in fleet("--color", "always", NO_COLOR="1").stdout


def test_a_reader_that_leaves_is_no_error(spool, fleet):
    for _ in range(3):
        fleet("submit", "-q", "--", "x" * 60000)
    env = os.environ | {"FLEET_SPOOL": str(spool)}
    ls = subprocess.Popen([BIN / "fleet", "ls", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    ls.stdout.close()
    assert (ls.wait(30), ls.stderr.read()) == (0, b"")
    ls.stderr.close()


@pytest.mark.parametrize(
    "beat", ['{"lanes":"x","tags":5,"counter":[1],"claims":3,"busy":7,"at":9}', "{}", "[", '{"pid": "x"}', None]
)
def test_a_host_whose_heartbeat_cannot_be_read_is_shown_as_such(fleet, spool, beat):
    at = spool / "hosts" / "mira.json"
    at.mkdir() if beat is None else at.write_text(beat)
    for command in ("status", "hosts"):
        done = fleet(command)
        assert (done.returncode, "mira" in done.stdout, "unreadable heartbeat" in done.stdout) == (0, True, True)
    assert objects(fleet("hosts", "--json"))[0] | {"drained": False} == {
        "schema": "fleet.hosts/1", "host": "mira", "live": False, "age_s": None, "drained": False, "heartbeat": {},
        "clock_offset_s": None,
    }  # fmt: skip
    assert fleet("hosts", "drain", "mira").returncode == 0


def test_a_directory_or_link_in_a_segment_s_place_hides_no_other(fleet, spool, tmp_path):
    row = {"event": "result", "job": "j", "attempt": 1, "outcome": "ok", "next": None}
    Ledger(spool / "ledger.d").append("calber", [row])
    (spool / "ledger.d" / "h8.jsonl").mkdir()
    (spool / "ledger.d" / "h9.jsonl").symlink_to(spool / "ledger.d" / "calber.jsonl")
    os.mkfifo(spool / "ledger.d" / "h10.jsonl")
    assert "1 done" in fleet("status").stdout
    assert [row["job"] for row in objects(fleet("results", "--json"))] == ["j"]
    assert fleet("ls").returncode == 0


def test_hints_name_the_commands_as_they_were_called(fleet, spool):
    assert "bin/fleetd runs jobs; bin/fleet up starts" in fleet(FLEET_CALLED="bin/").stderr
    assert ": fleetd runs jobs; fleet up starts" in fleet().stderr


def test_a_title_stands_in_the_command_s_place(fleet, spool):
    job = {"id": "t1", "argv": ["fleet-plan", "read"], "payload": {"title": "flank.bias 0.75 → 0.5"}}
    assert fleet("submit", "--from", "-", stdin=json.dumps(job)).returncode == 0
    listed, shown = fleet("ls").stdout, fleet("show", "t1").stdout
    assert "waits: no daemon runs  flank.bias 0.75 → 0.5" in listed
    assert "fleet-plan" not in listed
    assert ("flank.bias 0.75 → 0.5" in shown, "fleet-plan read" in shown) == (True, True)


@pytest.mark.parametrize("payload", [{"title": 3}, {"title": " "}, {}, {"title": None}])
def test_a_title_that_is_none_leaves_the_command(fleet, spool, payload):
    fleet("submit", "--from", "-", stdin=json.dumps({"argv": ["echo", "hi"], "payload": payload}))
    assert fleet("ls").stdout.rstrip().endswith("echo hi")


def test_jobs_of_one_short_name_are_listed_by_their_whole_names(fleet, spool):
    ids = [f"50-2026113{n}T165200.123456Z-trial-9f3a2c" for n in (0, 1)]
    for id_ in ids:
        fleet("submit", "--from", "-", stdin=json.dumps({"argv": ["true"], "id": id_}))
    assert [line.split()[0] for line in fleet("ls").stdout.splitlines()[1:]] == ids


def beat(spool, host, **also):
    """What a daemon on another machine would have written just now."""
    body = {"pid": 1, "counter": 1, "lanes": 2, "busy": [], "tags": [], "stops": {}, "at": utc(time.time())}
    body |= {"breaker": {"open": False, "until": None, "reason": None}, "claims": None}
    (spool / "hosts" / f"{host}.json").write_text(json.dumps(body | also))


def ended(job, **also):
    row = {"event": "result", "job": job, "attempt": 1, "outcome": "ok", "next": None, "wall_s": 12.0}
    return row | {"argv": ["true"], "payload": {}, "result": None} | also


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({"schema": "x/1", "reads": [[1, 2.0, 3.0]], "plays": 110, "failed": 0, "rules": None}, "plays 110"),
        ({"lines": 0}, "lines 0"),
        ({"void": True, "net": "a.npz"}, "void, net a.npz"),
        ([1, 2], "1, 2"),
        (0.5, "0.5"),
        ({"reads": [[1, 2]]}, ""),
    ],
)
def test_results_tell_the_plain_values_alone(fleet, spool, result, told):
    Ledger(spool / "ledger.d").append("calber", [ended("j", result=result)])
    assert fleet("results").stdout.rstrip().partition("  true")[2].strip() == told


def test_results_are_aligned_and_whole_in_a_pipe(fleet, spool):
    title = "many words " * 12 + "and the end"
    rows = [ended("j"), ended("trial-9f3a2c", wall_s=700.0, payload={"title": title}), ended("k", outcome="lost")]
    Ledger(spool / "ledger.d").append("calber", rows)
    first, second, third = fleet("results").stdout.splitlines()
    assert [first.index("ok"), second.index("ok")] == [third.index("lost")] * 2
    assert (second.endswith(f"  {title}"), first.index("true")) == (True, second.index("many"))


def test_rejected_and_cancelled_are_counted_apart_from_failed(fleet, spool):
    rows = [ended("r", outcome="rejected", attempt=0), ended("c", outcome="cancelled"), ended("f", outcome="failed")]
    Ledger(spool / "ledger.d").append("calber", rows)
    done = fleet()
    assert done.stdout.startswith("0 queued, 0 running, 0 done, 1 failed, 1 cancelled, 1 rejected\n")
    assert "what was rejected never ran: fleet show r says why" in done.stderr
    assert "hint: fleet show f    fleet retry f\n" in done.stderr


def test_the_newest_failures_are_shown_and_the_others_counted(fleet, spool):
    rows = [ended(f"f{n}", outcome="failed", at=f"2026-11-30T16:00:0{n}.000000Z") for n in range(5)]
    Ledger(spool / "ledger.d").append("calber", rows)
    done = fleet()
    assert [line.split()[1] for line in done.stdout.splitlines()[2:]] == ["f2", "f3", "f4"]
    assert done.stdout.splitlines()[1] == "  and 2 more before: fleet results"
    assert "hint: fleet show f4    fleet retry f4    or all 5 that failed: fleet retry --failed\n" in done.stderr


def test_a_name_that_is_used_up_is_seen_when_it_comes_again(fleet, spool):
    again = {"reason": "it has ended ok"} | ended("x", outcome="rejected", attempt=0)
    for row in (ended("y", outcome="rejected", attempt=0), ended("x"), ended("y"), again):
        Ledger(spool / "ledger.d").append("calber", [row])
    done = fleet()
    assert done.stdout.startswith("0 queued, 0 running, 2 done, 0 failed\n✗ x rejected (it has ended ok) on calber")
    assert "queue the job under another" in done.stderr


def test_a_rejected_file_is_shown_with_its_place_and_reason(fleet, spool):
    (spool / "rejected" / "r.json").write_text("{}")
    Ledger(spool / "ledger.d").append("calber", [ended("r", outcome="rejected", attempt=0, reason="no argv")])
    text = fleet("show", "r").stdout
    assert f"{spool}/rejected/r.json: mend it and move it to {spool}/queue" in text
    assert ("rejected (no argv)" in text, "none written" in text) == (True, False)


def test_a_waiting_job_is_not_queued_again(fleet, spool):
    fleet("submit", "--from", "-", stdin='{"argv": ["true"], "id": "j"}')
    done = fleet("retry", "j")
    assert (done.returncode, "waits in the queue already" in done.stderr) == (65, True)


def test_two_dots_in_a_path_are_followed_once(fleet, tmp_path):
    (tmp_path / "a").mkdir()
    assert fleet("init", "-q", "--spool", "a/../b").stdout == f"{tmp_path.resolve()}/b\n"


def test_a_spool_that_others_may_write_to_is_77(fleet, spool):
    (spool / "queue").chmod(0o777)
    assert fleet("ls").returncode == 77


def test_version_before_and_after_the_command(fleet):
    assert fleet("--version").stdout.startswith("fleet 0.")
    assert fleet("ls", "--version").returncode == 0


def test_damaged_lines_are_skipped_counted_and_said(fleet, spool):
    ledger = Ledger(spool / "ledger.d")
    ended = {"event": "result", "attempt": 1, "outcome": "ok", "next": None, "payload": {"k": [0.5]}, "result": None}
    ledger.append("calber", [ended | {"job": f"j{number}"} for number in range(4)])
    segment = spool / "ledger.d" / "calber.jsonl"
    first, second, third, fourth = segment.read_bytes().splitlines(keepends=True)
    bad = second.replace(b'"j1"', b'"jx"')
    segment.write_bytes(first + bad + b"\0" * 8192 + third + b'{"half": ' + fourth[:40])
    (state,) = objects(fleet("--json"))
    assert (state["done"], state["skipped"]) == (2, 2)
    assert [row["job"] for row in objects(fleet("results", "--json"))] == ["j0", "j2"]
    assert fleet("show", "jx").returncode == 66


def test_of_several_ok_rows_the_lowest_attempt_counts():
    last = {}
    for seq, (attempt, outcome) in enumerate(((1, "lost"), (3, "ok"), (2, "ok"), (4, "lost")), 1):
        keep_newest(last, Row("calber", seq, "result", "", ended("j", attempt=attempt, outcome=outcome)))
    assert last["j"].body["attempt"] == 2


@pytest.mark.parametrize(
    ("lengths", "kind", "also", "told"),
    [
        ([2.0] * 6, "trial", {}, True),
        ([2.0] * 6, "job", {}, False),
        ([2.0] * 4, "trial", {}, False),
        ([0.1, 0.1, 0.1, 60.0, 0.1, 90.0], "trial", {}, False),
        ([2.0] * 6, "trial", {"needs": ["gpu"]}, False),
        ([2.0] * 6, "trial", {"after": ["nosuch"]}, False),
    ],
)
def test_the_time_to_empty_is_told_only_of_jobs_like_those_that_ended(fleet, spool, lengths, kind, also, told):
    rows = [{"kind": "trial"} | ended(f"j{n}", wall_s=length) for n, length in enumerate(lengths)]
    Ledger(spool / "ledger.d").append("mira", rows)
    beat(spool, "mira")
    (spool / "queue" / "j9.json").write_text(json.dumps({"argv": ["true"], "kind": kind} | also))
    assert (" to empty" in fleet().stdout) is told
    (spool / "hosts" / "mira.drain").touch()
    assert " to empty" not in fleet().stdout


def test_submit_warns_of_what_would_wait_for_ever(fleet, spool):
    beat(spool, "mira")
    warned = fleet("submit", "--after", "nosuch", "--", "true")
    assert (warned.returncode, "warning: nosuch: no such job yet" in warned.stderr) == (0, True)
    assert "warning: needs 9 lanes, mira has 2: it waits\n" in fleet("submit", "--cores", "9", "--", "true").stderr
    after = fleet("submit", "-q", "--", "true").stdout.strip()
    assert "warning" not in fleet("submit", "--cores", "2", "--after", after, "--", "true").stderr


def test_an_unknown_option_is_told_with_its_nearest_and_the_command_s_usage(fleet, spool):
    done = fleet("submit", "--prio", "5", "--", "true")
    assert done.returncode == 2
    assert done.stderr.startswith("usage: fleet submit ")
    assert done.stderr.endswith("unrecognized arguments: --prio; did you mean --priority?\n")
    assert fleet("ls", "--foo").stderr.endswith("unrecognized arguments: --foo\n")


def test_a_time_that_is_none_is_said_in_the_field_s_words(fleet):
    done = fleet("submit", "--timeout", "1h", "--", "true")
    assert (done.returncode, "1h: expected a number of seconds above 0" in done.stderr) == (2, True)


def test_an_error_says_what_to_do(fleet, spool):
    (spool / "rejected" / "r.json").write_text("{}")
    Ledger(spool / "ledger.d").append("calber", [ended("x"), ended("r", outcome="rejected", attempt=0)])
    assert "fleet show x says what became of it" in fleet("cancel", "x").stderr
    assert "it has never run; fleet show r says where it is" in fleet("retry", "r").stderr
    assert fleet("retry", "--failed").stderr == "no job failed: nothing to queue again\n"


def test_undrain_says_that_a_host_claims_only_where_it_does(fleet, spool):
    beat(spool, "mira")
    assert fleet("hosts", "undrain", "mira").stderr == "mira claims jobs again\n"
    beat(spool, "mira", breaker={"open": True, "until": None, "reason": "exit 3"})
    assert "its breaker is open: fleet hosts reset mira" in fleet("hosts", "undrain", "mira").stderr
    beat(spool, "mira", ended=utc(time.time()))
    assert "no daemon runs there: fleetd starts one" in fleet("hosts", "undrain", "mira").stderr


def test_an_open_breaker_is_short_in_the_table_and_whole_below(fleet, spool):
    why = "50-20261130T165200.123456Z-job-9f3a2c failed, exit 3; b failed, exit 3"
    beat(spool, "mira", breaker={"open": True, "until": None, "reason": why})
    done = fleet("hosts")
    assert done.stdout.splitlines()[1].split()[:5] == ["mira", "breaker", "open", "1", "0/2"]
    told = (
        "mira: breaker open: job-9f3a2c failed, exit 3; b failed, exit 3; once that is mended: fleet hosts reset mira"
    )
    assert done.stderr == f"{told}\n"
