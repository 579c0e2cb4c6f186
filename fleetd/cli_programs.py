"""The programs that `fleet up` starts and ends: each in a session of its own, its talk kept for when it dies."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from fleetd.cli_tied import TIED
from fleetd.errors import NotFound

LAST_LINES = 8
TERM_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program at work. `log` is its output, a file without a name; its stdin is a pipe when it is tied to us."""

    name: str
    process: "subprocess.Popen[bytes]"
    log: IO[bytes] | None

    def ended(self) -> int | None:
        """Its exit code, a signal as 128 + N; None while it works."""
        code = self.process.poll()
        return None if code is None else code if code >= 0 else 128 - code

    def last_lines(self) -> str:
        """The end of what it said, each line indented."""
        if self.log is None:
            return ""
        size = self.log.seek(0, os.SEEK_END)
        self.log.seek(max(0, size - 8192))
        lines = self.log.read().decode("utf-8", "replace").splitlines()[-LAST_LINES:]
        return "\n".join(f"    {line}" for line in lines)

    def interrupt(self) -> None:
        """Ctrl-C, for this program alone."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)

    def end(self) -> None:
        """TERM, then KILL when it does not go."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(TERM_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdin:
            self.process.stdin.close()


def find_program(name: str, environ: Mapping[str, str]) -> str:
    """The program on the PATH, or beside this Python, where a virtual environment has its commands. Raises NotFound."""
    path = shutil.which(name, path=path_of(environ))
    if path is None:
        raise NotFound(f"{name}: no such program on the PATH, nor beside {sys.executable}")
    return path


def path_of(environ: Mapping[str, str]) -> str:
    """The PATH, with this Python's programs at its end where it has none: the jobs that are queued name them."""
    path = environ.get("PATH") or os.defpath
    return path if shutil.which("fleet-plan", path=path) else path + os.pathsep + str(Path(sys.executable).parent)


def start(name: str, arguments: list[str], environ: Mapping[str, str], *, aloud: bool, tied: bool = False) -> Program:
    """Start a program; `aloud`, its talk goes to this terminal instead of into a file; `tied`, it ends when we do."""
    log = None if aloud else tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the program
    process = subprocess.Popen(
        [find_program(name, environ), *arguments],
        stdin=subprocess.PIPE if tied else subprocess.DEVNULL,
        stdout=log or sys.stderr,
        stderr=log or sys.stderr,
        env={**environ, "PATH": path_of(environ), **({TIED: "1"} if tied else {})},
        start_new_session=True,
    )
    return Program(name=name, process=process, log=log)


def ask(name: str, arguments: list[str], environ: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end and keep what it says."""
    return subprocess.run(
        [find_program(name, environ), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env={**environ, "PATH": path_of(environ)},
        check=False,
    )
