"""Jobs and files that spoil what the engine stands on: each still has its row, and none holds up the others."""

import fcntl
import json
import os
import signal
import sys

import pytest

from fleetd.ledger import encode_row
from fleetd.spool import DIRECTORIES

LATE = """
import sys, time
from fleetd import cli_daemon, reap
take_lease = reap.take_lease
def late(lock):
    print("judging", file=sys.stderr, flush=True)
    time.sleep(1.0)
    return take_lease(lock)
reap.take_lease = late
sys.exit(cli_daemon.main(sys.argv[2:]))
"""
HESITANT = sys.executable, "-c", LATE  # a daemon that is preempted for a second before each lease
ORDINARY = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.getuid() == 0 else ()


def test_a_job_that_deletes_its_own_directory_has_its_row(rig):
    rig.shell("gone", 'rm -rf "$(dirname $FLEET_OUT)"; exit 3')
    rig.drop("waits", "true", after=["gone"])
    assert rig.once() == 0
    assert [(row["job"], row["outcome"], row["exit"]) for row in rig.rows()] == [
        ("gone", "failed", 3),
        ("waits", "rejected", None),
    ]
    assert list((rig.spool.running / "calber").iterdir()) == []


@pytest.mark.parametrize("spoil", ["rm -f $FLEET_JOB", "echo x > $FLEET_JOB", "rm $FLEET_JOB; mkdir $FLEET_JOB"])
def test_a_job_that_spoils_its_job_file_has_a_row_for_each_attempt(rig, spoil):
    rig.shell("spoils", f"{spoil}; exit 4", retries=1, payload={"k": 1})
    assert rig.once() == 0
    rows = rig.results("spoils")
    assert [(row["attempt"], row["outcome"], row["next"]) for row in rows] == [(1, "failed", 2), (2, "failed", None)]
    assert [(row["payload"], row["argv"][:2]) for row in rows] == [({"k": 1}, ["sh", "-c"])] * 2


def test_the_number_of_an_attempt_is_known_without_its_job_file(rig, wait_for):
    rig.start()
    rig.shell("spoils", "rm $FLEET_JOB; until test -e $FLEET_SPOOL/go; do sleep 0.02; done; exit 4", attempt=2)
    wait_for(lambda: rig.pid("spoils") and not (rig.attempt("spoils") / "job.json").exists())
    rig.kill()
    (rig.root / "go").touch()
    wait_for((rig.attempt("spoils") / "exit.json").exists)
    assert rig.once() == 0
    assert [(row["attempt"], row["outcome"], row["exit"]) for row in rig.rows()] == [(2, "failed", 4)]


def test_a_time_limit_holds_without_a_parent(rig):
    rig.settings(poll_s=0.2)
    rig.start()
    rig.shell("orphan", "until test -e $FLEET_SPOOL/go; do sleep 0.02; done; exec sleep 60", timeout_s=1)
    os.kill(rig.pid("orphan")["parent"], signal.SIGKILL)
    (rig.root / "go").touch()
    row = rig.ended("orphan", limit_s=8)
    assert (row["outcome"], row["next"]) == ("timeout", None)
    assert not rig.jobs()


def test_what_a_parent_does_while_the_next_daemon_judges_is_not_done_again(rig, wait_for):
    rig.start(lanes=1)
    rig.ended(rig.drop("first", "true"))
    (parent,) = rig.parents()
    os.kill(parent, signal.SIGSTOP)
    rig.shell("once", f"echo x >> {rig.root}/ran")
    wait_for(lambda: rig.beat()["busy"] == ["once"])
    rig.kill()
    daemon = rig.start("--once", wrap=HESITANT, lanes=1, ready=False)
    wait_for(lambda: "judging" in rig.said())
    os.kill(parent, signal.SIGCONT)
    assert daemon.wait(20) == 0
    assert [row["outcome"] for row in rig.results("once")] == ["ok"]
    assert (rig.root / "ran").read_text() == "x\n"


def test_a_job_that_ends_while_the_next_daemon_judges_keeps_its_exit_code(rig, wait_for):
    rig.start()
    rig.shell("ends", "until test -e $FLEET_SPOOL/go; do sleep 0.02; done; exit 6")
    rig.pid("ends")
    rig.kill()
    daemon = rig.start("--once", wrap=HESITANT, ready=False)
    wait_for(lambda: "judging" in rig.said())
    (rig.root / "go").touch()
    assert daemon.wait(20) == 0
    assert [(row["outcome"], row["exit"]) for row in rig.results("ends")] == [("failed", 6)]


