"""fleet completion: a shell's script that completes fleet's words, made from the parser. It asks fleet only for jobs' ids."""

import argparse
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fleetd.cli_talk import Talk

KINDS = {"JOB": "job", "HOST": "host", "DIR": "dir", "FILE": "file", "FILE|-": "file"}
ASK = r"""%s %s --json 2>/dev/null | sed -n 's/^{[^[{]*"%s":"\([^"]*\)".*/\1/p'"""  # the key stands before any list


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option: its names, what it means, and what its value is (None: it has none): words, or a kind of KINDS, or any."""

    names: tuple[str, ...]
    about: str
    choices: tuple[str, ...] = ()
    kind: str | None = None

    @property
    def takes_value(self) -> bool:
        return self.kind is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command: its options, and the words and kinds of what may follow."""

    name: str
    about: str
    options: tuple[Option, ...]
    choices: tuple[str, ...]
    kinds: tuple[str, ...]


def _jobs(fleet: str) -> str:
    """What prints the ids of all that waits and runs, when the user called `fleet` so."""
    return ASK % (fleet, "ls", "job")


def _hosts(fleet: str) -> str:
    return ASK % (fleet, "hosts", "host")


def completion(args: argparse.Namespace, talk: Talk) -> int:
    """Print the script."""
    from fleetd.cli import build_parser

    script = SHELLS[args.shell](*describe(build_parser()))
    if talk.json:
        talk.emit({"schema": "fleet.completion/1", "shell": args.shell, "script": script})
    else:
        talk.out.write(script)
    return 0


def describe(parser: argparse.ArgumentParser) -> tuple[Command, list[Command]]:
    """What stands before any command, and each command."""
    below = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))  # noqa: SLF001
    about = {action.dest: action.help or "" for action in below._choices_actions}  # noqa: SLF001
    commands = [_command(name, about[name], each) for name, each in below.choices.items()]
    return _command("", parser.description or "", parser), commands


def _command(name: str, about: str, parser: argparse.ArgumentParser) -> Command:
    actions = [a for a in parser._actions if a.help != argparse.SUPPRESS]  # noqa: SLF001
    after = [a for a in actions if not a.option_strings and not isinstance(a, argparse._SubParsersAction)]  # noqa: SLF001
    return Command(
        name=name,
        about=about,
        options=tuple(_option(action) for action in actions if action.option_strings),
        choices=tuple(str(word) for action in after for word in action.choices or ()),
        kinds=tuple(_kind(action) for action in after if not action.choices),
    )


def _option(action: argparse.Action) -> Option:
    return Option(
        names=tuple(action.option_strings),
        about=(action.help or "").partition(";")[0],
        choices=tuple(map(str, action.choices or ())),
        kind=None if action.nargs == 0 else _kind(action),
    )


def _kind(action: argparse.Action) -> str:
    return KINDS.get(str(action.metavar), "any")


def _valued(top: Command, commands: Sequence[Command]) -> Iterator[tuple[str, Option]]:
    """Each option that takes a value, with the command it is of; those of all commands once, with `*`."""
    everywhere = [option for option in top.options if option.takes_value]
    yield from (("*", option) for option in everywhere)
    names = {name for option in everywhere for name in option.names}
    for command in commands:
        yield from ((command.name, o) for o in command.options if o.takes_value and not names.intersection(o.names))


def _patterns(top: Command, commands: Sequence[Command]) -> str:
    return " | ".join(f"{command}:{name}" for command, option in _valued(top, commands) for name in option.names)


def _flags(command: Command) -> str:
    return " ".join(name for option in command.options for name in option.names)


def _cases(top: Command, commands: Sequence[Command], say: Callable[[str, Sequence[str]], str]) -> str:
    """The branches of bash's and zsh's `case`: after an option its values, after a command what may follow it."""
    by_answer: dict[str, list[str]] = {}
    for command, option in _valued(top, commands):
        heads = by_answer.setdefault(say(option.kind or "", option.choices), [])
        heads += [f"{command}:{name}" for name in option.names]
    return "\n".join(f"        {' | '.join(heads)}) {answer}; return ;;" for answer, heads in by_answer.items())


def _follow(commands: Sequence[Command], say: Callable[[str, Sequence[str]], str]) -> str:
    lines = []
    for command in commands:
        does = [say("", command.choices)] if command.choices else []
        does += [say(kind, ()) for kind in dict.fromkeys(command.kinds)]
        if does:
            lines.append(f"        {command.name}) {'; '.join(does)} ;;")
    return "\n".join(lines)


def _all_flags(top: Command, commands: Sequence[Command]) -> str:
    """The branches for the commands that have options of their own, and one for the others."""
    own = [command for command in commands if _flags(command) != _flags(top)]
    lines = [f"            {command.name}) flags={shlex.quote(_flags(command))} ;;" for command in own]
    return "\n".join([*lines, f"            *) flags={shlex.quote(_flags(top))} ;;"])


