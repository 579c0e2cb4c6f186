"""What a job finds when it runs, and what its row says: one real daemon that sleeps until something happens."""

import hashlib
import json
import os
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

AWKWARD = ["a b", "it's", '"quoted"', "new\nline", "$HOME", "`id`", "", "-rf", "*", "\\", "é", "--", "a;b|c&"]


def argv_bytes(log):
    return log.split(b"\0")[:-1]


def test_a_hand_dropped_file_runs(busy):
    row = busy.ended(busy.drop("hand", "echo", "hi"))
    assert (row["outcome"], row["exit"], row["attempt"], row["next"]) == ("ok", 0, 1, None)
    assert busy.log(row) == b"hi\n"
    assert row["argv"] == ["echo", "hi"]
    assert not (busy.spool.queue / "hand.json").exists()


def test_a_file_that_appears_starts_well_before_the_next_poll(busy):
    began = time.monotonic()
    busy.ended(busy.drop("at-once", "true"))
    assert time.monotonic() - began < 1.0


def test_a_file_that_appears_right_after_a_claim_starts_at_once(busy, wait_for):
    took = []
    for n in range(5):
        dropped = datetime.now(UTC)
        row = busy.ended(busy.drop(f"chat-{n}", "true"))
        took.append((datetime.fromisoformat(row["started"]) - dropped).total_seconds())
        wait_for(lambda: busy.beat()["busy"] == [])
    assert sorted(took)[2] < 0.15


def test_the_next_job_starts_as_soon_as_a_lane_is_free(busy):
    for n in range(12):
        busy.shell(f"chain-{n:02d}", "sleep 0.1")
    began = time.monotonic()
    rows = [busy.ended(f"chain-{n:02d}") for n in range(12)]
    assert time.monotonic() - began < 3.0
    assert {row["outcome"] for row in rows} == {"ok"}


def test_argv_arrives_as_it_was_given(busy):
    row = busy.ended(busy.drop("argv", "sh", "-c", 'printf "%s\\0" "$@"', "sh", *AWKWARD))
    assert argv_bytes(busy.log(row)) == [word.encode() for word in AWKWARD]
    assert row["argv"][4:] == AWKWARD


def test_arguments_that_are_not_utf_8_are_kept_as_bytes(busy):
    row = busy.ended(busy.drop("bytes", "printf", "%s\\0", "\udcff\udcfe"))
    assert argv_bytes(busy.log(row)) == [b"\xff\xfe"]


def test_the_command_itself_may_have_a_space_in_its_name(busy, tmp_path):
    command = tmp_path / "my command"
    command.write_text("#!/bin/sh\necho ran\n")
    command.chmod(0o755)
    assert busy.log(busy.ended(busy.drop("space", str(command)))) == b"ran\n"


