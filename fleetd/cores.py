"""How many cores this process is allowed, and why: the affinity mask and every cgroup quota above it (v1, v2, hybrid)."""

import math
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

SLACK = 0.25  # a quota of 1.2 cores is one core: a second shard would wait more than it works


@dataclass(frozen=True, slots=True)
class Cores:
    """Cores allowed, the reason in words, and what the machine has."""

    cores: int
    why: str
    machine: int


def allowed_cores(root: Path = Path("/")) -> Cores:
    """The least of the affinity mask and the quotas; `root` may be a made-up tree with proc/ and sys/ in it."""
    machine = os.cpu_count() or 1
    best = Cores(machine, f"{machine} in the machine", machine)
    if hasattr(os, "sched_getaffinity") and (mask := len(os.sched_getaffinity(0))) < machine:
        best = Cores(mask, f"{machine} in the machine; {mask} by the affinity mask", machine)
    for quota, path in quotas(root):
        cores = max(1, math.ceil(quota - SLACK))
        if cores < best.cores:
            best = Cores(cores, f"{machine} in the machine; {quota:.2f} by the quota in {path}", machine)
    return best


def gpus() -> int:
    """How many GPUs `nvidia-smi -L` lists; 0 where there is no such command or it fails."""
    try:
        asked = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.SubprocessError):
        return 0
    return sum(line.startswith("GPU ") for line in asked.stdout.splitlines()) if asked.returncode == 0 else 0


def quotas(root: Path = Path("/")) -> Iterator[tuple[float, Path]]:
    """Every limit in cores that stands in a cgroup above this process, with the file that says so."""
    for group, mount in _groups(root):
        for directory in (group, *group.parents):
            yield from _v2(directory / "cpu.max")
            yield from _v1(directory)
            if directory == mount:
                break


def _groups(root: Path) -> Iterator[tuple[Path, Path]]:
    """(directory of this process's cgroup, mount point above it) for each hierarchy that can hold a cpu quota."""
    paths = {}
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        paths["cgroup" if "cpu" in controllers.split(",") else "cgroup2" if not controllers else ""] = path
    for line in _lines(root / "proc/self/mountinfo"):
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        if kind in paths and (kind == "cgroup2" or "cpu" in options.split(",")):
            top, point = left.split(" ")[3:5]
            mount = root / point.replace("\\040", " ").lstrip("/")
            yield _seen_from(mount, PurePosixPath(top), PurePosixPath(paths[kind])), mount


def _seen_from(mount: Path, top: PurePosixPath, path: PurePosixPath) -> Path:
    """The directory of the cgroup `path` where `top` is mounted; of what lies elsewhere, the mount is all there is to see.

    Both are told from the cgroup namespace's root. A mount from before the namespace begins above it, at `/..`: what the
    levels between are called is told nowhere, but the group that we are in has us in its list.
    """
    if path.is_relative_to(top) and ".." not in (below := path.relative_to(top)).parts:
        return mount / below
    levels = top.parts.count("..") if set(top.parts) <= {"/", ".."} else 0
    names = [part for part in path.parts if part != "/"]
    if ".." in names or not levels:
        return mount
    ours = (d for d in mount.glob("/".join(["*"] * levels + names)) if str(os.getpid()) in _lines(d / "cgroup.procs"))
    return next(ours, mount)


def _v2(file: Path) -> Iterator[tuple[float, Path]]:
    words = " ".join(_lines(file)).split()
    if len(words) == 2 and words[0].isdigit() and int(words[1]) > 0:
        yield int(words[0]) / int(words[1]), file


def _v1(directory: Path) -> Iterator[tuple[float, Path]]:
    quota, period = ("".join(_lines(directory / f"cpu.cfs_{name}_us")) for name in ("quota", "period"))
    if quota.isdigit() and period.isdigit() and int(quota) > 0 and int(period) > 0:
        yield int(quota) / int(period), directory / "cpu.cfs_quota_us"


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
