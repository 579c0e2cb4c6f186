"""Anything that people, kills and stops may do to a spool, in any order: every job still gets the end it deserves.

A rule-based state machine drives a real spool with real daemons. Each job marks its beginning and its end in a file, so
that what ran twice at a time shows; at the end all stops are lifted, a daemon runs everything out, and the books are read.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from fleetd import FleetError, Job, Ledger
from fleetd.recall import cancel, retry

MAX_LOST = 3  # losses of one job, after which it goes no more
PUBLISH = """
import sys
from pathlib import Path
from fleetd import Spool, decode_job
Spool(Path(sys.argv[1])).publish(decode_job(sys.argv[3].encode(), sys.argv[2]))
"""


def marks(text: str) -> tuple[int, int, int]:
    """How often a job began, how often it came to its end, and how many of it ran at most at a time, as it says itself."""
    depth = most = 0
    for word in text.split():
        depth = depth + 1 if word == "begin" else max(0, depth - 1)
        most = max(most, depth)
    return text.count("begin"), text.count("end"), most


class SpoolMachine(RuleBasedStateMachine):
    """The rules; `make_rig` is set by the test."""

    make_rig = None

    @initialize()
    def begin(self):
        self.rig, self.numbers, self.daemon = self.make_rig(), itertools.count(), None
        self.asked: dict[str, dict] = {}
        self.cancelled: set[str] = set()
        self.halves: list[Path] = []
        self.stopped = False
        (self.rig.root / "ran").mkdir()

    def job(self, length: str, *, safe: bool, ends: bool) -> tuple[str, dict]:
        """A job that tells when it begins and ends; one that `ends` badly does so the first time only."""
        id_ = f"j{next(self.numbers):03d}"
        ran = self.rig.root / "ran" / id_
        script = (
            f"trap 'echo end >> {ran}; exit 9' TERM; echo begin >> {ran}; sleep {length} & wait $!; echo end >> {ran}"
        )
        if not ends:
            script += f"; test $(grep -c begin {ran}) -gt 1"
        self.asked[id_] = {"safe": safe, "ends": ends}
        return id_, {"argv": ["sh", "-c", script], "rerun_safe": safe, "retries": 0 if ends else 1}

    @rule(length=st.sampled_from(["0", "0.05", "0.3"]), safe=st.booleans(), ends=st.booleans())
    def publish(self, length, safe, ends):
        id_, body = self.job(length, safe=safe, ends=ends)
        try:
            argv = tuple(body.pop("argv"))
            self.rig.spool.publish(Job(id=id_, argv=argv, **body))
        except FleetError:
            assert self.stopped
            del self.asked[id_]

    @rule(safe=st.booleans())
    def drop(self, safe):
        id_, body = self.job("0", safe=safe, ends=True)
        self.rig.drop_bytes(id_, json.dumps(body).encode())

    @rule()
    def half_write(self):
        id_, body = self.job("0", safe=True, ends=True)
        data = json.dumps(body).encode()
        path = self.rig.spool.queue / f"{id_}.json"
        path.write_bytes(data[: len(data) // 2])
        self.halves.append(path)
        path.with_suffix(".rest").write_bytes(data[len(data) // 2 :])

    @precondition(lambda self: self.halves)
    @rule()
    def write_the_rest(self):
        path = self.halves.pop()
        with open(path, "ab") as file:
            file.write(path.with_suffix(".rest").read_bytes())
        path.with_suffix(".rest").unlink()

    @rule(after_s=st.sampled_from([0.05, 0.1, 0.15, 0.2]))
    def kill_a_publisher(self, after_s):
        id_, body = self.job("0", safe=True, ends=True)
        command = [sys.executable, "-c", PUBLISH, self.rig.root, id_, json.dumps(body)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as publisher:
            self.pause(after_s)
            publisher.kill()
        self.asked[id_]["maybe"] = True

    @precondition(lambda self: self.asked)
    @rule(index=st.integers(0, 30))
    def cancel(self, index):
        id_ = sorted(self.asked)[index % len(self.asked)]
        self.cancelled.add(id_)
        with suppress(FleetError):  # it has ended, or is on its way from one place to the next
            cancel(self.rig.spool, "calber", id_)

    @precondition(lambda self: self.cancelled)
    @rule(index=st.integers(0, 30))
    def retry(self, index):
        id_ = sorted(self.cancelled)[index % len(self.cancelled)]
        with suppress(FleetError):
            retry(self.rig.spool, id_, Ledger(self.rig.spool.ledger_d).rows())

    @rule(name=st.sampled_from(["STOP_ADDING", "STOP_NOW"]))
    def stop(self, name):
        (self.rig.root / name).touch()
        self.stopped = True

    @precondition(lambda self: self.stopped)
    @rule()
    def resume(self):
        for name in ("STOP_ADDING", "STOP_NOW"):
            (self.rig.root / name).unlink(missing_ok=True)
        self.stopped = False

    @rule()
    def start(self):
        if self.daemon is None or self.daemon.poll() is not None:
            self.daemon = self.rig.start(ready=False)

    @precondition(lambda self: self.daemon is not None)
    @rule(number=st.sampled_from([signal.SIGKILL, signal.SIGTERM]))
    def end_the_daemon(self, number):
        self.daemon.send_signal(number)
        self.daemon.wait(20)
        self.daemon = None

    @rule()
    def kill_the_parents(self):
        for pid in self.rig.parents():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    @precondition(lambda self: self.daemon is None and not self.halves)
    @rule()
    def once(self):
        assert self.rig.once(limit_s=40) in (0, 75)

    @rule(seconds=st.sampled_from([0.02, 0.1, 0.3]))
    def pause(self, seconds):
        time.sleep(seconds)

    def teardown(self):
        if not hasattr(self, "rig"):
            return
        try:
            self.run_out()
            self.check()
        finally:
            self.rig.close()

    def run_out(self) -> None:
        """Lift all, finish all that is half done, and let one daemon come to the end of it."""
        while self.halves:
            self.write_the_rest()
        self.resume()
        if self.daemon is not None:
            self.end_the_daemon(signal.SIGTERM)
        deadline = time.monotonic() + 30
        while self.rig.once(limit_s=40) or self.rig.spool.waiting() or self.rig.spool.attempts():
            assert time.monotonic() < deadline, (self.rig.spool.waiting(), self.rig.said())

    def check(self) -> None:
        rows = self.rig.rows()
        for id_, asked in self.asked.items():
            self.check_job(id_, asked, sorted((r["attempt"], r["outcome"], r["next"]) for r in self.rig.results(id_)))
        keys = Counter((row["job"], row["attempt"]) for row in rows if row["attempt"])
        assert set(keys.values()) <= {1}, [key for key, count in keys.items() if count > 1]
        segment = self.rig.spool.ledger_d / "calber.jsonl"
        lines = segment.read_bytes().splitlines() if segment.exists() else []
        assert [row.seq for row in Ledger(self.rig.spool.ledger_d).rows()] == list(range(1, len(lines) + 1))
        view = self.rig.spool.ledger.read_bytes().splitlines() if lines else []
        assert sorted(view) == sorted(lines)
        assert not self.rig.jobs()
        assert "a bug" not in self.rig.said()

    def check_job(self, id_: str, asked: dict, ends: list[tuple]) -> None:
        file = self.rig.root / "ran" / id_
        begun, _, most = marks(file.read_text()) if file.exists() else (0, 0, 0)
        assert most <= 1, f"{id_} ran twice at a time"
        outcomes = [outcome for _, outcome, _ in ends]
        if not ends:
            assert asked.get("maybe"), f"{id_} is gone without a row"
            assert begun == 0
            return
        assert outcomes.count("ok") <= 1, ends
        assert begun <= len(ends), (id_, begun, ends)
        if id_ not in self.cancelled:
            allowed = {"ok"} if asked["safe"] and outcomes.count("lost") < MAX_LOST else {"ok", "stopped", "lost"}
            assert outcomes[-1] in allowed, (id_, ends)
        assert [following for *_, following in ends][-1] is None, ends


def drive(rig_class, wait_for, top, *, examples, steps):
    """Run the machine; each example has a spool of its own."""

    class Machine(SpoolMachine):
        def make_rig(self):
            made = rig_class(Path(tempfile.mkdtemp(dir=top)) / "spool", wait_for)
            made.settings(poll_s=0.3)
            return made

    asked = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink] if examples > 20 else [Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Machine, settings=asked)


def test_whatever_is_done_to_a_spool_each_job_gets_the_end_it_deserves(rig, wait_for, tmp_path):
    drive(type(rig), wait_for, tmp_path, examples=14, steps=20)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_whatever_is_done_to_a_spool_in_many_orders_each_job_gets_the_end_it_deserves(rig, wait_for, tmp_path):
    drive(type(rig), wait_for, tmp_path, examples=80, steps=30)