def test_a_job_knows_what_and_where_it_is(busy):
    row = busy.ended(busy.drop("env", "env", cores=2))
    env = dict(line.split("=", 1) for line in busy.log(row).decode().splitlines())
    path = busy.attempt("env")
    expected = {"SPOOL": busy.root, "JOB": path / "job.json", "JOB_ID": "env", "ATTEMPT": 1, "HOST": "calber"}
    expected |= {"OUT": path / "out", "RESULT": path / "result.json", "CORES": 2}
    assert {key: env[f"FLEET_{key}"] for key in expected} == {key: str(value) for key, value in expected.items()}
    assert {env[f"{name}_NUM_THREADS"] for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")} == {"2"}


def test_a_job_s_env_wins_over_all_but_the_mark(busy):
    own = {"OMP_NUM_THREADS": "7", "FLEET_HOST": "mine", "FLEET_CLAIM": "forged", "K": "v = 1\n"}
    row = busy.ended(busy.shell("mark", 'printf "%s|" "$OMP_NUM_THREADS" "$FLEET_HOST" "$FLEET_CLAIM" "$K"', env=own))
    threads, host, claim, value, _ = busy.log(row).decode().split("|")
    assert (threads, host, value) == ("7", "mine", "v = 1\n")
    assert claim != "forged"
    assert len(claim) >= 16


def test_what_was_meant_for_the_daemon_is_withheld(rig):
    meant = {"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "9000000", "WATCHDOG_PID": "1", "LISTEN_FDS": "1"}
    meant |= {
        "INVOCATION_ID": "x",
        "PYTHONPATH": "/nowhere",
        "PYTHONDONTWRITEBYTECODE": "1",
        "KEPT": "1",
    }
    rig.drop("env", "env")
    assert rig.once(env=meant) == 0
    names = {line.split("=")[0] for line in rig.log(rig.ended("env")).decode().splitlines()}
    assert names.isdisjoint(meant.keys() - {"KEPT"})
    assert {"KEPT", "PATH", "HOME"} <= names


def test_stdin_is_empty_the_umask_022_and_the_place_its_own_out(busy):
    row = busy.ended(busy.shell("place", 'cat; umask; pwd; test "$PWD" = "$FLEET_OUT"'))
    assert row["outcome"] == "ok"
    assert busy.log(row).decode().split() == ["0022", str(busy.attempt("place") / "out")]


def test_signals_are_reset(busy):
    row = busy.ended(busy.shell("signals", "grep -E 'Sig(Ign|Blk)' /proc/self/status"))
    assert {int(line.split()[1], 16) for line in busy.log(row).splitlines()} == {0}


def test_a_job_has_no_descriptor_but_its_own(busy):
    row = busy.ended(busy.shell("fds", "ls -l /proc/$$/fd"))
    kept = [line.rpartition("-> ")[2] for line in busy.log(row).decode().splitlines() if "->" in line]
    path = str(busy.attempt("fds"))
    assert sorted(kept) == sorted(["/dev/null", f"{path}/log", f"{path}/log", f"{path}/lock"])


def test_cwd_is_where_it_runs(busy, tmp_path):
    assert busy.log(busy.ended(busy.drop("cwd", "pwd", cwd=str(tmp_path)))).decode().strip() == str(tmp_path)


def test_a_cwd_that_is_not_there_is_said(busy):
    row = busy.ended(busy.drop("no-cwd", "pwd", cwd="/no/such/place"))
    assert (row["outcome"], row["exit"]) == ("failed", 126)
    assert "/no/such/place" in row["reason"]


def test_a_command_not_found_is_failed_127_with_the_reason(busy):
    row = busy.ended(busy.drop("missing", "no-such-command-here", "x"))
    assert (row["outcome"], row["exit"]) == ("failed", 127)
    assert "no-such-command-here" in row["reason"]


@pytest.mark.parametrize(
    ("job", "name"), [("by-path", "{}/interpreted"), ("by-name", "interpreted"), ("from-cwd", "./interpreted")]
)
def test_an_interpreter_that_is_not_there_is_named(busy, tmp_path, job, name):
    (tmp_path / "interpreted").write_text("#!/nonexistent/x -u\n")
    (tmp_path / "interpreted").chmod(0o755)
    program, env = name.format(tmp_path), {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    row = busy.ended(busy.drop(job, program, cwd=str(tmp_path), env=env))
    assert (row["outcome"], row["exit"]) == ("failed", 127)
    assert row["reason"] == f"{program}: its interpreter /nonexistent/x is not there"


def test_a_path_that_leads_nowhere_is_said_without_a_word_of_the_path(busy):
    row = busy.ended(busy.drop("nowhere", "/no/such/program"))
    assert (row["exit"], row["reason"]) == (127, "/no/such/program: no such file")


def test_a_script_without_a_first_line_is_told_what_it_lacks(busy, tmp_path):
    (tmp_path / "bare").write_text("echo\n")
    (tmp_path / "bare").chmod(0o755)
    row = busy.ended(busy.drop("bare", str(tmp_path / "bare")))
    assert (row["exit"], "#!/bin/sh" in row["reason"]) == (126, True)


def test_the_command_is_looked_for_on_the_job_s_own_path(busy, tmp_path):
    command = tmp_path / "only-here"
    command.write_text("#!/bin/sh\necho found\n")
    command.chmod(0o755)
    row = busy.ended(busy.drop("path", "only-here", env={"PATH": f"{tmp_path}:/usr/bin:/bin"}))
    assert busy.log(row) == b"found\n"


def test_what_cannot_be_executed_is_failed_126_with_the_reason(busy, tmp_path):
    (tmp_path / "plain").write_text("text")
    row = busy.ended(busy.drop("plain", str(tmp_path / "plain")))
    assert (row["outcome"], row["exit"]) == ("failed", 126)
    assert "plain" in row["reason"]


@pytest.mark.parametrize(
    ("script", "exit_code", "number"), [("exit 3", 3, None), ("kill -9 $$", None, 9), ("kill -SEGV $$", None, 11)]
)
def test_an_exit_or_a_signal_is_told_apart(busy, script, exit_code, number):
    row = busy.ended(busy.shell(f"end-{exit_code}-{number}", script))
    assert (row["outcome"], row["exit"], row["signal"]) == ("failed", exit_code, number)


def test_a_result_is_kept_in_the_row(busy):
    script = 'echo \'{"reads": [1, 2.5], "é": null}\' > $FLEET_RESULT.new && mv $FLEET_RESULT.new $FLEET_RESULT'
    row = busy.ended(busy.shell("result", script, payload={"p": [1, {"q": "é"}]}))
    assert row["result"] == {"reads": [1, 2.5], "é": None}
    assert row["payload"] == {"p": [1, {"q": "é"}]}


def test_a_failed_job_s_result_is_kept_as_well(busy):
    row = busy.ended(busy.shell("partial", "echo 7 > $FLEET_RESULT; exit 1"))
    assert (row["outcome"], row["result"]) == ("failed", 7)


@pytest.mark.parametrize("value", ["NaN", '{"x": Infinity}', "half {", "", "[1e999]"])
def test_an_ok_with_an_unreadable_result_is_failed_with_the_reason(busy, value):
    name = f"bad-result-{len(value)}"
    row = busy.ended(busy.shell(name, f"printf '%s' '{value}' > $FLEET_RESULT"))
    assert (row["outcome"], row["exit"], row["result"]) == ("failed", 0, None)
    assert "JSON" in row["reason"]


def test_a_result_over_64_kib_stays_in_its_file_with_its_hash(busy, tmp_path):
    data = json.dumps(["x" * 70_000]).encode()
    (tmp_path / "big").write_bytes(data)
    row = busy.ended(busy.shell("big", f"cp {tmp_path}/big $FLEET_RESULT"))
    assert (row["outcome"], row["result"]) == ("ok", None)
    assert row["sha256"] == hashlib.sha256(data).hexdigest()
    assert (busy.root / row["result_file"]).read_bytes() == data


def test_a_fifo_as_result_blocks_nobody(rig):
    rig.start()
    row = rig.ended(rig.shell("fifo", "mkfifo $FLEET_RESULT"), limit_s=5)
    assert (row["outcome"], row["result"]) == ("failed", None)


def test_a_link_as_result_is_not_followed(busy, tmp_path):
    (tmp_path / "secret").write_text('"secret"')
    row = busy.ended(busy.shell("link", f"ln -s {tmp_path}/secret $FLEET_RESULT"))
    assert (row["outcome"], row["result"]) == ("failed", None)


def test_retries_are_for_failures_and_each_attempt_has_its_row(busy):
    busy.ended(busy.shell("retries", "echo $FLEET_ATTEMPT; exit 1", retries=2))
    rows = busy.results("retries")
    assert [(row["attempt"], row["outcome"], row["next"]) for row in rows] == [
        (1, "failed", 2),
        (2, "failed", 3),
        (3, "failed", None),
    ]
    assert [busy.log(row) for row in rows] == [b"1\n", b"2\n", b"3\n"]


def test_a_retry_that_ends_ok_is_the_last(busy):
    row = busy.ended(busy.shell("second-time", 'test "$FLEET_ATTEMPT" = 2', retries=5))
    assert (row["outcome"], row["attempt"]) == ("ok", 2)


def test_the_next_attempt_finds_what_the_last_one_left(busy):
    first = 'test -z "${FLEET_PREVIOUS+x}" && echo kept > $FLEET_OUT/state; exit 1'
    script = f"if [ $FLEET_ATTEMPT = 1 ]; then {first}; fi; cat $FLEET_PREVIOUS/state"
    row = busy.ended(busy.shell("previous", script, retries=1))
    assert busy.log(row) == b"kept\n"


def test_an_attempt_that_left_nothing_does_not_hide_what_the_one_before_it_left(busy):
    script = (
        "case $FLEET_ATTEMPT in 1) echo kept > $FLEET_OUT/state; exit 1;; 2) exit 1;; esac; cat $FLEET_PREVIOUS/state"
    )
    row = busy.ended(busy.shell("hidden", script, retries=2))
    assert busy.log(row) == b"kept\n"


def test_a_time_limit_ends_the_job_as_timeout(busy):
    began = time.monotonic()
    row = busy.ended(busy.shell("slow", "sleep 60", timeout_s=0.3))
    assert (row["outcome"], row["signal"]) == ("timeout", 15)
    assert 0.3 <= row["wall_s"] < 3.0
    assert time.monotonic() - began < 4.0


def test_a_job_that_exits_0_when_told_to_end_still_timed_out(busy):
    row = busy.ended(busy.shell("polite", "trap 'exit 0' TERM; sleep 60 & wait", timeout_s=0.3))
    assert (row["outcome"], row["exit"]) == ("timeout", 0)


def test_exit_75_goes_again_three_times_and_is_then_a_final_failure(busy):
    busy.ended(busy.shell("refuses", "exit 75"))
    rows = busy.results("refuses")
    assert [row["outcome"] for row in rows] == ["declined", "declined", "declined", "failed"]
    assert [row["next"] for row in rows] == [2, 3, 4, None]


def test_the_fourth_refusal_is_final_whatever_the_retries(busy):
    busy.ended(busy.shell("refuses-again", "exit 75", retries=3))
    assert [row["outcome"] for row in busy.results("refuses-again")] == ["declined", "declined", "declined", "failed"]


def test_a_row_has_all_that_the_page_lists(busy):
    row = busy.ended(busy.drop("row", "sh", "-c", ":", kind="trial", commit=None))
    keys = "schema event host boot seq at job attempt kind outcome exit signal reason next started ended wall_s cpu_s"
    keys += " max_rss_mb leftovers lane cores commit build payload result argv log crc"
    assert set(keys.split()) <= row.keys()
    assert (row["schema"], row["kind"], row["host"]) == ("fleet.row/1", "trial", "calber")
    assert row["log"] == f"ended/{row['at'][:10]}/row~1/log"
    assert row["started"] <= row["ended"] <= row["at"]


def test_the_ended_directory_is_whole(busy):
    row = busy.ended(busy.shell("whole", "echo data > $FLEET_OUT/file; echo 1 > $FLEET_RESULT"))
    path = (busy.root / row["log"]).parent
    assert {"job.json", "lock", "pid.json", "log", "result.json", "exit.json", "out"} == set(os.listdir(path))
    assert (path / "out/file").read_text() == "data\n"


def test_a_job_not_before_a_time_starts_then(rig):
    rig.settings(poll_s=0.2)
    rig.start()
    at = datetime.now(UTC) + timedelta(seconds=1)
    row = rig.ended(rig.drop("later", "true", not_before=at.isoformat()))
    assert datetime.fromisoformat(row["started"]) >= at


def test_a_row_can_be_read_by_others_however_deep_its_result(busy, tmp_path):
    for depth in (100, 500, 800, 940, 970, 990, 994):
        (tmp_path / f"{depth}").write_text("[" * depth + "]" * depth)
        row = busy.ended(busy.shell(f"deep-{depth}", f"cp {tmp_path}/{depth} $FLEET_RESULT"), limit_s=3)
        assert row["outcome"] == ("ok" if row["result"] else "failed")


def test_a_job_sees_nothing_of_the_environment_of_the_one_before_it(busy):
    show = 'echo "${ONCE-gone} $HOME"'
    first = busy.log(busy.ended(busy.shell("a", show)))
    assert busy.log(busy.ended(busy.shell("b", show, env={"ONCE": "1", "HOME": "/nowhere"}))) == b"1 /nowhere\n"
    assert busy.log(busy.ended(busy.shell("c", show))) == first


def test_a_job_is_waited_for_where_no_descriptor_is_left_to_wait_by(rig):
    boot = "import os; os.pidfd_open = lambda pid: os.open('/', os.O_WRONLY); "
    scarce = f"import fleetd.crew as c, sys; c._BOOT = {boot!r} + c._BOOT; from fleetd.cli_daemon import main; main(sys.argv[2:])"
    rig.start(wrap=(sys.executable, "-c", scarce))
    assert rig.ended(rig.shell("j", "sleep 0.3; exit 3"))["exit"] == 3
    assert rig.ended(rig.drop("k", "true"))["exit"] == 0
