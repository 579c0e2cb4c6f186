"""The `treadcore` command: the tank duel that the planner's first workload is played on."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from planner.brain.weights import Weight


VERSION: Final = "0.1.0"
THREADS: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
OK, IO_FAILED, INTERRUPTED = 0, 74, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    arguments = build_parser().parse_args(argv)
    os.environ.update(dict.fromkeys(THREADS, "1"))  # before numpy is imported: a census is one core's work
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter's own flush fails again
        print("treadcore: nobody reads the answers any more", file=sys.stderr)
        return IO_FAILED
    except OSError as error:
        print(f"treadcore: {error}", file=sys.stderr)
        return IO_FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def build_parser() -> argparse.ArgumentParser:
    """The command line, for `main` and for the test that its page names it all."""
    parser = argparse.ArgumentParser(prog="treadcore", description=__doc__, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"treadcore {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    census = commands.add_parser("census", help="plays in, scores out: JSON lines", allow_abbrev=False)
    census.add_argument("--kernel", choices=["numpy"], default="numpy", help="what computes the ticks")
    census.set_defaults(run=_census)
    weights = commands.add_parser("weights", help="the scripted brain's weights, as space.toml", allow_abbrev=False)
    weights.add_argument("--json", action="store_true", help="one JSON object instead")
    weights.set_defaults(run=_weights)
    replay = commands.add_parser("replay", help="one play of the default brain, to look at", allow_abbrev=False)
    replay.add_argument("seed", type=_seed, metavar="SEED")
    replay.add_argument("--svg", action="store_true", help="a picture instead of text")
    replay.add_argument("--seconds", type=_seconds, default=900.0, metavar="S", help="length of the play (900)")
    replay.set_defaults(run=_replay)
    return parser


def _seed(text: str) -> int:
    seed = int(text)
    if not 0 <= seed < 1 << 63:
        raise argparse.ArgumentTypeError("a seed is from 0 to 2^63 - 1")
    return seed


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 86400:
        raise argparse.ArgumentTypeError("seconds are over 0, to 86400")
    return seconds


def _census(_arguments: argparse.Namespace) -> int:
    from planner.brain.census import answer_all

    answer_all(lambda size: os.read(sys.stdin.fileno(), size), _say)
    return OK


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer, allow_nan=False), flush=True)


def _weights(arguments: argparse.Namespace) -> int:
    from planner.brain.weights import TABLE

    if arguments.json:
        print(json.dumps({"schema": "treadcore.weights/1", "variables": [_variable(w) for w in TABLE]}, indent=1))
        return OK
    print("# The scripted brain's 110 weights, as `treadcore weights` prints them.")
    for weight in TABLE:
        print(f"\n# {weight.meaning}\n[[variable]]")
        fields = {k: v for k, v in _variable(weight).items() if k != "meaning"}
        print("\n".join(f"{key} = {json.dumps(value)}" for key, value in fields.items()))
    return OK


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


def _replay(arguments: argparse.Namespace) -> int:
    from planner.brain.replay import replay_svg, replay_text

    draw = replay_svg if arguments.svg else replay_text
    print(draw(arguments.seed, arguments.seconds))
    return OK


if __name__ == "__main__":
    sys.exit(main())
