"""fleet-plan: what is tried next, what was learned, what fills the queue. The parser, the dispatch, and the way out.

Each command is a function `(args, talk) -> exit code` in a `cli_*` module, imported when it is called.
"""

import argparse
import gc
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Final

from fleetd import Parser, common_options, open_talk, way_out, whole_number
from planner.threads import one_thread

OBJECTS: Final = 1_000_000  # between two searches for garbage: a long ledger makes as many, and none of them is any

EPILOG = """\
exit status: 0 done or yes, 1 the answer is no, 2 wrong usage, 65 bad data, 66 no such thing, 70 a bug,
73 cannot create, 74 input or output failed, 75 try later, 77 not permitted, 78 configuration, 130 interrupted."""


def build_parser() -> argparse.ArgumentParser:
    """The whole command line of `fleet-plan`."""
    parser = Parser(
        prog="fleet-plan",
        description="What is tried next, what was learned, and what fills the queue. Without a command: suggest.",
        epilog=EPILOG,
        parents=[common_options(first=True)],
    )
    parser.set_defaults(run="cli_suggest:suggest", top=10)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", parser_class=Parser)
    common = common_options(first=False)

    def add(name: str, run: str, text: str) -> Parser:
        about = text[0].upper() + text[1:] + "."
        command: Parser = commands.add_parser(name, help=text, description=about, parents=[common])
        command.set_defaults(run=run)
        return command

    add("init", "cli_init:init", "write plan.toml and space.toml for treadcore; never overwrites")
    _fill_options(add("fill", "cli_fill:fill", "write the verdicts that are due and queue what comes next"))
    add("next", "cli_show:upcoming", "what is tried next, and when each variable was last read")
    suggest = add("suggest", "cli_suggest:suggest", "the strongest trials, and what to do about each")
    suggest.add_argument("--top", type=whole_number(1), default=10, metavar="N", help="how many (default: 10)")
    add("best", "cli_show:best", "the weights adopted so far")
    adopt = add("adopt", "cli_adopt:adopt", "adopt a trial that held-out seeds have confirmed")
    adopt.add_argument("id", metavar="ID", help="a trial's id or its beginning, as suggest shows it")
    merge = add("merge", "cli_merge:merge", "add what is missing here of other fleets' ledgers")
    merge.add_argument("ledger", nargs="+", metavar="LEDGER", help="a segment, a ledger.jsonl, a ledger.d or a spool")
    merge.add_argument("--dry-run", action="store_true", help="say what would be added; write nothing")
    add("log", "cli_show:log", "the verdicts in order, each with its sentence")
    feedback = add("feedback", "cli_feedback:feedback", "say what you like or dislike about a row")
    feedback.add_argument("row", metavar="ROW", help="HOST:SEQ, or a trial's or round's id, as log shows it")
    feedback.add_argument("sign", choices=["+", "-"], metavar="+|-", help="like or dislike")
    feedback.add_argument("text", nargs="*", default=[], metavar="TEXT", help="why, in a few words")
    add("read", "cli_read:read", "what a trial job runs: read both players on the job's seeds")
    return parser


def _fill_options(fill: argparse.ArgumentParser) -> None:
    at_least_1 = whole_number(1)
    fill.add_argument("--depth", type=at_least_1, metavar="N", help="jobs waiting and running (default: 2 a lane)")
    fill.add_argument("--count", type=whole_number(0), metavar="N", help="add at most N jobs; 0: only judge")
    fill.add_argument("--plays", type=at_least_1, metavar="N", help="a budget: plays read and queued in all")
    fill.add_argument("--watch", action="store_true", help="go on until the budget is spent and judged, or Ctrl-C")
    fill.add_argument("--dry-run", action="store_true", help="say what would be added; write nothing")
    fill.add_argument(
        "--heldout", metavar="ID", help="read that trial on held-out seeds although the search did not ask"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; every way out has its exit code."""
    args = build_parser().parse_args(argv)
    if args.command != "read":  # its census has the lane's threads
        one_thread(os.environ)
    gc.set_threshold(OBJECTS)
    return way_out("fleet-plan", lambda: _run(args), verbose=args.verbose)


def _run(args: argparse.Namespace) -> int:
    module, _, name = args.run.partition(":")
    code: int = getattr(importlib.import_module(f"planner.{module}"), name)(args, open_talk(args, os.environ))
    return code


if __name__ == "__main__":
    sys.exit(main())
