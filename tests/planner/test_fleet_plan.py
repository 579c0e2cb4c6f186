"""The command line of `fleet-plan`: what it prints, and its exit codes."""

import json
import os
import pty
import signal
import subprocess
import termios

import pytest

from planner.cli import build_parser
from planner.plan import read_plan
from planner.train.rewards import Rewards, check_rewards


def table(done):
    """The cells of the lines of a table, by the first cell."""
    return {line.split("  ")[0]: line for line in done.stdout.splitlines()}


@pytest.mark.parametrize("words", [["best"], ["next"], ["suggest"], ["log"], ["fill", "--dry-run"]])
def test_json_is_valid_and_alone_on_stdout(judged, words):
    done = judged.plan("--json", *words)
    values = [json.loads(line, parse_constant=pytest.fail) for line in done.stdout.splitlines()]
    assert values
    assert all(value["schema"].startswith("fleet.") for value in values)


@pytest.mark.parametrize("words", [["best"], ["next"], ["suggest"], ["log"], ["fill", "--dry-run"]])
def test_quiet_leaves_stderr_empty(judged, words):
    done = judged.plan("-q", *words)
    assert (done.stderr, bool(done.stdout)) == ("", True)


def test_best_is_the_contract(judged):
    said = json.loads(judged.plan("best", "--json").stdout)
    assert set(said) == {"schema", "weights", "net", "defaults", "adoptions", "plays"}
    assert (said["schema"], said["net"]) == ("fleet.best/1", None)
    assert said["adoptions"] == len(judged.rows("adopt")) >= 1
    assert said["weights"]["null"] == 0
    assert said["plays"] == sum(row.body["result"]["plays"] for row in judged.rows("result"))


def test_best_before_anything_was_tried_is_the_start(farm):
    said = json.loads(farm.plan("best", "--json").stdout)
    assert (said["weights"], said["adoptions"], said["plays"]) == ({"good": 0.0, "bad": 0.0, "null": 0.0}, 0, 0)


def test_next_shows_when_each_variable_was_last_read(judged):
    said = json.loads(judged.plan("next", "--json").stdout)
    assert [v["name"] for v in said["variables"]] == ["good", "good", "bad", "bad", "null", "null"]
    assert all(v["read_at"] and v["read"]["n"] == 20 for v in said["variables"] if v["trial"])
    assert said["next"][0]["variable"] in ("good", "bad", "null")


def test_at_bound_is_said(farm):
    farm.write_space("good", "null", low=0.0)
    lines = farm.plan("next").stdout.splitlines()
    assert [line.split()[:4] for line in lines if "at bound" in line] == [
        ["good", "0", "at", "bound"],
        ["null", "0", "at", "bound"],
    ]


@pytest.mark.parametrize("watch", [[], ["--watch"]])
def test_nothing_left_to_try_is_a_sentence_not_a_spin(farm, watch):
    farm.write_space("good", low=0.0, high=0.0)
    done = farm.plan("fill", *watch)
    assert "at its bounds" in done.stderr
    assert "nothing left to try" in farm.plan("next").stdout


def test_log_has_every_verdict_in_order(judged):
    lines = judged.plan("log").stdout.splitlines()
    assert len(lines) == len(judged.rows("keep", "adopt"))
    assert [line[:16] for line in lines] == sorted(line[:16] for line in lines)
    assert any("  adopt  " in line and "held-out +" in line for line in lines)


def test_suggest_shows_what_was_adopted_and_what_was_not(judged):
    lines = table(judged.plan("suggest", "--top", "20"))
    assert lines.pop("ID").split() == ["ID", "CHANGE", "SEARCH", "EXPECTED", "HELD-OUT", "ADVICE"]
    adopted = {row.body["trial"] for row in judged.rows("adopt")}
    assert {id_ for id_, line in lines.items() if line.endswith("adopted")} == adopted
    assert all(line.endswith("best stays") for line in lines.values() if "null" in line)
    said = [json.loads(line) for line in judged.plan("suggest", "--json", "--top", "20").stdout.splitlines()[:-1]]
    assert all("no seed of 20 changed, the best stays" in s["advice"] for s in said if s["variable"] == "null")


