"""kill -9 of the daemon at N random moments over M short jobs, and jobs a second with and without the kills.

    python tests/bench/engine_kill.py [--jobs 500] [--kills 50] [--lanes 2] [--seed 1]

Prints one line of JSON: what was lost, run twice or left behind (nothing may be), and the rates. Exit 1 if anything was.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from fleetd import Ledger, Spool, init_spool

FLEETD = Path(sys.executable).with_name("fleetd")


def fill(spool: Spool, jobs: int, chance: random.Random) -> None:
    """Put the jobs in; each appends to a file of its own, so that a second run shows."""
    (spool.root / "ran").mkdir(exist_ok=True)
    for n in range(jobs):
        script = f"echo x >> {spool.root}/ran/{n}; sleep 0.0{chance.randint(0, 3)}"
        draft = spool.tmp / f"j{n:05d}.json"
        draft.write_text(json.dumps({"argv": ["sh", "-c", script], "rerun_safe": n % 2 == 0}))
        draft.rename(spool.queue / draft.name)


def start(spool: Spool, lanes: int) -> subprocess.Popen[bytes]:
    """A daemon on it."""
    command = [FLEETD, "-q", "--spool", spool.root, "--host", "bench", "--lanes", str(lanes)]
    return subprocess.Popen(command, env=os.environ | {"RIG": str(spool.root)})


def ok_jobs(ledger: Ledger, ok: list[str]) -> list[str]:
    """`ok` with the jobs that have ended ok since the last call."""
    ok += [row.body["job"] for row in ledger.poll() if row.body.get("outcome") == "ok"]
    return ok


def run(spool: Spool, lanes: int, jobs: int, kills: int, chance: random.Random) -> tuple[float, list[str]]:
    """Seconds until every job has an ok row, and the jobs of those rows."""
    ledger, ok, began = Ledger(spool.ledger_d), list[str](), time.monotonic()
    for _ in range(kills):
        daemon = start(spool, lanes)
        time.sleep(0.2 + chance.random() * 0.3)
        daemon.kill()
        daemon.wait()
    daemon = start(spool, lanes)
    while len(set(ok_jobs(ledger, ok))) < jobs and time.monotonic() < began + 600:
        time.sleep(0.05)
    took = time.monotonic() - began
    daemon.terminate()
    daemon.wait()
    return took, ok


def left_behind(root: Path) -> int:
    """Processes that bear the spool's mark, after those that are about to end have had two seconds."""
    end = time.monotonic() + 2
    while (count := sum(bears(pid, root) for pid in os.listdir("/proc") if pid.isdigit())) and time.monotonic() < end:
        time.sleep(0.05)
    return count


def bears(pid: str, root: Path) -> bool:
    """Whether the process was started by a daemon of ours."""
    try:
        return f"RIG={root}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def measure(root: Path, jobs: int, kills: int, lanes: int, seed: int) -> dict[str, object]:
    """One spool from empty to done, and what its files say afterwards."""
    spool, chance = init_spool(root, home=None), random.Random(seed)
    spool.settings.write_text("spool = 1\nfailures = 1000\nmin_free_mb = 0\n")
    fill(spool, jobs, chance)
    took, ok = run(spool, lanes, jobs, kills, chance)
    runs = {path.name: len(path.read_text().split()) for path in (root / "ran").iterdir()}
    seqs = [row.seq for row in Ledger(spool.ledger_d).rows()]
    return {
        "jobs": jobs,
        "kills": kills,
        "seconds": round(took, 2),
        "jobs_per_s": round(jobs / took, 1),
        "without_ok": jobs - len(set(ok)),
        "ok_twice": sum(count > 1 for count in Counter(ok).values()),
        "run_twice": sum(count > 1 for count in runs.values()),
        "never_run": jobs - len(runs),
        "gaps": int(seqs != list(range(1, len(seqs) + 1))),
        "waiting": len(spool.waiting()),
        "running": len(spool.attempts()),
        "processes": left_behind(root),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {"jobs": 500, "kills": 50, "lanes": 2, "seed": 1}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    wrong = ("without_ok", "ok_twice", "run_twice", "never_run", "gaps", "waiting", "running", "processes")
    bad = 0
    for kills in (0, args.kills):
        with tempfile.TemporaryDirectory() as top:
            found = measure(Path(top) / "spool", args.jobs, kills, args.lanes, args.seed)
        print(json.dumps(found), flush=True)
        bad += sum(bool(found[name]) for name in wrong)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
