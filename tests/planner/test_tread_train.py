"""treadcore train, clone's neighbours and judge as a user and a job meet them: real processes, real files."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from planner.arena.observe import OBS
from planner.brain.decide import HEADS
from planner.brain.net import Net, load_net, save_net
from planner.brain.shape import Shape, param_count

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "planner.treadcore"]
SMALL = ("train", "--envs", "16", "--kernel", "numpy")  # an iteration is 2048 ticks
JOB = ("FLEET_OUT", "FLEET_RESULT", "FLEET_PREVIOUS", "FLEET_CORES")


def environ(**more):
    return {k: v for k, v in os.environ.items() if k not in JOB} | {k: str(v) for k, v in more.items()}


def run(*arguments, code=0, **more):
    command = [*COMMAND, *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=environ(**more), timeout=90, check=False
    )
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout.splitlines()[-1]) if code == 0 else done.stderr


def iterations(out):
    return [json.loads(line)["iteration"] for line in (out / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """What five iterations on one shard come to."""
    return run(*SMALL, "--ticks", 5 * 2048, "--shards", 1, "--out", tmp_path_factory.mktemp("unbroken"))


def chance_net(path, obs=OBS):
    shape = Shape(obs=obs, heads=HEADS, hidden=(8,))
    flat = np.random.default_rng(1).normal(0, 1, param_count(shape)).astype(np.float32)
    return save_net(path, Net(shape=shape, flat=flat))


def test_what_train_tells_is_so(unbroken):
    net = Path(unbroken["net"])
    assert sha256(net.read_bytes()).hexdigest() == unbroken["sha256"]
    assert (unbroken["ticks"], unbroken["shards"], unbroken["why"]) == (5 * 2048, 1, "1 shard: 1 asked for")
    assert unbroken["ticks_per_s"] > 0
    assert sorted(p.name for p in net.parent.iterdir()) == ["metrics.jsonl", "train.net"]
    assert iterations(net.parent) == [1, 2, 3, 4, 5]
    assert load_net(net, obs=OBS, heads=HEADS).notes["settings"]["seed"] == 1


def test_a_stopped_run_goes_on_to_the_same_net(unbroken, tmp_path):
    command = [*COMMAND, *SMALL, "--ticks", str(5 * 2048), "--out", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=ROOT, env=environ()) as process:
        limit = time.monotonic() + 60
        while not ((tmp_path / "metrics.jsonl").exists() and iterations(tmp_path)) and time.monotonic() < limit:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    assert "an unfinished run is there: --resume goes on with it" in run(*SMALL, "--out", tmp_path, code=73)
    assert run(*SMALL, "--ticks", 5 * 2048, "--out", tmp_path, "--resume")["sha256"] == unbroken["sha256"]
    assert iterations(tmp_path) == [1, 2, 3, 4, 5]


def test_a_job_goes_on_from_its_last_attempt_and_names_its_net_from_its_directory(unbroken, tmp_path):
    first, second = tmp_path / "1", tmp_path / "2"
    command = [*COMMAND, *SMALL, "--ticks", str(5 * 2048)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=ROOT, env=environ(FLEET_OUT=first)) as process:
        limit = time.monotonic() + 60
        while not ((first / "metrics.jsonl").exists() and iterations(first)) and time.monotonic() < limit:
            time.sleep(0.01)
        process.terminate()
        assert process.wait(30) == 143
    second.mkdir()
    result = second / "result.json"
    told = run(*SMALL, "--ticks", 5 * 2048, FLEET_OUT=second, FLEET_PREVIOUS=first, FLEET_RESULT=result, FLEET_CORES=1)
    row = json.loads(result.read_text())
    assert (row["net"], told["net"]) == ("train.net", str(second / "train.net"))
    assert (row["sha256"], row["shards"]) == (unbroken["sha256"], 1)
    assert iterations(second) == [1, 2, 3, 4, 5]


def test_a_net_that_could_not_be_told_of_is_not_trained_again(unbroken, tmp_path):
    first, second, ask = tmp_path / "1", tmp_path / "2", (*SMALL, "--ticks", 5 * 2048)
    said = run(*ask, FLEET_OUT=first, FLEET_RESULT=tmp_path / "none" / "result.json", code=74)
    assert "the result cannot be written" in said
    told = run(*ask, FLEET_OUT=second, FLEET_PREVIOUS=first)
    assert (told["sha256"], told["score"]) == (unbroken["sha256"], unbroken["score"])
    assert told["ticks_per_s"] == 0, "all of it was done before"


def test_a_job_whose_last_attempt_left_a_damaged_checkpoint_begins_again(unbroken, tmp_path):
    first = tmp_path / "1"
    first.mkdir()
    (first / "train.checkpoint").write_bytes(b'{"schema": "treadcore.checkpoint/1", "bytes": 9')
    told = run(*SMALL, "--ticks", 5 * 2048, FLEET_OUT=tmp_path / "2", FLEET_PREVIOUS=first)
    assert told["sha256"] == unbroken["sha256"]
    assert "cut short in its header" in run(*SMALL, "--out", first, "--resume", code=65), "a person is told"


def test_one_training_at_a_time_in_a_directory(at_work, tmp_path):
    said = run(*SMALL, "--out", tmp_path, "--resume", code=75)
    assert f"{tmp_path}: another training is at work there" in said


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the worker in /proc")
def test_a_run_whose_worker_was_killed_goes_on_to_the_same_net(tmp_path):
    if run("cores")["cores"] < 2:
        pytest.skip("two shards take two cores")
    ask, out = (*SMALL, "--ticks", str(24 * 2048)), tmp_path / "killed"
    command = [*COMMAND, *ask, "--shards", "2", "--out", str(out)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=ROOT, env=environ()) as process:
        limit = time.monotonic() + 60
        while not (out / "train.checkpoint").exists() and time.monotonic() < limit:
            time.sleep(0.005)
        os.kill(grandchildren(process.pid)[0], signal.SIGKILL)
        assert process.wait(30) == 75
    resumed = run(*ask, "--out", out, "--resume", "--shards", 1)
    assert resumed["sha256"] == run(*ask, "--out", tmp_path / "whole", "--shards", 1)["sha256"]
    assert iterations(out) == list(range(1, 25))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the worker in /proc")
def test_a_worker_killed_before_the_first_checkpoint_says_that_there_is_none(tmp_path):
    command = [*COMMAND, "train", "--kernel", "numpy", "--envs", "4096", "--shards", "2", "--out", str(tmp_path)]
    if run("cores")["cores"] < 2:
        pytest.skip("two shards take two cores")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environ()) as process:
        limit = time.monotonic() + 60
        while not (found := grandchildren(process.pid)) and time.monotonic() < limit:
            time.sleep(0.01)
        os.kill(found[0], signal.SIGKILL)
        said = process.communicate(timeout=30)[1]
    assert process.returncode == 75, said
    assert "was ended by SIGKILL; there was no checkpoint yet: the run has to begin again" in said


def alive_in(group):
    """Processes of the group that are no zombies."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, pgid = path.read_text().rpartition(")")[2].split()[:3]
            found += [path.parent.name] if int(pgid) == group and state != "Z" else []
    return found