def test_what_is_read_and_not_judged_says_so_until_fill_has_looked(farm):
    farm.plan("fill", "--depth", "6")
    farm.run()
    done = farm.plan("suggest")
    assert {line.rpartition("–")[2].strip() for line in done.stdout.splitlines()[1:]} <= {
        "not judged yet",
        "held-out next",
    }
    assert "not judged yet: `fleet-plan fill` judges" in done.stderr
    advice = [json.loads(line)["advice"] for line in farm.plan("suggest", "--json").stdout.splitlines()[:-1]]
    assert any(line.startswith("not judged yet: fleet-plan fill judges; null 0 → ") for line in advice)
    farm.plan("fill", "--count", "0")
    after = farm.plan("suggest")
    assert "not judged yet" not in after.stdout + after.stderr


def on_a_terminal(farm, width, *words):
    """What the command shows on a terminal that wide, as lines."""
    keeper, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (50, width))
    environ = {k: v for k, v in farm.plan_environ().items() if k != "COLUMNS"} | {"NO_COLOR": "1"}
    with subprocess.Popen(farm.command(*words), env=environ, stdout=terminal, stderr=terminal):
        os.close(terminal)
        shown = b""
        while data := _read(keeper):
            shown += data
    os.close(keeper)
    return shown.decode().splitlines()


def _read(keeper):
    try:
        return os.read(keeper, 65536)
    except OSError:
        return b""


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("command", ["suggest", "next", "best", "log"])
def test_nothing_is_wider_than_the_terminal(judged, command, width):
    judged.write_space("good", "bad", "null", "circle.of_a_very_long_name_that_nobody_would_give")
    lines = on_a_terminal(judged, width, command)
    assert max(map(len, lines)) <= width
    if command == "log":
        assert sum("  keep   t" in line or "  adopt  t" in line for line in lines) == len(judged.rows("keep", "adopt"))


def test_on_a_narrow_terminal_names_are_cut_and_numbers_are_not(farm):
    name = "circle.of_a_very_long_name_that_nobody_would_give"
    farm.write_space(name, "null")
    farm.plan("fill", "--count", "2")
    farm.run()
    first, *_ = (line for line in on_a_terminal(farm, 70, "suggest") if " 0 → " in line)
    assert "circle.of_a" in first
    assert "… 0 → " in first
    trial = first.split()[0]
    assert farm.plan("fill", "--heldout", trial, "--count", "1").returncode == 0
    assert name in farm.plan("log").stdout


def kept(farm):
    """A trial that was read and kept out, against the best that stands."""
    farm.plan("fill", "--depth", "6")
    farm.run()
    farm.plan("fill", "--depth", "1")
    return next(row.body for row in farm.rows("keep") if row.body["variable"] == "null")


def test_adopting_without_held_out_reads_is_refused_with_the_command_that_gets_them(farm):
    trial = kept(farm)["trial"]
    done = farm.plan("adopt", trial[:6], ok=False)
    assert done.returncode == 1
    assert "no held-out reads" in done.stderr
    command = done.stderr.split("next: ")[1].split()
    assert command[:3] == ["fleet-plan", "fill", "--heldout"]
    farm.plan(*command[1:], "--count", "9")
    assert {job.payload["of"] for job in farm.jobs() if job.kind == "heldout" and job.payload["of"]} == {trial}


def test_held_out_reads_that_say_no_refuse_the_adoption(farm):
    trial = kept(farm)["trial"]
    farm.plan("fill", "--heldout", trial, "--count", "9")
    early = farm.plan("adopt", trial, ok=False)
    assert (early.returncode, "not all read yet" in early.stderr) == (1, True)
    farm.run()
    done = farm.plan("adopt", trial, ok=False)
    assert done.returncode == 1
    assert "no seed of 30 changed" in done.stderr
    assert not [row for row in farm.rows("adopt") if row.body["variable"] == "null"]


