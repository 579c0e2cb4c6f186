"""Errors injected with strace(1) below the daemon, a lane's parent and a publisher, at each system call in turn.

After the fault: every job has run once and has one row, a line says what failed, no descriptor and no process is left.
"""

import errno
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from fleetd import Ledger, Spool

ERRORS = "ENOSPC", "EIO", "ESTALE", "EPERM", "EINTR"
WORDS = {name: os.strerror(getattr(errno, name)) for name in (*ERRORS, "EAGAIN", "ENOMEM")}
DAEMON = "openat", "read", "newfstatat", "getdents64", "statfs", "rename", "mkdir", "flock", "write", "fsync", "pread64"
PARENT = "openat", "newfstatat", "flock", "read", "fallocate", "write", "rename", "pwrite64", "ftruncate"
CALLS = {  # where a machine has another call of that kind, strace is to look at that one
    "rename": "?rename,?renameat,?renameat2",
    "mkdir": "?mkdir,?mkdirat",
    "link": "?link,?linkat",
    "unlink": "?unlink,?unlinkat",
    "fork": "?vfork,?fork,clone,?clone3",
}
SILENT = frozenset(["pwrite64", "ftruncate", "rename"])  # a parent tries these again, and has nobody to tell
PUBLISHER = "openat", "write", "fsync", "link", "unlink", "getdents64"
PUBLISH = """
import sys
from fleetd import FleetError, Job, Spool
from pathlib import Path
spool, job = Spool(Path(sys.argv[1])), Job(id=sys.argv[2], argv=("/bin/true",))
spool.waiting(), print("ready", flush=True), sys.stdin.readline()
try:
    said = f"queued {spool.publish(job)}"
except (FleetError, OSError) as error:
    said = str(error)
print(said)
"""


def attaches():
    """Whether there is a strace, and whether it may look at our processes."""
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not attaches(), reason="no strace that may trace; Debian: apt-get install strace")


LET_GO = "Function not implemented"  # what a call gives that strace lets go of in the middle of its fault


class Fault:
    """An error that waits in a process for its `when`-th call: 3 is the third alone, 3+ the third and all after it.

    `paths` leaves out the calls that don't touch one of them: a pipe's end is read as well, and never gives EIO.
    """

    def __init__(
        self, at: Path, pid: int, call: str, error: str, when: str, wait_for, *, paths=(), follow=False
    ) -> None:
        self._at, self._said = at.with_suffix(".trace"), at.with_suffix(".strace")
        calls = CALLS.get(call, call)
        command = ["strace", "-y", "-p", str(pid), "-o", self._at, "-e", f"trace={calls}", "-e", "signal=none"]
        command += ["-e", f"inject={calls}:error={error}:when={when}", *(["-f"] if follow else [])]
        command += [word for path in paths for word in ("-P", path)]
        with open(self._said, "wb") as said:
            self._strace = subprocess.Popen(command, stderr=said)
        wait_for(lambda: self._strace.poll() is not None or b"attached" in self._said.read_bytes())
        assert self._strace.poll() is None, self._said.read_text()

    def struck(self) -> list[str]:
        """The calls that have failed by it so far, as strace writes them."""
        lines = self._at.read_text().splitlines() if self._at.exists() else []
        return [line for line in lines if "(INJECTED)" in line]

    def lift(self) -> list[str]:
        """Let go of the process; the calls that failed."""
        if self._strace.poll() is None:
            self._strace.terminate()
        self._strace.wait(10)
        return self.struck()


