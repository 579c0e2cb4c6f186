"""The error tree. Each leaf is one kind of answer to the person at the terminal, with its exit code (sysexits.h).

FleetError 70             a bug, unless a leaf says otherwise
├── No 1                  the answer is no: nothing to adopt, nothing could be scored
├── Usage 2               the command line is wrong
├── BadData 65            a job file, a ledger line, a plan that cannot be used
├── NotFound 66           no such spool, job, host
├── NoDaemon 69           no live daemon for what was asked
├── CannotCreate 73       a file that cannot be made
├── IOFailed 74           the disk or the share refused
├── TryLater 75           locked by another, stopped, not now
├── NotPermitted 77       a spool that others may write to
├── BadSettings 78        fleet.toml or plan.toml, all errors at once
└── Terminated 143        ended by SIGTERM; what was begun stands
"""


class FleetError(Exception):
    """What failed, on which path, and what to do: the message is for the person who reads it."""

    exit_code = 70


class No(FleetError):
    exit_code = 1


class Usage(FleetError):
    exit_code = 2


class BadData(FleetError):
    exit_code = 65


class NotFound(FleetError):
    exit_code = 66


class NoDaemon(FleetError):
    exit_code = 69


class CannotCreate(FleetError):
    exit_code = 73


class IOFailed(FleetError):
    exit_code = 74


class TryLater(FleetError):
    exit_code = 75


class NotPermitted(FleetError):
    exit_code = 77


class BadSettings(FleetError):
    exit_code = 78


class Terminated(FleetError):
    exit_code = 143
