"""The facts behind the wording of leases, pid.json and the log's cap, measured on this machine in one run of some seconds.

python tests/bench/engine_facts.py [--dir DIR]. Each line is a fact of docs/explanation/engine.md; exit 1: one is otherwise here.
"""

import argparse
import fcntl
import gc
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from fleetd import BadData, Job, decode_json
from fleetd.job import decode_job, encode_job
from fleetd.lease import take_lease

SLEEP = ("sleep", "30")
CLOSES = f"import subprocess; subprocess.Popen({list(SLEEP)})"  # Python's default: close_fds=True
PASSES = "sleep 30 &"
YES_S = 0.5


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the report. `holds`: None where this machine cannot show it."""

    text: str
    holds: bool | None


def is_free(lock: Path) -> bool:
    """Whether a stranger gets the lock."""
    with open(lock, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@contextmanager
def session(*argv: str, fd: int) -> Iterator[int]:
    """A leader that inherits `fd` and has ended by now; its process group, which is ended afterwards."""
    leader = subprocess.Popen(argv, pass_fds=(fd,), start_new_session=True)
    try:
        leader.wait(10)
        yield leader.pid
    finally:
        with suppress(ProcessLookupError):
            os.killpg(leader.pid, 9)


def lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def a_leader_that_closes(where: Path) -> Iterator[Fact]:
    for what, argv, expected in (
        ("closes what it inherited (Python's subprocess)", (sys.executable, "-c", CLOSES), True),
        ("passes it on (sh)", ("sh", "-c", PASSES), False),
    ):
        lock = where / f"lease-{expected}"
        lock.touch()
        fd = take_lease(lock)
        assert fd is not None
        with session(*argv, fd=fd) as group:
            os.close(fd)
            free, alive = is_free(lock), lives(group)
            yield Fact(
                f"a leader starts a child, {what}, and ends: lease {'free' if free else 'held'}, child alive: {alive}",
                alive and free is expected,
            )


def filelock_unlocks(where: Path) -> Iterator[Fact]:
    for how in ("release()", "garbage collection", "a plain flock that is closed"):
        path = where / f"lock-{how.split()[0]}"
        path.touch()
        lock = FileLock(path)
        plain = take_lease(path) if "flock" in how else None
        if plain is None:
            lock.acquire()
        fd = plain if plain is not None else lock._context.lock_file_fd
        with session("sh", "-c", PASSES, fd=fd) as group:
            if plain is not None:
                os.close(plain)
            elif how == "release()":
                lock.release()
            else:
                del lock
                gc.collect()
            free, alive = is_free(path), lives(group)
            yield Fact(
                f"{how}, while a child holds the inherited descriptor: lock {'free' if free else 'held'}, child alive: {alive}",
                alive and free is (plain is None),
            )


def no_prefix_parses(_where: Path) -> Iterator[Fact]:
    jobs = [
        Job(id="x", argv=("true",)),
        Job(id="x", argv=("sh", "-c", 'a | b > "$FLEET_OUT/c" \\ }{][ é \U0001f600 \n'), env={"}": "{", "]": '"'}),
        Job(id="x", argv=("a",) * 200, payload={"deep": [[[{"n": [1, 2.5, -3e-7, None, True]}]]]}, after=("a", "b")),
    ]
    asked = parsed = 0
    for whole in (encode_job(job).rstrip(b"\n") for job in jobs):
        assert decode_job(whole, "x")
        for end in range(len(whole)):
            asked += 1
            with suppress(ValueError, BadData):
                decode_json(whole[:end])
                parsed += 1
    yield Fact(f"of {asked} proper prefixes of {len(jobs)} job files {parsed} parse", parsed == 0)


def yes_writes(where: Path) -> Iterator[Fact]:
    with open(where / "log", "ab") as log:
        began = time.perf_counter()
        yes = subprocess.Popen(["yes"], stdout=log)
        time.sleep(YES_S)
        size = os.fstat(log.fileno()).st_size
        took = time.perf_counter() - began
        yes.kill()
        yes.wait()
    mb_s = size / took / 1e6
    yield Fact(
        f"yes appends {mb_s:.0f} MB/s: a log that is looked at once a second is {mb_s:.0f} MB over its cap", mb_s > 64
    )


@contextmanager
def mounted(image: Path, at: Path) -> Iterator[Path]:
    at.mkdir(exist_ok=True)
    subprocess.run(["mount", "-o", "loop", image, at], check=True, capture_output=True)
    try:
        yield at
    finally:
        subprocess.run(["umount", at], check=True)


def a_power_cut(where: Path) -> Iterator[Fact]:
    """The disk as it is at one moment: the image behind a mounted ext4, copied and mounted anew."""
    image, cut = where / "disk", where / "cut"
    image.write_bytes(b"")
    os.truncate(image, 32 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True, capture_output=True)
    with mounted(image, where / "before") as disk:
        for name, durable in (("pid.json", False), ("synced.json", True)):
            with open(disk / name, "wb") as file:
                file.write(b'{"pid":1}')
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            if durable:
                break
            unsynced = (disk / name).read_bytes()
            shutil.copyfile(image, cut)
        shutil.copyfile(image, where / "cut-2")
    with mounted(cut, where / "after") as disk:
        left = (disk / "pid.json").read_bytes() if (disk / "pid.json").exists() else None
    with mounted(where / "cut-2", where / "after") as disk:
        synced = (disk / "synced.json").read_bytes()
    assert unsynced == synced == b'{"pid":1}'
    yield Fact(
        f"after a power cut: an unsynced pid.json {'is gone' if left is None else left}, a synced one whole", not left
    )


FACTS = a_leader_that_closes, filelock_unlocks, no_prefix_parses, yes_writes, a_power_cut


def facts(where: Path) -> Iterator[Fact]:
    """All of them; one that needs what this machine or user lacks says so."""
    for fact in FACTS:
        try:
            yield from fact(where)
        except (OSError, subprocess.CalledProcessError) as error:
            yield Fact(f"{fact.__name__}: cannot be shown here: {error}", None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, help="where to write (default: the temporary directory)")
    args, otherwise = parser.parse_args(), 0
    with tempfile.TemporaryDirectory(dir=args.dir) as where:
        for fact in facts(Path(where)):
            print(f"{ {True: 'yes', False: 'NO ', None: '?  '}[fact.holds] }  {fact.text}", flush=True)
            otherwise += fact.holds is False
    return min(otherwise, 1)


if __name__ == "__main__":
    sys.exit(main())