class Struck:
    """A rig with one daemon and one lane, on which one job after another meets a fault."""

    def __init__(self, rig, wait_for, tmp_path) -> None:
        self.rig, self.wait_for, self.at = rig, wait_for, tmp_path / "fault"
        self.number = 0
        (rig.root / "ran").mkdir()
        rig.settings(poll_s=1)
        self.daemon = rig.start(lanes=1)
        self.job("first")
        self.settled("first")

    def job(self, name: str, *, again=False) -> str:
        """A job that says that it ran; `again`: one that fails the first time and has a second."""
        ran = self.rig.root / "ran" / name
        script = f"echo x >> {ran}" + (f"; test $(wc -l < {ran}) = 2" if again else "")
        return self.rig.shell(name, script, retries=int(again))

    def settled(self, name: str) -> dict:
        """The job's final row, once it stands in the view as well."""
        row, view = self.rig.ended(name, 30), self.rig.spool.ledger
        self.wait_for(lambda: view.exists() and f'"seq":{row["seq"]},' in view.read_text())
        return row

    def parent(self) -> int:
        return next(iter(self.rig.parents()))

    def strike(self, victim: str, call: str, error: str, when: str, *, again=False) -> list[str]:
        """One job with a fault in the victim's way; the calls that failed. Every promise is checked afterwards."""
        self.number += 1
        name = f"{victim}-{call}-{error}-{when.replace('+', 'on')}-{self.number}"
        self.wait_for(lambda: self.rig.beat()["claims"] is None)
        pid = self.daemon.pid if victim == "daemon" else self.parent()
        said, opened, began = len(self.rig.said()), self.descriptors(), time.monotonic()
        fault = Fault(self.at, pid, call, error, when, self.wait_for, paths=self.files(name) if call == "read" else ())
        try:
            self.job(name, again=again)
            if when.endswith("+"):
                self.wait_for(lambda: fault.struck() or self.rig.results(name), 30)
                self.wait_for(lambda: time.monotonic() > began + 1)
            else:
                self.settled(name)
        finally:
            struck = fault.lift()
        row = self.settled(name)
        self.check(name, row, runs=2 if again else 1)
        late = time.monotonic() > began + (3 if when.endswith("+") else 1.5)
        if struck and late and not (victim == "parent" and call in SILENT):
            assert any(word in self.rig.said()[said:] for word in (WORDS[error], LET_GO)), struck
        self.wait_for(lambda: self.descriptors() == opened)
        return struck

    def files(self, name: str) -> list[Path]:
        """The files of one job that the daemon reads, under names known beforehand."""
        spool = self.rig.spool
        made = [self.rig.attempt(name) / file for file in ("job.json", "lock", "pid.json", "exit.json", "next.json")]
        return [spool.queue / f"{name}.json", *made, spool.ledger, spool.ledger_d / "calber.jsonl"]

    def descriptors(self) -> int:
        """How many files the daemon has open."""
        return len(os.listdir(f"/proc/{self.daemon.pid}/fd"))

    def check(self, name: str, row: dict, runs: int) -> None:
        assert self.daemon.poll() is None, self.rig.said()
        assert "a bug" not in self.rig.said(), self.rig.said()
        rows = [(r["attempt"], r["outcome"]) for r in self.rig.results(name)]
        assert rows == [(1, "failed")] * (runs - 1) + [(runs, "ok")], row
        assert (self.rig.root / "ran" / name).read_text().split() == ["x"] * runs
        assert not self.rig.jobs()

    def each(self, victim: str, call: str, error: str, *, again=False, on="") -> None:
        """The first such call of a job's life fails, the second, the third … until there are no more."""
        when = next(n for n in range(1, 100) if not self.strike(victim, call, error, f"{n}{on}", again=again))
        assert when > 1, f"{call} was never called"

    def over(self) -> None:
        """What holds of all jobs together."""
        rig, segment = self.rig, self.rig.spool.ledger_d / "calber.jsonl"
        assert [row.seq for row in Ledger(rig.spool.ledger_d).rows()] == list(range(1, len(rig.rows()) + 1))
        assert sorted(rig.spool.ledger.read_bytes().splitlines()) == sorted(segment.read_bytes().splitlines())
        assert (rig.spool.waiting(), rig.spool.attempts()) == ([], [])
        rig.kill()
        self.wait_for(lambda: not rig.parents())


