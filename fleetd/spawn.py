"""Starting a job's leader: at the head of a new session, with as little as can be between fork and exec.

Nothing of Python's forking is needed in between: the attempt's parent closes all its descriptors on exec but the lease, its
umask is the job's, and it stands in the job's directory itself while it starts the job. (To have the job's environment itself as
well would leak: setenv(3) frees no value that it replaces.)
"""

import contextlib
import errno
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """Descriptors a leader starts with: stdin, stdout with stderr, and the lease, which it inherits under its own number."""

    null: int
    log: int
    lease: int


def spawn(argv: Sequence[str], environ: Mapping[bytes, bytes], cwd: str, streams: Streams) -> int:
    """The pid of the leader, past exec and to be reaped. Raises OSError (its filename is `cwd` or the program), ValueError."""
    try:
        os.chdir(cwd)
        os.set_inheritable(streams.lease, True)
        leader = subprocess.Popen(
            argv,
            env=environ,
            stdin=streams.null,
            stdout=streams.log,
            stderr=streams.log,
            start_new_session=True,
            close_fds=False,
        )
    finally:
        os.chdir("/")
    leader.returncode = 0  # whoever gets the pid reaps it
    return leader.pid


def why_not(program: str, cwd: str, environ: Mapping[bytes, bytes], error: OSError | ValueError) -> str:
    """Why `spawn` raised this, for whoever wrote the job."""
    if not isinstance(error, OSError):
        return f"{program}: {error}"
    if error.filename == cwd:
        return f"cwd {cwd}: {error.strerror}"
    if error.errno == errno.ENOEXEC:
        return f"{program}: {error.strerror}; a script needs a first line such as #!/bin/sh, or sh before it in argv"
    return f"{program}: {_missing(program, cwd, environ) if error.errno == errno.ENOENT else error.strerror}"


def _missing(program: str, cwd: str, environ: Mapping[bytes, bytes]) -> str:
    path = os.fsdecode(environ.get(b"PATH", os.defpath.encode()))
    at = os.path.join(cwd, program) if "/" in program else shutil.which(program, path=path)
    if at is None:
        return "command not found on the job's PATH"
    return f"its interpreter {_interpreter(at)} is not there" if os.path.exists(at) else "no such file"


def _interpreter(script: str) -> str:
    """What its first line names; of a program it is the loader, whose name it would take more to find."""
    with contextlib.suppress(OSError), open(os.open(script, _READ), "rb") as file:
        words = file.readline(256).removeprefix(b"#!").split()
        file.seek(0)
        if file.read(2) == b"#!" and words:
            return os.fsdecode(words[0])
    return "(the loader)"
