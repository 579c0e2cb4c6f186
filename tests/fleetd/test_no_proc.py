"""A system that has neither /proc nor waitid(2) nor subreapers, as macOS: ps(1) tells, and the mark finds what got away."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

HIDDEN = """
import sys
bare = "import os, sys; del os.waitid, os.posix_fallocate; vars(os).pop('pidfd_open', None); "
exec(bare)
import fleetd.crew
from fleetd.cli_daemon import main
fleetd.crew._BOOT = bare + "sys.platform = 'bare'; " + fleetd.crew._BOOT
sys.exit(main(sys.argv[2:]))
"""
MOUNT = 'mount --rbind / "$0" && mount -t tmpfs none /proc && mount --bind "$1" "$2" && shift 2 && exec "$@"'
DAEMONIZED = "setsid sleep 100 & setsid sh -c 'sleep 100 & sleep 100' & sleep 100"
DEAF = "trap '' TERM INT HUP; sleep 100 & while :; do sleep 0.1; done"


@pytest.fixture
def bare(rig, root_only, tmp_path):
    """`bare(…)` starts a daemon there; its ps(1) looks at the processes from outside."""
    outside, bin_, ps = tmp_path / "outside", tmp_path / "bin", os.path.realpath(shutil.which("ps"))
    for directory in (outside, bin_):
        directory.mkdir()
    for name, script in {
        "ps": f'exec {shutil.which("chroot")} {outside} {ps} "$@"',
        "sysctl": "echo 0badb007-0000",
    }.items():
        (bin_ / name).write_text(f"#!/bin/sh\n{script}\n")
        (bin_ / name).chmod(0o755)
    wrap = "unshare", "--mount", "sh", "-c", MOUNT, str(outside), str(bin_ / "ps"), ps
    if subprocess.run([*wrap, "true"], capture_output=True, check=False).returncode:
        pytest.skip("unshare --mount is not allowed here")

    def start(**keys):
        env = {"PATH": f"{bin_}:{os.environ['PATH']}"}
        return rig.start(wrap=(*wrap, sys.executable, "-c", HIDDEN), env=env, **keys)

    return start


def test_jobs_run_and_their_exit_codes_are_kept(rig, bare):
    bare()
    names = [rig.drop(f"j{n}", "/bin/sh", "-c", f"exit {n}", env={"PATH": "/nowhere"}) for n in range(3)]
    assert [rig.ended(name)["exit"] for name in names] == [0, 1, 2]
    assert not rig.jobs()


def test_proc_is_not_there_and_leftovers_in_sessions_of_their_own_are_ended_and_counted(rig, bare):
    bare()
    script = "ls /proc; setsid sleep 100 & setsid sleep 100 & sleep 0.2; exit 3"
    row = rig.ended(rig.shell("leaves", script, env={"TZ": "Asia/Tokyo", "FLEET_CLAIM": "another"}))
    assert rig.log(row) == b""
    assert (row["outcome"], row["exit"], row["leftovers"]) == ("failed", 3, 2)
    assert not rig.jobs()


@pytest.mark.parametrize("script", [DAEMONIZED, DEAF], ids=["daemonized", "deaf"])
def test_a_time_limit_leaves_nothing_alive(rig, bare, script):
    rig.settings(grace_s=0.4)
    bare()
    assert rig.ended(rig.shell("tree", script, timeout_s=0.4))["outcome"] == "timeout"
    assert not rig.jobs()


def test_stop_now_leaves_nothing_alive(rig, bare, wait_for):
    bare()
    rig.shell("tree", DAEMONIZED)
    rig.pid("tree")
    (rig.root / "STOP_NOW").touch()
    assert rig.ended("tree")["outcome"] == "stopped"
    assert not rig.jobs()


def test_a_killed_daemon_s_jobs_are_adopted(rig, bare, wait_for):
    rig.settings(poll_s=0.2)
    bare()
    rig.shell("long", "until test -e $FLEET_SPOOL/go; do sleep 0.02; done; exit 7")
    rig.pid("long")
    rig.kill()
    bare()
    wait_for(lambda: rig.beat()["busy"] == ["long"])
    (rig.root / "go").touch()
    assert rig.ended("long")["exit"] == 7


def test_what_a_killed_parent_leaves_is_found_by_its_mark(rig, bare, wait_for):
    rig.settings(poll_s=0.2)
    bare()
    rig.shell("orphan", "setsid sleep 100 & sleep 100")
    pid = rig.pid("orphan")
    os.kill(pid["parent"], signal.SIGKILL)
    os.kill(pid["pid"], signal.SIGKILL)
    assert rig.ended("orphan")["outcome"] == "lost"
    assert not rig.jobs()