@pytest.fixture(params=["held", "directory"])
def locked(request, rig):
    """`locked()` keeps every process from the ledger's lock; what it gives lets go again."""
    path = rig.spool.ledger_d / "calber.lock"

    def lock():
        if request.param == "directory":
            path.mkdir()
            return path.rmdir
        fd = os.open(path, os.O_RDWR | os.O_CREAT)
        fcntl.flock(fd, fcntl.LOCK_EX)
        return lambda: os.close(fd)

    return lock


def test_a_ledger_that_cannot_be_locked_is_said_and_keeps_no_stop_from_being_seen(rig, locked, wait_for):
    let_go = locked()
    rig.settings(poll_s=0.2)
    daemon = rig.start()
    rig.drop("ends", "true")
    wait_for(lambda: "calber.lock" in (rig.beat()["claims"] or ""))
    (rig.root / "STOP_NOW").touch()
    wait_for(lambda: "STOP_NOW" in rig.beat()["stops"], 2)
    assert daemon.poll() is None
    assert rig.rows() == []
    let_go()
    assert rig.ended("ends")["outcome"] == "ok"


def crowd(rig, data):
    """3000 files that are no jobs, and behind them one that is."""
    for n in range(3000):
        (rig.spool.queue / f"bad-{n:04d}.json").write_bytes(data)
    rig.drop("good", "true")


def test_a_crowd_of_refused_files_holds_up_no_stop(rig, wait_for):
    crowd(rig, b"[1]")
    rig.start(ready=False)
    wait_for(lambda: any(rig.spool.rejected.iterdir()))
    (rig.root / "STOP_NOW").touch()
    wait_for(lambda: "STOP_NOW" in rig.beat().get("stops", ()), 2)


@pytest.mark.parametrize("data", [b"", b'{"argv": ["tr'])
def test_a_crowd_of_half_written_files_holds_up_no_job(rig, data):
    crowd(rig, data)
    rig.start(ready=False)
    assert rig.ended("good", limit_s=5)["outcome"] == "ok"


def test_a_fifo_as_settings_is_refused_and_blocks_nobody(rig):
    rig.spool.settings.unlink()
    os.mkfifo(rig.spool.settings)
    assert rig.once(limit_s=8) == 78
    assert "fleet.toml: no regular file" in rig.said()


@pytest.mark.parametrize("name", DIRECTORIES)
def test_a_link_in_place_of_a_directory_of_the_spool_is_77(rig, tmp_path, name):
    (rig.root / name).rename(tmp_path / "elsewhere")
    (rig.root / name).symlink_to(tmp_path / "elsewhere")
    assert rig.once(limit_s=8) == 77
    assert f"{rig.root / name}: a link" in rig.said()


@pytest.mark.parametrize(
    ("script", "outcome", "said"),
    [
        ("echo 1 > $FLEET_RESULT; chmod 000 $FLEET_RESULT", "failed", "result.json cannot be read"),
        ("mkdir $FLEET_RESULT", "failed", "result.json is no regular file"),
        ("chmod 555 $(dirname $FLEET_OUT)", "ok", None),
        ("chmod 000 $(dirname $FLEET_OUT)", "ok", None),
    ],
)
def test_a_job_that_locks_its_own_files_holds_no_lane(rig, script, outcome, said):
    rig.shell("locks", script)
    rig.start(lanes=1, wrap=ORDINARY)
    row = rig.ended("locks")
    assert (row["outcome"], said in row["reason"] if said else row["reason"]) == (outcome, True if said else None)
    assert rig.ended(rig.drop("next", "true"))["outcome"] == "ok"


@pytest.mark.parametrize("made", ["mkdir -p $P/x", "ln -s /etc $P", "mkfifo $P", "echo other > $P", ":"])
@pytest.mark.parametrize("name", ["exit.part", "exit.json"])
def test_what_a_job_puts_in_the_place_of_exit_json_takes_no_exit_code(rig, wait_for, name, made):
    script = (
        f"P=$(dirname $FLEET_OUT)/{name}; rm -f $P; {made}; until test -e $FLEET_SPOOL/go; do sleep 0.02; done; exit 4"
    )
    rig.start()
    rig.shell("j", script)
    rig.pid("j")
    rig.kill()
    (rig.root / "go").touch()
    at = rig.attempt("j") / "exit.json"
    wait_for(lambda: at.is_file() and not at.is_symlink() and at.read_bytes().startswith(b"{"))
    rig.start()
    assert rig.ended("j")["exit"] == 4


