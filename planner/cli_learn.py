"""What a job of a round that makes a net does: becomes the plan's command, with its braces filled in."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from fleetd import BadData, BadSettings, CannotCreate, NotFound, Talk, Usage, encode_json, find_program
from planner.net_round import Lesson, decode_lesson

REWARDS = "rewards.json"
FEEDBACK = "feedback.json"
RIVALS = "{rivals}"  # a word of its own: it becomes none or many


def learn(payload: Mapping[str, Any], root: Path, talk: Talk) -> NoReturn:
    """Become the lesson's command; its stop, its result and its exit code are then its own."""
    lesson = decode_lesson(payload)
    out = talk.environ.get("FLEET_OUT")
    if not out:
        raise Usage("FLEET_OUT is not set: `fleet-plan read` is what a round's job runs")
    command = learn_command(lesson, root, Path(out), talk)
    talk.say(f"{lesson.title}: {' '.join(command)}")
    os.execve(command[0], command, dict(talk.environ))  # noqa: S606 - the plan's command takes this process over


def learn_command(lesson: Lesson, root: Path, out: Path, talk: Talk) -> list[str]:
    """The argv, its program found and its braces filled in; writes the files of rewards and feedback.

    Raises NotFound, BadData for a best that is not the one named, BadSettings for a word that nothing stands for.
    """
    build = talk.environ.get("FLEET_BUILD", "")
    known = {"{seed}": str(lesson.seed), "{build}": build}
    known |= {"{rewards}": str(out / REWARDS), "{feedback}": str(out / FEEDBACK)}
    if lesson.best:
        known["{best}"] = lesson.best.found_in(root).net
    if any("{rewards}" in word for word in lesson.command):
        _write(out / REWARDS, dict(lesson.rewards))
    if any("{feedback}" in word for word in lesson.command):
        _write(out / FEEDBACK, [opinion.told for opinion in lesson.opinions])
    words: list[str] = []
    for word in lesson.command:
        words += _rivals(lesson, root, talk) if word == RIVALS else [_filled(word, known)]
    return [find_program(words[0], talk.environ), *words[1:]]


def _rivals(lesson: Lesson, root: Path, talk: Talk) -> list[str]:
    """The files of the nets of before; one that is not there any more, or not that net, is left out with a word."""
    found = []
    for rival in lesson.rivals:
        try:
            found.append(rival.found_in(root).net)
        except (NotFound, BadData) as error:
            talk.say(f"a rival is left out: {error}")
    return found


def _filled(word: str, known: Mapping[str, str]) -> str:
    for name in ("{best}", "{seed}", "{rewards}", "{feedback}", "{build}"):
        if name in word and not known.get(name):
            raise BadSettings(f"the command names {name}, and there is none: {word!r}")
        word = word.replace(name, known.get(name, ""))
    return word


def _write(path: Path, told: Any) -> None:
    try:
        path.write_bytes(encode_json(told) + b"\n")
    except OSError as error:
        raise CannotCreate(f"{path}: {error.strerror}") from error
