"""fleetd: the daemon of one host, in the foreground."""

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Sequence

from fleetd.cli_exit import way_out
from fleetd.cli_options import Parser, common_options, whole_number
from fleetd.cores import allowed_cores, gpus
from fleetd.errors import BadSettings, FleetError, TryLater, Usage
from fleetd.job import NAME
from fleetd.keeper import Keeper
from fleetd.lane import Offer
from fleetd.lease import host_name, only_one
from fleetd.loop import Cause, notify, run
from fleetd.machine import settle, this_machine, whose
from fleetd.settings import Settings, read_settings
from fleetd.spool import Spool, find_spool, refuse_others


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = Parser(
        prog="fleetd",
        description="Claim jobs from the spool, run each in its own session, write a row for each. Stays in the foreground.",
        epilog="SIGTERM lets go of the running jobs (the next daemon adopts them); SIGINT drains, a second one ends them.",
        parents=[common_options(first=True, leave_out=("json",))],
    )
    parser.add_argument(
        "--host", metavar="NAME", help="this host's name in the spool (default: FLEET_HOST, else the machine's)"
    )
    parser.add_argument(
        "--lanes",
        metavar="N",
        type=whole_number(1),
        help="jobs at a time (default: fleet.toml, else the cores allowed)",
    )
    parser.add_argument("--tags", metavar="A,B", help="what this host has (default: fleet.toml)")
    parser.add_argument("--once", action="store_true", help="end when nothing is queued for this host and nothing runs")
    parser.add_argument("--check-config", action="store_true", help="say what is wrong with fleet.toml, and end")
    return parser


def _offer(args: argparse.Namespace, settings: Settings, host: str) -> Offer:
    at = settings.host(host)
    lanes = args.lanes if args.lanes is not None else at.lanes or allowed_cores().cores
    tags = tuple(filter(None, args.tags.split(","))) if args.tags is not None else at.tags
    if bad := [tag for tag in tags if not NAME.fullmatch(tag)]:
        raise Usage(f"--tags: {bad[0]!r} is no name")
    return Offer(host=host, lanes=lanes, tags=frozenset(tags), gpus=at.gpus if at.gpus is not None else gpus())


def _say(line: str, level: int = 6) -> None:
    """One line to stderr; under a journal with its level in front (sd-daemon(3))."""
    prefix = f"<{level}>" if "JOURNAL_STREAM" in os.environ else "fleetd: "
    with contextlib.suppress(OSError, ValueError, AttributeError):  # a full disk or a closed stderr must not end it
        print("\n".join(prefix + part for part in line.splitlines()), file=sys.stderr, flush=True)


def _pause(seconds: float) -> None:
    """Wait before the service manager is told that we are ready, and have it wait too."""
    notify(os.environ, f"EXTEND_TIMEOUT_USEC={int((seconds + 30) * 1e6)}")
    time.sleep(seconds)


def _serve(args: argparse.Namespace, spool: Spool, settings: Settings, host: str) -> int:
    log = (lambda *_: None) if args.quiet else _say
    os.umask(os.umask(0o022) | 0o002)  # whatever it was, others are to write to nothing that we make
    refuse_others(spool, host)
    me = this_machine(os.environ)
    with only_one(spool.hosts / f"{host}.lock", whose(spool, host, me)):
        settle(spool, host, me, log, _pause)
        offer = _offer(args, settings, host)
        keeper = Keeper(spool, settings, offer, me, os.environ, log)

        def reload() -> None:
            try:
                fresh = read_settings(spool.settings)
                keeper.renew(fresh, _offer(args, fresh, host))
                log("settings read again")
            except FleetError as error:
                _say(f"{error}\nthe old settings stay", 3)

        log(f"{host}: {offer.lanes} lanes ({allowed_cores().why}), spool {spool.root}")
        cause = run(keeper, os.environ, log, reload, once=args.once)
        if cause is Cause.FORCED:
            return 130
        if cause is Cause.ONCE and keeper.claims is not None:
            raise TryLater(keeper.claims)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run fleetd; gives back its exit code."""
    args = build_parser().parse_args(argv)
    return way_out("fleetd", lambda: _run(args), verbose=args.verbose, say=_say)


def _run(args: argparse.Namespace) -> int:
    if args.host == "":
        raise Usage("--host: an empty name")
    spool = find_spool(args.spool, os.environ)
    host = host_name({"FLEET_HOST": args.host} if args.host else os.environ)
    try:
        settings = read_settings(spool.settings)
    except BadSettings as error:
        raise BadSettings(f"{error}\nnot started") from error
    if args.check_config:
        _offer(args, settings, host)
        if not args.quiet:
            _say(f"{spool.settings}: no errors")
        return 0
    return _serve(args, spool, settings, host)


if __name__ == "__main__":
    sys.exit(main())