def bash(top: Command, commands: Sequence[Command]) -> str:
    """For bash 3.2 and later: source it, or put it into bash_completion's directory."""
    return f"""\
# bash completion of fleet, made by `fleet completion bash`
_fleet_words() {{ local IFS=$' \\t\\n'; COMPREPLY+=($(compgen -W "$1" -- "$cur")); }}
_fleet_jobs() {{ _fleet_words "$({_jobs('"${COMP_WORDS[0]}"')})"; }}
_fleet_hosts() {{ _fleet_words "$({_hosts('"${COMP_WORDS[0]}"')})"; }}
_fleet_paths() {{ local IFS=$'\\n'; compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen "$1" -- "$cur")); }}
_fleet() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}} command='' flags i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case $command:${{COMP_WORDS[i]}} in
        *:--) ((i + 1 < COMP_CWORD)) || _fleet_paths -c; _fleet_paths -f; return ;;
        {_patterns(top, commands)}) ((i++)) ;;
        *:-*) ;;
        :*) command=${{COMP_WORDS[i]}} ;;
        esac
    done
    case $command:$prev in
{_cases(top, commands, _bash_says)}
    esac
    if [[ $cur == -* ]]; then
        case $command in
{_all_flags(top, commands)}
        esac
        _fleet_words "$flags"
        return
    fi
    case $command in
        '') _fleet_words {shlex.quote(" ".join(command.name for command in commands))} ;;
{_follow(commands, _bash_says)}
    esac
}}
complete -F _fleet fleet
"""


def _bash_says(kind: str, choices: Sequence[str]) -> str:
    if choices:
        return f"_fleet_words {shlex.quote(' '.join(choices))}"
    return {"job": "_fleet_jobs", "host": "_fleet_hosts", "dir": "_fleet_paths -d", "file": "_fleet_paths -f"}.get(
        kind, ":"
    )


def zsh(top: Command, commands: Sequence[Command]) -> str:
    """For zsh: as `_fleet` in a directory of $fpath, or sourced after compinit."""
    names = "\n".join(f"        {shlex.quote(f'{command.name}:{command.about}')}" for command in commands)
    return f"""\
#compdef fleet
# zsh completion of fleet, made by `fleet completion zsh`
_fleet() {{
    local command='' flags cur=$words[CURRENT] prev=$words[CURRENT-1]
    local -a commands
    integer i
    for ((i = 2; i < CURRENT; i++)); do
        case $command:$words[i] in
        *:--) ((i + 1 < CURRENT)) || _command_names; _files; return ;;
        {_patterns(top, commands)}) ((i++)) ;;
        *:-*) ;;
        :*) command=$words[i] ;;
        esac
    done
    case $command:$prev in
{_cases(top, commands, _zsh_says)}
    esac
    if [[ $cur == -* ]]; then
        case $command in
{_all_flags(top, commands)}
        esac
        compadd -- ${{=flags}}
        return
    fi
    case $command in
        '') commands=(
{names}
        ); _describe command commands ;;
{_follow(commands, _zsh_says)}
    esac
}}
if [[ $funcstack[1] == _fleet ]]; then _fleet "$@"; else compdef _fleet fleet; fi
"""


def _zsh_says(kind: str, choices: Sequence[str]) -> str:
    if choices:
        return f"compadd -- {shlex.join(choices)}"
    of_kind = {"job": _zsh_ids(_jobs("$words[1]")), "host": _zsh_ids(_hosts("$words[1]"))}
    return {**of_kind, "dir": "_files -/", "file": "_files"}.get(kind, ":")


def _zsh_ids(ask: str) -> str:
    return f'compadd -- ${{(f)"$({ask})"}}'


def fish(top: Command, commands: Sequence[Command]) -> str:
    """For fish: as fleet.fish in its completions directory."""
    lines = ["# fish completion of fleet, made by `fleet completion fish`", "complete -c fleet -f"]
    lines += [
        f"complete -c fleet -n __fish_use_subcommand -a {command.name} -d {_fish_quoted(command.about)}"
        for command in commands
    ]
    lines += [_fish_option(option, "") for option in top.options]
    everywhere = {name for option in top.options for name in option.names}
    for command in commands:
        on = f" -n '__fish_seen_subcommand_from {command.name}'"
        lines += [_fish_option(o, on) for o in command.options if not everywhere.intersection(o.names)]
        for says in [f"-a {_fish_quoted(' '.join(command.choices))}"] if command.choices else []:
            lines.append(f"complete -c fleet{on} {says}")
        lines += [f"complete -c fleet{on} {_fish_says(kind)}" for kind in command.kinds if _fish_says(kind)]
    return "\n".join(lines) + "\n"


def _fish_option(option: Option, on: str) -> str:
    names = " ".join(f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in option.names)
    value = ""
    if option.takes_value:
        value = (
            f" -a {_fish_quoted(' '.join(option.choices))}" if option.choices else f" {_fish_says(option.kind or '')}"
        )
        value = f" {'-r' if option.kind == 'file' else '-x'}{value}".rstrip()
    return f"complete -c fleet{on} {names}{value} -d {_fish_quoted(option.about)}"


def _fish_says(kind: str) -> str:
    ids = {"job": _jobs("fleet"), "host": _hosts("fleet")}
    if kind in ids:
        return f"-a {_fish_quoted(f'({ids[kind]})')}"
    return {"dir": "-a '(__fish_complete_directories)'", "file": "-F"}.get(kind, "")


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SHELLS: dict[str, Callable[[Command, Sequence[Command]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
