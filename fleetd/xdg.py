"""Where this user's own things are kept on this machine, by the XDG Base Directory Specification: a relative path is none.

A lane's parent stands in / and the daemon anywhere: a path that were taken relatively would be two places.
"""

import os
import pwd
from collections.abc import Mapping
from pathlib import Path


def state_home(environ: Mapping[str, str]) -> Path:
    """$XDG_STATE_HOME, else ~/.local/state."""
    return _absolute(environ.get("XDG_STATE_HOME")) or _home(environ) / ".local/state"


def runtime_dir(environ: Mapping[str, str]) -> Path:
    """$XDG_RUNTIME_DIR, else where it is by custom: /run/user/UID, for root /run."""
    uid = os.getuid()
    return _absolute(environ.get("XDG_RUNTIME_DIR")) or (Path(f"/run/user/{uid}") if uid else Path("/run"))


def _home(environ: Mapping[str, str]) -> Path:
    """$HOME, else the one in the user database; / for a user without any."""
    if home := _absolute(environ.get("HOME")):
        return home
    try:
        return _absolute(pwd.getpwuid(os.getuid()).pw_dir) or Path("/")
    except KeyError:
        return Path("/")


def _absolute(path: str | None) -> Path | None:
    return Path(path) if path and os.path.isabs(path) else None