def test_held_out_reads_that_say_yes_are_adopted_once(farm):
    farm.write_space("good")
    farm.plan("fill", "--depth", "1")
    trial = farm.jobs()[0].payload["trial"]
    farm.run()
    farm.plan("fill", "--depth", "4")
    for id_ in [id_ for id_ in farm.spool.waiting() if id_.startswith("40-")]:
        farm.run_job(id_)
    assert "adopted (search" in farm.plan("adopt", trial).stdout
    assert "before" in farm.plan("adopt", trial).stderr
    assert [row.body["trial"] for row in farm.rows("adopt")] == [trial]


def test_no_such_trial_is_66(farm):
    assert farm.plan("adopt", "t999", ok=False).returncode == 66
    assert farm.plan("fill", "--heldout", "t999", ok=False).returncode == 66


@pytest.mark.parametrize(
    "words", [["fill", "--dept", "3"], ["fill", "--depth", "0"], ["fill", "--depth", "x"], ["fly"]]
)
def test_wrong_usage_is_2(farm, words):
    assert farm.plan(*words, ok=False).returncode == 2


def test_no_spool_is_66_with_the_command_that_makes_one(farm, tmp_path):
    done = farm.plan("--spool", str(tmp_path / "none"), "best", ok=False)
    assert (done.returncode, "fleet init" in done.stderr) == (66, True)


def test_no_plan_is_66_with_the_command_that_makes_one(farm):
    farm.spool.plan.unlink()
    done = farm.plan("next", ok=False)
    assert (done.returncode, "fleet-plan init" in done.stderr) == (66, True)


def test_an_unknown_command_is_told_with_its_nearest(farm):
    done = farm.plan("sugest", ok=False)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "fleet-plan: error: no command 'sugest'; did you mean suggest?",
    )
    assert "fleet-plan --help lists them" in farm.plan("zzz", ok=False).stderr


def test_a_bad_plan_is_78_with_every_error(farm):
    farm.write_plan(seeds=0, heldouts=3)
    done = farm.plan("fill", ok=False)
    assert done.returncode == 78
    assert "trial.seeds: expected a whole number" in done.stderr
    assert "did you mean heldout?" in done.stderr
    assert farm.spool.waiting() == []


def test_init_writes_the_real_settings_and_never_overwrites(farm):
    there = farm.plan("init", ok=False)
    assert (there.returncode, "never overwrites" in there.stderr) == (73, True)
    farm.spool.plan.unlink()
    (farm.spool.root / "space.toml").unlink()
    assert "110 variables, 55 seeds of 900 s, 400 held out" in farm.plan("init").stderr
    assert farm.plan("next").stdout.startswith("next  ")
    assert farm.plan("init", ok=False).returncode == 73
    check_rewards(Rewards(weights={v.name: v.start for v in read_plan(farm.spool.plan).space.rewards()}))


def test_options_stand_before_and_after_the_command(farm):
    before = farm.plan("--json", "--spool", str(farm.spool.root), "best")
    assert before.stdout == farm.plan("best", "--json", "--spool", str(farm.spool.root)).stdout


def test_later_commands_are_not_there_yet():
    commands = next(a.choices for a in build_parser()._actions if a.dest == "command")
    assert set(commands) == {"init", "fill", "next", "suggest", "best", "adopt", "log", "feedback", "merge", "read"}


def test_colour_comes_only_when_asked_for(judged):
    assert "\033[" not in judged.plan("log").stdout
    assert "\033[32m" in judged.plan("log", "--color", "always").stdout


def test_sigterm_ends_a_watch_and_leaves_the_queue(farm, wait_for):
    watch = subprocess.Popen(
        farm.command("fill", "--watch", "--depth", "3"), env=farm.plan_environ(), stderr=subprocess.PIPE
    )
    wait_for(lambda: len(farm.spool.waiting()) == 3)
    watch.send_signal(signal.SIGTERM)
    assert b"what is queued stays" in watch.communicate(timeout=30)[1]
    assert (watch.returncode, len(farm.spool.waiting())) == (0, 3)
