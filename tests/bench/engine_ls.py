"""`fleet ls` with few and with many jobs waiting: the whole command, Python's start included.

    python tests/bench/engine_ls.py [--many 100000] [--rounds 5] [--dir DIR]

Files as a person writes them (an argv), as `fleet submit` publishes them (every field), and as long as a trial's; the last also
each after an id of its own that nobody has published, with a daemon alive to wait for. Medians of the rounds.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fleetd import Spool
from fleetd.job import Job, encode_job, new_id, utc
from fleetd.spool import init_spool

FLEET, FLEETD = (Path(sys.executable).with_name(name) for name in ("fleet", "fleetd"))
BEGAN = datetime(2026, 11, 30, tzinfo=UTC)


def by_hand(n: int) -> tuple[str, bytes]:
    return f"50-{n:06d}", json.dumps({"argv": ["/bin/sleep", "0.12"], "rerun_safe": True}).encode()


def submitted(n: int) -> tuple[str, bytes]:
    now = BEGAN + timedelta(milliseconds=13 * n)
    id_ = new_id("job", 50, now)
    return id_, encode_job(Job(id=id_, argv=("/bin/sleep", "0.12", f"--n={n}"), created=utc(now), by="root@calber"))


def trial(n: int, after: tuple[str, ...] = ()) -> tuple[str, bytes]:
    now = BEGAN + timedelta(milliseconds=13 * n)
    id_ = new_id("trial", 50, now)
    payload = {
        "plan": "fleet.trial/1",
        "title": f"flank.bias 0.75 → 0.5, pairs {n}",
        "census": ["treadcore", "census"],
        "seeds": [55 * n, 55 * n + 55],
        "candidate": {"flank.bias": 0.5},
        "best": {"defaults": "0123456789abcdef", "weights": {"flank.bias": 0.75}},
    }
    argv, by = ("fleet-plan", "read"), "fleet-plan@calber"
    job = Job(id=id_, argv=argv, kind="trial", rerun_safe=True, created=utc(now), by=by, payload=payload, after=after)
    return id_, encode_job(job)


def blocked(n: int) -> tuple[str, bytes]:
    return trial(n, after=(f"nobody-{n}",))


def measure(spool: Spool, rounds: int, *flags: str) -> float:
    """Median seconds of the whole command."""
    took = []
    for _ in range(rounds):
        began = time.monotonic()
        subprocess.run([FLEET, "--spool", spool.root, "ls", *flags], check=True, stdout=subprocess.DEVNULL)
        took.append(time.monotonic() - began)
    return statistics.median(took)


def compare(root: Path, make: Callable[[int], tuple[str, bytes]], many: int, rounds: int) -> None:
    """Print a line for that kind of file."""
    spool = init_spool(root, home=None)
    told = []
    for count in (10, many):
        for n in range(count):
            id_, data = make(n)
            (spool.queue / f"{id_}.json").write_bytes(data)
        size = len(data)
        told += [measure(spool, rounds), measure(spool, rounds, "--json")]
    print(f"{make.__name__:>10}, {size:3d} bytes: 10 in {told[0]:.2f} s, --json {told[1]:.2f} s; ", end="")
    print(f"{many} in {told[2]:.2f} s, --json {told[3]:.2f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--many", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", help="where the spools lie")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.dir) as top:
        for make in (by_hand, submitted, trial):
            compare(Path(top) / make.__name__, make, args.many, args.rounds)
        root = Path(top) / "blocked"
        init_spool(root, home=None)
        daemon = subprocess.Popen([FLEETD, "-q", "--spool", root, "--lanes", "1"])
        compare(root, blocked, args.many, args.rounds)
        daemon.terminate()
        daemon.wait()


if __name__ == "__main__":
    main()
