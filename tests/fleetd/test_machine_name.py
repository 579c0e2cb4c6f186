"""One name, one machine: a second machine of the same name is refused, a dead one's name can be had."""

import json
import os
import shutil
import subprocess
import time

import pytest

from fleetd.errors import TryLater
from fleetd.job import utc
from fleetd.machine import Machine, _of_ioreg, patience_s, settle, this_machine
from fleetd.spool import disk_time

ME = Machine(id="a" * 32, boot="this boot")
OTHER = Machine(id="b" * 32, boot="its boot")
BODY = {"lanes": 1, "busy": [], "tags": [], "breaker": {}, "stops": {}, "claims": None}


@pytest.fixture
def beats(rig):
    """`beats(machine, counter=1, **more)` writes the heartbeat of that machine's daemon."""

    def write(machine, counter=1, **more):
        head = {"host": "calber", "machine": machine.id, "boot": machine.boot, "pid": 7, "at": "then"}
        draft = rig.spool.tmp / "beat"
        draft.write_text(json.dumps(head | BODY | {"counter": counter} | more))
        draft.rename(rig.spool.hosts / "calber.json")

    return write


class Clock:
    """A clock that stands but for the pauses; `meanwhile` says what happens in the n-th pause."""

    def __init__(self, meanwhile=None) -> None:
        self.now_s, self.pauses, self._meanwhile = 0.0, 0, meanwhile or {}

    def pause(self, seconds: float) -> None:
        self.now_s += seconds
        self.pauses += 1
        self._meanwhile.get(self.pauses, lambda: None)()

    def now(self) -> float:
        return self.now_s


def settled(rig, clock, me=ME) -> list[str]:
    """What was said until the name was ours."""
    said: list[str] = []
    settle(rig.spool, "calber", me, said.append, clock.pause, clock.now)
    return said


def test_another_machine_whose_counter_moves_keeps_its_name(rig, beats):
    beats(OTHER)
    clock = Clock({9: lambda: beats(OTHER, counter=2)})
    with pytest.raises(TryLater, match=r"another machine serves calber.*--host or FLEET_HOST"):
        settled(rig, clock)
    assert clock.pauses == 9


def test_a_name_whose_machine_is_silent_for_180_s_is_taken_over(rig, beats):
    beats(OTHER)
    clock = Clock()
    assert "taken over" in settled(rig, clock)[-1]
    assert clock.now_s == 180


def test_while_nothing_can_be_seen_silence_says_nothing(rig, beats):
    beats(OTHER)
    away = rig.root.with_name("away")
    clock = Clock({10: lambda: rig.root.rename(away), 100: lambda: away.rename(rig.root)})
    settled(rig, clock)
    assert clock.now_s == 180 + 90


@pytest.mark.parametrize("me", [ME, Machine(id=None, boot="this boot")], ids=["known", "unknown"])
def test_one_s_own_name_is_never_waited_for(rig, beats, me):
    clock = Clock()
    assert settled(rig, clock, me) == []
    beats(Machine(id=ME.id, boot="this boot"))
    assert settled(rig, clock, me) == []
    (rig.spool.hosts / "calber.json").write_text("no heartbeat")
    assert settled(rig, clock, me) == []
    assert clock.pauses == 0


def test_one_that_said_it_ended_is_not_waited_for_unless_it_left_jobs(rig, beats):
    clock = Clock()
    beats(OTHER, ended="then")
    assert settled(rig, clock) == []
    beats(OTHER, ended="then", busy=["j"])
    settled(rig, clock)
    assert clock.now_s == 180


def test_a_host_whose_daemon_said_it_ended_is_not_shown_as_alive(rig, beats, fleet):
    for ended, live in ((None, True), (utc(time.time()), False)):
        beats(OTHER, at=utc(time.time()), ended=ended)
        said = json.loads(fleet("--spool", str(rig.root), "hosts", "--json", FLEET_HOST="mira").stdout)
        assert (said["host"], said["live"]) == ("calber", live)


def test_the_operator_s_rm_ends_the_wait(rig, beats):
    beats(OTHER)
    clock = Clock({3: (rig.spool.hosts / "calber.json").unlink})
    settled(rig, clock)
    assert clock.pauses == 3


def test_a_copy_of_this_machine_is_another_and_a_restarted_one_is_not(rig, beats):
    """A heartbeat from before our boot is our own; one that was written since can't be."""
    beats(Machine(id=ME.id, boot="another boot"))
    os.utime(rig.spool.hosts / "calber.json", (1e9, 1e9))
    assert settled(rig, Clock()) == []
    beats(Machine(id=ME.id, boot="another boot"))
    with pytest.raises(TryLater):
        settled(rig, Clock({9: lambda: beats(Machine(id=ME.id, boot="another boot"), counter=2)}))
    clock = Clock()
    settled(rig, clock)
    assert clock.now_s == 30


