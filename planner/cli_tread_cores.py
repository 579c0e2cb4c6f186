"""treadcore cores: how many cores there are to train on, and why so many."""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fleetd import Talk, Usage, allowed_cores


def cores_here(environ: Mapping[str, str]) -> Any:
    """What fleetd says, and no more than FLEET_CORES: what a job was given. Usage where that is no number."""
    cores = allowed_cores()
    if given := environ.get("FLEET_CORES"):
        if not (given.isascii() and given.isdecimal() and len(given) < 10 and int(given)):
            raise Usage(f"FLEET_CORES is no whole number from 1: {given[:40]!r}")
        if int(given) < cores.cores:
            return replace(cores, cores=int(given), why=f"{cores.machine} in the machine; {given} by FLEET_CORES")
    return cores


def cores(_: argparse.Namespace, talk: Talk) -> None:
    """What is allowed here and why."""
    found = cores_here(talk.environ)
    talk.emit({"cores": found.cores, "why": found.why, "machine": found.machine})
