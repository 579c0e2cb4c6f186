"""fleet-plan: what is tried next, what was learned, what fills the queue. The parser, the dispatch, and the way out.

Each command is a function `(args, talk) -> exit code` in a `cli_*` module, imported when it is called.
"""

import argparse
import importlib
import os
import sys
import traceback
from collections.abc import Sequence

from fleetd import FleetError, IOFailed
from planner.cli_talk import Talk, open_talk

EPILOG = """\
exit status: 0 done or yes, 1 the answer is no, 2 wrong usage, 65 bad data, 66 no such thing, 70 a bug,
73 cannot create, 74 input or output failed, 75 try later, 77 not permitted, 78 configuration, 130 interrupted."""


class Parser(argparse.ArgumentParser):
    """No option may be abbreviated."""

    def __init__(self, **settings: object) -> None:
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **settings)  # type: ignore[arg-type]


class Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"{parser.prog} {version('fleetd-spool')}")
        parser.exit()


def _common(*, first: bool) -> Parser:
    """The options that may stand before and after the command's name; only those before have defaults."""
    off = False if first else argparse.SUPPRESS
    parser = Parser(add_help=False)
    group = parser.add_argument_group("everywhere")
    group.add_argument("--spool", metavar="DIR", default=None if first else off, help="default: $FLEET_SPOOL")
    group.add_argument("--json", action="store_true", default=off, help="JSON on stdout, for programs")
    group.add_argument("-q", "--quiet", action="store_true", default=off, help="no talk on stderr")
    group.add_argument("-v", "--verbose", action="store_true", default=off, help="say more")
    colors = ("auto", "always", "never")
    group.add_argument("--color", choices=colors, default="auto" if first else off, help="default: auto")
    group.add_argument("--version", action=Version, nargs=0, default=argparse.SUPPRESS, help="the version, and exit")
    return parser


def build_parser() -> argparse.ArgumentParser:
    """The whole command line of `fleet-plan`."""
    parser = Parser(
        prog="fleet-plan",
        description="What is tried next, what was learned, and what fills the queue. Without a command: suggest.",
        epilog=EPILOG,
        parents=[_common(first=True)],
    )
    parser.set_defaults(run="cli_show:suggest", top=10)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", parser_class=Parser)
    common = _common(first=False)

    def add(name: str, run: str, text: str) -> Parser:
        about = text[0].upper() + text[1:] + "."
        command: Parser = commands.add_parser(name, help=text, description=about, parents=[common])
        command.set_defaults(run=run)
        return command

    add("init", "cli_init:init", "write plan.toml and space.toml for treadcore; never overwrites")
    _fill_options(add("fill", "cli_fill:fill", "write the verdicts that are due and queue what comes next"))
    add("next", "cli_show:upcoming", "what is tried next, and when each variable was last read")
    suggest = add("suggest", "cli_show:suggest", "the strongest trials, and what to do about each")
    suggest.add_argument("--top", type=_number_from_1, default=10, metavar="N", help="how many (default: 10)")
    add("best", "cli_show:best", "the weights adopted so far")
    adopt = add("adopt", "cli_adopt:adopt", "adopt a trial that held-out seeds have confirmed")
    adopt.add_argument("id", metavar="ID", help="a trial's id or its beginning, as suggest shows it")
    add("log", "cli_show:log", "the verdicts in order, each with its sentence")
    add("read", "cli_read:read", "what a trial job runs: read both players on the job's seeds")
    return parser


def _fill_options(fill: argparse.ArgumentParser) -> None:
    at_least_1 = _number_from_1
    fill.add_argument("--depth", type=at_least_1, metavar="N", help="jobs waiting and running (default: 2 a lane)")
    fill.add_argument("--count", type=at_least_1, metavar="N", help="add at most N jobs, at whatever depth")
    fill.add_argument("--plays", type=at_least_1, metavar="N", help="a budget: plays read and queued in all")
    fill.add_argument("--watch", action="store_true", help="go on until the budget is spent and judged, or Ctrl-C")
    fill.add_argument("--dry-run", action="store_true", help="say what would be added; write nothing")
    fill.add_argument(
        "--heldout", metavar="ID", help="read that trial on held-out seeds although the search did not ask"
    )


def _number_from_1(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, got {text!r}")
    return int(text)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; every way out has its exit code."""
    args = build_parser().parse_args(argv)
    talk = open_talk(as_json=args.json, quiet=args.quiet, verbose=args.verbose, color=args.color)
    try:
        return _run(args, talk)
    except FleetError as error:
        print(f"fleet-plan: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return IOFailed.exit_code
    except OSError as error:
        print(f"fleet-plan: {error.filename or 'the disk'}: {error.strerror or error}", file=sys.stderr)
        return IOFailed.exit_code
    except Exception as error:  # noqa: BLE001 - a bug says so in one line, and where with -v
        if args.verbose or os.environ.get("FLEET_DEBUG") == "1":
            traceback.print_exc()
        print(f"fleet-plan: a bug: {type(error).__name__}: {error} (-v shows where)", file=sys.stderr)
        return FleetError.exit_code


def _run(args: argparse.Namespace, talk: Talk) -> int:
    module, _, function = args.run.partition(":")
    code: int = getattr(importlib.import_module(f"planner.{module}"), function)(args, talk)
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    sys.exit(main())