@pytest.fixture
def struck(rig, wait_for, tmp_path):
    made = Struck(rig, wait_for, tmp_path)
    yield made
    made.over()


def in_a_quiet_queue(struck, wait_for, call):
    """A job in a queue that has not changed for two seconds meets one EIO."""
    rig, drain = struck.rig, struck.rig.spool.hosts / "calber.drain"
    drain.touch()
    wait_for(lambda: "drained" in (rig.beat()["claims"] or ""))
    struck.job("quiet")
    began = time.monotonic()
    wait_for(lambda: time.monotonic() > began + 2.5)
    file = rig.spool.queue / "quiet.json"
    fault = Fault(struck.at, struck.daemon.pid, call, "EIO", "1", wait_for, paths=[file])
    drain.unlink()
    wait_for(fault.struck)
    fault.lift()
    return struck.settled("quiet")


def test_a_file_that_could_not_be_read_once_is_read_again_in_a_quiet_queue(struck, wait_for):
    assert in_a_quiet_queue(struck, wait_for, "openat")["outcome"] == "ok"


def test_a_claim_whose_rename_failed_once_is_tried_again_in_a_quiet_queue(struck, wait_for):
    assert in_a_quiet_queue(struck, wait_for, "rename")["outcome"] == "ok"


ONE_OF_EACH = [
    *(("daemon", "openat", "ESTALE", when) for when in ("2", "4")),
    *(("daemon", "rename", "EIO", when) for when in ("1", "2", "3")),
    ("daemon", "fsync", "ENOSPC", "3"),
    ("daemon", "write", "ENOSPC", "2"),
    ("daemon", "mkdir", "EPERM", "1"),
    ("daemon", "flock", "EINTR", "1"),
    ("parent", "openat", "ENOSPC", "3"),
    *(("parent", call, "EIO", "1") for call in ("read", "rename", "pwrite64")),
]


def test_one_error_at_a_call_of_claim_start_reap_or_append_loses_nothing_and_runs_nothing_twice(struck):
    assert [call for call in ONE_OF_EACH if not struck.strike(*call)] == []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("again", [False, True], ids=["once", "retried"])
def test_an_error_at_any_call_of_the_daemon_loses_nothing_and_runs_nothing_twice(struck, error, again):
    for call in DAEMON:
        struck.each("daemon", call, error, again=again)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("error", ERRORS)
def test_an_error_at_any_call_of_a_lane_s_parent_loses_nothing_and_runs_nothing_twice(struck, error):
    for call in PARENT:
        struck.each("parent", call, error)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("victim", ["daemon", "parent"])
def test_an_error_that_lasts_a_second_loses_nothing_and_runs_nothing_twice(struck, victim, error):
    for call in ("openat", "rename", "flock", "fsync" if victim == "daemon" else "pwrite64"):
        struck.each(victim, call, error, on="+")


@pytest.mark.parametrize(("call", "error"), [("fork", "EAGAIN"), ("execve", "EIO")])
def test_a_lane_that_cannot_be_made_for_a_second_is_made_then(rig, wait_for, tmp_path, call, error):
    rig.start(lanes=1)
    fault = Fault(tmp_path / "fault", rig.daemons[0].pid, call, error, "1+", wait_for, follow=call == "execve")
    rig.shell("j", f"echo x >> {rig.root}/ran")
    wait_for(fault.struck)
    fault.lift()
    assert (rig.ended("j")["outcome"], len(rig.results("j"))) == ("ok", 1)
    assert (rig.root / "ran").read_text() == "x\n"
    assert WORDS[error] in rig.said()


