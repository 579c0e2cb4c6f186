"""Starting a job's leader: at the head of a new session, with as little as can be between fork and exec.

Nothing of Python's forking is needed in between: the attempt's parent closes all its descriptors on exec but the lease, its
umask is the job's, and while it starts the job it stands in the job's directory and has the job's environment itself.
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


class Environment:
    """This process's own, changed from job to job by what differs: to encode all of it anew costs a tenth of a short job."""

    def __init__(self) -> None:
        self._own = dict(os.environ)
        self._put: dict[str, str] = {}

    def put(self, wanted: Mapping[str, str]) -> None:
        """Have these beside, or instead of, what was there at first. Raises OSError, ValueError for names that can't be."""
        for name in self._put.keys() - wanted.keys():
            self._restore(name)
        for name, value in wanted.items():
            if self._put.get(name) != value:
                os.environ[name] = value
                self._put[name] = value

    def _restore(self, name: str) -> None:
        del self._put[name]
        if name in self._own:
            os.environ[name] = self._own[name]
        else:
            os.environ.pop(name, None)


def spawn(argv: Sequence[str], cwd: str, streams: Streams) -> int:
    """The pid of the leader, past exec and to be reaped. Raises OSError (its filename is `cwd` or the program), ValueError."""
    try:
        os.chdir(cwd)
        os.set_inheritable(streams.lease, True)
        leader = subprocess.Popen(
            argv,
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
