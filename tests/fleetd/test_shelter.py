"""An exit code that the spool does not take is kept outside of it, and outlives the parent that knew it."""

import json
import os
import pwd
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fleetd import shelter
from fleetd.claim import token_of
from fleetd.job import utc
from fleetd.spool import spool_path

TOKEN = "0badb007" + "0123456789abcdef"
SAID = {"outcome": "failed", "exit": 3, "signal": None, "reason": None}
FLEET = Path(sys.executable).with_name("fleet")
WAITS = "until test -e $FLEET_SPOOL/go; do sleep 0.02; done; exit 3"


@pytest.fixture
def sheltered(rig, tmp_path):
    """`start()` starts a daemon whose lanes' parents have their shelter at the path that it gives."""

    def start(**keys):
        rig.settings(poll_s=0.2)
        rig.start(env={"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_RUNTIME_DIR": str(tmp_path / "run")}, **keys)
        return tmp_path / "state" / "fleet" / "held"

    return start


@pytest.fixture
def read_only(root_only):
    """`read_only(directory)` makes it so until what it gives is called."""
    mounted = []

    def make(directory):
        done = subprocess.run(["mount", "--bind", directory, directory], capture_output=True, check=False)
        if done.returncode:
            pytest.skip(f"no bind mount to be had: {done.stderr.decode()}")
        mounted.append(directory)
        subprocess.run(["mount", "-o", "remount,ro,bind", directory], check=True)

        def undo():
            mounted.remove(directory)
            subprocess.run(["umount", directory], check=True)

        return undo

    yield make
    for directory in mounted:
        subprocess.run(["umount", "-l", directory], check=True)


def unwritten(rig, read_only, wait_for, held, name="j"):
    """A job has ended, and its directory takes no exit.json: what makes it writable, and what is kept meanwhile."""
    rig.shell(name, WAITS)
    pid, token = rig.pid(name), token_of(rig.attempt(name))
    undo = read_only(rig.attempt(name))
    (rig.root / "go").touch()
    kept = held / f"{token}.json"
    wait_for(kept.exists)
    return pid, undo, kept


def test_an_exit_code_outlives_the_parent_that_could_not_write_it(rig, sheltered, read_only, wait_for):
    held = sheltered()
    pid, undo, kept = unwritten(rig, read_only, wait_for, held)
    assert stat.S_IMODE(held.stat().st_mode) == 0o700
    os.kill(pid["parent"], signal.SIGKILL)
    wait_for(lambda: pid["parent"] not in rig.parents())
    rig.ended(rig.drop("meanwhile", "true"))
    assert rig.results("j") == []
    undo()
    row = rig.ended("j")
    assert (row["outcome"], row["exit"], row["wall_s"] > 0) == ("failed", 3, True)
    assert not kept.exists()


def test_it_outlives_parent_and_daemon(rig, sheltered, read_only, wait_for):
    held = sheltered()
    pid, undo, kept = unwritten(rig, read_only, wait_for, held)
    rig.kill()
    os.kill(pid["parent"], signal.SIGKILL)
    wait_for(lambda: not rig.parents())
    undo()
    sheltered()
    assert rig.ended("j")["exit"] == 3
    assert not kept.exists()


@pytest.mark.parametrize("left", [b"", b"\0" * 24, None])
def test_it_outlives_what_the_lock_says(rig, sheltered, read_only, wait_for, left):
    """A lock is not fsynced: after an error of the disk or a power cut it may be empty, or gone."""
    held = sheltered()
    pid, undo, kept = unwritten(rig, read_only, wait_for, held)
    rig.kill()
    os.kill(pid["parent"], signal.SIGKILL)
    wait_for(lambda: not rig.parents())
    undo()
    lock = rig.attempt("j") / "lock"
    lock.unlink() if left is None else lock.write_bytes(left)
    sheltered()
    row = rig.ended("j")
    assert (row["outcome"], row["exit"], kept.exists()) == ("failed", 3, False)


def test_what_an_earlier_attempt_has_left_is_not_taken_for_this_one_s(tmp_path):
    places, attempt = (tmp_path / "held",), tmp_path / "running" / "calber" / "j"
    attempt.mkdir(parents=True)
    shelter.keep(places, TOKEN, str(attempt), SAID | {"ended": utc(time.time() - 5)})
    (attempt / "job.json").write_text("{}")
    assert shelter.token_for(places, attempt) is None
    shelter.keep(places, TOKEN[::-1], str(attempt), SAID | {"ended": utc(time.time() + 1)})
    assert shelter.token_for(places, attempt) == TOKEN[::-1]


