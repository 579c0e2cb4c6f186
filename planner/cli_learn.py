"""What a job of a round that makes a net does: becomes the plan's command, with its best, seed and rewards filled in."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from fleetd import BadSettings, CannotCreate, Talk, Usage, encode_json, find_program
from planner.net_round import Lesson, decode_lesson

REWARDS = "rewards.json"


def learn(payload: Mapping[str, Any], root: Path, talk: Talk) -> NoReturn:
    """Become the lesson's command; its stop, its result and its exit code are then its own."""
    lesson = decode_lesson(payload)
    out = talk.environ.get("FLEET_OUT")
    if not out:
        raise Usage("FLEET_OUT is not set: `fleet-plan read` is what a round's job runs")
    command = learn_command(lesson, root, Path(out), talk.environ)
    talk.say(f"{lesson.title}: {' '.join(command)}")
    os.execve(command[0], command, dict(talk.environ))  # noqa: S606 - the plan's command takes this process over


def learn_command(lesson: Lesson, root: Path, out: Path, environ: Mapping[str, str]) -> list[str]:
    """The argv, its program found and {best}, {seed}, {rewards} and {build} filled in; writes the file of rewards.

    Raises NotFound, BadData for a best that is not the one named, BadSettings for a word that nothing stands for.
    """
    known = {"{seed}": str(lesson.seed), "{rewards}": str(out / REWARDS), "{build}": environ.get("FLEET_BUILD", "")}
    if lesson.best:
        known["{best}"] = lesson.best.found_in(root).net
    if any("{rewards}" in word for word in lesson.command):
        _write(out / REWARDS, lesson.rewards)
    words = [_filled(word, known) for word in lesson.command]
    return [find_program(words[0], environ), *words[1:]]


def _filled(word: str, known: Mapping[str, str]) -> str:
    for name in ("{best}", "{seed}", "{rewards}", "{build}"):
        if name in word and not known.get(name):
            raise BadSettings(f"the command names {name}, and there is none: {word!r}")
        word = word.replace(name, known.get(name, ""))
    return word


def _write(path: Path, rewards: Mapping[str, float]) -> None:
    try:
        path.write_bytes(encode_json(dict(rewards)) + b"\n")
    except OSError as error:
        raise CannotCreate(f"{path}: {error.strerror}") from error
