"""Faults that users of queues met and that no other test shows: docs/explanation/faults.md names the tests of each."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fleetd.lease import born


@pytest.fixture
def tiny(rig, small_disk, tmp_path, wait_for):
    """A rig on a disk of 64 KiB: 16 pages, of which each file takes one or more."""
    made = type(rig)(small_disk("64k") / "spool", wait_for, tmp_path / "said")
    yield made
    made.close()


def leave(rig, pages: int) -> None:
    """Take all pages of the disk but so many."""
    with open(rig.root / "ballast", "wb", buffering=0) as file:
        free = os.statvfs(rig.root).f_bavail
        file.write(b"x" * 4096 * max(0, free - pages))


# --- 7: a process group's number that came back ---


def test_a_group_whose_number_came_back_is_never_signalled(rig, wait_for):
    """pid.json names a group that is a stranger's by now, whose leader has ended: nothing is left to compare it with."""
    stranger = subprocess.Popen(["sh", "-c", "sleep 100 & echo $!"], start_new_session=True, stdout=subprocess.PIPE)
    child = int(stranger.stdout.readline())
    stranger.wait()
    try:
        rig.start()
        rig.shell("j", "sleep 100")
        pid = rig.pid("j")
        rig.kill()
        os.kill(pid["parent"], signal.SIGKILL)
        os.killpg(pid["pgid"], signal.SIGKILL)
        wait_for(lambda: not rig.jobs())
        (rig.attempt("j") / "pid.json").write_text(json.dumps(pid | {"pid": stranger.pid, "pgid": stranger.pid}))
        (rig.root / "STOP_NOW").touch()
        rig.start()
        assert rig.ended("j")["outcome"] == "lost"
        wait_for(lambda: rig.rows("stop"))
        assert os.getpgid(child) == stranger.pid
    finally:
        os.kill(child, signal.SIGKILL)
        stranger.stdout.close()


# --- 9: a full disk ---


@pytest.mark.parametrize("pages", range(7))
def test_wherever_the_disk_fills_a_job_runs_once_and_its_result_is_kept(tiny, wait_for, tmp_path, pages):
    """So many pages are left for lock, pid.json, exit.json, log, heartbeat and row: in turn there is none for each."""
    tiny.settings(poll_s=0.2)
    tiny.start(lanes=1)
    tiny.ended(tiny.drop("first", "true"))
    draft = tiny.spool.tmp / "draft"
    draft.write_text(json.dumps({"argv": ["sh", "-c", f"echo x >> {tmp_path}/ran; echo hello; exit 3"]}))
    leave(tiny, pages)
    draft.rename(tiny.spool.queue / "job.json")
    wait_for(lambda: "No space" in tiny.said() or "free some space" in tiny.said() or tiny.results("job"))
    (tiny.root / "ballast").unlink()
    row = tiny.ended("job")
    assert (row["outcome"], row["exit"], row["attempt"]) == ("failed", 3, 1)
    assert (tmp_path / "ran").read_text() == "x\n"
    assert [row["seq"] for row in tiny.rows()] == [1, 2]


def test_a_log_that_fills_the_disk_costs_no_job_its_exit_code(tiny, wait_for, tmp_path):
    """What can't be written any more is the writer's to see; exit.json's block was reserved before the start."""
    tiny.start(lanes=2)
    tiny.shell("quiet", f"until test -e {tmp_path}/go; do sleep 0.02; done; exit 4")
    tiny.pid("quiet")
    tiny.shell("loud", f"head -c 1000000 /dev/zero; echo $? > {tmp_path}/head; exit 5")
    wait_for((tiny.attempt("loud") / "exit.json").exists)
    (tmp_path / "go").touch()
    wait_for((tiny.attempt("quiet") / "exit.json").exists)
    assert (tmp_path / "head").read_text() == "1\n"
    wait_for(lambda: "No space" in tiny.said() or "free some space" in tiny.said())
    os.truncate(tiny.attempt("loud") / "log", 0)
    assert [(tiny.ended(name)["outcome"], tiny.ended(name)["exit"]) for name in ("loud", "quiet")] == [
        ("failed", 5),
        ("failed", 4),
    ]


# --- 18: one broken host ---


