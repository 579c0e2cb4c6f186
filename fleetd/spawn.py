"""Starting a job's leader: at the head of a new session, with as little as can be between fork and exec.

Nothing of Python's forking is needed in between: the attempt's parent closes all its descriptors on exec but the lease, its
umask is the job's, and it stands in the job's directory itself while it starts the job. (To have the job's environment itself as
well would leak: setenv(3) frees no value that it replaces.)
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


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
