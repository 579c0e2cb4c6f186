"""How many cores this process is allowed, on made-up trees of /proc and /sys."""

import os
import subprocess
import sys

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


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2, reason="one core")
def test_the_affinity_mask_bounds_and_is_said():
    script = "import os, fleetd; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); print(fleetd.allowed_cores())"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "cores=1" in said
    assert "affinity" in said
