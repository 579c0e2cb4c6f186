"""Full rate for a long time: do memory and open files of the daemon and its lanes' parents stay as they are?

    python tests/bench/engine_soak.py [--minutes 30] [--lanes 2] [--keep-days 0.005] [--every-s 10] [--dir DIR]

A publisher keeps 200 jobs of /bin/true waiting; keep_ended_days is so short that the sweep works as well. Printed are the
samples, then the means of the first and of the last quarter, and which of them are flat. What may grow is told per row.
Exit 1 if memory or descriptors are not flat. Linux: reads /proc.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from fleetd import Ledger
from fleetd.spool import init_spool

FLEETD = Path(sys.executable).with_name("fleetd")
HOST, WAITING = "bench", 200
SLACK = {"rss_mb": 0.10, "lanes_mb": 0.10, "fds": 0.0, "lanes_fds": 0.0}  # what still counts as flat, as a share
PUBLISHER = """
import os, sys, time
root, most, n, parent = sys.argv[1], int(sys.argv[2]), 0, os.getppid()
while os.getppid() == parent:
    for _ in range(most - len(os.listdir(f"{root}/queue"))):
        with open(f"{root}/tmp/draft", "w") as file:
            file.write('{"argv": ["/bin/true"], "rerun_safe": true}')
        os.rename(f"{root}/tmp/draft", f"{root}/queue/j{n:08d}.json")
        n += 1
    time.sleep(0.05)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Of one moment: the daemon's memory and descriptors, all lanes' parents', rows so far, attempts in ended/."""

    at_s: float
    rss_mb: float
    fds: int
    lanes_mb: float
    lanes_fds: int
    rows: int
    waiting: int
    ended: int


def memory_mb(pid: int) -> float:
    """Resident, in MiB."""
    return int(Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()[0]) / 1024


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def parents(daemon: int) -> list[int]:
    """The daemon's children."""
    return list(map(int, Path(f"/proc/{daemon}/task/{daemon}/children").read_text().split()))


def sample(root: Path, daemon: int, ledger: Ledger, rows: int, began: float) -> Sample:
    lanes = parents(daemon)
    ended = 0
    for day in (root / "ended").iterdir():
        with suppress(FileNotFoundError):
            ended += len(os.listdir(day))
    return Sample(
        at_s=round(time.monotonic() - began, 1),
        rss_mb=round(memory_mb(daemon), 2),
        fds=settled([daemon]),
        lanes_mb=round(sum(map(memory_mb, lanes)), 2),
        lanes_fds=settled(lanes),
        rows=rows + len(ledger.poll()),
        waiting=len(os.listdir(root / "queue")),
        ended=ended,
    )


def settled(pids: list[int]) -> int:
    """The fewest descriptors of some looks: there are more while something is read, or an attempt runs."""
    return sum(min(descriptors(pid) for _ in range(100)) for pid in pids)


def soak(root: Path, minutes: float, lanes: int, keep_days: float, every_s: float) -> list[Sample]:
    """Run it; a line is printed for each sample."""
    spool = init_spool(root, home=None)
    spool.settings.write_text(f"spool = 1\nmin_free_mb = 0\nkeep_ended_days = {keep_days}\n")
    daemon = subprocess.Popen([FLEETD, "-q", "--spool", root, "--host", HOST, "--lanes", str(lanes)])
    publisher = subprocess.Popen([sys.executable, "-c", PUBLISHER, root, str(WAITING)])
    began, ledger, samples = time.monotonic(), Ledger(spool.ledger_d), list[Sample]()
    print(" ".join(f"{field.name:>9s}" for field in fields(Sample)), flush=True)
    try:
        while time.monotonic() < began + 60 * minutes:
            time.sleep(every_s)
            if daemon.poll() is not None or publisher.poll() is not None:
                sys.exit(f"engine_soak: ended early: fleetd {daemon.poll()}, publisher {publisher.poll()}")
            samples.append(sample(root, daemon.pid, ledger, samples[-1].rows if samples else 0, began))
            print(" ".join(f"{value:9}" for value in astuple(samples[-1])), flush=True)
    finally:
        publisher.kill()
        publisher.wait()
        daemon.terminate()
        daemon.wait()
    return samples


def verdict(samples: list[Sample]) -> bool:
    """Print the means of the first and of the last quarter; whether memory and descriptors are flat."""
    quarter = max(1, len(samples) // 4)
    first, last, flat = samples[:quarter], samples[-quarter:], True
    rows = last[-1].rows - first[0].rows
    print(f"{last[-1].rows} rows, {rows / max(0.1, last[-1].at_s - first[0].at_s):.0f} a second")
    for name in ("rss_mb", "fds", "lanes_mb", "lanes_fds", "ended"):
        before, after = (statistics.mean(getattr(one, name) for one in some) for some in (first, last))
        word = ""
        if name in SLACK:
            same = after <= before * (1 + SLACK[name]) + 0.5
            flat &= same
            word = "flat" if same else "NOT FLAT"
        per_row = (after - before) / max(1, rows * 0.75)
        extra = f", {per_row * (1 << 20):.0f} bytes a row" if name == "rss_mb" else ""
        print(f"  {name:9s} first quarter {before:9.2f}, last {after:9.2f} {word}{extra}")
    return flat


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--lanes", type=int, default=2)
    parser.add_argument("--keep-days", type=float, default=0.005)
    parser.add_argument("--every-s", type=float, default=10.0)
    parser.add_argument("--dir", help="where the spool lies")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.dir) as top:
        flat = verdict(soak(Path(top) / "spool", args.minutes, args.lanes, args.keep_days, args.every_s))
    return 0 if flat else 1


if __name__ == "__main__":
    sys.exit(main())
