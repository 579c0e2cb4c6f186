"""The `treadcore` command: the tank duel that the planner's first workload is played on."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from fleetd import Parser, Talk, Usage, common_options, open_talk, way_out, whole_number

if TYPE_CHECKING:
    from planner.brain.weights import Weight


THREADS: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
SEED_MOST: Final = (1 << 63) - 1
SECONDS_MOST: Final = 86400


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; every way out has its exit code."""
    args = build_parser().parse_args(argv)
    os.environ.update(dict.fromkeys(THREADS, "1"))  # before numpy is imported: a census is one core's work
    return way_out("treadcore", lambda: _run(args), verbose=args.verbose)


def _run(args: argparse.Namespace) -> int:
    args.run(args, open_talk(args, os.environ))
    return 0


def build_parser() -> Parser:
    """The command line, for `main` and for the test that its page names it all."""
    parser = Parser(prog="treadcore", description=__doc__, parents=[_common(first=True)])
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)
    common = [_common(first=False)]
    census = commands.add_parser("census", help="plays in, scores out: JSON lines", parents=common)
    census.add_argument("--kernel", choices=["numpy", "numba"], help="what computes the ticks (numba if it can)")
    census.set_defaults(run=_census)
    weights = commands.add_parser("weights", help="the scripted brain's weights, as space.toml", parents=common)
    weights.set_defaults(run=_weights)
    replay = commands.add_parser("replay", help="one play of the default brain, to look at", parents=common)
    replay.add_argument("seed", type=whole_number(0, SEED_MOST), metavar="SEED")
    replay.add_argument("--svg", action="store_true", help="a picture instead of text")
    replay.add_argument("--seconds", type=_seconds, default=900.0, metavar="S", help="length of the play (900)")
    replay.set_defaults(run=_replay)
    return parser


def _common(*, first: bool) -> Parser:
    return common_options(first=first, leave_out=("spool",))


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= SECONDS_MOST:
        raise argparse.ArgumentTypeError(f"expected seconds over 0, to {SECONDS_MOST}, got {text[:40]!r}")
    return seconds


def _census(args: argparse.Namespace, talk: Talk) -> None:
    from planner.arena.compiled import choose_kernel
    from planner.brain.census import answer_all

    kernel = choose_kernel(args.kernel, talk.environ)
    if kernel.trouble or talk.verbose:
        talk.say(f"treadcore: {kernel.why}")
    answer_all(lambda size: os.read(0, size), talk.emit, kernel.name)


def _weights(args: argparse.Namespace, talk: Talk) -> None:
    from planner.brain.weights import TABLE

    if args.json:
        talk.emit({"schema": "treadcore.weights/1", "variables": [_variable(w) for w in TABLE]})
        return
    talk.data("# The scripted brain's 110 weights, as `treadcore weights` prints them.")
    for weight in TABLE:
        fields = {k: v for k, v in _variable(weight).items() if k != "meaning"}
        lines = [f"\n# {weight.meaning}", "[[variable]]", *(f"{k} = {json.dumps(v)}" for k, v in fields.items())]
        talk.data("\n".join(lines))


def _variable(weight: "Weight") -> dict[str, Any]:
    return {
        "name": weight.name,
        "start": weight.start,
        "low": weight.low,
        "high": weight.high,
        "step": weight.step,
        "type": "float",
        "group": "weight",
        "meaning": weight.meaning,
    }


def _replay(args: argparse.Namespace, talk: Talk) -> None:
    from planner.brain.replay import replay_json, replay_svg, replay_text

    if args.json and args.svg:
        raise Usage("--svg draws the play and --json tells it: one of them")
    if args.json:
        talk.emit(replay_json(args.seed, args.seconds))
    else:
        talk.data((replay_svg if args.svg else replay_text)(args.seed, args.seconds))


if __name__ == "__main__":
    sys.exit(main())
