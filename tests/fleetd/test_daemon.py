"""fleetd as a process: one per host, its signals, its settings, its breaker."""

import os
import signal
import subprocess

import pytest

from fleetd import Ledger, find_spool, ledger_lines, utc
from fleetd.cli_daemon import main
from fleetd.errors import NotFound, NotPermitted


def test_a_stale_lock_that_names_a_living_stranger_is_no_hindrance(rig):
    for name in ("calber.lock", "calber.json"):
        (rig.spool.hosts / name).write_text('{"pid": 1, "host": "calber"}')
    rig.start()
    assert rig.ended(rig.drop("j", "true"))["outcome"] == "ok"


def test_a_second_daemon_of_the_host_is_75_with_one_clear_line(rig):
    first = rig.start()
    assert rig.once() == 75
    line = rig.said().splitlines()[-1]
    assert "another fleetd serves calber" in line
    assert first.poll() is None
    assert rig.ended(rig.drop("j", "true"))["outcome"] == "ok"


def test_a_killed_daemon_is_not_its_own_duplicate(rig):
    rig.start()
    rig.kill()
    rig.start()
    assert rig.ended(rig.drop("j", "true"))["outcome"] == "ok"


def test_two_hosts_on_one_spool_run_each_job_once(rig, wait_for):
    rig.start(host="one.example")
    rig.start(host="TWO")
    for n in range(60):
        rig.shell(f"j{n:02d}", f"echo x >> {rig.root}/ran-{n}", rerun_safe=True)
    wait_for(lambda: len(rig.rows()) >= 60, 20)
    assert sorted(row["job"] for row in rig.rows()) == [f"j{n:02d}" for n in range(60)]
    assert {(rig.root / f"ran-{n}").read_text() for n in range(60)} == {"x\n"}
    assert {row["host"] for row in rig.rows()} == {"one.example", "TWO"}


@pytest.fixture
def answer(rig):
    """`answer(*flags)`: the exit code of fleetd where it doesn't come to serving."""

    def code(*flags):
        try:
            return main(["--spool", str(rig.root), "--once", *flags])
        except SystemExit as ended:
            return ended.code

    return code


@pytest.mark.parametrize("name", ["../up", "a/b", "-x", "/", "a b"])
def test_a_host_s_name_must_name_a_file(answer, name):
    assert answer(f"--host={name}") == 2


def test_sigterm_lets_go_and_the_next_daemon_adopts(rig):
    daemon = rig.start()
    rig.shell("goes-on", "until test -e $FLEET_SPOOL/go; do sleep 0.02; done; exit 7")
    pid = rig.pid("goes-on")
    daemon.send_signal(signal.SIGTERM)
    assert daemon.wait(3) == 0
    assert pid["pid"] in rig.jobs()
    rig.start()
    (rig.root / "go").touch()
    row = rig.ended("goes-on", limit_s=3)
    assert (row["outcome"], row["exit"], row["attempt"]) == ("failed", 7, 1)


def test_idle_parents_end_with_their_daemon(rig, wait_for):
    daemon = rig.start()
    rig.ended(rig.drop("j", "true"))
    assert rig.parents()
    daemon.terminate()
    assert daemon.wait(3) == 0
    wait_for(lambda: not rig.parents(), 2)


def test_sigint_drains_and_claims_nothing_more(rig, wait_for):
    daemon = rig.start(lanes=1)
    rig.shell("runs", "until test -e $FLEET_SPOOL/go; do sleep 0.02; done")
    rig.pid("runs")
    daemon.send_signal(signal.SIGINT)
    wait_for(lambda: "draining" in (rig.beat()["claims"] or ""))
    rig.drop("waits", "true")
    (rig.root / "go").touch()
    assert daemon.wait(5) == 0
    assert [row["outcome"] for row in rig.rows()] == ["ok"]
    assert rig.spool.waiting() == ["waits"]


def test_a_second_sigint_ends_the_jobs_as_a_stop_does(rig, wait_for):
    daemon = rig.start()
    rig.shell("long", "sleep 100", rerun_safe=True)
    rig.pid("long")
    daemon.send_signal(signal.SIGINT)
    wait_for(lambda: "draining" in (rig.beat()["claims"] or ""))
    daemon.send_signal(signal.SIGINT)
    assert daemon.wait(5) == 130
    assert [(row["outcome"], row["next"]) for row in rig.rows()] == [("stopped", 2)]
    assert rig.spool.waiting() == ["long"]
    assert not rig.jobs()