def test_one_attempt_that_cannot_be_finished_keeps_no_other_from_ending(rig, wait_for):
    rig.settings(poll_s=0.2)
    rig.start()
    rig.shell("bad", "mkdir -p $FLEET_OUT/../next.json/x; exit 6", retries=1)
    wait_for(lambda: (rig.attempt("bad") / "exit.json").exists() or rig.results("bad"))
    assert rig.ended(rig.drop("good", "true"))["outcome"] == "ok"


STOP = {"seen": "2026-11-30T20:36:34.856448Z", "ended": ["a"], "left": 0}
BEAT = {
    "pid": 1,
    "counter": 1,
    "lanes": 1,
    "busy": ["a"],
    "tags": ["t"],
    "breaker": {"open": False, "until": None, "reason": None},
    "stops": {"STOP_NOW": STOP},
    "at": "2026-11-30T20:36:34.856448Z",
    "claims": None,
    "boot": "b",
    "cores": 1,
    "gpus": 0,
    "machine": None,
    "ended": None,
    "unkillable": {"a": [7]},
}
ODD_BEATS = [
    *(
        {key: value for key, value in BEAT.items() if key != gone}
        for gone in ("pid", "lanes", "tags", "stops", "claims")
    ),
    *(
        BEAT | {key: odd}
        for key in BEAT
        for odd in (True, 1.5, {"x": {"until": 7}} if key != "breaker" else 7, [["x"]])
    ),
    *(BEAT | {"stops": {"STOP_NOW": odd}} for odd in (7, {}, STOP | {"ended": 5}, STOP | {"seen": None})),
    BEAT | {"breaker": {"until": 5}},
    BEAT | {"unkillable": {"a": 7}},
    BEAT | {"gpus": "two"},
    {},
]


def test_a_host_whose_heartbeat_is_odd_counts_as_none(rig):
    for number, beat in enumerate([*ODD_BEATS, []]):
        (rig.spool.hosts / f"h{number}.json").write_text(json.dumps(beat))
    (rig.spool.hosts / "deep.json").write_text("[" * 100_000)
    (rig.spool.hosts / "whole.json").write_text(json.dumps(BEAT))
    assert list(rig.spool.heartbeats()) == ["whole"]
    (rig.spool.hosts / "whole.json").unlink()
    rig.shell("away", "exit 75")
    assert rig.once() == 0, rig.said()
    assert [row["outcome"] for row in rig.results("away")] == ["declined"] * 3 + ["failed"]


@pytest.mark.parametrize("odd", [{"stops": {"STOP_NOW": STOP | {"ended": 5}}}, {"stops": [1]}, {"pid": []}])
def test_an_odd_heartbeat_of_its_own_is_no_end_of_a_daemon(rig, odd):
    (rig.spool.hosts / "calber.json").write_text(json.dumps(BEAT | {"boot": None} | odd))
    rig.drop("j", "true")
    assert rig.once() == 0, rig.said()
    assert rig.results("j")[0]["outcome"] == "ok"


def test_an_odd_row_of_another_host_is_no_end_of_a_daemon(rig):
    row = {"schema": "fleet.row/1", "event": "result", "boot": "b", "at": "2026-11-30T00:00:00.000000Z", "job": "x"}
    row |= {"attempt": 1, "kind": "job", "outcome": "ok", "next": None, "payload": {}}
    odd = [{"job": text} for text in ("\ud800", "\0", "../x")]
    odd += [{"host": text} for text in ("\ud800", "\0", "../x", "nobody")]
    odd += [{"started": 7, "ended": "x", "result_file": 7, "reason": [1], "log": {}}]
    lines = [encode_row({"host": "h9", "seq": seq} | row | each) for seq, each in enumerate(odd, 1)]
    (rig.spool.ledger_d / "h9.jsonl").write_bytes(b"".join(lines))
    rig.drop("j", "true")
    assert rig.once() == 0, rig.said()
    assert rig.results("j")[0]["outcome"] == "ok"