def test_a_broken_host_stops_at_five_and_the_others_go_on(rig, wait_for):
    rig.settings(failures=5, rest_s=60, poll_s=0.2)
    for n in range(57):
        rig.shell(f"j{n:02d}", "test $FLEET_HOST = sound && sleep 0.05", rerun_safe=True)
    rig.start(host="broken", lanes=1)
    wait_for(lambda: rig.beat("broken")["breaker"]["open"])
    rig.start(host="sound", lanes=2)
    wait_for(lambda: len(rig.rows()) == 57, 30)
    by_host = [row["host"] for row in rig.rows()]
    assert (by_host.count("broken"), by_host.count("sound")) == (5, 52)
    assert {row["outcome"] for row in rig.rows() if row["host"] == "sound"} == {"ok"}
    assert not rig.beat("sound")["breaker"]["open"]


# --- 13: links and FIFOs in the place of a log or a lock ---


@pytest.mark.parametrize("kind", ["fifo", "link"])
def test_a_log_that_its_job_replaces_is_neither_followed_nor_waited_on(rig, fleet, tmp_path, kind):
    rig.settings(log_max_mb=0.1)
    target = tmp_path / "target"
    target.write_bytes(b"mine" * 100_000)
    planted = {"fifo": "mkfifo ../log", "link": f"ln -s {target} ../log"}[kind]
    rig.start(lanes=1)
    row = rig.ended(rig.shell("plants", f"cd $FLEET_OUT; rm ../log; {planted}; head -c 2000000 /dev/zero; exit 4"))
    assert (row["outcome"], row["exit"]) == ("failed", 4)
    assert target.read_bytes() == b"mine" * 100_000
    assert "mine" not in fleet("--spool", str(rig.root), "log", "plants").stdout
    assert rig.ended(rig.drop("next", "true"))["outcome"] == "ok"


@pytest.mark.parametrize("name", ["hosts/calber.lock", "ledger.d/calber.lock", "ledger.d/.merge.lock"])
@pytest.mark.parametrize("kind", ["fifo", "link"])
def test_a_fifo_or_link_in_a_lock_s_place_is_not_followed_and_blocks_nobody(rig, wait_for, tmp_path, name, kind):
    at, target = rig.root / name, tmp_path / "target"
    target.write_text("mine")
    os.mkfifo(at) if kind == "fifo" else at.symlink_to(target)
    daemon = rig.start(ready=False)
    wait_for(lambda: daemon.poll() is not None or rig.beat().get("pid") == daemon.pid)
    rig.shell("j", "sleep 100")
    (rig.root / "STOP_NOW").touch()
    wait_for(lambda: daemon.poll() is not None or "STOP_NOW" in rig.beat()["stops"])
    wait_for(lambda: not rig.jobs(), 5)
    assert target.read_text() == "mine"
    assert daemon.poll() is None or f"{at}: cannot make the lock" in rig.said()


# --- 14: a hundred thousand waiting jobs ---


def crowd(rig, count: int) -> None:
    """So many jobs that wait behind those whose names begin with 1 or 2."""
    data = b'{"argv": ["true"], "rerun_safe": true}'
    for n in range(count):
        one = rig.spool.tmp / f"one-{n // 50_000}"  # a file has 65,000 names at most
        if n % 50_000 == 0:
            one.write_bytes(data)
        os.link(one, rig.spool.queue / f"9-{n:06d}.json")


