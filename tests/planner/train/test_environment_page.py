"""The environment's page says what the environment is."""

import re
from pathlib import Path

import pytest

from planner.arena.observe import OBSERVATION
from planner.arena.rules import DUEL_LIMIT, RULES, THINK
from planner.brain.weights import BEHAVIOURS
from planner.train.duel import VERSION
from planner.train.pool import SEEDS
from planner.train.rewards import DEFAULT, MEANINGS

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "duel-environment.md").read_text()


def row(*cells):
    return "| " + " | ".join(cell if isinstance(cell, str) else str(cell).replace("-", "−") for cell in cells) + " |"


def test_every_number_that_is_seen_is_in_its_place_with_its_bounds():
    rows = [row(i, f"`{o.name}`", o.meaning, o.low, o.high) for i, o in enumerate(OBSERVATION)]
    assert "\n".join(rows) in PAGE


def test_every_action_is_in_its_place():
    assert "\n".join(row(i, f"`{name}`", does) for i, (name, does) in enumerate(BEHAVIOURS.items())) in PAGE


def test_every_reward_term_is_there_with_its_weight():
    assert "\n".join(row(f"`{t}`", says, f"{DEFAULT[t]:g}".replace("-", "−")) for t, says in MEANINGS.items()) in PAGE


@pytest.mark.parametrize(
    "said",
    [
        f"version {VERSION}\n",
        f"under rules {RULES} of",
        f"at most {DUEL_LIMIT // THINK} steps",
        f"{SEEDS.start:,} to {SEEDS.stop - 1:,}",
        f"`Box({len(OBSERVATION)})`",
        f"`Discrete({len(BEHAVIOURS)})`",
    ],
)
def test_its_numbers_are_the_environments(said):
    assert said in PAGE


def test_what_it_names_of_the_code_is_there():
    assert {m for m in re.findall(r"planner/[\w/]+\.py", PAGE) if not (Path(__file__).parents[3] / m).exists()} == set()
