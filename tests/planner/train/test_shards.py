"""Shards: how many and why; death is told; nothing is left behind."""

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from fleetd import FleetError, IOFailed, TryLater, Usage, allowed_cores
from planner.train.shards import Shards, choose_shards, shared_buffer
from planner.train.threads import one_blas_thread

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Cores:
    cores: int
    why: str = "the cores"


@dataclass(frozen=True)
class Obeys:
    """A shard that does as it is told: `die`, `fail`, `refuse`, `wait`, in the worker `at`."""

    at: int

    def __call__(self, index, _count, _beat):
        def run(command):
            if index != self.at:
                return
            if command == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            elif command == "fail":
                raise ZeroDivisionError("in the world")
            elif command == "refuse":
                raise Usage("not like this")

        return run


def quota(root, cores):
    (root / "proc/self").mkdir(parents=True)
    (root / "sys/fs/cgroup").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text("0::/\n")
    (root / "proc/self/mountinfo").write_text("1 1 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
    (root / "sys/fs/cgroup/cpu.max").write_text(f"{int(cores * 100000)} 100000\n")
    return allowed_cores(root)


@pytest.mark.parametrize(("cores", "shards"), [(1.5, 2), (1.2, 1), (1.0, 1), (0.3, 1)])
def test_a_quota_of_cores_is_rounded_up_with_a_little_slack(tmp_path, monkeypatch, cores, shards):
    monkeypatch.setattr("os.cpu_count", lambda: 80)
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: set(range(80)))
    count, why = choose_shards(quota(tmp_path, cores), 64, 16)
    assert count == shards
    told = f"{shards} shards?: 80 in the machine; {cores:.2f} by the quota in .*/cpu.max"
    assert re.fullmatch(told, why)


@pytest.mark.parametrize(
    ("cores", "envs", "chunks", "wanted", "count", "told"),
    [
        (80, 64, 16, None, 8, "8 shards: the cores; 64 envs, 8 at least to a shard"),
        (80, 4, 16, None, 1, "1 shard: the cores; 4 envs, 8 at least to a shard"),
        (80, 1024, 3, None, 3, "3 shards: the cores; a minibatch of 3 chunks"),
        (2, 64, 16, 8, 2, "2 shards: 8 asked for; the cores"),
        (4, 64, 16, 1, 1, "1 shard: 1 asked for"),
        (4, 1, 16, 3, 1, "1 shard: 3 asked for; 1 env, 8 at least to a shard"),
    ],
)
def test_shards_are_no_more_than_cores_and_chunks_and_the_reason_is_told(cores, envs, chunks, wanted, count, told):
    assert choose_shards(Cores(cores), envs, chunks, wanted) == (count, told)


def test_no_shards_at_all_are_refused():
    with pytest.raises(Usage, match="--shards must be at least 1, not 0"):
        choose_shards(Cores(2), 64, 16, 0)


def test_a_shared_memory_too_small_is_told_with_the_size_needed(tmp_path):
    with pytest.raises(IOFailed, match=r"takes 953674316 MB: /.* has \d+ MB free; fewer envs or steps take less"):
        shared_buffer(10**15, (str(tmp_path), "/nowhere"))


def test_a_shared_buffer_has_no_name_and_begins_on_a_boundary():
    buffer, offset = shared_buffer(5000)
    assert not segments(os.getpid())
    assert 0 <= offset < 64
    assert len(buffer) >= offset + 5000


def test_a_killed_worker_is_told_with_pid_and_signal_at_once():
    with Shards(3, Obeys(2)) as shards:
        pid = shards.pids[1]
        shards.run("nothing")
        began = time.monotonic()
        with pytest.raises(TryLater, match=rf"shard-2 \(pid {pid}\) was ended by SIGKILL"):
            shards.run("die")
        assert time.monotonic() - began < 2
    assert shards.pids == []


def test_a_worker_that_died_between_two_commands_is_told():
    with Shards(2, Obeys(1)) as shards:
        os.kill(shards.pids[0], signal.SIGKILL)
        wait([shards._workers[0][0].sentinel])
        with pytest.raises(TryLater, match="was ended by SIGKILL"):
            shards.run("nothing")


def test_what_a_worker_meets_is_told_here():
    with Shards(2, Obeys(1)) as shards:
        with pytest.raises(FleetError, match=r"(?s)shard-1 \(pid \d+\) failed:.*ZeroDivisionError: in the world"):
            shards.run("fail")
        with pytest.raises(Usage, match="not like this"):
            shards.run("refuse")
        shards.run("nothing")