def test_sighup_reads_the_settings_again(rig, wait_for):
    daemon = rig.start("--tags", "x")
    rig.settings(grace_s=0.2)
    daemon.send_signal(signal.SIGHUP)
    wait_for(lambda: "settings read again" in rig.said())
    rig.shell("deaf", "trap '' TERM; while :; do sleep 0.05; done", timeout_s=0.2)
    assert rig.ended("deaf")["wall_s"] < 1.0


def test_a_reload_with_errors_keeps_the_old_settings(rig, wait_for):
    daemon = rig.start()
    rig.spool.settings.write_text('poll_s = "often"\nlanes = 3\n')
    daemon.send_signal(signal.SIGHUP)
    wait_for(lambda: "the old settings stay" in rig.said())
    assert "fleet.toml:1:1: poll_s" in rig.said()
    assert "fleet.toml:2:1: lanes" in rig.said()
    assert rig.ended(rig.drop("j", "true"))["outcome"] == "ok"


def test_errors_in_the_settings_keep_it_from_starting_with_78(rig, answer, capsys):
    rig.spool.settings.write_text("polls = 1\n")
    assert answer() == 78
    assert "did you mean poll_s?" in capsys.readouterr().err
    assert answer("--check-config") == 78


@pytest.mark.parametrize("flags", [["--lanes", "0"], ["--lanes", "-1"], ["--tags", "a b"], ["--lane", "2"], ["--onc"]])
def test_a_wrong_command_line_is_2(answer, flags):
    assert answer(*flags) == 2


def test_no_spool_is_66_with_the_command_that_makes_one(tmp_path):
    with pytest.raises(NotFound, match="fleet init --spool"):
        find_spool(str(tmp_path / "none"), {})


def test_a_spool_that_others_may_write_to_is_refused(rig, answer):
    rig.spool.queue.chmod(0o777)
    with pytest.raises(NotPermitted, match="queue"):
        find_spool(str(rig.root), {})
    assert answer() == 77
    rig.spool.queue.chmod(0o1777)
    assert find_spool(None, {"FLEET_SPOOL": str(rig.root)}).root == rig.root


@pytest.mark.parametrize(
    "name",
    ["running/calber", "hosts/calber.json", "hosts/calber.lock", "ledger.d/calber.jsonl", "ledger.jsonl", "fleet.toml"],
)
def test_what_others_may_write_to_below_the_tree_is_refused_as_well(rig, name):
    rig.drop("j", "true")
    assert rig.once() == 0
    at = rig.root / name
    at.chmod(0o777)
    assert rig.once() == 77
    assert f"{at}: others may write here; chmod o-w {at}" in rig.said()
    at.chmod(0o775)
    assert rig.once() == 0


def test_running_with_the_sticky_bit_and_other_hosts_files_are_no_hindrance(rig):
    for name in ("running/calber", "running/other"):
        (rig.root / name).mkdir()
    (rig.root / "running/calber").chmod(0o1777)
    (rig.root / "running/other").chmod(0o777)
    assert rig.once() == 0


def test_with_no_umask_at_all_nothing_is_made_that_others_may_write_to(rig):
    rig.shell("makes", "touch $FLEET_OUT/file; mkdir $FLEET_OUT/sub")
    assert rig.once(wrap=("sh", "-c", 'umask 0; exec "$0" "$@"')) == 0
    made = [path for path in rig.root.rglob("*") if path.lstat().st_mode & 0o002]
    assert made == []
    assert rig.once() == 0


def test_once_with_nothing_to_do_is_0(rig):
    assert rig.once() == 0


def test_once_leaves_what_is_not_for_this_host(rig):
    rig.drop("tagged", "true", needs=["gpu"])
    rig.drop("unheard", "true", after=["nobody"])
    assert rig.once() == 0
    assert rig.spool.waiting() == ["tagged", "unheard"]