def test_a_name_nobody_has_had_is_free():
    assert patience_s(None, ME, started=lambda: 0.0) == 0


def test_the_disk_s_time_is_now_and_leaves_nothing(rig):
    assert abs(disk_time(rig.spool) - time.time()) < 2
    assert list(rig.spool.tmp.iterdir()) == []


def test_the_machine_s_own_id_is_told_to_nobody(tmp_path):
    first = this_machine({"XDG_STATE_HOME": str(tmp_path)})
    assert first == this_machine({"XDG_STATE_HOME": str(tmp_path)})
    assert len(first.id) == 32
    if os.path.exists("/etc/machine-id"):
        with open("/etc/machine-id") as file:
            assert file.read().strip() != first.id


def test_a_mac_is_known_by_what_ioreg_says(tmp_path, monkeypatch):
    said = '+-o Root <class IORegistryEntry>\n      "IOPlatformUUID" = "564D0000-1111-2222-3333-444455556666"\n'
    (tmp_path / "ioreg").write_text(f"#!/bin/sh\ncat <<'END'\n{said}END\n")
    (tmp_path / "ioreg").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert _of_ioreg() == "564D0000-1111-2222-3333-444455556666"


# --- two machines: namespaces of their own with another machine-id, boot id and lock, as on a share without flock ---


@pytest.fixture
def other_machine(rig, root_only, tmp_path):
    """The command that runs another on a machine like this one, with its own ids, whose locks this one doesn't see."""
    binds = []
    for name, at, text in (
        ("id", "/etc/machine-id", "0123456789abcdef" * 2),
        ("boot", "/proc/sys/kernel/random/boot_id", "11111111-2222-3333-4444-555555555555\n"),
        ("lock", rig.spool.hosts / "calber.lock", ""),
    ):
        (tmp_path / name).write_text(text)
        binds.append(f"mount --bind {tmp_path / name} {at}")
    (rig.spool.hosts / "calber.lock").touch()
    command = ["unshare", "--mount", "sh", "-c", " && ".join([*binds, 'exec "$0" "$@"'])]
    if not shutil.which("unshare") or subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces, or no /etc/machine-id, here")
    return command


def test_the_same_name_on_a_second_machine_is_75_with_one_clear_line(rig, other_machine, wait_for):
    rig.start()
    rig.shell("runs", "until test -e $FLEET_SPOOL/go; do sleep 0.02; done")
    rig.pid("runs")
    second = rig.start(wrap=other_machine, ready=False)
    wait_for(lambda: "another machine's" in rig.said())
    rig.drop("news", "true")  # a heartbeat at each change: no need to wait for the next one
    assert second.wait(20) == 75
    assert "another machine serves calber on this spool" in rig.said().splitlines()[-1]
    (rig.root / "go").touch()
    assert [rig.ended(name)["outcome"] for name in ("runs", "news")] == ["ok", "ok"]


def test_a_machine_that_let_go_of_its_name_leaves_it_to_another_at_once(rig, other_machine, wait_for):
    first = rig.start(wrap=other_machine)
    rig.ended(rig.drop("one", "true"))
    first.terminate()
    assert first.wait(5) == 0
    assert rig.beat()["ended"]
    rig.start()
    assert rig.ended(rig.drop("two", "true"))["outcome"] == "ok"
    assert "another machine" not in rig.said()


def test_of_two_machines_that_saw_nothing_of_each_other_one_gives_way(rig, other_machine, wait_for):
    """The second looks before the first has said a word; from their heartbeats they then learn of each other."""
    both = [rig.start()]
    (rig.spool.hosts / "calber.json").unlink()
    both.append(rig.start(wrap=other_machine))
    wait_for(lambda: any(daemon.poll() is not None for daemon in both), 45)
    assert sorted(str(daemon.poll()) for daemon in both) == ["75", "None"]
    assert "another machine serves calber" in rig.said().splitlines()[-1]
    assert rig.ended(rig.drop("j", "true"), limit_s=20)["outcome"] == "ok"


def test_an_id_is_made_up_where_the_system_has_none(rig, root_only, tmp_path):
    """No machine-id in this mount namespace: two starts find the same id in the state directory."""
    hide = "for id in /etc/machine-id /var/lib/dbus/machine-id; do test ! -e $id || mount --bind /dev/null $id; done"
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    hidden = ["unshare", "--mount", "sh", "-c", f'{hide}; exec "$0" "$@"']
    if subprocess.run([*hidden, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    seen = set()
    for _ in range(2):
        assert rig.once(wrap=hidden, env=state) == 0
        seen.add(rig.beat()["machine"])
    assert len(seen) == 1
    assert (tmp_path / "state/fleet/machine-id").stat().st_size == 33
    assert None not in seen