@dataclass(frozen=True)
class Masked:
    """A shard that refuses to be one if Ctrl-C can end it."""

    def __call__(self, index, _count, _beat):
        if index and signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ()):
            raise Usage("Ctrl-C ends this worker")
        return lambda _command: None


def test_ctrl_c_reaches_no_worker_and_the_first_process_all_the_same():
    with Shards(3, Masked()) as shards:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        for pid in shards.pids:
            os.kill(pid, signal.SIGINT)
        shards.run("nothing")


def test_every_worker_ends_with_its_shards():
    with Shards(3, Obeys(0)) as shards:
        pids = shards.pids
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


@pytest.fixture
def family(wait_for):
    """A trainer of two workers in a session of its own, in the middle of its run: (process, pids of all of it)."""
    command = [sys.executable, "-m", "tests.planner.train.endless"]
    main = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    with main:
        assert main.stdout.readline() == "running\n"
        yield main, wait_for(lambda: len(members(main.pid)) >= 4 and members(main.pid))
        for pid in members(main.pid):  # of a test that failed
            os.kill(pid, signal.SIGKILL)
        main.wait()


def members(session):
    """The living processes of a session, by /proc."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            after = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(after[3]) == session and after[0] != "Z":
            found.append(int(path.parent.name))
    return found


def segments(pid):
    """What multiprocessing left in shared memory by the names that it gives."""
    return list(Path("/dev/shm").glob(f"*-{pid}[-_]*"))


pytestmark_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")


@pytestmark_proc
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_of_a_trainer_that_was_ended(family, wait_for, sent):
    main, _ = family
    if sent == signal.SIGINT:
        os.killpg(main.pid, sent)  # as a terminal does
    else:
        os.kill(main.pid, sent)
    _, stderr = main.communicate(timeout=10)
    wait_for(lambda: not members(main.pid), limit_s=5)
    assert main.returncode == -sent
    assert stderr.count("Traceback") == (
        sent == signal.SIGINT
    )  # the one of KeyboardInterrupt, in the first process alone
    assert not segments(main.pid)


@pytestmark_proc
def test_a_worker_killed_in_its_rollout_ends_the_run_and_all_of_it(family, wait_for):
    main, _ = family
    worker = int(main.stdout.readline())
    os.kill(worker, signal.SIGKILL)
    began = time.monotonic()
    _, stderr = main.communicate(timeout=10)
    assert time.monotonic() - began < 3
    assert f"(pid {worker}) was ended by SIGKILL" in stderr
    wait_for(lambda: not members(main.pid), limit_s=5)
    assert not segments(main.pid)


def blas_threads():
    """How many threads the OpenBLAS that this process has loaded would use; None where it has another."""
    paths = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "openblas" in line}
    if not paths:
        return None
    library = ctypes.CDLL(min(paths))
    names = [f"{a}openblas_get_num_threads{b}" for a in ("scipy_", "") for b in ("64_", "")]
    return next(getattr(library, name)() for name in names if hasattr(library, name))


@dataclass(frozen=True)
class OneThread:
    """A shard that refuses to be one with more BLAS threads."""

    def __call__(self, _index, _count, _beat):
        if (threads := blas_threads()) not in (None, 1):
            raise Usage(f"{threads} BLAS threads")
        return lambda _command: None


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="finds the library by /proc/self/maps")
def test_every_worker_has_one_blas_thread_whatever_its_environment_says():
    code = "from tests.planner.train import test_shards as t\nwith t.Shards(2, t.OneThread()): print('ready')"
    more = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "8")
    command, environ = [sys.executable, "-c", code], os.environ | more
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "ready\n", done.stderr


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="finds the library by /proc/self/maps")
def test_the_blas_that_numpy_has_loaded_is_bound_to_one_thread():
    paths = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "openblas" in line}
    if not paths:
        pytest.skip("numpy has another BLAS here")
    library = ctypes.CDLL(min(paths))
    suffixes = [
        (a, b) for a in ("scipy_", "") for b in ("64_", "") if hasattr(library, f"{a}openblas_get_num_threads{b}")
    ]
    a, b = suffixes[0]
    getattr(library, f"{a}openblas_set_num_threads{b}")(2)
    assert one_blas_thread() >= 1
    assert getattr(library, f"{a}openblas_get_num_threads{b}")() == 1
