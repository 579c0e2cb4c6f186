"""The public face of the engine. Names are imported when first asked for, so that a job's parent stays small."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fleetd.cli_exit import way_out
    from fleetd.cli_options import Parser, common_options, whole_number
    from fleetd.cli_programs import find_program
    from fleetd.cli_talk import StatusLine, Talk, open_talk
    from fleetd.cli_text import clock, columns, count
    from fleetd.cores import allowed_cores
    from fleetd.errors import (
        BadData,
        BadSettings,
        CannotCreate,
        FleetError,
        IOFailed,
        No,
        NotFound,
        Terminated,
        TryLater,
        Usage,
    )
    from fleetd.files import replace_file
    from fleetd.job import Job, Outcome, decode_json, encode_json, new_id, seconds, utc
    from fleetd.lease import host_name, only_one
    from fleetd.ledger import Ledger, Row, ledger_lines
    from fleetd.spool import Spool, find_spool
    from fleetd.toml import Doc, Keys, read_toml

_ROOMS = {
    "cli_exit": ("way_out",),
    "cli_options": ("Parser", "common_options", "whole_number"),
    "cli_programs": ("find_program",),
    "cli_talk": ("StatusLine", "Talk", "open_talk"),
    "cli_text": ("clock", "columns", "count"),
    "cores": ("allowed_cores",),
    "errors": (
        "BadData",
        "BadSettings",
        "CannotCreate",
        "FleetError",
        "IOFailed",
        "No",
        "NotFound",
        "Terminated",
        "TryLater",
        "Usage",
    ),
    "files": ("replace_file",),
    "job": ("Job", "Outcome", "decode_json", "encode_json", "new_id", "seconds", "utc"),
    "lease": ("host_name", "only_one"),
    "ledger": ("Ledger", "Row", "ledger_lines"),
    "spool": ("Spool", "find_spool"),
    "toml": ("Doc", "Keys", "read_toml"),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [  # noqa: PLE0604 - the table above is the list
    *_ROOM_OF,
]


def __getattr__(name: str) -> Any:
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'fleetd' has no attribute {name!r}")
    return getattr(importlib.import_module(f"fleetd.{_ROOM_OF[name]}"), name)
