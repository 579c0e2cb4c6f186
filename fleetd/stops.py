"""What the stop files ask for."""

from collections.abc import Set
from enum import Enum


class Mode(Enum):
    """RUN: as ever. DRAIN: nobody adds, what is queued still runs. HALT: nobody claims, and what runs is ended."""

    RUN = "run"
    DRAIN = "drain"
    HALT = "halt"


def mode(stops: Set[str]) -> Mode:
    """The mode that the names of the standing stop files ask for."""
    if "STOP_NOW" in stops:
        return Mode.HALT
    return Mode.DRAIN if "STOP_ADDING" in stops else Mode.RUN