@pytest.fixture
def at_work(tmp_path):
    """A run on two shards in a process group of its own, with a checkpoint."""
    if run("cores")["cores"] < 2:
        pytest.skip("two shards take two cores")
    command = [*COMMAND, *SMALL, "--out", str(tmp_path), "--shards", "2"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, cwd=ROOT, env=environ(), process_group=0
    ) as process:
        limit = time.monotonic() + 60
        while not (tmp_path / "train.checkpoint").exists() and time.monotonic() < limit:
            time.sleep(0.01)
        yield process
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def children(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def grandchildren(pid):
    return [below for child in children(pid) for below in children(child)]


def test_sigterm_to_the_whole_group_is_a_stop_and_nothing_else(at_work):
    os.killpg(at_work.pid, signal.SIGTERM)
    said = at_work.communicate(timeout=30)[1]
    assert at_work.returncode == 143, said
    assert "--resume --out" in said


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the worker in /proc")
def test_a_killed_worker_ends_the_run_and_is_named(at_work):
    (worker,) = grandchildren(at_work.pid)
    os.kill(worker, signal.SIGKILL)
    said = at_work.communicate(timeout=30)[1]
    assert at_work.returncode == 75, said
    assert f"shard-1 (pid {worker}) was ended by SIGKILL; the last checkpoint stands: --resume --out" in said
    limit = time.monotonic() + 10
    while alive_in(at_work.pid) and time.monotonic() < limit:
        time.sleep(0.05)
    assert alive_in(at_work.pid) == []


def test_a_run_begins_with_the_net_that_it_is_given(tmp_path):
    hash_ = chance_net(tmp_path / "a.net")
    told = run(*SMALL, "--ticks", 1, "--from", tmp_path / "a.net", "--out", tmp_path / "out")
    net = load_net(Path(told["net"]))
    assert (net.shape.hidden, net.notes["from"]) == ((8,), hash_)


def test_rewards_change_what_is_learned(unbroken, tmp_path):
    (tmp_path / "rewards.json").write_text('{"damage_dealt": 2.0, "loss": 0}')
    told = run(*SMALL, "--ticks", 5 * 2048, "--rewards", tmp_path / "rewards.json", "--out", tmp_path)
    assert told["sha256"] != unbroken["sha256"]
    assert load_net(Path(told["net"])).notes["rewards"] == {"damage_dealt": 2.0, "loss": 0}


def test_feedback_changes_what_is_learned_by_the_weight_of_its_terms(tmp_path):
    (tmp_path / "said.json").write_text('[{"sign": "+", "text": "dodge", "variable": null, "from": null, "to": null}]')
    (tmp_path / "rewards.json").write_text('{"feedback.positive": 2}')
    ask, said = (*SMALL, "--ticks", 3 * 2048), ("--feedback", tmp_path / "said.json")
    unheard = run(*ask, *said, "--out", tmp_path / "a")
    plain, told = (
        run(*ask, *more, "--rewards", tmp_path / "rewards.json", "--out", tmp_path / out)
        for out, more in (("b", ()), ("c", said))
    )
    flats = [load_net(Path(net["net"])).flat.tobytes() for net in (unheard, plain, told)]
    assert flats[0] == flats[1] != flats[2]
    assert load_net(Path(told["net"])).notes["liked"] == {"dodge": 0.5}


def test_bad_feedback_is_told(tmp_path):
    (tmp_path / "said.json").write_text('[{"sign": "?"}]')
    assert "said.json: a sign is + or -" in run(*SMALL, "--feedback", tmp_path / "said.json", code=65)
    assert "cannot be read" in run(*SMALL, "--feedback", tmp_path / "none.json", code=66)


def test_rivals_change_what_is_learned_and_are_noted_with_their_shares(unbroken, tmp_path):
    hash_ = chance_net(tmp_path / "a=1.net")
    rivals = ("--rivals", tmp_path / "a=1.net", f"{tmp_path / 'a=1.net'}=3")
    told = run(*SMALL, "--ticks", 5 * 2048, *rivals, "--out", tmp_path / "out")
    assert told["sha256"] != unbroken["sha256"]
    assert load_net(Path(told["net"])).notes["rivals"] == [[hash_, 1], [hash_, 3]]


def test_no_rivals_at_all_may_be_named(unbroken, tmp_path):
    assert run(*SMALL, "--ticks", 5 * 2048, "--out", tmp_path, "--rivals")["sha256"] == unbroken["sha256"]


def test_a_run_goes_on_with_the_same_rivals_wherever_they_lie_and_with_no_others(tmp_path):
    for name in ("a", "b"):
        chance_net(tmp_path / f"{name}.net")
    ask = (*SMALL, "--ticks", 3 * 2048)
    whole = run(*ask, "--rivals", tmp_path / "a.net", "--out", tmp_path / "whole")
    out = tmp_path / "out"
    command = [*COMMAND, *map(str, ask), "--rivals", str(tmp_path / "a.net"), "--out", str(out)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=ROOT, env=environ()) as process:
        limit = time.monotonic() + 60
        while not ((out / "metrics.jsonl").exists() and iterations(out)) and time.monotonic() < limit:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    assert "of another run" in run(*ask, "--out", out, "--resume", code=65)
    assert "of another run" in run(*ask, "--rivals", f"{tmp_path / 'a.net'}=2", "--out", out, "--resume", code=65)
    assert run(*ask, "--rivals", tmp_path / "b.net", "--out", out, "--resume")["sha256"] == whole["sha256"]


def test_rivals_that_cannot_be_played_are_told(tmp_path):
    chance_net(tmp_path / "other.net", obs=7)
    assert "of another shape" in run(*SMALL, "--rivals", tmp_path / "other.net", code=65)
    assert "--rivals none.net=0: there is no file none.net=0" in run(*SMALL, "--rivals", "none.net=0", code=66)


def test_fewer_envs_than_shards_are_told(tmp_path):
    told = run("train", "--kernel", "numpy", "--envs", 8, "--shards", 9, "--ticks", 1, "--out", tmp_path)
    assert told["shards"] == 1
    assert told["why"].startswith("1 shard: 9 asked for; ")
    assert told["why"].endswith("8 envs, 8 at least to a shard")


def test_more_shards_than_cores_are_told(tmp_path):
    told = run(*SMALL, "--shards", 2, "--ticks", 1, "--out", tmp_path, FLEET_CORES=1)
    assert told["shards"] == 1
    assert re.fullmatch(r"1 shard: (2 asked for; .*1 by FLEET_CORES|2 asked for; 1 in the machine)", told["why"])


def test_a_checkpoint_cut_short_is_told(tmp_path):
    (tmp_path / "train.checkpoint").write_bytes(b'{"schema": "treadcore.che')
    said = run(*SMALL, "--out", tmp_path, "--resume", code=65)
    assert f"{tmp_path / 'train.checkpoint'}: no checkpoint, or one cut short in its header" in said


BAD_REWARDS = {
    "no such reward term: 'wins'": '{"wins": 1}',
    "'win' is not a number from -64 to 64": '{"win": 1e9}',
    "no JSON": '{"win": NaN}',
    "no JSON object": "[1]",
}


@pytest.mark.parametrize("said", BAD_REWARDS)
def test_bad_rewards_are_told(tmp_path, said):
    path = tmp_path / "rewards.json"
    path.write_text(BAD_REWARDS[said])
    told = run(*SMALL, "--rewards", path, "--out", tmp_path, code=65)
    assert f"--rewards {path}: " in told
    assert said in told


def test_what_cannot_be_begun_with_is_told(tmp_path):
    chance_net(tmp_path / "other.net", obs=7)
    assert "of another shape: it sees 7 numbers" in run(*SMALL, "--from", tmp_path / "other.net", code=65)
    assert "there is no such file" in run(*SMALL, "--from", tmp_path / "none.net", code=66)
    (tmp_path / "cut.net").write_bytes((tmp_path / "other.net").read_bytes()[:-9])
    assert "not a whole net" in run(*SMALL, "--from", tmp_path / "cut.net", code=65)


def test_a_directory_that_cannot_be_written_to_is_told_at_once(tmp_path):
    (tmp_path / "file").touch()
    assert "there is a file of that name" in run("clone", "--out", tmp_path / "file", code=73)
    assert "nothing can be written there" in run(*SMALL, "--out", tmp_path / "file" / "below", code=73)


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "--shards", "0"), ("train", "--shards", "x"), ("train", "--envs", "0"), ("train", "--ticks", "-1"),
        ("train", "--res"), ("judge", "--candidate", "scripted", "--best", "scripted"),
        ("judge", "--candidate", "scripted", "--best", "scripted", "--seeds", "5:5"),
        ("judge", "--candidate", "scripted", "--best", "scripted", "--seeds", "x"),
        ("judge", "--candidate", "scripted", "--best", "scripted", "--seeds", "1499999999:1500000001"),
    ],
)  # fmt: skip
def test_wrong_usage_is_exit_2(arguments):
    assert "usage:" in run(*arguments, code=2)


