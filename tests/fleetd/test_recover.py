"""kill -9 at any moment: directories as each such kill leaves them, then a daemon; nothing lost, nothing run twice."""

import json
import os
import signal
import subprocess

import pytest

from fleetd.job import Job, encode_job
from fleetd.lease import boot_id, born

TOKEN = boot_id().replace("-", "")[:8] + "0123456789abcdef"
OTHER_BOOT = "00000000" + "0123456789abcdef"
EXIT = {
    "outcome": "failed",
    "exit": 7,
    "signal": None,
    "reason": None,
    "started": None,
    "ended": "2026-11-30T00:00:00.000000Z",
}
EXIT |= {"wall_s": 1.0, "cpu_s": 0.5, "max_rss_mb": 9.0, "leftovers": 0}
DEAD = {"host": "calber", "boot": boot_id(), "lane": 0, "gpus": [], "parent": 4194300, "parent_born": "1"}
DEAD |= {"pid": 4194301, "pgid": 4194301, "born": "1"}


@pytest.fixture
def job(rig):
    """A job that says so each time it runs."""

    def made(**keys):
        return Job(**({"id": "j", "argv": ("sh", "-c", f"echo $FLEET_ATTEMPT >> {rig.root}/ran")} | keys))

    return made


@pytest.fixture
def left(rig):
    """`left(job, pid=…, exit=…)`: running/calber/j/ as a killed daemon left it."""

    def arrange(job, token=TOKEN, **files):
        path = rig.attempt(job.id)
        (path / "out").mkdir(parents=True)
        (path / "job.json").write_bytes(encode_job(job))
        (path / "lock").write_text(token)
        for name, value in files.items():
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            (path / f"{name}.json").write_bytes(data)
        return path

    return arrange


def ran(rig):
    """The attempts in which the job has run, in order."""
    said = rig.root / "ran"
    return said.read_text().split() if said.exists() else []


def outcomes(rig):
    return [(row["attempt"], row["outcome"], row["next"]) for row in rig.rows()]


def settled(rig, *flags):
    """A daemon until nothing is left to do; then nothing may be left in running/ or queue/."""
    assert rig.once(*flags) == 0, rig.said()
    assert list((rig.spool.running / "calber").iterdir()) == []
    assert rig.spool.waiting() == []


@pytest.mark.parametrize("made", [[], ["j"], ["j", "j/out"], ["j", "j/out", "j/lock"]])
def test_a_claim_that_never_became_a_directory_runs_once(rig, job, made):
    (rig.spool.running / "calber").mkdir()
    for name in made:
        at = rig.spool.running / "calber" / name
        at.write_text(TOKEN) if name.endswith("lock") else at.mkdir()
    (rig.spool.running / "calber" / f"j~1~{TOKEN}.json").write_bytes(encode_job(job()))
    settled(rig)
    assert ran(rig) == ["1"]
    assert outcomes(rig) == [(1, "ok", None)]


def test_a_claim_never_started_goes_back_and_runs_as_the_same_attempt(rig, job, left):
    left(job(attempt=3))
    settled(rig)
    assert outcomes(rig) == [(3, "ok", None)]
    assert ran(rig) == ["3"]


def test_a_draft_of_a_claim_s_rewriting_is_no_job(rig, job):
    (rig.spool.running / "calber").mkdir()
    claimed = rig.spool.running / "calber" / f"j~2~{TOKEN}.json"
    claimed.write_bytes(encode_job(job(attempt=1)))
    claimed.with_name(f".{claimed.name}.0a1b2c3d").write_bytes(encode_job(job(attempt=2))[:20])
    settled(rig)
    assert len(ran(rig)) == 1
    assert len(rig.rows()) == 1


def test_killed_after_exit_json_its_exit_code_is_kept(rig, job, left):
    left(job(), pid=DEAD, exit=EXIT, result={"reads": 3})
    settled(rig)
    (row,) = rig.rows()
    assert (row["outcome"], row["exit"], row["result"], row["lane"], row["wall_s"]) == (
        "failed",
        7,
        {"reads": 3},
        0,
        1.0,
    )
    assert (rig.root / row["log"]).parent.is_dir()
    assert ran(rig) == []