def test_five_different_failures_open_the_breaker(rig, wait_for):
    rig.settings(failures=5, rest_s=60)
    for n in range(9):
        rig.drop(f"bad-{n}", "false")
    rig.start(lanes=1)
    beat = wait_for(lambda: rig.beat() if rig.beat()["breaker"]["open"] else None)
    assert "5 different jobs failed in a row" in beat["breaker"]["reason"]
    assert "hosts reset calber" in rig.beat()["claims"]
    assert [row["outcome"] for row in rig.rows()] == ["failed"] * 5
    assert {row["scope"] for row in rig.rows("breaker")} == {"host", "fleet"}
    assert "bad-4" in (rig.root / "STOP_ADDING").read_text()


def failures_elsewhere(rig, *hosts):
    """Put into the ledger what another fleet's hosts have failed at, as `fleet-plan merge` does."""
    root = rig.root.parent / "elsewhere"
    root.mkdir()
    for host in hosts:
        failed = {"event": "result", "by": "x", "attempt": 1, "outcome": "failed", "next": None, "started": utc(0)}
        Ledger(root).append(host, [failed | {"job": f"{host}-{n}"} for n in range(9)])
        Ledger(rig.spool.ledger_d).graft(host, [line for _, line in ledger_lines(root / f"{host}.jsonl")])


def test_failures_of_another_fleet_stop_nothing_here(rig, wait_for):
    rig.settings(failures=5, rest_s=60, poll_s=0.1)
    rig.start()
    rig.ended(rig.drop("first", "true"))
    failures_elsewhere(rig, "ada", "bob")
    wait_for(lambda: len((rig.root / "ledger.jsonl").read_bytes().splitlines()) == 19)
    rig.ended(rig.drop("good", "true"))
    assert (rig.rows("breaker"), rig.spool.stops()) == ([], frozenset())


def test_hosts_of_another_fleet_leave_the_only_one_here_the_only_one(rig, wait_for):
    rig.settings(failures=5, rest_s=60)
    failures_elsewhere(rig, "ada")
    for n in range(5):
        rig.drop(f"bad-{n}", "false")
    rig.start(lanes=1)
    wait_for(rig.spool.stops)
    assert "bad-4" in (rig.root / "STOP_ADDING").read_text()


def test_what_stands_for_a_reset_and_cannot_be_removed_is_heeded_once_at_most(rig, wait_for):
    (rig.spool.hosts / "calber.reset").mkdir()
    rig.settings(poll_s=0.1)
    rig.start()
    for n in range(5):
        rig.ended(rig.drop(f"j{n}", "true"))
        before = rig.beat()["counter"]
        (rig.spool.hosts / "calber.drain").touch()
        wait_for(lambda before=before: rig.beat()["counter"] > before)
        (rig.spool.hosts / "calber.drain").unlink()
    assert rig.rows("note") == []


def test_a_reset_closes_the_breaker(rig, wait_for):
    rig.settings(failures=2, rest_s=60)
    for n in range(2):
        rig.drop(f"bad-{n}", "false")
    rig.start(lanes=1)
    wait_for(lambda: rig.beat()["breaker"]["open"])
    rig.drop("good", "true")
    (rig.spool.hosts / "calber.reset").touch()
    assert rig.ended("good", limit_s=2)["outcome"] == "ok"
    assert not rig.beat()["breaker"]["open"]
    assert not (rig.spool.hosts / "calber.reset").exists()


def test_after_its_rest_one_probe_closes_it_or_has_it_rest_again(rig, wait_for):
    rig.settings(failures=2, rest_s=0.5, poll_s=0.1)
    for name in ("bad-0", "bad-1", "bad-2"):
        rig.drop(name, "false")
    for name in ("good-3", "good-4"):
        rig.drop(name, "true")
    rig.start(lanes=2)
    rig.ended("good-4")
    rows = {row["job"]: row for row in rig.rows()}
    assert rows["good-3"]["started"] >= rows["bad-2"]["ended"]
    assert rows["good-4"]["started"] >= rows["good-3"]["ended"]
    wait_for(lambda: not rig.beat()["breaker"]["open"])


def test_a_breaker_stays_open_over_a_restart(rig, wait_for):
    rig.settings(failures=2, rest_s=60)
    for n in range(2):
        rig.drop(f"bad-{n}", "false")
    rig.start()
    wait_for(lambda: rig.beat()["breaker"]["open"])
    rig.kill()
    rig.drop("waits", "true")
    assert rig.once() == 75
    assert "breaker" in rig.said().splitlines()[-1]
    assert rig.spool.waiting() == ["waits"]


