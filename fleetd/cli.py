"""fleet: what the spool holds, and what to do with it. The parser, the dispatch, and the way out.

Each command is a function `(args, talk) -> exit code` in a `cli_*` module, imported when it is called.
"""

import argparse
import difflib
import importlib
import os
import shutil
import sys
from collections.abc import Sequence

from fleetd.cli_exit import way_out
from fleetd.cli_options import Parser, common_options, whole_number
from fleetd.cli_talk import open_talk
from fleetd.errors import Usage

VALUED = ("--spool", "--color")
EPILOG = """\
exit status: 0 done or yes, 1 the answer is no, 2 wrong usage, 65 bad data, 66 no such thing, 69 no live daemon,
70 a bug, 73 cannot create, 74 input or output failed, 75 try later, 77 not permitted, 78 configuration,
130 interrupted.
`fleet NAME` runs fleet-NAME when that is on the PATH: `fleet plan suggest` is `fleet-plan suggest`."""
SUBMIT_EPILOG = """\
examples:
  fleet submit -- sh -c 'sleep 5; uname -a'
  fleet submit --priority 20 --cores 2 --timeout 3600 -- sh -c 'a | b > "$FLEET_OUT/c"'
  fleet submit --from jobs.jsonl
  fleet submit --from - <<< '{"argv": ["echo", "hi"]}'"""


def build_parser() -> argparse.ArgumentParser:
    """The whole command line of `fleet`."""
    parser = Parser(
        prog="fleet",
        description="What the spool holds, and what to do with it. Without a command: status.",
        epilog=EPILOG,
        parents=[common_options(first=True)],
    )
    parser.set_defaults(run="cli_status:status")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", parser_class=Parser)
    add = Adder(commands, common_options(first=False))
    _add_looking(add)
    _add_jobs(add)
    _add_spool(add)
    return parser


class Adder:
    """Adds commands that all take the common options."""

    def __init__(self, commands: "argparse._SubParsersAction[Parser]", common: Parser) -> None:
        self._commands = commands
        self._common = common

    def __call__(self, name: str, run: str, text: str, epilog: str | None = None) -> Parser:
        about = text[0].upper() + text[1:] + "."
        parser = self._commands.add_parser(name, help=text, description=about, epilog=epilog, parents=[self._common])
        parser.set_defaults(run=run)
        return parser


def _add_looking(add: Adder) -> None:
    add("status", "cli_status:status", "how many jobs wait, run and have ended, and what each host does")
    add("ls", "cli_ls:ls", "the jobs that run and wait, each with the reason why it waits")
    show = add("show", "cli_show:show", "one job: its command, what became of it, its last lines, how to run it again")
    show.add_argument("job", metavar="JOB", help="an id, or the beginning or end of one")
    log = add("log", "cli_show:log", "what a job has printed (its newest attempt)")
    log.add_argument("-f", "--follow", action="store_true", help="go on until the attempt ends")
    log.add_argument("job", metavar="JOB", help="an id, or the beginning or end of one")
    results = add("results", "cli_results:results", "the ledger's result rows, oldest first")
    results.add_argument("-f", "--follow", action="store_true", help="go on with each new row until Ctrl-C")
    wait = add("wait", "cli_wait:wait", "wait until jobs have ended for good: 0 all ok, 1 otherwise")
    wait.add_argument("jobs", nargs="*", metavar="JOB", help="default: all that wait and run now")
    wait.add_argument("--timeout", type=_seconds, metavar="S", help="exit 75 when they have not ended by then")
    top = add("top", "cli_top:top", "the fleet at work, redrawn each second; q quits")
    top.add_argument("-b", "--batch", action="store_true", help="print the lines instead, for scripts")
    top.add_argument("-n", "--count", type=whole_number(1), metavar="N", help="end after N times (default: never)")
    metrics = add("metrics", "cli_metrics:metrics", "what Prometheus may want to know, in its text format")
    metrics.add_argument(
        "--textfile", metavar="FILE", help="put it there by rename, for node_exporter's textfile collector"
    )
    hosts = add("hosts", "cli_stop:hosts", "the hosts, and what each does; or tell one to rest, go on or try again")
    hosts.add_argument(
        "action",
        nargs="?",
        choices=("drain", "undrain", "reset"),
        help="drain: it claims nothing more; undrain: it does again; reset: close its breaker",
    )
    hosts.add_argument("host", nargs="?", metavar="HOST")


