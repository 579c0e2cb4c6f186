"""The `treadcore` command: the tank duel that the planner's first workload is played on."""

import argparse
import importlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from fleetd import Parser, Talk, Usage, common_options, open_talk, way_out, whole_number
from planner.threads import one_thread

if TYPE_CHECKING:
    from planner.brain.weights import Weight


SEED_MOST: Final = (1 << 63) - 1
SECONDS_MOST: Final = 86400
TICKS: Final = 4_000_000
TICKS_MOST: Final = 10**12
ENVS: Final = 64
ENVS_MOST: Final = 1 << 16


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; every way out has its exit code."""
    args = build_parser().parse_args(argv)
    one_thread(os.environ)
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
    replay = commands.add_parser("replay", help="one play, to look at", parents=common)
    replay.add_argument(
        "seed", type=whole_number(0, SEED_MOST), metavar="SEED", help="of the play: another, another play"
    )
    replay.add_argument(
        "--player",
        metavar="PLAYER",
        default="scripted",
        help='a net\'s file, a weights file, or "scripted" (the default)',
    )
    replay.add_argument("--svg", action="store_true", help="a picture instead of text")
    replay.add_argument("--seconds", type=_seconds, default=900.0, metavar="S", help="length of the play (900)")
    replay.set_defaults(run=_replay)
    _training(commands, common)
    return parser


def _training(commands: Any, common: list[Parser]) -> None:
    """The commands that make nets and judge them."""

    def add(name: str, run: str, text: str) -> Parser:
        command: Parser = commands.add_parser(name, help=text, parents=common)
        command.set_defaults(run=_later(run))
        return command

    kernel: dict[str, Any] = {"choices": ["numpy", "numba"], "help": "what computes the ticks (numba if it can)"}
    out: dict[str, Any] = {"metavar": "DIR", "help": "where its files go (FLEET_OUT, else here)"}
    add("clone", "cli_tread_clone:make_clone", "a first net, which chooses what the scripted brain does").add_argument(
        "--out", **out
    )
    train = add("train", "cli_tread_train:train", "train a net by duels; goes on after a stop")
    train.add_argument("--from", dest="from_", metavar="NET", help="the net to begin with (none: from nothing)")
    train.add_argument("--rivals", nargs="*", default=[], metavar="NET[=SHARE]", help="nets to duel besides")
    train.add_argument("--ticks", type=whole_number(1, TICKS_MOST), default=TICKS, metavar="N", help=f"({TICKS:,})")
    train.add_argument("--envs", type=whole_number(1, ENVS_MOST), default=ENVS, metavar="N", help=f"duels ({ENVS})")
    train.add_argument("--shards", type=_shards, metavar="N|auto", help="processes (auto: as the cores allow)")
    train.add_argument("--seed", type=whole_number(0, SEED_MOST), default=1, metavar="N", help="of all chance (1)")
    train.add_argument("--out", **out)
    train.add_argument("--resume", action="store_true", help="go on from the checkpoint, if there is one")
    train.add_argument("--kernel", **kernel)
    train.add_argument("--rewards", metavar="FILE", help="JSON: weight by reward term")
    train.add_argument("--feedback", metavar="FILE", help="JSON: what people like and dislike")
    judge = add("judge", "cli_tread_judge:judge", "a candidate beside the best, seed by seed")
    for side in ("candidate", "best"):
        judge.add_argument(f"--{side}", required=True, metavar="PLAYER", help='a net, weights as JSON, or "scripted"')
    judge.add_argument("--seeds", type=_seed_span, required=True, metavar="A:B", help="A to B - 1")
    judge.add_argument("--seconds", type=_seconds, default=900.0, metavar="S", help="length of a play (900)")
    add("cores", "cli_tread_cores:cores", "how many cores are allowed here, and why")
    bench = add("bench", "cli_tread_bench:bench", "ticks a second at 1, 2, 3, 4 and 8 shards")
    bench.add_argument("--envs", type=whole_number(1, ENVS_MOST), default=64, metavar="N", help="duels at once (64)")
    bench.add_argument("--kernel", **kernel)


def _later(run: str) -> Callable[[argparse.Namespace, Talk], None]:
    """The function `module:name`, imported when it is called."""
    module, _, name = run.partition(":")

    def call(args: argparse.Namespace, talk: Talk) -> None:
        getattr(importlib.import_module(f"planner.{module}"), name)(args, talk)

    return call


def _shards(text: str) -> int | None:
    return None if text == "auto" else whole_number(1)(text)


def _seed_span(text: str) -> Any:
    from planner.cli_tread_judge import seed_span

    return seed_span(text)


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
    from planner.cli_tread_judge import seat

    if args.json and args.svg:
        raise Usage("--svg draws the play and --json tells it: one of them")
    play = args.seed, args.seconds, seat(args.player, "--player").brain
    if args.json:
        talk.emit(replay_json(*play))
    else:
        talk.data((replay_svg if args.svg else replay_text)(*play))


if __name__ == "__main__":
    sys.exit(main())
