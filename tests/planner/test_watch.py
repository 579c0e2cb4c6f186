"""`fleet-plan fill --watch` beside others, and beside a person who edits its files."""

import json
import subprocess
import sys
from contextlib import ExitStack, contextmanager


@contextmanager
def watching(farm, *words):
    command = farm.command("fill", "--watch", *words)
    with subprocess.Popen(command, env=farm.plan_environ(), stderr=subprocess.PIPE, text=True) as watch:
        try:
            yield watch
        finally:
            watch.terminate()


def said(watch, words):
    """Read what it says up to the line with these words; a test's time limit is the limit."""
    while words not in (line := watch.stderr.readline()):
        assert line, f"ended without: {words}"
    return line


def test_a_watch_waits_for_another_planner_and_goes_on(farm, wait_for):
    held = ExitStack()
    held.enter_context(farm.filler().alone())
    with watching(farm, "--depth", "2") as watch:
        said(watch, "another fleet-plan is at work")
        assert farm.spool.waiting() == []
        held.close()
        wait_for(lambda: len(farm.spool.waiting()) == 2)
    assert watch.returncode == 0


def test_an_edited_plan_is_followed(farm, wait_for):
    with watching(farm, "--depth", "4") as watch:
        wait_for(lambda: len(farm.spool.waiting()) == 4)
        farm.write_plan(seeds=30)
        said(watch, "was edited")
        farm.run(2)
        wait_for(lambda: any(job.payload["span"][1] - job.payload["span"][0] == 30 for job in farm.jobs()))


def test_an_edited_space_is_followed(farm, wait_for):
    with watching(farm, "--depth", "2") as watch:
        wait_for(lambda: len(farm.spool.waiting()) == 2)
        farm.write_space("odd")
        said(watch, "was edited")
        farm.run()
        wait_for(lambda: any(job.payload["variable"] == "odd" for job in farm.jobs()))


def test_a_census_edited_to_one_that_is_nowhere_is_an_edit_with_errors(farm, wait_for):
    with watching(farm, "--depth", "2") as watch:
        wait_for(lambda: len(farm.spool.waiting()) == 2)
        right = farm.spool.plan.read_text()
        farm.spool.plan.write_text(right.replace(json.dumps(sys.executable), '"no-such-game"'))
        said(watch, "no-such-game: no such program")
        said(watch, "the old plan stays")
        farm.run()
        wait_for(lambda: len(farm.spool.waiting()) == 2)


def test_an_edit_with_errors_is_said_once_and_the_old_plan_stays(farm, wait_for):
    with watching(farm, "--depth", "2") as watch:
        wait_for(lambda: len(farm.spool.waiting()) == 2)
        right = farm.spool.plan.read_text()
        farm.spool.plan.write_text(right.replace("seeds = 20", "seeds = 0"))
        assert "trial.seeds: expected a whole number" in said(watch, "plan.toml:")
        said(watch, "the old plan stays")
        farm.run()
        wait_for(lambda: len(farm.spool.waiting()) == 2)
        farm.spool.plan.write_text(right.replace("seeds = 20", "seeds = 25"))
        told = []
        while "was edited" not in (line := watch.stderr.readline()):
            told.append(line)
        assert not any("expected a whole number" in line for line in told)