def _add_jobs(add: Adder) -> None:
    submit = add("submit", "cli_submit:submit", "queue a command, or the jobs in a file", SUBMIT_EPILOG)
    submit.usage = "fleet submit [options] -- ARGV…\n       fleet submit [--priority NN] --from FILE|-"
    submit.add_argument("--from", dest="source", metavar="FILE", help="a job object, or JSON lines of them; - is stdin")
    submit.add_argument(
        "--priority", type=whole_number(0, 99), default=50, metavar="NN", help="0 to 99, lower first (default: 50)"
    )
    submit.add_argument("--kind", help="what sort of job it is (default: job)")
    submit.add_argument("--cwd", metavar="DIR", help="where it runs (default: its own out/)")
    submit.add_argument("--env", action="append", metavar="K=V", help="a variable for it; may be repeated")
    submit.add_argument(
        "--needs", action="append", metavar="TAG", help="a tag that its host must have; may be repeated"
    )
    submit.add_argument("--cores", type=whole_number(1), metavar="N", help="lanes it takes (default: 1)")
    submit.add_argument("--gpus", type=whole_number(0), metavar="N", help="GPUs it takes (default: 0)")
    submit.add_argument("--timeout", type=_seconds, metavar="S", help="seconds until it is ended (default: none)")
    submit.add_argument(
        "--retries", type=whole_number(0), metavar="N", help="further attempts after a failure (default: 0)"
    )
    submit.add_argument("--rerun-safe", action="store_true", help="it may run again after a stop or a lost host")
    submit.add_argument("--after", action="append", metavar="JOB", help="wait for that job's ok; may be repeated")
    submit.add_argument("--not-before", metavar="TIME", help="RFC 3339, such as 2026-12-01T08:00:00+01:00")
    submit.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    cancel = add("cancel", "cli_recall:cancel", "take jobs out of the queue, or end them when they run")
    cancel.add_argument("jobs", nargs="+", metavar="JOB")
    retry = add("retry", "cli_recall:retry", "queue ended jobs once more")
    retry.add_argument("jobs", nargs="*", metavar="JOB")
    retry.add_argument("--failed", action="store_true", help="all that ended failed, timed out or lost")
    retry.add_argument("--stopped", action="store_true", help="all that a stop ended")


def _add_spool(add: Adder) -> None:
    add(
        "init",
        "cli_up:init",
        "make the spool's directories and a commented fleet.toml; harmless when they are there",
    )
    stop = add(
        "stop", "cli_stop:stop", "adding: nobody adds jobs, what is queued still runs; now: end the jobs that run"
    )
    stop.add_argument("what", choices=("adding", "now"))
    stop.add_argument("--wait", action="store_true", help="until nothing runs any more")
    add("resume", "cli_stop:resume", "lift the stops")
    add("ensure", "cli_ensure:ensure", "start this host's daemon if it is not alive; harmless when it is")
    add("fsck", "cli_fsck:fsck", "read all of the spool, change nothing, and say what is wrong with it")
    completion = add("completion", "cli_completion:completion", "print the shell's script that completes fleet's words")
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))
    up = add("up", "cli_up:up", "all at once on this machine: spool, daemon and planner, until Ctrl-C")
    up.add_argument("--seconds", type=_seconds, metavar="N", help="stop by itself N seconds after the first claim")


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: expected a number of seconds above 0")
    return number


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; every way out has its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    words, tail = _split(words)
    return way_out("fleet", lambda: _run(words, tail), verbose=bool({"-v", "--verbose"} & set(words)))


def _split(words: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """What stands before the first `--`, and what after it: a command line, never options of ours."""
    if "--" not in words:
        return list(words), None
    at = words.index("--")
    return list(words[:at]), list(words[at + 1 :])


def _run_other_program(parser: argparse.ArgumentParser, words: Sequence[str], tail: Sequence[str] | None) -> None:
    """`fleet NAME …`: become fleet-NAME when NAME is no command of ours; raises Usage when there is none."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in VALUED else 1
    commands = next(a.choices for a in parser._actions if isinstance(a, argparse._SubParsersAction))  # noqa: SLF001
    if at >= len(words) or words[at] in commands:
        return
    name, rest = words[at], [*words[:at], *words[at + 1 :], *(["--", *tail] if tail is not None else [])]
    from fleetd.cli_programs import path_of

    if "/" not in name and (program := shutil.which(f"fleet-{name}", path=path_of(os.environ))):
        sys.stdout.flush()
        os.execv(program, [f"fleet-{name}", *rest])  # noqa: S606 - git's way: the other program takes over
    near = difflib.get_close_matches(name, list(commands), 1)
    raise Usage(f"no command {name!r}" + (f"; did you mean {near[0]}?" if near else "; fleet --help lists them"))


def _run(words: Sequence[str], tail: Sequence[str] | None) -> int:
    parser = build_parser()
    _run_other_program(parser, words, tail)
    args = parser.parse_args(words)
    args.tail = tail
    module, _, name = args.run.partition(":")
    code: int = getattr(importlib.import_module(f"fleetd.{module}"), name)(args, open_talk(args, os.environ))
    return code


if __name__ == "__main__":
    sys.exit(main())