def memory_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def test_the_next_claim_looks_at_no_other_waiting_job(rig, wait_for, tmp_path):
    """Names first, no stat: what the daemon opens, looks at or renames in queue/ from one job's end to the next start."""
    if (
        shutil.which("strace") is None
        or subprocess.run(["strace", "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no strace that may trace")
    crowd(rig, 5000)
    rig.shell("1-first", "until test -e $FLEET_SPOOL/go; do sleep 0.02; done")
    rig.shell("2-next", "sleep 100")
    daemon = rig.start(lanes=1, ready=False)
    rig.pid("1-first")
    trace = ["strace", "-f", "-y", "-o", tmp_path / "trace", "-e", "trace=%file", "-p", str(daemon.pid)]
    with subprocess.Popen(trace, stderr=subprocess.PIPE) as strace:
        assert b"attached" in strace.stderr.readline()
        (rig.root / "go").touch()
        rig.pid("2-next")
        strace.terminate()
    said = (tmp_path / "trace").read_text()
    touched, claimed = (set(re.findall(rf"{call}.*?queue/([0-9a-z-]+)\.json", said)) for call in ("", r"rename\w*\("))
    assert "2-next" in claimed
    assert touched == claimed


@pytest.mark.parametrize("count", [20_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_waiting_jobs_cost_no_process_and_little_memory(rig, wait_for, count):
    rig.start(lanes=1)
    rig.shell("1-first", "until test -e $FLEET_SPOOL/go; do sleep 0.02; done")
    rig.pid("1-first")
    crowd(rig, count)
    (rig.root / "go").touch()
    wait_for(lambda: len(rig.rows()) > 2, 20)
    assert len(rig.parents() | set(rig.jobs())) < 5  # one lane: its parent, its job, and what is just between the two
    assert memory_mb(rig.daemons[0].pid) < 60


# --- 15: no file events, a share that is unmounted and back ---


def test_on_a_share_the_daemon_polls_with_one_line(rig, root_only, wait_for, tmp_path):
    """The table of mounts says that the spool lies on NFS, where events say nothing of what others do."""
    kind = f"99 1 0:99 / {rig.root.parent!s} rw - nfs4 server:/x rw\n"
    (tmp_path / "mounts").write_text(Path("/proc/self/mountinfo").read_text() + kind)
    command = ["unshare", "--mount", "sh", "-c", f'mount --bind {tmp_path}/mounts /proc/$$/mountinfo && exec "$0" "$@"']
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    rig.settings(poll_s=0.2)
    daemon = rig.start(ready=False, wrap=command)
    wait_for(rig.beat)
    assert rig.ended(rig.drop("j", "true"), limit_s=3)["outcome"] == "ok"
    assert rig.said().count(f"{rig.root} is a share (nfs4): looking every poll_s instead") == 1
    inotify = [fd for fd in Path(f"/proc/{daemon.pid}/fd").iterdir() if "inotify" in os.readlink(fd)]
    assert inotify == []


def test_a_spool_that_is_unmounted_and_back_is_gone_on_with(rig, root_only, wait_for, tmp_path):
    """Jobs go on meanwhile, one line says what is missing, and nothing is taken for lost."""
    rig.settings(poll_s=0.2)
    shown = tmp_path / "shown"
    shown.mkdir()
    if subprocess.run(["mount", "--bind", tmp_path, shown], capture_output=True, check=False).returncode:
        pytest.skip("no bind mounts here")
    at = shown / "spool"
    try:
        daemon = rig.start("--spool", at, ready=False)
        wait_for(lambda: rig.beat().get("pid") == daemon.pid)
        rig.shell("goes-on", f"until test -e {tmp_path}/go; do sleep 0.02; done; exit 7")
        leader = rig.pid("goes-on")["pid"]
        subprocess.run(["umount", "-l", shown], check=True)
        wait_for(lambda: "No such file" in rig.said())
        (tmp_path / "go").touch()
        rig.drop("comes", "true")
        wait_for(lambda: born(leader) is None)
        assert daemon.poll() is None
        assert rig.rows() == []
    finally:
        subprocess.run(["mount", "--bind", tmp_path, shown], check=False)
    try:
        assert rig.ended("goes-on")["exit"] == 7
        assert rig.ended("comes")["outcome"] == "ok"
        assert {row["outcome"] for row in rig.rows()} == {"failed", "ok"}
        assert rig.said().count(f"{at}: No such file") == 1
    finally:
        rig.kill()
        subprocess.run(["umount", "-l", shown], check=True)


# --- 17: tools that macOS has not ---


def test_no_tool_is_needed_that_macos_has_not(rig, tmp_path, wait_for):
    """On the PATH are sh and sleep alone: no nproc, setsid, flock, timeout, nvidia-smi."""
    for name in ("sh", "sleep"):
        (tmp_path / name).symlink_to(shutil.which(name))
    rig.settings(grace_s=0.5)
    daemon = rig.start(env={"PATH": str(tmp_path)})
    row = rig.ended(rig.shell("late", "echo $PATH; sh -c 'sleep 100; :' & sleep 100", timeout_s=0.5))
    assert (row["outcome"], rig.log(row)) == ("timeout", f"{tmp_path}\n".encode())
    rig.shell("stops", "(trap '' TERM; while :; do sleep 0.1; done) & sleep 100")
    rig.pid("stops")
    (rig.root / "STOP_NOW").touch()
    assert rig.ended("stops")["outcome"] == "stopped"
    assert not rig.jobs()
    assert daemon.poll() is None, rig.said()


# --- 20: names ---


def test_a_machine_s_name_with_dots_and_capitals_serves_by_its_first_label(rig, root_only):
    named = ["unshare", "--uts", "sh", "-c", 'hostname Big.Box.example && exec "$@"', "sh"]
    if subprocess.run([*named, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no UTS namespaces here")
    command = [*named, Path(sys.executable).with_name("fleetd"), "--spool", rig.root, "--once"]
    rig.drop("j", "true")
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    assert list(rig.spool.heartbeats()) == ["Big"]
    assert [row["host"] for row in rig.rows()] == ["Big"]
