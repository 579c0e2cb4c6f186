"""What is woken by file events, and where they are not trusted."""

import select
import time
from pathlib import Path

import pytest

from fleetd.spool import init_spool
from fleetd.watch import file_system, watch

MOUNTS = """\
20 1 254:0 / / rw - ext4 /dev/vda rw
21 20 0:40 / /mnt/share rw shared:1 - nfs4 server:/x rw
22 21 0:41 / /mnt/share/deep rw - tmpfs tmpfs rw
23 20 0:42 / /mnt/with\\040space rw - fuse.sshfs host: rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/x", "ext4"),
        ("/mnt/share", "nfs4"),
        ("/mnt/share/a/b", "nfs4"),
        ("/mnt/share/deep/a", "tmpfs"),
        ("/mnt/shared", "ext4"),
        ("/mnt/with space/a", "fuse.sshfs"),
    ],
)
def test_the_innermost_mount_says_which_file_system_it_is(tmp_path, path, kind):
    (tmp_path / "mountinfo").write_text(MOUNTS)
    assert file_system(tmp_path.__class__(path), tmp_path / "mountinfo") == kind


@pytest.fixture
def woken(tmp_path):
    """`woken(change)`: whether the change of the spool wakes within two seconds."""
    spool = init_spool(tmp_path / "spool", home=None)
    watching, why = watch(spool)
    assert watching, why

    def after(change, limit_s=2.0):
        watching.read()
        change(spool)
        end = time.monotonic() + limit_s
        while (left := end - time.monotonic()) > 0:
            if select.select([watching], [], [], left)[0] and watching.read():
                return True
        return False

    yield after
    watching.close()


@pytest.mark.parametrize("name", ["queue/j.json", "STOP_NOW", "STOP_ADDING", "hosts/x.drain", "hosts/x.reset"])
def test_what_matters_wakes(woken, name):
    assert woken(lambda spool: (spool.root / name).touch())


def test_a_stop_that_goes_away_wakes(woken):
    assert woken(lambda spool: (spool.root / "STOP_NOW").touch())
    assert woken(lambda spool: (spool.root / "STOP_NOW").unlink())


def test_a_job_moved_in_wakes(woken):
    def move(spool):
        (spool.tmp / "j").touch()
        (spool.tmp / "j").rename(spool.queue / "j.json")

    assert woken(move)


@pytest.mark.parametrize("name", ["ledger.jsonl", "hosts/x.json", "note.txt", "tmp/x"])
def test_what_the_daemon_itself_writes_does_not_wake(woken, name):
    assert not woken(lambda spool: (spool.root / name).touch(), 0.3)


@pytest.fixture
def short_memory(root_only):
    """The kernel keeps four events for who asks now."""
    limit = Path("/proc/sys/fs/inotify/max_queued_events")
    before = limit.read_text()
    limit.write_text("4")
    yield
    limit.write_text(before)


def test_when_events_are_lost_anything_may_have_changed(short_memory, tmp_path):
    spool = init_spool(tmp_path / "spool", home=None)
    watching, _ = watch(spool)
    for n in range(9):
        (spool.queue / f"j{n}.json").write_text("{}")
    assert spool.root in watching.read()
    watching.close()
