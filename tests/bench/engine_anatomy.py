"""Where each microsecond of a job goes: the steps of its parent and of the daemon, timed one by one.

    python tests/bench/engine_anatomy.py [--jobs 600] [--dir DIR]

Both run in this process, one after the other, with a clock round each step; a step's figure is its own time, less that of the
steps inside of it. The clocks cost about half a microsecond a step. What runs beside is told as well: a bare loop.
"""

import argparse
import contextlib
import mmap
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fleetd import child, claim, cli_daemon, files, intake, keeper, merge, order, queue, reap, spawn
from fleetd.crew import Crew, Lane
from fleetd.job import Job
from fleetd.ledger import Ledger
from fleetd.settings import Settings
from fleetd.spool import Spool, init_spool

TRUE = "/bin/true"
PARENT = (
    (child, "take_lease", "the lease: open, flock"),
    (child, "_reserve", "exit.json's block, the first pid.json"),
    (spawn.subprocess, "Popen", "fork and exec, until exec is done"),
    (child, "replace_file", "pid.json with the leader in it"),
    (child, "_tend", "the log's cap"),
    (child.Parent, "wait", "the job itself"),
    (child, "_outcome", "reap it, look for leftovers"),
    (child, "write_exit", "exit.json"),
    (child, "encode_json", "JSON"),
    (child.Parent, "_answer", "the answer to the daemon"),
    (child, "run", "the rest"),
)
DAEMON = (
    (queue.Queue, "refresh", "what is new in queue/"),
    (intake, "look", "read the job's file"),
    (intake, "job_of", "decode it"),
    (claim, "enter", "its directory, out/, lock, job.json"),
    (claim, "claim", "claim: the rename"),
    (order, "order", "its order and environment"),
    (Lane, "order", "send it to the lane"),
    (Crew, "hear", "hear the answers"),
    (reap, "_read_result", "look for result.json"),
    (reap, "ended", "make the row"),
    (os, "fsync", "fsync the rows"),
    (Ledger, "append", "append the rows"),
    (reap, "_leave", "move it to ended/"),
    (merge.Merger, "merge", "ledger.jsonl"),
    (keeper.Keeper, "run_pass", "the rest of the passes"),
)


class Clocks:
    """Own time by step, in ns."""

    def __init__(self, steps: tuple[tuple[Any, str, str], ...]) -> None:
        self.spent = {what: 0 for _, _, what in steps}
        self._inside: list[int] = [0]
        self._undo = [(where, name, getattr(where, name)) for where, name, _ in steps]
        for where, name, what in steps:
            setattr(where, name, self._timed(getattr(where, name), what))

    def _timed(self, function: Callable[..., Any], what: str) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            self._inside.append(0)
            began = time.perf_counter_ns()
            try:
                return function(*args, **kwargs)
            finally:
                took = time.perf_counter_ns() - began
                self.spent[what] += took - self._inside.pop()
                self._inside[-1] += took

        return timed

    def stop(self) -> None:
        for where, name, function in self._undo:
            setattr(where, name, function)


def bare(jobs: int) -> float:
    began = time.perf_counter()
    for _ in range(jobs):
        subprocess.Popen([TRUE], start_new_session=True).wait()
    return (time.perf_counter() - began) / jobs * 1e6


def parent(jobs: int, where: Path) -> dict[str, int]:
    spool = init_spool(where, home=None)
    (spool.running / "here").mkdir()
    taken: list[claim.Claim] = []
    for n in range(jobs):
        job = Job(id=f"j{n:06d}", argv=(TRUE,), rerun_safe=True)
        spool.publish(job)
        made = claim.claim(spool, "here", job, 1)
        assert made is not None
        taken.append(made)
    orders = [order.order(spool, Settings(), "here", one, 0) | {"ahead": False} for one in taken]
    ours, theirs = socket.socketpair()
    lane = child.Parent(theirs, mmap.mmap(-1, 64))
    clocks = Clocks(PARENT)
    for one in orders:
        lane._answer(child.run(lane, one))
        ours.recv(1 << 16)
    clocks.stop()
    return clocks.spent


def daemon(jobs: int, where: Path) -> dict[str, int]:
    spool = Spool(init_spool(where, home=None).root)
    spool.settings.write_text("spool = 1\nmin_free_mb = 0\n")
    for n in range(jobs):
        draft = spool.tmp / f"j{n:06d}.json"
        draft.write_text('{"argv": ["/bin/true"], "rerun_safe": true}')
        draft.rename(spool.queue / draft.name)
    sys.argv = ["fleetd", "--spool", str(where), "--lanes", "1", "--once", "-q"]
    clocks = Clocks(DAEMON)
    with contextlib.suppress(SystemExit):
        cli_daemon.main()
    clocks.stop()
    return clocks.spent


def report(title: str, spent: dict[str, int], jobs: int, beside: float) -> None:
    print(f"{title}: {sum(spent.values()) / jobs / 1e3:.0f} µs a job; a bare loop beside it: {beside:.0f} µs")
    for what, took in spent.items():
        print(f"  {took / jobs / 1e3:7.1f}  {what}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=600)
    parser.add_argument("--dir", default=tempfile.gettempdir())
    args = parser.parse_args()
    base = Path(tempfile.mkdtemp(dir=args.dir))
    beside = statistics.median(bare(args.jobs // 5) for _ in range(5))
    with os.fdopen(os.dup(2), "w"):
        report("the daemon", daemon(args.jobs, base / "daemon"), args.jobs, beside)
    signal.set_wakeup_fd(-1)
    beside = statistics.median(bare(args.jobs // 5) for _ in range(5))
    report("the parent", parent(args.jobs, base / "parent"), args.jobs, beside)
    shutil.rmtree(base)


assert files.look is intake.look, "the daemon reads its queue by files.look"

if __name__ == "__main__":
    main()
