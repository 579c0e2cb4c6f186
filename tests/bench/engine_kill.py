"""kill -9 at random moments over short jobs, with stops, resumes, cancels and a filling disk mixed in; what held.

    python tests/bench/engine_kill.py [--jobs 500] [--kills 50] [--lanes 2] [--seed 1] [--disk-mb 0] [--json]

The daemon, the parents of attempts and publishers are killed; every job appends to a file of its own when it begins and
when it ends. Afterwards all is resumed and run out, and the files are read. With --disk-mb the spool lies on a tmpfs of
that size (needs root), which is filled to the last byte now and then. Exit 1 if anything did not hold.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from fleetd import FleetError, Ledger, Spool
from fleetd.recall import cancel
from fleetd.spool import init_spool

FLEETD = Path(sys.executable).with_name("fleetd")
HOST = "bench"
WAITING = 60  # a publisher keeps about that many in the queue
MAX_LOST = 3  # losses of one job, after which it goes no more
PUBLISHER = """
import sys, time
from fleetd import FleetError, Job, Spool
from pathlib import Path
root, where, first, last, most = Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:6])
spool = Spool(root)
for n in range(first, last):
    ran = f"{where}/j{n:05d}"
    script = f"trap 'echo end >> {ran}; exit 9' TERM; echo begin >> {ran}; sleep 0.0{n % 4} & wait $!; echo end >> {ran}"
    while True:
        try:
            if len(spool.waiting()) < most:
                spool.publish(Job(id=f"j{n:05d}", argv=("sh", "-c", script), rerun_safe=n % 2 == 0))
                print(n, flush=True)
                break
        except (FleetError, OSError) as error:
            if "already" in str(error):
                print(n, flush=True)
                break
        time.sleep(0.02)