def test_a_command_that_cannot_be_read_has_failed_with_the_reason(struck, wait_for):
    struck.number += 1
    fault = Fault(struck.at, struck.parent(), "execve", "EIO", "1+", wait_for, follow=True)
    struck.job("j")
    row = struck.settled("j")
    assert fault.lift()
    assert (row["outcome"], row["exit"], len(struck.rig.results("j"))) == ("failed", 126, 1)
    assert WORDS["EIO"] in row["reason"]
    assert not (struck.rig.root / "ran" / "j").exists()


def test_a_job_that_could_not_be_forked_for_a_second_runs_then(struck, wait_for):
    fault = Fault(struck.at, struck.parent(), "fork", "EAGAIN", "1+", wait_for)
    struck.job("j")
    wait_for(fault.struck)
    fault.lift()
    assert (struck.settled("j")["outcome"], len(struck.rig.results("j"))) == ("ok", 1)
    assert WORDS["EAGAIN"] in struck.rig.said()


def test_a_parent_outlives_a_log_that_cannot_be_looked_at(struck, wait_for):
    rig = struck.rig
    rig.shell("j", f"echo x; until test -e {rig.root}/go; do sleep 0.02; done; exit 7")
    rig.pid("j")
    log = rig.attempt("j") / "log"
    fault = Fault(struck.at, struck.parent(), "newfstatat", "EIO", "1+", wait_for, paths=[log])
    wait_for(fault.struck, 15)
    fault.lift()
    (rig.root / "go").touch()
    assert rig.ended("j")["exit"] == 7


def test_a_daemon_whose_log_is_on_a_full_disk_lives_and_works(rig, small_disk, wait_for):
    disk = small_disk("16k")
    with suppress(OSError), open(disk / "ballast", "wb", buffering=0) as file:
        while file.write(b"x" * 512):
            pass
    rig._said = disk / "said"
    daemon = rig.start(ready=False)
    rig.shell("j", "true")
    assert rig.ended("j")["outcome"] == "ok"
    assert daemon.poll() is None


class Publisher:
    """Publishers of one spool, each with a fault in its way."""

    def __init__(self, spool: Spool, at: Path, wait_for) -> None:
        self.spool, self.at, self.wait_for = spool, at, wait_for

    def publish(self, call: str, error: str, when: int) -> list[str]:
        """One job, queued and said so, or else neither; the calls that failed."""
        id_ = f"{call}-{error}-{when}"
        command = [sys.executable, "-c", PUBLISH, self.spool.root, id_]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        with subprocess.Popen(command, **pipes) as publisher:
            assert publisher.stdout.readline() == "ready\n"
            fault = Fault(self.at, publisher.pid, call, error, str(when), self.wait_for)
            told, _ = publisher.communicate("go\n", timeout=20)
            struck = fault.lift()
        self.check(id_, told, error, struck)
        return struck

    def check(self, id_: str, told: str, error: str, struck: list[str]) -> None:
        if struck and "<pipe:" in struck[0]:
            return  # its own output
        if told == f"queued {id_}\n":
            assert self.spool.read_waiting(id_) is not None
        else:
            assert WORDS[error] in told, (told, struck)
            assert id_ not in self.spool.waiting(), (told, struck)

    def each(self, call: str, error: str) -> None:
        """The first such call fails, the second … until there are no more; each leaves a whole job or none."""
        assert next(n for n in range(1, 20) if not self.publish(call, error, n)) > 1
        assert all(self.spool.read_waiting(id_) for id_ in self.spool.waiting())


@pytest.fixture
def publisher(rig, tmp_path, wait_for):
    return Publisher(rig.spool, tmp_path / "fault", wait_for)


@pytest.mark.parametrize(
    ("call", "error"), [("write", "ENOSPC"), ("link", "EPERM"), ("unlink", "EIO"), ("fsync", "EIO")]
)
def test_what_a_publisher_says_of_its_job_is_so(publisher, call, error):
    publisher.each(call, error)


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
def test_whatever_call_fails_what_a_publisher_says_of_its_job_is_so(publisher, error):
    for call in PUBLISHER:
        publisher.each(call, error)