def test_exit_75_and_a_stop_between_failures_do_not_count(rig, wait_for):
    rig.settings(failures=5, grace_s=0.2)
    rig.start(lanes=1)
    for n in range(4):
        rig.ended(rig.drop(f"bad-{n}", "false"))
    rig.ended(rig.shell("refuses", "exit 75"))
    rig.shell("stopped", "sleep 100")
    rig.pid("stopped")
    (rig.root / "STOP_NOW").touch()
    rig.ended("stopped")
    assert not rig.rows("breaker")
    assert not rig.beat()["breaker"]["open"]


def test_a_drained_host_claims_nothing_until_undrained(rig, wait_for):
    (rig.spool.hosts / "calber.drain").touch()
    rig.drop("waits", "true")
    rig.start()
    wait_for(lambda: "drained" in (rig.beat()["claims"] or ""))
    (rig.spool.hosts / "calber.drain").unlink()
    assert rig.ended("waits", limit_s=2)["outcome"] == "ok"


def test_too_little_space_claims_nothing_and_says_so(rig, wait_for):
    rig.settings(min_free_mb=1e12)
    rig.drop("waits", "true")
    rig.start()
    wait_for(lambda: "min_free_mb" in (rig.beat()["claims"] or ""))
    assert rig.spool.waiting() == ["waits"]


def test_the_merged_view_has_every_row_once(rig, wait_for):
    rig.start()
    for n in range(10):
        rig.ended(rig.drop(f"j{n}", "true"))
    segment = rig.spool.ledger_d / "calber.jsonl"
    wait_for(lambda: rig.spool.ledger.exists() and rig.spool.ledger.read_bytes() == segment.read_bytes())
    rig.kill()
    rig.start()
    rig.ended(rig.drop("again", "true"))
    wait_for(lambda: rig.spool.ledger.read_bytes() == segment.read_bytes())


@pytest.mark.parametrize("name", ["ledger.jsonl", "ledger.d/calber.jsonl", "hosts/calber.json"])
@pytest.mark.parametrize("kind", ["fifo", "link"])
def test_a_fifo_or_link_in_a_file_s_place_blocks_no_daemon_and_is_not_followed(rig, wait_for, tmp_path, name, kind):
    at, target = rig.root / name, tmp_path / "target"
    target.write_text("mine")
    os.mkfifo(at) if kind == "fifo" else at.symlink_to(target)
    daemon = rig.start(ready=False)
    rig.shell("j", "sleep 100")
    (rig.root / "STOP_NOW").touch()
    wait_for(lambda: rig.beat().get("pid") == daemon.pid)
    wait_for(lambda: not rig.jobs(), 5)
    assert target.read_text() == "mine"
    daemon.terminate()
    assert daemon.wait(3) in (0, -signal.SIGTERM)


def test_without_file_events_polling_carries_on_with_one_line(rig, wait_for):
    """No inotify instance is left: the limit is set to none in a user namespace of its own."""
    command = [
        "unshare",
        "--user",
        "--map-root-user",
        "sh",
        "-c",
        "echo 0 > /proc/sys/user/max_inotify_instances && exec $0 $@",
    ]
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces here")
    rig.settings(poll_s=0.2)
    daemon = rig.start(ready=False, wrap=command)
    wait_for(rig.beat)
    assert rig.ended(rig.drop("j", "true"), limit_s=3)["outcome"] == "ok"
    assert sum("looking every poll_s" in line for line in rig.said().splitlines()) == 1
    assert daemon.poll() is None


def test_a_job_that_has_failed_for_good_is_said_once_as_a_warning(rig):
    rig.shell("again", "exit 3", retries=1)
    rig.shell("gone", "kill -9 $$")
    rig.shell("good", "true")
    rig.once(env={"JOURNAL_STREAM": "8:1"})
    told = [line for line in rig.said().splitlines() if line.startswith("<4>")]
    assert sorted(told) == [
        "<4>again failed, exit 3; fleet show again says more",
        "<4>gone failed, signal 9; fleet show gone says more",
    ]