"""


@dataclass(slots=True)
class Campaign:
    """One spool, what runs on it, what was done to it, and the clean end of it."""

    spool: Spool
    jobs: int
    kills: int
    lanes: int
    chance: random.Random
    said: Path
    ran: Path  # not on the disk that fills
    daemon: subprocess.Popen[bytes] | None = None
    publisher: subprocess.Popen[str] | None = None
    published: int = 0
    cancelled: set[str] = field(default_factory=set)
    done: Counter[str] = field(default_factory=Counter)

    def start(self) -> None:
        """A daemon, if none runs."""
        if self.daemon is not None and self.daemon.poll() is None:
            return
        command = [FLEETD, "--spool", self.spool.root, "--host", HOST, "--lanes", str(self.lanes)]
        with open(self.said, "ab") as said:
            self.daemon = subprocess.Popen(command, stderr=said, env=os.environ | {"RIG": str(self.spool.root)})

    def publish(self) -> None:
        """A publisher that goes on where the last one was killed, if none runs."""
        if self.publisher is not None and self.publisher.poll() is None:
            return
        self.gather()
        words = map(str, (self.spool.root, self.ran, self.published, self.jobs, WAITING))
        command = [sys.executable, "-c", PUBLISHER, *words]
        self.publisher = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def gather(self) -> None:
        """How far the publisher that has ended came, by its own words."""
        if self.publisher is not None and self.publisher.stdout is not None:
            told = self.publisher.stdout.read().split()
            self.published = max(self.published, *(int(word) + 1 for word in told or ["-1"]))
            self.publisher.stdout.close()
            self.publisher = None

    def kill_daemon(self) -> None:
        if self.daemon is not None:
            self.daemon.kill()
            self.daemon.wait()

    def kill_parent(self) -> None:
        for pid in self.chance.sample(parents := marked(self.spool.root, "fleetd.child"), min(1, len(parents))):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill_publisher(self) -> None:
        if self.publisher is not None:
            self.publisher.kill()
            self.publisher.wait()
            self.publish()

    def stop(self) -> None:
        (self.spool.root / self.chance.choice(["STOP_NOW", "STOP_ADDING"])).touch()

    def resume(self) -> None:
        for name in ("STOP_NOW", "STOP_ADDING"):
            (self.spool.root / name).unlink(missing_ok=True)

    def cancel(self) -> None:
        ids = [*self.spool.waiting()[:5], *(attempt.id for attempt in self.spool.attempts())]
        if ids:
            id_ = self.chance.choice(ids)
            self.cancelled.add(id_)
            with suppress(FleetError):
                cancel(self.spool, HOST, id_)

    def fill(self) -> None:
        with suppress(OSError), open(self.spool.root / "ballast", "ab", buffering=0) as file:
            while file.write(b"x" * 4096):
                pass

    def make_room(self) -> None:
        (self.spool.root / "ballast").unlink(missing_ok=True)

    def harm(self, *, small: bool) -> None:
        """One kill, and what goes with it; what it undoes of the last time comes first."""
        self.start()
        self.publish()
        kills = {self.kill_daemon: 5, self.kill_parent: 3, self.kill_publisher: 2}
        others = {self.stop: 1, self.resume: 3, self.cancel: 2, _nothing: 6} | ({self.fill: 1} if small else {})
        for choice in (others, kills):
            (step,) = self.chance.choices(list(choice), list(choice.values()))
            self.done[step.__name__.strip("_")] += 1
            step()
        if self.chance.random() < 0.5:
            self.make_room()

    def run(self, *, small: bool) -> float:
        """All harm, then the peace in which everything ends; seconds."""
        began = time.monotonic()
        for _ in range(self.kills):
            time.sleep(self.chance.random() * 0.4)
            self.harm(small=small)
            if self.chance.random() < 0.4:
                self.resume()
        self.make_room()
        self.resume()
        self.start()
        while not self.is_over() and time.monotonic() < began + 900:
            self.publish_rest()
            self.start()
            time.sleep(0.05)
        if self.daemon is not None:
            self.daemon.terminate()
            self.daemon.wait()
        return time.monotonic() - began

    def publish_rest(self) -> None:
        if self.publisher is not None and self.publisher.poll() is not None:
            self.gather()
        if self.published < self.jobs:
            self.publish()

    def is_over(self) -> bool:
        """Whether all is published and nothing is anywhere but in ended/."""
        return self.published >= self.jobs and not self.spool.waiting() and not any(scan(self.spool.running / HOST))


def _nothing() -> None:
    """Nothing else happens."""


def scan(directory: Path) -> Iterator[Path]:
    with suppress(FileNotFoundError):
        yield from directory.iterdir()


def marked(root: Path, word: str = "") -> list[int]:
    """The living processes that came of a daemon on that spool, and have the word in their command line."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            if f"RIG={root}".encode() in environ and word.encode() in command:
                found.append(int(pid))
    return found


def left_behind(root: Path) -> int:
    """Processes that are there after those that are about to end have had three seconds."""
    end = time.monotonic() + 3
    while (left := len(marked(root))) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def overlaps(path: Path) -> bool:
    """Whether a job began again before it had ended."""
    depth = 0
    for word in path.read_text().split():
        depth = depth + 1 if word == "begin" else max(0, depth - 1)
        if depth > 1:
            return True
    return False


def judge(campaign: Campaign) -> dict[str, int]:
    """What must all be 0."""
    spool = campaign.spool
    rows = list(Ledger(spool.ledger_d).rows())
    ends: dict[str, list[tuple[int, str]]] = {f"j{n:05d}": [] for n in range(campaign.jobs)}
    for row in rows:
        if row.event == "result":
            ends.setdefault(row.body["job"], []).append((row.body["attempt"], row.body["outcome"]))
    ran = {path.name: path for path in scan(campaign.ran)}
    begun = {name: path.read_text().count("begin") for name, path in ran.items()}
    segment, view = ((path.read_bytes().splitlines()) for path in (spool.ledger_d / f"{HOST}.jsonl", spool.ledger))
    own = [row.seq for row in rows if row.host == HOST]
    return {
        "jobs without a row": sum(not end for end in ends.values()),
        "rerun_safe jobs without one ok": sum(not right_safe(campaign, id_, end) for id_, end in ends.items()),
        "other jobs without one ok or lost": sum(not right_other(campaign, id_, end) for id_, end in ends.items()),
        "attempts with two rows": sum(count > 1 for end in ends.values() for count in Counter(end).values()),
        "ended ok, never begun": sum(any(o == "ok" for _, o in end) and not begun.get(i) for i, end in ends.items()),
        "more runs than rows": sum(begun.get(id_, 0) > len(end) for id_, end in ends.items()),
        "run twice at a time": sum(map(overlaps, ran.values())),
        "gaps in the ledger": int(own != list(range(1, len(own) + 1))),
        "view unlike the segments": int(sorted(view) != sorted(segment)),
        "still waiting": len(spool.waiting()),
        "still running": sum(1 for _ in scan(spool.running / HOST)),
        "said to be a bug": campaign.said.read_text(errors="replace").count("a bug"),
        "processes left": left_behind(spool.root),
    }


