"""A program that ends with whoever started it: `fleet up` killed outright must not leave its planner at work."""

import os
import signal
from collections.abc import MutableMapping

TIED = "FLEET_TIED"


def end_when_alone(environ: MutableMapping[str, str]) -> None:
    """Where the starter tied us to itself, take its end for a SIGTERM: the pipe on stdin closes however it ends."""
    if not environ.pop(TIED, None):
        return
    import threading

    threading.Thread(target=_await_starter, daemon=True).start()


def _await_starter() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
