"""A whole small optimisation of known truth: the good is adopted, the null never, and the budget ends it."""

import json
import subprocess


def test_a_watched_optimisation_adopts_what_is_good_and_ends_with_its_budget(farm, wait_for):
    farm.write_space("good", "bad", "null", step=0.5)
    command = farm.command("fill", "--watch", "--depth", "4", "--plays", "1500")
    watch = subprocess.Popen(command, env=farm.plan_environ(), stderr=subprocess.PIPE, text=True)
    while watch.poll() is None:
        wait_for(lambda: watch.poll() is not None or farm.spool.waiting(), limit_s=30)
        farm.run()
    assert watch.returncode == 0
    assert "the budget was 1,500" in watch.communicate()[1]

    best = json.loads(farm.plan("best", "--json").stdout)
    assert best["weights"]["good"] >= 0.5 or best["weights"]["bad"] <= -0.5
    assert best["weights"]["null"] == 0
    assert 1500 <= best["plays"] < 1500 + 2 * 120 + 40

    rows = farm.rows("result")
    read = [row.body["payload"]["trial"] for row in rows]
    ruled = [row.body["trial"] for row in farm.rows("adopt", "keep")]
    assert len(ruled) == len(set(ruled))
    assert set(ruled) <= set(read)
    assert farm.spool.waiting() == []


def test_a_watch_under_a_stop_adds_nothing_and_goes_on_when_it_is_lifted(farm, wait_for):
    (farm.spool.root / "STOP_ADDING").touch()
    command = farm.command("fill", "--watch", "--count", "2")
    watch = subprocess.Popen(command, env=farm.plan_environ(), stderr=subprocess.PIPE, text=True)
    assert "STOP_ADDING stands" in watch.stderr.readline()
    assert farm.spool.waiting() == []
    (farm.spool.root / "STOP_ADDING").unlink()
    wait_for(lambda: len(farm.spool.waiting()) == 2)
    farm.run()
    assert watch.wait(30) == 0
    assert "2 jobs added, read and judged" in watch.stderr.read()
    watch.stderr.close()
