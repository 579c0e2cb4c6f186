"""systemd/ and the drop-ins of its how-to page, read by systemd itself."""

import os
import re
import shutil
import subprocess

import pytest

SERVICES = "fleetd", "fleet-plan", "fleet-keeper"


@pytest.fixture
def home(checkout, tmp_path):
    """A home with the units in it."""
    units = tmp_path / ".config" / "systemd" / "user"
    shutil.copytree(checkout / "systemd", units)
    return tmp_path


def install(directory):
    directory.mkdir(parents=True)
    for name in ("fleet", "fleetd", "fleet-plan"):
        (directory / name).write_text("#!/bin/sh\n")
        (directory / name).chmod(0o755)


def verify(home):
    """What systemd-analyze has to say."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze here")
    (home / "run").mkdir(mode=0o700)
    units = [path for path in (home / ".config" / "systemd" / "user").iterdir() if path.is_file()]
    environ = os.environ | {"HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run"), "XDG_CONFIG_HOME": ""}
    command = ["systemd-analyze", "--user", "--man=no", "verify", *units]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=60, check=False)
    return "".join(line for line in done.stderr.splitlines(keepends=True) if "fleet" in line)


def test_the_units_run_what_pipx_installs(home):
    install(home / ".local" / "bin")
    assert verify(home) == ""


def test_a_unit_whose_command_is_missing_is_told(home):
    assert "fleetd is not executable" in verify(home)


def test_the_drop_ins_of_the_how_to_run_a_checkout(checkout, home):
    page = (checkout / "docs" / "how-to" / "systemd.md").read_text()
    for name, body in re.findall(r"    # (fleet[a-z-]*)\b.*\n((?:    .+\n)+)", page):
        drop_in = home / ".config" / "systemd" / "user" / f"{name}.service.d" / "override.conf"
        drop_in.parent.mkdir()
        drop_in.write_text(re.sub("^    ", "", body, flags=re.MULTILINE))
    assert len(list(home.glob(".config/systemd/user/*.d"))) == len(SERVICES)
    install(home / "fleetd" / "bin")
    assert verify(home) == ""