def test_daemon_and_status_say_which_results_wait_for_the_disk(rig, sheltered, read_only, wait_for, tmp_path):
    held = sheltered()
    _, undo, _ = unwritten(rig, read_only, wait_for, held)
    wait_for(lambda: "j has ended; its row waits" in rig.said())
    environ = os.environ | {"XDG_STATE_HOME": str(tmp_path / "state"), "FLEET_HOST": "calber"}
    command = [FLEET, "status", "--spool", rig.root]

    def told():
        return subprocess.run(command, check=True, env=environ, capture_output=True, text=True).stdout

    assert "j has ended; its row waits" in told()
    undo()
    rig.ended("j")
    assert "its row waits" not in told()


def test_a_parent_that_lives_writes_it_when_it_can_and_keeps_nothing(rig, sheltered, read_only, wait_for):
    held = sheltered()
    _, undo, kept = unwritten(rig, read_only, wait_for, held)
    undo()
    assert rig.ended("j")["exit"] == 3
    wait_for(lambda: not kept.exists())
    assert list(held.iterdir()) == []


def test_what_a_kill_has_left_in_a_shelter_is_swept_by_the_next_start(rig, sheltered, wait_for, tmp_path):
    places = (tmp_path / "state" / "fleet" / "held",)
    gone, elsewhere = rig.attempt("gone"), tmp_path / "other" / "running" / "calber" / "j"
    assert shelter.keep(places, TOKEN, str(gone), SAID)
    assert shelter.keep(places, TOKEN[::-1], str(elsewhere), SAID)
    sheltered()
    wait_for(lambda: [path.name for path in places[0].iterdir()] == [f"{TOKEN[::-1]}.json"])


def test_the_first_place_that_takes_it_keeps_it_and_all_are_looked_in(tmp_path):
    places = (tmp_path / "file", tmp_path / "open", tmp_path / "new" / "held")
    places[0].write_text("")
    places[1].mkdir(mode=0o755)
    assert shelter.keep(places, TOKEN, "/a", SAID)
    assert [path.name for path in places[2].iterdir()] == [f"{TOKEN}.json"]
    assert list(places[1].iterdir()) == []
    assert shelter.find(places, TOKEN) == SAID
    shelter.drop(places, TOKEN)
    assert shelter.find(places, TOKEN) is None


def test_a_shelter_that_is_a_link_or_another_user_s_is_none(root_only, tmp_path):
    (tmp_path / "theirs").mkdir(mode=0o700)
    (tmp_path / "mine").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    (tmp_path / "theirs" / f"{TOKEN}.json").write_text(json.dumps({"attempt": "/a", "exit": SAID}))
    os.chown(tmp_path / "theirs", 65534, 65534)
    places = (tmp_path / "theirs", tmp_path / "link")
    assert not shelter.keep(places, TOKEN, "/a", SAID)
    assert shelter.find(places, TOKEN) is None


@pytest.mark.parametrize("token", ["", "..", "../../etc/passwd", "0badb007/../x", "x" * 24])
def test_what_is_no_token_leads_nowhere(tmp_path, token):
    places = (tmp_path / "held",)
    assert not shelter.keep(places, token, "/a", SAID)
    assert shelter.find(places, token) is None
    shelter.drop(places, token)
    assert not places[0].exists()


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"exit": 3}', b'{"exit": {"outcome": "odd"}}'])
def test_a_record_that_is_none_leaves_the_attempt_lost(rig, sheltered, wait_for, data):
    held = sheltered()
    rig.shell("j", "sleep 100")
    pid, token = rig.pid("j"), token_of(rig.attempt("j"))
    held.mkdir(mode=0o700, parents=True)
    (held / f"{token}.json").write_bytes(data)
    for process in (pid["parent"], pid["pid"]):
        os.kill(process, signal.SIGKILL)
    assert rig.ended("j")["outcome"] == "lost"


def test_where_the_shelters_are():
    where = shelter.shelters({"XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": "/r"})
    assert [str(path) for path in where] == ["/s/fleet/held", "/r/fleet/held", f"/var/tmp/fleet-held-{os.getuid()}"]
    runtime = f"/run/user/{os.getuid()}" if os.getuid() else "/run"
    where = shelter.shelters({"HOME": "/h"})
    assert [str(path) for path in where[:2]] == ["/h/.local/state/fleet/held", f"{runtime}/fleet/held"]


def test_a_relative_path_is_no_place_for_a_shelter():
    """Its writers stand in / and its readers anywhere."""
    odd = {"XDG_STATE_HOME": "state", "XDG_RUNTIME_DIR": "./run"}
    assert shelter.shelters(odd | {"HOME": "/h"}) == shelter.shelters({"HOME": "/h"})
    home = pwd.getpwuid(os.getuid()).pw_dir
    for nowhere in ({}, {"HOME": ""}, {"HOME": "h"}, {"HOME": "."}):
        assert str(shelter.shelters(odd | nowhere)[0]) == f"{home}/.local/state/fleet/held"
        assert spool_path(None, odd | nowhere) == Path(home, ".local/state/fleet/spool")
