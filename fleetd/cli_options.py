"""The options that every command of this project has, and what their values may be."""

import argparse
import difflib
import sys
from collections.abc import Callable, Collection
from typing import Any


class Parser(argparse.ArgumentParser):
    """No option may be abbreviated, and nobody's help wraps the examples."""

    def __init__(self, **settings: object) -> None:
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **settings)  # type: ignore[arg-type]

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """The same, but an unknown option is told with its nearest, and with the usage of the command it was given to."""
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            asked = self._below(getattr(found, "command", None))
            names = [name for action in asked._actions for name in action.option_strings]  # noqa: SLF001
            near = difflib.get_close_matches(
                unknown[0].partition("=")[0].lstrip("-"), [name.lstrip("-") for name in names], 1
            )
            hint = f"; did you mean --{near[0]}?" if near else ""
            asked.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return found

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """The same, but of an unknown command its nearest is told, not all there are."""
        if isinstance(action, argparse._SubParsersAction) and value not in (known := action.choices or ()):  # noqa: SLF001
            near = difflib.get_close_matches(str(value), list(known), 1)
            self.error(
                f"no command {value!r}; " + (f"did you mean {near[0]}?" if near else f"{self.prog} --help lists them")
            )
        super()._check_value(action, value)

    def _below(self, command: str | None) -> argparse.ArgumentParser:
        """The parser of that command, or this one."""
        below = (a.choices for a in self._actions if isinstance(a, argparse._SubParsersAction))  # noqa: SLF001
        return next((choices[command] for choices in below if command in choices), self)


class Version(argparse.Action):
    """Looks the version up only when it is asked for: that costs as much as the rest of the start."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"{parser.prog} {version('fleetd-spool')}")
        parser.exit()


def common_options(*, first: bool, leave_out: Collection[str] = ()) -> Parser:
    """The options that may stand before and after a command's name; only those before (`first`) have defaults."""
    off = False if first else argparse.SUPPRESS
    auto = "auto" if first else argparse.SUPPRESS
    parser = Parser(add_help=False)
    group = parser.add_argument_group("everywhere")
    if "spool" not in leave_out:
        group.add_argument("--spool", metavar="DIR", default=None if first else off, help="default: $FLEET_SPOOL")
    if "json" not in leave_out:
        group.add_argument("--json", action="store_true", default=off, help="JSON on stdout, for programs")
    group.add_argument("-q", "--quiet", action="store_true", default=off, help="no talk on stderr")
    group.add_argument("-v", "--verbose", action="store_true", default=off, help="say more")
    group.add_argument("--color", choices=("auto", "always", "never"), default=auto, help="default: auto")
    group.add_argument("--version", action=Version, nargs=0, default=argparse.SUPPRESS, help="the version, and exit")
    return parser


def whole_number(low: int, high: int = sys.maxsize) -> Callable[[str], int]:
    """The type of an option's value: a whole number in decimal digits, from `low` (0 or more) to `high`."""
    bounds = f"from {low}" + ("" if high == sys.maxsize else f" to {high}")

    def read(text: str) -> int:
        if text.isascii() and text.isdecimal() and len(text) < 20 and low <= int(text) <= high:
            return int(text)
        raise argparse.ArgumentTypeError(f"expected a whole number {bounds}, got {text[:40]!r}")

    return read
