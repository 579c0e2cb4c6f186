"""The `treadcore` command as a user and the planner meet it: real processes, real pipes."""

import json
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from planner.arena.observe import OBS
from planner.arena.rules import RULES
from planner.brain.decide import HEADS
from planner.brain.net import Net, save_net
from planner.brain.shape import Shape, param_count

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "planner.treadcore"]


def run(*arguments, given=""):
    stdin = given if isinstance(given, bytes) else given.encode()
    return subprocess.run([*COMMAND, *arguments], input=stdin, capture_output=True, cwd=ROOT, timeout=60, check=False)


@pytest.fixture(scope="module")
def weights():
    told = json.loads(run("weights", "--json").stdout)
    return {v["name"]: v["start"] for v in told["variables"]}


def ask(weights, **other):
    return {"id": 0, "player": {"weights": weights}, "seed": 7, "seconds": 30} | other


def census(*asks):
    """Answers by place in `asks`, which are objects or raw lines."""
    lines = [a if isinstance(a, bytes) else json.dumps(a).encode() for a in asks]
    done = run("census", given=b"\n".join(lines) + b"\n")
    assert (done.returncode, done.stderr) == (0, b"")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_play_is_answered_once(weights):
    answers = census(*(ask(weights, id=i, seed=i % 3, seconds=20 + i % 2) for i in range(70)))
    assert sorted(a["id"] for a in answers) == list(range(70))
    assert all(0 <= a["score"] <= 1 for a in answers)
    assert {a["rules"] for a in answers} == {RULES}


def test_the_same_play_gets_the_same_score_in_any_company(weights):
    other = {**weights, "flank.bias": weights["flank.bias"] + 1}
    asks = [ask(w, id=f"{s}{n}", seed=s) for s in range(5) for n, w in (("a", weights), ("b", other))]
    together = {a["id"]: a for a in census(*asks)}
    alone = {a["id"]: a for one in asks[:4] for a in census(one)}
    assert {i: together[i] for i in alone} == alone
    assert {a["id"]: a for a in census(*asks[::-1])} == together


def test_keys_of_the_askers_own_come_back(weights):
    (answer,) = census(ask(weights, id="x", tag={"pair": 3}))
    assert (answer["id"], answer["tag"]) == ("x", {"pair": 3})
    assert "player" not in answer


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    """A player that is a net of chance."""
    shape = Shape(obs=OBS, heads=HEADS, hidden=(16,))
    flat = np.random.default_rng(4).normal(0, 1, param_count(shape)).astype(np.float32)
    path = tmp_path_factory.mktemp("nets") / "a.net"
    return {"net": str(path), "sha256": save_net(path, Net(shape=shape, flat=flat))}


