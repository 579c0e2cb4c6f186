"""Publishing and claiming: never replaced, never half there, each job to exactly one claimer."""

import os
import subprocess
import sys

import pytest

from fleetd import BadData
from fleetd.claim import claim, set_aside, take_aside, token_of
from fleetd.crew import Lane
from fleetd.job import Job, decode_job
from fleetd.lease import boot_id, born, lives, take_lease
from fleetd.order import order
from fleetd.reap import State, judge
from fleetd.settings import Settings
from fleetd.spool import init_spool

CLAIMER = """
import sys
from fleetd import find_spool
from fleetd.claim import claim
host = sys.argv[2]
spool = find_spool(sys.argv[1], {})
(spool.running / host).mkdir(exist_ok=True)
sys.stdin.readline()
for id_ in spool.waiting():
    job = spool.read_waiting(id_)
    if job and claim(spool, host, job, 1):
        print(id_)
"""


@pytest.fixture
def spool(tmp_path):
    made = init_spool(tmp_path / "spool", home=None)
    (made.running / "calber").mkdir()
    return made


def job(name="a", **keys):
    return Job(**({"id": name, "argv": ("true",)} | keys))


@pytest.fixture
def lane():
    """A lane's parent, ended afterwards."""
    made = Lane(0, os.environ)
    yield made
    made.close()
    made._process.wait(5)


def taken(spool, **keys):
    spool.publish(job(**keys))
    return claim(spool, "calber", job(**keys), 1)


def test_a_job_that_is_claimed_and_not_yet_started_is_seen(spool):
    spool.publish(job(payload={"k": 1}))
    (spool.queue / "a.json").rename(spool.running / "calber" / "a~1~00ff.json")
    (spool.running / "calber" / "b~1~00ff.json").write_text("{")
    assert {id_: seen.payload for id_, seen in spool.claimed().items()} == {"a": {"k": 1}}
    assert claim(spool, "calber", job(), 1) is None


def test_publish_puts_a_whole_file_and_leaves_no_draft(spool):
    assert spool.publish(job()) == "a"
    assert spool.waiting() == ["a"]
    assert decode_job((spool.queue / "a.json").read_bytes(), "a") == job()
    assert os.listdir(spool.tmp) == []


def test_publish_never_replaces(spool):
    spool.publish(job(argv=("first",)))
    with pytest.raises(BadData, match="waiting already"):
        spool.publish(job(argv=("second",)))
    assert spool.read_waiting("a").argv == ("first",)
    assert os.listdir(spool.tmp) == []


def test_publish_refuses_the_id_of_a_running_job(spool):
    assert taken(spool)
    with pytest.raises(BadData, match="running"):
        spool.publish(job())


def test_publish_refuses_what_could_never_run(spool):
    with pytest.raises(BadData, match="cwd"):
        spool.publish(job(cwd="relative"))
    assert spool.waiting() == []


def test_400_jobs_go_to_four_claimers_each_once(spool):
    names = [f"j{n:03d}" for n in range(400)]
    for name in names:
        (spool.queue / f"{name}.json").write_text('{"argv": ["true"]}')
    command = [sys.executable, "-c", CLAIMER, spool.root]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    claimers = [subprocess.Popen([*command, f"host{n}"], **pipes) for n in range(4)]
    for claimer in claimers:
        claimer.stdin.write("\n")
        claimer.stdin.flush()
    mine = [claimer.communicate(timeout=60)[0].split() for claimer in claimers]
    assert sorted(name for each in mine for name in each) == names
    assert sorted(path.parent.name for path in spool.running.glob("*/*/job.json")) == names


def test_a_claim_makes_the_attempt_s_directory_with_its_token(spool):
    made = taken(spool)
    assert sorted(os.listdir(made.path)) == ["job.json", "lock", "out"]
    assert token_of(made.path) == made.token
    assert made.token.startswith(boot_id().replace("-", "")[:8])
    assert spool.waiting() == []


def test_a_claim_that_comes_too_late_is_none(spool):
    assert claim(spool, "calber", job(), 1) is None
    assert os.listdir(spool.running / "calber") == []


def test_a_claim_writes_down_the_attempt_it_is(spool):
    spool.publish(job())
    made = claim(spool, "calber", job(), 3)
    assert decode_job((made.path / "job.json").read_bytes(), "a").attempt == 3


def test_a_starter_whose_claim_was_taken_anew_starts_nothing(spool, lane, wait_for):
    first = taken(spool)
    old = order(spool, Settings(), "calber", first, 0) | {"argv": ["touch", str(spool.root / "ran")]}
    (first.path / "lock").write_text(boot_id()[:8] + "another claim of it")
    lane.order(first, old)
    (answer,) = wait_for(lambda: lane.hear()[0])
    assert not answer.started
    assert not (spool.root / "ran").exists()


def test_a_starter_without_the_lease_starts_nothing(spool, lane, wait_for):
    made = taken(spool)
    lease = take_lease(made.path / "lock")
    lane.order(made, order(spool, Settings(), "calber", made, 0))
    (answer,) = wait_for(lambda: lane.hear()[0])
    os.close(lease)
    assert not answer.started
    assert not (made.path / "pid.json").exists()


def test_a_lease_is_held_by_whoever_inherits_it(spool, wait_for):
    made = taken(spool)
    lease = take_lease(made.path / "lock")
    child = subprocess.Popen(["sleep", "100"], pass_fds=(lease,))
    os.close(lease)
    try:
        assert take_lease(made.path / "lock") is None
        assert judge(made.path).state is State.RUNNING
    finally:
        child.kill()
        child.wait()
    verdict = judge(made.path)
    assert verdict.state is State.UNSTARTED
    os.close(verdict.lease)


@pytest.mark.parametrize("kind", ["link", "directory"])
def test_a_lock_that_is_no_file_is_unknown_not_lost(spool, tmp_path, kind):
    made = taken(spool)
    (made.path / "lock").unlink()
    (made.path / "lock").symlink_to(tmp_path / "x") if kind == "link" else (made.path / "lock").mkdir()
    with pytest.raises(OSError, match="lock"):
        judge(made.path)


def test_setting_aside_replaces_nothing(spool):
    (spool.rejected / "a.json").write_text("older")
    (spool.queue / "a.json").write_text("newer")
    aside = set_aside(spool, "a.json")
    assert aside.read_text() == "newer"
    assert (spool.rejected / "a.json").read_text() == "older"
    assert set_aside(spool, "a.json") is None


def test_taken_aside_it_cannot_be_mistaken_for_a_claim_nobody_starts(spool):
    spool.publish(job())
    path, lease = take_aside(spool, "calber", "a")
    assert judge(path).state is State.RUNNING
    assert spool.waiting() == []
    os.close(lease)


def test_a_process_is_itself_only_with_its_start(spool):
    assert lives(os.getpid(), born(os.getpid()))
    assert not lives(os.getpid(), "1")
    assert not lives(None, None)
    gone = subprocess.Popen(["true"])
    os.waitid(os.P_PID, gone.pid, os.WEXITED | os.WNOWAIT)
    assert born(gone.pid) is None
    gone.wait()


def test_init_twice_changes_nothing(spool):
    spool.settings.write_text("poll_s = 1\n")
    init_spool(spool.root, home="other")
    assert spool.settings.read_text() == "poll_s = 1\n"


def test_attempts_of_all_hosts_are_listed(spool):
    assert taken(spool)
    other = spool.running / "other" / "b"
    other.mkdir(parents=True)
    found = {(running.host, running.id): running for running in spool.attempts()}
    assert found["calber", "a"].job == job()
    assert found["other", "b"].job is None
