"""From a job's end to the next start with few and with many files waiting, and what the daemon costs meanwhile.

    python tests/bench/engine_latency.py [--many 100000] [--jobs 100] [--idle-s 30] [--dir DIR]

One lane, jobs of /bin/sleep 0.12 (so long that none waits at the lane's door), each start minus the end before it by the
rows' own times. The same behind as many jobs that may not start, of each kind: after an id nobody has published, not before
next year, in need of a tag that no host has or of a GPU that another job uses. Then the daemon's memory and its share of a core
idle, with all of it waiting under STOP_NOW, and at work; and whether it has imported numpy or asyncio when idle. Linux: reads
/proc.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from fleetd import Ledger, Spool, seconds
from fleetd.spool import init_spool

BOOT = """
import atexit, sys
from fleetd.cli_daemon import main
atexit.register(lambda: open(sys.argv[1], "w").write(" ".join(sys.modules)))
sys.exit(main(sys.argv[2:]))
"""
HOST = "bench"


BLOCKED: dict[str, Callable[[int], dict[str, object]]] = {
    "after": lambda n: {"after": [f"40-20261130T165200.{n:06d}Z-job-9f3a2c"]},
    "not_before": lambda n: {"not_before": f"2099-01-01T00:00:00.{n:06d}Z"},
    "tag": lambda n: {"needs": [f"tag-{n}"]},
    "gpu": lambda _: {"gpus": 1},
}


def new_spool(root: Path) -> Spool:
    spool = init_spool(root, home=None)
    spool.settings.write_text(f"spool = 1\nmin_free_mb = 0\n[host.{HOST}]\ngpus = 1\n")
    return spool


def spool_with(root: Path, waiting: int, jobs: int) -> Spool:
    """A spool with that many jobs to run first, and that many more that wait behind them."""
    spool = new_spool(root)
    body = json.dumps({"argv": ["/bin/sleep", "0.12"], "rerun_safe": True})
    for n in range(waiting):
        (spool.queue / f"90-{n:06d}.json").write_text(body)
    for n in range(jobs):
        (spool.queue / f"10-{n:06d}.json").write_text(body)
    return spool


class Daemon:
    """A daemon on that spool, and what /proc says of it."""

    def __init__(self, spool: Spool, lanes: int = 1) -> None:
        self._modules = spool.root.with_name(f"{spool.root.name}.modules")
        words = [
            sys.executable,
            "-c",
            BOOT,
            self._modules,
            "-q",
            "--spool",
            spool.root,
            "--host",
            HOST,
            "--lanes",
            str(lanes),
        ]
        self._process = subprocess.Popen(words)
        wait(lambda: spool.heartbeats().get(HOST, {}).get("pid") == self._process.pid)

    def memory_mb(self) -> float:
        """Resident now, in MiB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def core_s(self) -> float:
        """Seconds of a core used so far."""
        with open(f"/proc/{self._process.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def share(self, seconds_: float) -> float:
        """Per cent of a core over that time."""
        used, began = self.core_s(), time.monotonic()
        time.sleep(seconds_)
        return 100 * (self.core_s() - used) / (time.monotonic() - began)

    def end(self) -> set[str]:
        """Let go; the modules it had imported."""
        self._process.terminate()
        self._process.wait()
        return set(self._modules.read_text().split())


def wait(fact: Callable[[], object], limit_s: float = 120.0) -> None:
    end = time.monotonic() + limit_s
    while not fact():
        if time.monotonic() > end:
            sys.exit("engine_latency: the daemon does not come to it")
        time.sleep(0.02)


def gaps_ms(spool: Spool, jobs: int) -> list[float]:
    """From each end to the next start, in milliseconds, sorted; once that many jobs have ended."""
    wait(lambda: sum(1 for _ in Ledger(spool.ledger_d).heads()) >= jobs)
    rows = sorted((seconds(row.body["started"]), seconds(row.body["ended"])) for row in Ledger(spool.ledger_d).rows())
    pairs = pairwise(rows)
    return sorted(1000 * (after[0] - before[1]) for before, after in pairs)[: jobs - 1]


def latency(top: Path, waiting: int, jobs: int) -> float:
    """Print the gaps with that many files waiting; the median."""
    spool = spool_with(top / f"spool{waiting}", waiting, jobs)
    daemon = Daemon(spool)
    gaps = gaps_ms(spool, jobs)
    high = gaps[int(0.99 * (len(gaps) - 1))]
    median = statistics.median(gaps)
    print(f"{waiting:7d} waiting: end to next start median {median:.2f} ms, p99 {high:.2f}, worst {gaps[-1]:.2f}")
    (spool.root / "STOP_NOW").touch()
    daemon.end()
    return median


def blocked(top: Path, kind: str, waiting: int, jobs: int, idle_s: float) -> None:
    """Print the same behind that many jobs that may not start, and what they cost."""
    spool = new_spool(top / kind)
    if kind == "gpu":
        job = json.dumps({"argv": ["/bin/sleep", "1000"], "gpus": 1, "rerun_safe": True})
        (spool.queue / "00-has-it.json").write_text(job)
    for n in range(waiting):
        about = {"argv": ["/bin/true"], **BLOCKED[kind](n)}
        (spool.queue / f"10-20261130T165200.{n:06d}Z-job-9f3a2c.json").write_text(json.dumps(about))
    (spool.queue / "90-first.json").write_text('{"argv": ["/bin/true"]}')
    began = time.monotonic()
    daemon = Daemon(spool, lanes=2 if kind == "gpu" else 1)
    wait(lambda: any(Ledger(spool.ledger_d).heads()))
    first = time.monotonic() - began
    share = daemon.share(idle_s)
    memory = daemon.memory_mb()
    for n in range(jobs):
        (spool.tmp / "draft").write_text('{"argv": ["/bin/sleep", "0.12"], "rerun_safe": true}')
        (spool.tmp / "draft").rename(spool.queue / f"95-{n:06d}.json")
    gaps = gaps_ms(spool, jobs + 1)[:-1]
    median, high = statistics.median(gaps), gaps[int(0.99 * (len(gaps) - 1))]
    print(
        f"{waiting:7d} blocked ({kind}): end to next start median {median:.2f} ms, p99 {high:.2f}, worst {gaps[-1]:.2f};"
    )
    print(f"                first start after {first:.1f} s; idle {memory:.1f} MiB, {share:.2f} % of a core;")
    print(f"                at the end {daemon.memory_mb():.1f} MiB", flush=True)
    (spool.root / "STOP_NOW").touch()
    wait(lambda: not any((spool.running / HOST).iterdir()))
    daemon.end()
    shutil.rmtree(spool.root)


def at_rest(top: Path, waiting: int, idle_s: float) -> None:
    """Print what the daemon costs when it has nothing to do, and when it may not."""
    idle = Daemon(spool_with(top / "idle", 0, 0))
    share = idle.share(idle_s)
    print(f"          idle: {idle.memory_mb():.1f} MiB, {share:.2f} % of a core over {idle_s:g} s")
    modules = idle.end()
    print(f"                numpy {'numpy' in modules}, asyncio {'asyncio' in modules}, {len(modules)} modules")
    spool = Spool(top / f"spool{waiting}")
    stopped = Daemon(spool)
    share = stopped.share(idle_s)
    print(f"{waiting:7d} waiting, STOP_NOW: {stopped.memory_mb():.1f} MiB, {share:.2f} % of a core over {idle_s:g} s")
    (spool.root / "STOP_NOW").unlink()
    wait(lambda: any((spool.running / HOST).iterdir()))
    time.sleep(3)
    share = stopped.share(5)
    print(f"{waiting:7d} waiting, running them: {stopped.memory_mb():.1f} MiB, {share:.1f} % of a core")
    (spool.root / "STOP_NOW").touch()
    stopped.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--many", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--idle-s", type=float, default=30.0)
    parser.add_argument(
        "--blocked-by", action="append", dest="only", choices=BLOCKED, help="only that kind; may be repeated"
    )
    parser.add_argument("--dir", help="where the spools lie")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.dir) as top:
        few, many = (latency(Path(top), waiting, args.jobs) for waiting in (10, args.many))
        print(f"                median with {args.many} less median with 10: {many - few:+.2f} ms")
        for kind in args.only or BLOCKED:
            blocked(Path(top), kind, args.many, args.jobs, args.idle_s)
        at_rest(Path(top), args.many, args.idle_s)


if __name__ == "__main__":
    main()