def test_a_net_gets_the_same_score_in_any_company(weights, net):
    asks = [ask(None, id=i, seed=i // 2, player=net if i % 2 else {"weights": weights}) for i in range(12)]
    together = {a["id"]: a for a in census(*asks)}
    assert all(a["won"] + a["lost"] + a["drawn"] for a in together.values())
    assert {a["id"]: a for one in asks[:4] for a in census(one)} == {i: together[i] for i in range(4)}
    assert {a["id"]: a for a in census(*asks[::-1])} == together


def test_a_net_that_is_not_the_plays_does_not_play(weights, net):
    other = {**net, "sha256": "0" * 64}
    wrong, right = census(ask(None, player=other), ask(None, id=1, player=net))
    assert f"another net: its SHA-256 is {net['sha256']}, not {'0' * 64}" in wrong["error"]
    assert "score" in right


def test_a_net_for_another_game_does_not_play(tmp_path):
    shape = Shape(obs=OBS + 1, heads=HEADS, hidden=(4,))
    sha256 = save_net(tmp_path / "b.net", Net(shape=shape, flat=np.zeros(param_count(shape), np.float32)))
    (answer,) = census(ask(None, player={"net": str(tmp_path / "b.net"), "sha256": sha256}))
    assert f"it sees {OBS + 1} numbers, and {OBS} are shown here" in answer["error"]


BAD_PLAYS = [
    ({"player": {"net": "/nowhere/a.net", "sha256": "00"}}, "no net can be read there"),
    ({"player": {"net": "/nowhere/a.net"}}, "a net is named by two texts"),
    ({"player": {"net": "a\0b", "sha256": "00"}}, "no file has such a name"),
    ({"player": {"weights": [1, 2]}}, 'no "weights" object'),
    ({"player": {"weights": {}}}, "110 of 110 weights missing"),
    ({"player": None}, "player is not an object"),
    ({"seed": -1}, "seed is not a whole number"),
    ({"seed": 2**63}, "seed is not a whole number"),
    ({"seed": 1.5}, "seed is not a whole number"),
    ({"seed": True}, "seed is not a whole number"),
    ({"seconds": 0}, "seconds is not a number over 0"),
    ({"seconds": "900"}, "seconds is not a number over 0"),
    ({"seconds": 1e300}, "seconds is not a number over 0"),
    ({"seconds": None}, "seconds is not a number over 0"),
]


@pytest.fixture(scope="module")
def refusals(weights):
    """Answers to BAD_PLAYS by their place, from a process that then plays a good one."""
    answers = census(*(ask(weights, id=i) | change for i, (change, _) in enumerate(BAD_PLAYS)), ask(weights, id="good"))
    assert "score" in answers[-1]
    return {a["id"]: a for a in answers}


@pytest.mark.parametrize("i", range(len(BAD_PLAYS)), ids=[str(change)[:40] for change, _ in BAD_PLAYS])
def test_a_bad_play_is_answered_by_its_id(refusals, i):
    assert refusals[i].keys() == {"id", "error"}
    assert BAD_PLAYS[i][1] in refusals[i]["error"]


def test_an_unknown_weight_is_named(weights):
    (answer,) = census(ask({**weights, "flank.enemy_helth": 0}))
    assert answer == {"id": 0, "error": "no such weight: 'flank.enemy_helth' (treadcore weights lists them)"}


NO_PLAYS = [
    b"garbage", b"[1, 2]", b"7", b"null", b'"x"', b"{", b"\xff\xfe\x00", b"\x00" * 100, b"[" * 200_000,
    b'{"seed": 1}', b'{"id": 0, "seed": NaN}', b"9" * 5000, b'{"id": 0, "x": "' + b"y" * 2_000_000 + b'"}',
]  # fmt: skip


def test_lines_that_ask_for_nothing_bring_nothing_down(weights):
    *bad, good = census(*NO_PLAYS, ask(weights, id=5))
    assert [a["id"] for a in bad] == [None] * len(NO_PLAYS)
    assert all(a["error"] for a in bad)
    assert (good["id"], "score" in good) == (5, True)


def test_blank_lines_and_a_missing_last_newline_are_nothing(weights):
    done = run("census", given="\n\n" + json.dumps(ask(weights)))
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [0]


def test_no_input_is_no_answers():
    done = run("census")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_play_is_answered_while_the_input_stays_open(weights):
    with subprocess.Popen([*COMMAND, "census"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        for i in range(3):
            process.stdin.write(json.dumps(ask(weights, id=i)).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == i
        process.stdin.close()
        assert process.wait(timeout=20) == 0


def started():
    pipe = subprocess.PIPE
    return subprocess.Popen([*COMMAND, "census"], stdin=pipe, stdout=pipe, stderr=pipe, cwd=ROOT)


def test_a_reader_that_goes_away_ends_it_without_a_word():
    with started() as process:
        process.stdout.close()
        process.stdin.write(b"an answer to this cannot be written\n")
        process.stdin.flush()  # and the input stays open
        assert process.wait(timeout=20) == 0
        assert process.stderr.read() == b""


def test_an_interrupt_while_it_waits_for_input_is_no_traceback():
    with started() as process:
        process.stdin.write(b"x\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
        assert process.stderr.read() == b""


def test_the_weights_are_a_space_of_110_variables(weights):
    space = tomllib.loads(run("weights").stdout.decode())
    names = [v["name"] for v in space["variable"]]
    assert len(names) == len(set(names)) == 110
    assert dict(zip(names, (v["start"] for v in space["variable"]), strict=True)) == weights
    for v in space["variable"]:
        assert v.keys() == {"name", "start", "low", "high", "step", "type", "group"}
        assert v["low"] <= v["start"] <= v["high"]
        assert (v["step"] > 0, v["type"], v["group"]) == (True, "float", "weight")


def test_a_replay_tells_the_score_that_the_census_gives(weights):
    (answer,) = census(ask(weights, seed=11, seconds=120))
    told = run("replay", "11", "--seconds", "120").stdout.decode()
    assert f"score {answer['score']:.3f}" in told.splitlines()[0]
    lines = told.split("did most\n")[1].splitlines()
    assert sum(" player " in line for line in lines) == answer["won"]
    assert sum(" reference " in line for line in lines) == answer["lost"]
    assert sum(" drawn " in line for line in lines) == answer["drawn"]


def test_a_replay_of_what_was_adopted_is_another_play_and_tells_its_score(weights, tmp_path):
    """As `fleet-plan best --json` prints it, or bare weights."""
    timid = weights | {"flank.enemy_health": -2.0, "charge.bias": 2.0}
    (answer,) = census(ask(timid, seed=11, seconds=120))
    best, bare = tmp_path / "best.json", tmp_path / "bare.json"
    best.write_text(
        json.dumps({"schema": "fleet.best/1", "weights": timid, "net": None, "defaults": "x", "adoptions": 1})
    )
    bare.write_text(json.dumps(timid))
    play = ["replay", "11", "--seconds", "120"]
    told = [run(*play, "--player", str(path)).stdout for path in (best, bare)]
    assert told[0] == told[1] != run(*play).stdout == run(*play, "--player", "scripted").stdout
    assert f"score {answer['score']:.3f}" in told[0].decode().splitlines()[0]


def test_a_replay_of_a_net_tells_the_score_that_the_census_gives(net):
    (answer,) = census(ask(None, player=net, seed=5))
    told = json.loads(run("--json", "replay", "5", "--seconds", "30", "--player", net["net"]).stdout)
    assert told["score"] == answer["score"]


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [(None, 66, "no net, no weights"), ("[1", 65, "p.json"), ('{"weights": {"no.such": 1}}', 65, "no.such")],
)
def test_a_player_that_is_none_is_an_error_that_names_the_file(tmp_path, content, code, said):
    path = tmp_path / "p.json"
    if content is not None:
        path.write_text(content)
    done = run("replay", "5", "--player", str(path))
    assert (done.returncode, str(path) in done.stderr.decode(), said in done.stderr.decode()) == (code, True, True)


def test_a_replay_as_json_is_the_play_that_the_text_tells():
    told = run("replay", "11", "--seconds", "120").stdout.decode().split("did most\n")[1].splitlines()
    play = json.loads(run("--json", "replay", "11", "--seconds", "120").stdout)
    assert (play["schema"], play["seed"], play["seconds"]) == ("treadcore.replay/1", 11, 120)
    assert [duel["won_by"] for duel in play["duels"]] == [line[22:32].strip() for line in told]
    assert play["won"] == sum(duel["won_by"] == "player" for duel in play["duels"])
    assert all(hits <= shots for d in play["duels"] for hits, shots in zip(d["hits"], d["shots"], strict=True))


def test_a_replay_is_a_well_formed_picture_with_walls_ways_and_shots():
    picture = ET.fromstring(run("replay", "11", "--svg", "--seconds", "60").stdout)
    tags = [element.tag.rpartition("}")[2] for element in picture.iter()]
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    assert tags.count("rect") > 60
    assert tags.count("polyline") >= 2
    assert tags.count("line") > 3
    assert "".join(picture.itertext()).count("p power-up") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        (), ("nonsense",), ("census", "--kern", "numpy"), ("census", "--kernel", "abacus"), ("replay",),
        ("replay", "x"), ("replay", "-1"), ("replay", "1", "--seconds", "0"), ("replay", "1", "--seconds", "nan"),
        ("replay", "1", "--seconds", "x"),
    ],
)  # fmt: skip
def test_wrong_usage_is_exit_2_and_nothing_on_stdout(arguments):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"usage:" in done.stderr


def test_a_replay_is_drawn_or_told_as_json_not_both():
    done = run("replay", "1", "--json", "--svg")
    assert (done.returncode, done.stdout) == (2, b"")


def test_the_version_is_told():
    done = run("--version")
    assert (done.returncode, done.stdout.split()[0]) == (0, b"treadcore")