def test_killed_after_exit_json_it_goes_again_if_it_may(rig, job, left):
    left(job(retries=1), pid=DEAD, exit=EXIT)
    settled(rig)
    assert outcomes(rig) == [(1, "failed", 2), (2, "ok", None)]
    assert ran(rig) == ["2"]


def test_killed_after_next_json_it_goes_again_once(rig, job, left):
    left(job(retries=1), pid=DEAD, exit=EXIT, next=json.loads(encode_job(job(attempt=2, failed=1, retries=1))))
    settled(rig)
    assert outcomes(rig) == [(1, "failed", 2), (2, "ok", None)]
    assert ran(rig) == ["2"]


def row_of(job, following=None):
    row = {"event": "result", "job": job.id, "attempt": job.attempt, "kind": "job", "outcome": "failed", "exit": 7}
    return row | {
        "next": following,
        "log": f"ended/2026-11-30/j~{job.attempt}/log",
        "payload": {},
        "by": "fleetd@calber",
    }


def test_killed_between_row_and_move_no_second_row_is_written(rig, job, left):
    left(job(), pid=DEAD, exit=EXIT)
    rig.ledger.append("calber", [row_of(job())])
    settled(rig)
    assert outcomes(rig) == [(1, "failed", None)]
    assert (rig.spool.ended / "2026-11-30/j~1/exit.json").exists()
    assert ran(rig) == []


def test_killed_between_row_and_requeue_the_next_attempt_runs(rig, job, left):
    left(job(retries=1), pid=DEAD, exit=EXIT, next=json.loads(encode_job(job(attempt=2, failed=1, retries=1))))
    rig.ledger.append("calber", [row_of(job(), 2)])
    settled(rig)
    assert outcomes(rig) == [(1, "failed", 2), (2, "ok", None)]
    assert ran(rig) == ["2"]


def test_killed_between_requeue_and_move_the_next_attempt_runs_once(rig, job, left):
    left(job(retries=1), pid=DEAD, exit=EXIT)
    rig.ledger.append("calber", [row_of(job(), 2)])
    (rig.spool.queue / "j.json").write_bytes(encode_job(job(attempt=2, failed=1, retries=1)))
    settled(rig)
    assert outcomes(rig) == [(1, "failed", 2), (2, "ok", None)]
    assert ran(rig) == ["2"]


@pytest.mark.parametrize("data", [b"", b"{", b"\0" * 300, b"[]", b'{"pid": "x"}', b'{"boot": 3, "pid": {}}'])
def test_an_unreadable_pid_json_counts_as_started(rig, job, left, data):
    left(job(), pid=data)
    settled(rig)
    assert outcomes(rig) == [(1, "lost", None)]
    assert ran(rig) == []


def test_a_pid_json_of_the_wrong_types_ends_no_daemon(rig, job, left):
    left(job(), pid=DEAD | {"pid": "seven", "born": 1, "parent": [], "parent_born": {}})
    settled(rig)
    assert outcomes(rig) == [(1, "lost", None)]


def test_what_ran_under_another_boot_is_lost(rig, job, left):
    left(job(), token=OTHER_BOOT, pid=DEAD | {"boot": "00000000-0000"})
    settled(rig)
    assert outcomes(rig) == [(1, "lost", None)]
    assert "restart" in rig.rows()[0]["reason"]


def test_what_was_claimed_under_another_boot_is_lost(rig, job, left):
    left(job(rerun_safe=True), token=OTHER_BOOT)
    settled(rig)
    assert outcomes(rig) == [(1, "lost", 2), (2, "ok", None)]
    assert ran(rig) == ["2"]


@pytest.mark.parametrize(("lost", "expected"), [(0, 2), (1, 2), (2, None)])
def test_a_rerun_safe_job_is_lost_three_times_at_most(rig, job, left, lost, expected):
    left(job(rerun_safe=True, lost=lost), pid=DEAD)
    settled(rig)
    assert outcomes(rig)[0] == (1, "lost", expected)
    assert ran(rig) == (["2"] if expected else [])


def test_a_pid_that_is_another_process_by_now_is_not_touched(rig, job, left):
    other = subprocess.Popen(["sleep", "100"], start_new_session=True)
    try:
        left(job(), pid=DEAD | {"pid": other.pid, "pgid": other.pid, "born": "1", "parent": other.pid})
        settled(rig)
        assert outcomes(rig) == [(1, "lost", None)]
        assert born(other.pid)
    finally:
        other.kill()
        other.wait()


