"""How many cores this process is allowed, on made-up trees of /proc and /sys."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from fleetd.cores import allowed_cores, quotas

V2 = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = "33 32 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
V1_MEMORY = "34 32 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
HYBRID = V1 + V1_MEMORY + "42 32 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"


@pytest.fixture
def machine(tmp_path):
    """`machine(cgroup, mountinfo, {file: text})` is the root of a machine with these files."""

    def made(cgroup, mountinfo, files):
        for name, text in {"proc/self/cgroup": cgroup, "proc/self/mountinfo": mountinfo, **files}.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return tmp_path

    return made


def least(root):
    return min((quota for quota, _ in quotas(root)), default=None)


def test_a_v2_quota_is_quota_over_period(machine):
    assert least(machine("0::/a\n", V2, {"sys/fs/cgroup/a/cpu.max": "150000 100000\n"})) == 1.5


def test_a_nested_v2_group_is_bound_by_the_least_above_it(machine):
    files = {"a/cpu.max": "50000 100000\n", "a/b/cpu.max": "max 100000\n", "a/b/c/cpu.max": "200000 100000\n"}
    root = machine("0::/a/b/c\n", V2, {f"sys/fs/cgroup/{name}": text for name, text in files.items()})
    assert least(root) == 0.5


def test_a_neighbour_s_quota_does_not_count(machine):
    files = {"sys/fs/cgroup/a/cpu.max": "max 100000\n", "sys/fs/cgroup/b/cpu.max": "10000 100000\n"}
    assert least(machine("0::/a\n", V2, files)) is None


@pytest.mark.parametrize("text", ["", "\n", "max 100000\n", "max", "0 0\n", "junk\n"])
def test_an_empty_or_max_cpu_max_is_no_limit(machine, text):
    assert least(machine("0::/a\n", V2, {"sys/fs/cgroup/a/cpu.max": text})) is None


@pytest.mark.parametrize(("quota", "expected"), [("250000", 2.5), ("-1", None), ("", None)])
def test_a_v1_quota_is_found_under_its_controller(machine, quota, expected):
    base = "sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs"
    files = {f"{base}_quota_us": f"{quota}\n", f"{base}_period_us": "100000\n"}
    assert least(machine("9:memory:/m\n4:cpu,cpuacct:/docker/x\n", V1 + V1_MEMORY, files)) == expected


def test_hybrid_takes_the_quota_of_v1_beside_an_empty_v2(machine):
    base = "sys/fs/cgroup/cpu,cpuacct/s/cpu.cfs"
    files = {f"{base}_quota_us": "300000\n", f"{base}_period_us": "100000\n"}
    assert least(machine("4:cpu,cpuacct:/s\n9:memory:/s\n0::/s\n", HYBRID, files)) == 3.0


@pytest.mark.parametrize("path", ["/", "/..", "/../../other"])
def test_in_a_private_namespace_what_is_mounted_counts(machine, path):
    assert least(machine(f"0::{path}\n", V2, {"sys/fs/cgroup/cpu.max": "100000 100000\n"})) == 1.0


@pytest.mark.parametrize(("ups", "path"), [("/..", "/"), ("/../..", "/"), ("/..", "/deep/er"), ("/../..", "/x")])
def test_a_mount_from_before_the_namespace_shows_all_that_binds_us(machine, ups, path):
    """The root field is `/..`: the group between the mount and our root is the one that lists us, whatever it is called."""
    mount = f"30 24 0:26 {ups} /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    us, theirs = ("/".join([first, *["b"] * (ups.count("..") - 1)]) + path.rstrip("/") for first in ("us", "them"))
    files = {f"sys/fs/cgroup/{us}/cgroup.procs": f"1\n{os.getpid()}\n", f"sys/fs/cgroup/{theirs}/cgroup.procs": "1\n"}
    files |= {"sys/fs/cgroup/us/cpu.max": "150000 100000\n", "sys/fs/cgroup/them/cpu.max": "10000 100000\n"}
    root = machine(f"0::{path}\n", mount, files)
    assert least(root) == 1.5
    (root / f"sys/fs/cgroup/{us}/cpu.max").write_text("70000 100000\n")
    assert least(root) == 0.7


def test_a_sibling_of_the_namespace_s_root_is_found_below_its_mount(machine):
    mount = "30 24 0:26 /.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    assert least(machine("0::/../x\n", mount, {"sys/fs/cgroup/x/cpu.max": "70000 100000\n"})) == 0.7


def test_hybrid_takes_the_quota_of_v2_as_well(machine):
    base = "sys/fs/cgroup/cpu,cpuacct/s/cpu.cfs"
    files = {f"{base}_quota_us": "300000\n", f"{base}_period_us": "100000\n"}
    files |= {"sys/fs/cgroup/unified/cpu.max": "120000 100000\n"}
    assert least(machine("4:cpu,cpuacct:/s\n0::/s\n", HYBRID, files)) == 1.2


def test_a_mount_point_with_a_space_is_found(machine):
    mount = "30 24 0:26 / /mnt/c\\040g rw - cgroup2 cgroup2 rw\n"
    assert least(machine("0::/\n", mount, {"mnt/c g/cpu.max": "100000 100000\n"})) == 1.0


def test_a_nested_v1_group_is_bound_by_the_least_above_it(machine):
    base = "sys/fs/cgroup/cpu,cpuacct/a"
    files = {f"{base}/cpu.cfs_quota_us": "50000\n", f"{base}/cpu.cfs_period_us": "100000\n"}
    files |= {f"{base}/b/cpu.cfs_quota_us": "-1\n", f"{base}/b/cpu.cfs_period_us": "100000\n"}
    assert least(machine("4:cpu,cpuacct:/a/b\n", V1, files)) == 0.5


def test_a_mount_of_a_part_shows_the_group_below_that_part(machine):
    mount = "30 24 0:26 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    files = {"sys/fs/cgroup/y/cpu.max": "70000 100000\n"}
    assert least(machine("0::/docker/x/y\n", mount, files)) == 0.7


def test_optional_fields_in_mountinfo_do_not_confuse(machine):
    mount = "30 24 0:26 / /sys/fs/cgroup rw shared:4 master:1 - cgroup2 cgroup2 rw\n"
    assert least(machine("0::/a\n", mount, {"sys/fs/cgroup/a/cpu.max": "100000 100000\n"})) == 1.0


def test_no_proc_is_no_quota(tmp_path):
    assert list(quotas(tmp_path)) == []
    assert allowed_cores(tmp_path).cores >= 1


def test_a_fraction_of_a_core_is_one_core_and_says_why(machine):
    root = machine("0::/a\n", V2, {"sys/fs/cgroup/a/cpu.max": "10000 100000\n"})
    found = allowed_cores(root)
    assert found.cores == 1
    assert found.machine == os.cpu_count()
    assert os.cpu_count() == 1 or ("0.10" in found.why and "cpu.max" in found.why)


@pytest.mark.parametrize(
    ("quota", "cores"), [("300000", 2), ("200000", 2), ("125000", 1), ("126000", 2), ("100000", 1), ("1000", 1)]
)
def test_a_quota_is_rounded_up_unless_it_is_hardly_over_a_core(machine, monkeypatch, quota, cores):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    found = allowed_cores(machine("0::/a\n", V2, {"sys/fs/cgroup/a/cpu.max": f"{quota} 100000\n"}))
    assert found.cores == min(cores, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2)
    assert found.why.startswith("2 in the machine")


CPU = ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup")
SHOW = "import fleetd; print(fleetd.allowed_cores())"


@pytest.fixture
def real_group(root_only):
    """A real cgroup of half a core with an unlimited one inside; gives the inner one."""
    for base in map(Path, CPU):
        outer = base / f"fleet-test-{os.getpid()}"
        try:
            (outer / "inner").mkdir(parents=True)
            v1 = outer / "cpu.cfs_quota_us"
            v1.write_text("50000") if v1.exists() else (outer / "cpu.max").write_text("50000 100000")
        except OSError:
            continue
        else:
            yield outer / "inner"
            return
        finally:
            for directory in (outer / "inner", outer):
                with suppress(OSError):
                    directory.rmdir()
    pytest.skip("no cgroup with a cpu quota can be made here")


@pytest.mark.parametrize("private", [False, True], ids=["plain", "in a namespace of its own"])
def test_a_real_quota_above_the_process_is_found_and_said(real_group, private):
    """With a namespace the mount is from before it: the root field is `/../..`."""
    enter = f'echo $$ > {real_group}/cgroup.procs; exec {"unshare --cgroup" if private else ""} "$0" -c "$1"'
    done = subprocess.run(["sh", "-c", enter, sys.executable, SHOW], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"cores=1, why='{os.cpu_count()} in the machine; 0.50 by the quota in " in done.stdout
    assert f"{real_group.parent.name}/cpu." in done.stdout


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2, reason="one core")
def test_the_affinity_mask_bounds_and_is_said():
    script = "import os, fleetd; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); print(fleetd.allowed_cores())"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "cores=1" in said
    assert "affinity" in said