def right_safe(campaign: Campaign, id_: str, end: list[tuple[int, str]]) -> bool:
    """Whether the job, if it is rerun_safe and nobody has cancelled it, ended ok once or was lost too often."""
    outcomes = [outcome for _, outcome in sorted(end)]
    if int(id_[1:]) % 2 or id_ in campaign.cancelled:
        return outcomes.count("ok") <= 1
    return outcomes.count("ok") == 1 or outcomes.count("lost") >= MAX_LOST


def right_other(campaign: Campaign, id_: str, end: list[tuple[int, str]]) -> bool:
    """Whether the job, if it is not rerun_safe, ended exactly once: ok or lost, stopped or cancelled."""
    if int(id_[1:]) % 2 == 0:
        return True
    allowed = {"ok", "lost", "stopped"} | ({"cancelled"} if id_ in campaign.cancelled else set())
    return len(end) == 1 and end[0][1] in allowed


def measure(root: Path, jobs: int, kills: int, lanes: int, seed: int, *, small: bool) -> dict[str, object]:
    """One spool from empty to done, and what its files say afterwards."""
    spool = init_spool(root, home=None)
    spool.settings.write_text("spool = 1\nfailures = 1000\nmin_free_mb = 0\ngrace_s = 1\npoll_s = 0.5\n")
    with tempfile.TemporaryDirectory() as beside:
        said, ran = Path(beside) / "said", Path(beside) / "ran"
        ran.mkdir()
        campaign = Campaign(spool, jobs, kills, lanes, random.Random(seed), said, ran)
        took = campaign.run(small=small)
        held = judge(campaign)
        if any(held.values()):
            print(said.read_text(errors="replace")[-4000:], file=sys.stderr)
    outcomes = Counter(str(row.body["outcome"]) for row in Ledger(spool.ledger_d).rows() if row.event == "result")
    return {
        "jobs": jobs,
        "kills": kills,
        "seed": seed,
        "seconds": round(took, 1),
        "jobs_per_s": round(jobs / took, 1),
    } | {
        "done": dict(campaign.done),
        "outcomes": dict(outcomes),
        "held": held,
    }


@contextmanager
def disk(size_mb: int) -> Iterator[Path]:
    """A directory for the spool: on a tmpfs of that size, or where temporary files lie."""
    with tempfile.TemporaryDirectory() as top:
        if size_mb:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_mb}m,nr_inodes=0", "tmpfs", top], check=True)
        try:
            yield Path(top)
        finally:
            if size_mb:
                subprocess.run(["umount", "-l", top], check=True)


def table(found: dict[str, object], say: Callable[[str], None] = print) -> None:
    """What was done and what held, to be read."""
    say(f"{found['jobs']} jobs, {found['kills']} kills, seed {found['seed']}: {found['seconds']} s")
    for name in ("done", "outcomes"):
        say(f"  {name}: " + ", ".join(f"{value} {key}" for key, value in sorted(dict(found[name]).items())))
    for name, count in dict(found["held"]).items():
        say(f"  {'NOT SO' if count else 'held':6s}  {name}: {count}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {"jobs": 500, "kills": 50, "lanes": 2, "seed": 1, "disk-mb": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--json", action="store_true", help="one line of JSON and no table")
    args = parser.parse_args()
    with disk(args.disk_mb) as top:
        found = measure(top / "spool", args.jobs, args.kills, args.lanes, args.seed, small=bool(args.disk_mb))
    if args.json:
        print(json.dumps(found))
    else:
        table(found)
    return 1 if any(dict(found["held"]).values()) else 0


if __name__ == "__main__":
    sys.exit(main())