def test_a_recorded_pid_that_lives_is_running_without_its_lease(rig, job, left, wait_for):
    leader = subprocess.Popen(["sleep", "100"], start_new_session=True)
    try:
        left(job(), pid=DEAD | {"pid": leader.pid, "pgid": leader.pid, "born": born(leader.pid)})
        rig.start()
        wait_for(lambda: rig.beat()["busy"] == ["j"])
        assert rig.rows() == []
    finally:
        leader.kill()
        leader.wait()
    rig.kill()
    settled(rig)
    assert outcomes(rig) == [(1, "lost", None)]


def test_a_directory_without_a_job_is_cleared_away(rig, left, job):
    (left(job()) / "job.json").unlink()
    settled(rig)
    assert rig.rows() == []


@pytest.mark.parametrize("name", [".DS_Store", ".nfs000123", "notes.txt", "j~"])
def test_a_stray_file_in_running_takes_no_lane(rig, name):
    (rig.spool.running / "calber").mkdir()
    (rig.spool.running / "calber" / name).write_text("x")
    rig.start(lanes=1)
    assert rig.ended(rig.drop("runs", "true"), limit_s=4)["outcome"] == "ok"


def test_another_host_s_claim_is_left_alone_and_its_id_not_taken(rig, job):
    path = rig.spool.running / "other" / "j"
    (path / "out").mkdir(parents=True)
    for name, data in {
        "job.json": encode_job(job()),
        "lock": TOKEN.encode(),
        "pid.json": json.dumps(DEAD).encode(),
    }.items():
        (path / name).write_bytes(data)
    rig.drop("j", "true")
    rig.drop("k", "true")
    assert rig.once() == 0
    assert [row["job"] for row in rig.rows()] == ["k"]
    assert rig.spool.waiting() == ["j"]
    assert (path / "job.json").exists()


def test_a_running_job_is_listed_and_adopted_with_its_exit_code(rig, wait_for):
    rig.start()
    rig.shell("long", "until test -e $FLEET_SPOOL/go; do sleep 0.02; done; exit 7")
    leader = rig.pid("long")["pid"]
    rig.kill()
    rig.start()
    wait_for(lambda: rig.beat()["busy"] == ["long"])
    assert rig.pid("long")["pid"] == leader
    (rig.root / "go").touch()
    row = rig.ended("long", limit_s=3)
    assert (row["outcome"], row["exit"], row["attempt"]) == ("failed", 7, 1)
    assert len(rig.rows()) == 1


def test_an_adopted_job_takes_its_lanes(rig, wait_for):
    rig.start(lanes=2)
    rig.shell("wide", "until test -e $FLEET_SPOOL/go; do sleep 0.02; done", cores=2)
    rig.pid("wide")
    rig.kill()
    rig.start(lanes=2)
    rig.drop("next", "true")
    wait_for(lambda: rig.beat()["busy"] == ["wide"])
    assert rig.spool.waiting() == ["next"]
    (rig.root / "go").touch()
    assert rig.ended("next")["started"] >= rig.ended("wide")["ended"]


def test_what_ended_while_no_daemon_lived_is_in_the_ledger_afterwards(rig, wait_for):
    rig.start()
    rig.shell("short", "sleep 0.3; echo 5 > $FLEET_RESULT; exit 3")
    rig.pid("short")
    rig.kill()
    wait_for((rig.attempt("short") / "exit.json").exists)
    wait_for(lambda: not rig.parents())
    settled(rig)
    (row,) = rig.rows()
    assert (row["outcome"], row["exit"], row["result"]) == ("failed", 3, 5)


def test_a_job_that_removes_its_lock_is_adopted_with_its_exit_code(rig, wait_for):
    rig.start()
    rig.shell("j", "rm ../lock; until test -e $FLEET_SPOOL/go; do sleep 0.02; done; exit 7")
    leader = rig.pid("j")["pid"]
    wait_for(lambda: not (rig.attempt("j") / "lock").exists())
    rig.kill()
    rig.start()
    wait_for(lambda: rig.beat()["busy"] == ["j"])
    assert leader in rig.jobs()
    (rig.root / "go").touch()
    assert [rig.ended("j")[key] for key in ("outcome", "exit", "attempt")] == ["failed", 7, 1]


