"""What a job costs beside the neighbours: jobs of /bin/true a second, as ratios to a bare loop, in one run.

    python tests/bench/engine_overhead.py [--jobs 500] [--rounds 5] [--dir DIR …]

Every round runs each contestant once, in turn, so that the machine's moods fall on all alike; printed are medians of the
rounds' ratios to the bare loop (Popen(start_new_session=True), waited for) of the same round, and their spread. Ours is
timed from the first start to the last row in a fresh spool; publishing is told apart. Nothing is deleted before the end: ext4
looks at the inodes freed in the last minutes one by one for each it gives out, so that deletions slow all that comes after.
nq, tsp, parallel are Debian's packages nq, task-spooler, parallel; huey and hyperqueue are PyPI's; what isn't there is left
out, and said.
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
from pathlib import Path

from fleetd import Job, Ledger, seconds
from fleetd.spool import init_spool

TRUE = "/bin/true"
HUEY = """
import subprocess
from huey import FileHuey
huey = FileHuey("bench", path={path!r}, use_thread_lock=True)
@huey.task()
def run():
    subprocess.run(["/bin/true"], start_new_session=True)
"""


def bare(jobs: int, _where: Path) -> float:
    began = time.perf_counter()
    for _ in range(jobs):
        subprocess.Popen([TRUE], start_new_session=True).wait()
    return jobs / (time.perf_counter() - began)


def ours(lanes: int) -> Callable[[int, Path], float]:
    def run(jobs: int, where: Path) -> float:
        spool = init_spool(where / "spool", home=None)
        spool.settings.write_text("spool = 1\nmin_free_mb = 0\n")
        for n in range(jobs):
            path = spool.tmp / f"j{n:06d}.json"
            path.write_text(json.dumps({"argv": [TRUE], "rerun_safe": True}))
            path.rename(spool.queue / path.name)
        command = [
            Path(sys.executable).with_name("fleetd"),
            "--spool",
            spool.root,
            "--lanes",
            str(lanes),
            "--once",
            "-q",
        ]
        subprocess.run(command, check=True)
        rows = [row.body for row in Ledger(spool.ledger_d).rows() if row.body.get("outcome") == "ok"]
        assert len(rows) == jobs, f"{len(rows)} of {jobs} jobs have their row"
        return jobs / (seconds(rows[-1]["at"]) - min(seconds(row["started"]) for row in rows))

    return run


def publishing(jobs: int, where: Path) -> float:
    spool = init_spool(where / "spool", home=None)
    began = time.perf_counter()
    for n in range(jobs):
        spool.publish(Job(id=f"j{n:06d}", argv=(TRUE,), rerun_safe=True))
    return jobs / (time.perf_counter() - began)


def nq(jobs: int, where: Path) -> float:
    began = time.perf_counter()
    environ = {**os.environ, "NQDIR": str(where)}
    for _ in range(jobs):
        subprocess.run(["nq", "-q", TRUE], env=environ, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["nq", "-w"], env=environ, check=True)
    return jobs / (time.perf_counter() - began)


def tsp(jobs: int, where: Path) -> float:
    environ = {**os.environ, "TS_SOCKET": str(where / "socket"), "TMPDIR": str(where), "TS_MAXFINISHED": "5"}
    began = time.perf_counter()
    for _ in range(jobs):
        subprocess.run(["tsp", TRUE], env=environ, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["tsp", "-w"], env=environ, check=True)
    took = time.perf_counter() - began
    subprocess.run(["tsp", "-K"], env=environ, check=False)
    return jobs / took


def parallel(jobs: int, _where: Path) -> float:
    began = time.perf_counter()
    subprocess.run(["parallel", "-j1", TRUE], input="\n".join(map(str, range(jobs))), text=True, check=True)
    return jobs / (time.perf_counter() - began)


def huey(jobs: int, where: Path) -> float:
    (where / "bench_tasks.py").write_text(HUEY.format(path=str(where / "huey")))
    environ = {**os.environ, "PYTHONPATH": str(where)}
    fill = f"import bench_tasks\nfor _ in range({jobs}): bench_tasks.run()"
    subprocess.run([sys.executable, "-c", fill], env=environ, check=True)
    consumer = Path(sys.executable).with_name("huey_consumer")
    began = time.perf_counter()
    worker = subprocess.Popen(
        [sys.executable, consumer, "bench_tasks.huey", "-w", "1", "-d", "0.01", "-q"], env=environ, cwd=where
    )
    probe = "import bench_tasks,time\nwhile bench_tasks.huey.pending_count(): time.sleep(0.02)"
    subprocess.run([sys.executable, "-c", probe], env=environ, check=True)
    took = time.perf_counter() - began
    worker.terminate()
    worker.wait()
    return jobs / took


def hyperqueue(jobs: int, where: Path) -> float:
    code = (
        "import time\nfrom hyperqueue import Job, LocalCluster\nfrom hyperqueue.cluster import WorkerConfig\n"
        f"with LocalCluster() as cluster:\n    cluster.start_worker(WorkerConfig(cores=1))\n    client = cluster.client()\n"
        f"    job = Job()\n    for _ in range({jobs}): job.program(['{TRUE}'])\n    began = time.perf_counter()\n"
        "    client.wait_for_jobs([client.submit(job)])\n    print(time.perf_counter() - began)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=where, capture_output=True, text=True, check=True)
    return jobs / float(ran.stdout.split()[-1])


def contestants() -> dict[str, Callable[[int, Path], float]]:
    found: dict[str, Callable[[int, Path], float]] = {
        "bare loop": bare,
        "fleetd, 1 lane": ours(1),
        "fleetd, 2 lanes": ours(2),
        "publish": publishing,
    }
    for name, run in (("nq", nq), ("tsp", tsp), ("parallel", parallel)):
        if shutil.which(name):
            found[name] = run
        else:
            print(f"{name}: not installed, left out", file=sys.stderr)
    for name, run in (("huey", huey), ("hyperqueue", hyperqueue)):
        if subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True, check=False).returncode == 0:
            found[name] = run
        else:
            print(f"{name}: not installed, left out", file=sys.stderr)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", action="append", help="where the spools lie; once for each file system")
    parser.add_argument("--only", action="append", help="a contestant; the bare loop always runs")
    args = parser.parse_args()
    for directory in args.dir or [tempfile.gettempdir()]:
        rates: dict[str, list[float]] = {}
        base = tempfile.mkdtemp(dir=directory)
        for _ in range(args.rounds):
            for name, run in contestants().items():
                if args.only and name not in (*args.only, "bare loop"):
                    continue
                where = Path(tempfile.mkdtemp(dir=base))
                rates.setdefault(name, []).append(run(args.jobs, where))
        report(directory, rates)
        shutil.rmtree(base)


def report(directory: str, rates: dict[str, list[float]]) -> None:
    print(f"{directory}: load {os.getloadavg()[0]:.1f}, {len(rates['bare loop'])} rounds")
    for name, values in rates.items():
        ratios = [value / bare_rate for value, bare_rate in zip(values, rates["bare loop"], strict=True)]
        middle = statistics.median(ratios)
        spread = f"{min(ratios):.2f}–{max(ratios):.2f}"
        print(f"  {name:16s} {middle:5.2f} of the bare loop ({spread}), {statistics.median(values):7.0f} jobs/s")


if __name__ == "__main__":
    main()