def judged(candidate, best, seeds="1000000000:1000000012", seconds=40):
    return run("judge", "--candidate", candidate, "--best", best, "--seeds", seeds, "--seconds", seconds)


def test_a_player_beside_itself_changes_no_seed():
    told = judged("scripted", "scripted", seeds="5:8")
    assert (told["mean"], told["se"], told["n"], told["verdict"]) == (0, 0, 3, "keep")
    assert told["reason"] == "no seed changed"
    assert told["best"]["score"] == 0.5, "on both sides of the map the reference is its own equal"


def test_a_net_of_chance_is_past_the_gate_the_other_way_round(tmp_path):
    hash_ = chance_net(tmp_path / "a.net")
    lost, won = judged(tmp_path / "a.net", "scripted"), judged("scripted", tmp_path / "a.net")
    assert (lost["verdict"], won["verdict"]) == ("keep", "adopt")
    assert won["mean"] == -lost["mean"] > 0
    assert won["t_interval"][0] < won["mean"] < won["t_interval"][1]
    assert (lost["candidate"]["sha256"], lost["n"]) == (hash_, 12)


def test_weights_in_a_file_are_a_player(tmp_path):
    weights = tmp_path / "weights.json"
    weights.write_text('{"schema": "fleet.best/1", "weights": {"dodge.shell": -4.0}}')
    assert judged(weights, "scripted")["mean"] != 0
    weights.write_text('{"dodge.shel": 1}')
    assert "no such weight" in run("judge", "--candidate", weights, "--best", "scripted", "--seeds", "1:2", code=65)


def test_a_judge_refuses_what_is_no_player(tmp_path):
    chance_net(tmp_path / "a.net")
    (tmp_path / "cut.net").write_bytes((tmp_path / "a.net").read_bytes()[:-4])
    ask = ("judge", "--best", "scripted", "--seeds", "1:2", "--candidate")
    assert "not a whole net" in run(*ask, tmp_path / "cut.net", code=65)
    assert "no net, no weights" in run(*ask, tmp_path / "none", code=66)


def test_cores_are_told_with_the_reason():
    told = run("cores")
    assert told.keys() == {"cores", "why", "machine"}
    assert 1 <= told["cores"] <= told["machine"]
    assert run("cores", FLEET_CORES=1)["cores"] == 1
    assert run("cores", FLEET_CORES=9999)["cores"] == told["cores"]
    assert "FLEET_CORES is no whole number" in run("cores", code=2, FLEET_CORES="two")
