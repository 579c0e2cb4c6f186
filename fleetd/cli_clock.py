"""How far the clocks of the hosts are from this machine's, as far as the disk tells.

A heartbeat says when it was written by its host's clock, and its file when by the disk's (on NFS the server's). A file made
now says how far we are from the disk's. Where a share takes times from who writes, all offsets look like our own: 0.
"""

import os
import time
from collections.abc import Iterable

from fleetd.cli_state import Beat
from fleetd.job import seconds
from fleetd.spool import Spool, disk_time


def clock_offsets(spool: Spool, beats: Iterable[Beat]) -> dict[str, float]:
    """By host, the seconds that its clock was ahead of ours at its last heartbeat; left out is one of which that isn't known."""
    try:
        ours = -disk_time(spool) + time.time()
    except OSError:
        return {}
    offsets = {}
    for beat in beats:
        try:
            written = os.lstat(spool.hosts / f"{beat.host}.json").st_mtime
            offsets[beat.host] = seconds(beat.body.get("at", "")) - written - ours
        except (OSError, ValueError, OverflowError):
            continue
    return offsets
