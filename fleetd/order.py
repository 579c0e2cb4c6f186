"""What a lane's parent is told to run, and the row of a job that was never run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fleetd.claim import Claim
from fleetd.job import Job, Outcome
from fleetd.lease import boot_id
from fleetd.settings import Settings
from fleetd.spool import Spool

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def order(
    spool: Spool, settings: Settings, host: str, taken: Claim, lane: int, gpus: Sequence[int] = ()
) -> dict[str, Any]:
    """The order for one attempt: what to run, in what environment, within which limits."""
    job, path = taken.job, taken.path
    return {
        "path": str(path),
        "argv": list(job.argv),
        "env": environment(spool, host, taken, gpus),
        "cwd": job.cwd or f"{path}/out",
        "mark": taken.token,
        "timeout_s": job.timeout_s,
        "grace_s": settings.grace_s,
        "log_max_mb": settings.log_max_mb,
        "host": host,
        "boot": boot_id(),
        "lane": lane,
        "attempt": job.attempt,
        "gpus": list(gpus),
    }


def environment(spool: Spool, host: str, taken: Claim, gpus: Sequence[int] = ()) -> dict[str, str]:
    """What the job finds in its environment besides the daemon's own; its `env` wins over all but the mark."""
    job, path = taken.job, taken.path
    return {
        "FLEET_SPOOL": str(spool.root),
        "FLEET_JOB": f"{path}/job.json",
        "FLEET_JOB_ID": job.id,
        "FLEET_ATTEMPT": str(job.attempt),
        "FLEET_HOST": host,
        "FLEET_OUT": f"{path}/out",
        "FLEET_RESULT": f"{path}/result.json",
        "FLEET_CORES": str(job.cores),
        **_previous(spool, job),
        **({"CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus))} if job.gpus else {}),
        **dict.fromkeys(THREADS, str(job.cores)),
        **job.env,
        "FLEET_CLAIM": taken.token,
    }


def _previous(spool: Spool, job: Job) -> dict[str, str]:
    """Where the last attempt left its files, if there was one: a stopped training run goes on from there.

    One that was killed before it wrote anything would hide what the one before it left.
    """
    earlier = range(job.attempt - 1, 0, -1)
    found = (max(spool.ended.glob(f"*/{job.id}~{attempt}/out"), default=None) for attempt in earlier)
    outs = [out for out in found if out]
    last = next(filter(_holds_any, outs), outs[0] if outs else None)
    return {"FLEET_PREVIOUS": str(last)} if last else {}


def _holds_any(out: Path) -> bool:
    """Whether it is a directory with something in it; what a job made of it otherwise holds nothing."""
    try:
        return any(out.iterdir())
    except OSError:
        return False


def rejected_row(id_: str, why: str) -> dict[str, Any]:
    """The row of a file that can't be run: attempt 0, final."""
    return {
        "event": "result",
        "job": id_,
        "attempt": 0,
        "kind": "job",
        "outcome": Outcome.REJECTED,
        **dict.fromkeys(("exit", "signal")),
        "reason": why,
        **dict.fromkeys(("next", "started", "ended", "wall_s", "cpu_s", "max_rss_mb")),
        "leftovers": 0,
        **dict.fromkeys(("lane", "cores", "commit", "build")),
        "payload": {},
        "result": None,
        "argv": [],
        "log": None,
    }