REMOVALS = {
    "all": "rm -rf ../*",
    "its directory": "rm -rf $FLEET_OUT/..",
    "pid.json": "rm ../pid.json",
    "pid.json and lock": "rm ../pid.json ../lock",
    "all that shows a start": "rm ../pid.json ../exit.part ../log",
}


@pytest.mark.parametrize("removal", REMOVALS.values(), ids=REMOVALS)
def test_a_job_that_removes_its_files_and_kills_its_parent_has_run_once_and_has_a_row(rig, removal):
    rig.start()
    rig.shell("j", f"echo x >> $FLEET_SPOOL/ran; {removal}; kill -9 $PPID")
    row = rig.ended("j", limit_s=5)
    assert (row["outcome"], row["attempt"]) == ("lost", 1)
    assert len(rig.rows()) == 1
    assert ran(rig) == ["x"]


def test_a_job_that_removes_its_files_and_kills_its_parent_goes_again_if_it_may(rig):
    rig.start()
    rig.shell("j", "test $FLEET_ATTEMPT = 2 || { rm -rf $FLEET_OUT/..; kill -9 $PPID; }", rerun_safe=True)
    assert rig.ended("j", limit_s=5)["outcome"] == "ok"
    assert outcomes(rig) == [(1, "lost", 2), (2, "ok", None)]


@pytest.mark.parametrize("name", ["exit.part", "log"])
@pytest.mark.parametrize("has_job", [True, False])
def test_what_a_start_leaves_shows_that_it_ran(rig, job, left, name, has_job):
    path = left(job())
    (path / name).touch()
    if not has_job:
        (path / "job.json").unlink()
    settled(rig)
    assert outcomes(rig) == [(1, "lost", None)]
    assert ran(rig) == []


def test_a_time_limit_holds_without_a_daemon(rig, wait_for):
    rig.start()
    rig.shell("limited", "sleep 100", timeout_s=0.5)
    rig.pid("limited")
    rig.kill()
    wait_for((rig.attempt("limited") / "exit.json").exists)
    assert not rig.jobs()
    settled(rig)
    assert rig.rows()[0]["outcome"] == "timeout"


def test_a_killed_parent_s_leader_is_adopted_while_it_lives_and_then_lost(rig, wait_for):
    rig.settings(poll_s=0.2)
    rig.start()
    rig.shell("orphan", "setsid sleep 100 & until test -e $FLEET_SPOOL/go; do sleep 0.02; done; exit 0")
    pid = rig.pid("orphan")
    os.kill(pid["parent"], signal.SIGKILL)
    wait_for(lambda: pid["parent"] not in rig.parents())
    rig.ended(rig.drop("meanwhile", "true"))
    wait_for(lambda: rig.beat()["busy"] == ["orphan"])
    assert born(pid["pid"]) == pid["born"]
    (rig.root / "go").touch()
    row = rig.ended("orphan")
    assert (row["outcome"], row["next"], row["exit"]) == ("lost", None, None)
    assert not rig.jobs()


def test_a_killed_idle_parent_is_replaced(rig, wait_for):
    rig.start(lanes=1)
    rig.ended(rig.drop("one", "true"))
    for parent in rig.parents():
        os.kill(parent, signal.SIGKILL)
    wait_for(lambda: not rig.parents())
    assert rig.ended(rig.drop("two", "true"), limit_s=4)["outcome"] == "ok"


def test_parent_and_leader_killed_together_are_lost_and_go_again_if_they_may(rig):
    rig.settings(poll_s=0.2)
    rig.start()
    rig.shell("both", "test $FLEET_ATTEMPT = 2 || sleep 100", rerun_safe=True)
    pid = rig.pid("both")
    for victim in (pid["parent"], pid["pid"]):
        os.kill(victim, signal.SIGKILL)
    rig.ended("both")
    assert outcomes(rig) == [(1, "lost", 2), (2, "ok", None)]
    assert not [process for process in rig.jobs().values() if "sleep" in process]


def test_a_parent_told_to_end_by_a_reboot_records_stopped(rig):
    rig.start()
    rig.shell("told", "sleep 100", rerun_safe=False)
    os.kill(rig.pid("told")["parent"], signal.SIGTERM)
    row = rig.ended("told")
    assert (row["outcome"], row["next"]) == ("stopped", None)
    assert not rig.jobs()
