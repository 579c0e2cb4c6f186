"""treadcore bench: what it tells people and programs, and its stop."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from planner.cli_tread_bench import Asked, fewer_is_faster, result, table
from planner.train.race import Pace, race
from planner.train.settings import Settings

from .test_tread_train import COMMAND, ROOT, environ, grandchildren, run
from .train.worlds import Odd

FAST = {1: Pace([1000.0, 500.0, 2000.0]), 2: Pace([1500.0, 760.0, 3100.0])}
ASKED = {"envs": 16, "chunks": 16, "settings": Settings(), "kernel": "numpy", "why": "2 shards: why not"}


def asked(shards=2):
    return Asked(**ASKED, shards=shards)


def test_a_ratio_is_taken_round_by_round():
    assert FAST[2].ratio(FAST[1]) == 1.52
    assert FAST[2].middle / FAST[1].middle == 1.5
    assert FAST[1].spread == 375


def test_the_table_names_the_choice_and_what_has_no_work():
    title, one, two, three, *_ = table(asked(), FAST)
    assert "3 rounds" in title
    assert one.split() == ["1", "1.0", "±", "0.4", "1"]
    assert two.split() == ["2", "1.5", "±", "0.6", "1.52", "±", "0.01", "chosen", "here"]
    assert three.strip() == "3   no work for so many: 16 envs, 16 chunks in a minibatch"


def test_fewer_shards_that_did_more_are_said_and_only_beyond_the_spread():
    slow = {1: FAST[2], 2: FAST[1]}
    assert fewer_is_faster(asked(), slow).startswith("1 shard did × 1.52 of that")
    assert fewer_is_faster(asked(), FAST) is None
    assert fewer_is_faster(asked(), {1: FAST[1], 2: FAST[1]}) is None
    assert fewer_is_faster(asked(shards=1), FAST) is None


def test_before_the_first_round_there_is_nothing_to_tell():
    none = {1: Pace(), 2: Pace()}
    assert table(asked(), none) == ["no round was whole"]
    assert fewer_is_faster(asked(), none) is None
    assert set(result(asked(), none)["ticks_per_s"].values()) == {None}


def test_each_count_has_its_turn_in_every_round_and_a_round_cut_off_is_not_counted():
    settings = Settings(steps=8, hidden=(4,), minibatches=1)
    whole = race(Odd(envs=16), settings, (1, 2), rounds=4, limit_s=60, told=lambda *_: False)
    assert [len(pace.speeds) for pace in whole.values()] == [4, 4]
    cut = race(Odd(envs=16), settings, (1, 2), rounds=4, limit_s=60, told=lambda rounds, _: rounds == 2)
    assert [len(pace.speeds) for pace in cut.values()] == [2, 2]
    short = race(Odd(envs=16), settings, (1,), rounds=9, limit_s=0, told=lambda *_: False)
    assert len(short[1].speeds) == 3


def test_bench_tells_each_count_of_shards_and_the_choice():
    told = run("bench", "--json", "--envs", 8, "--kernel", "numpy")
    assert told["ticks_per_s"].keys() == {"1", "2", "3", "4", "8"}
    assert told["ticks_per_s"]["1"] > 0
    assert (told["ticks_per_s"]["2"], told["shards"], told["to_one"]["1"]) == (None, 1, 1.0)
    assert told["why"].startswith("1 shard")
    assert (told["envs"], told["minibatches"], told["hidden"]) == (8, 4, [64, 64])


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the worker in /proc")
def test_ctrl_c_while_the_shards_start_is_a_stop_and_nothing_else():
    command, pipe = [*COMMAND, "bench", "--kernel", "numpy"], subprocess.PIPE
    with subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, cwd=ROOT, env=environ(), process_group=0
    ) as process:
        limit = time.monotonic() + 60
        while not grandchildren(process.pid) and time.monotonic() < limit:
            time.sleep(0.005)
        os.killpg(process.pid, signal.SIGINT)
        out, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert out.startswith("no round was whole\ntrain would choose "), said
    assert "shard-1" not in said
