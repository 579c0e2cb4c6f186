"""plan.toml: every error at once, each with file, line and column."""

import pytest

from fleetd import BadSettings, NotFound
from planner.plan import read_plan

PLAN = 'name = "x"\ncensus = ["play"]\n'
SPACE = '[[variable]]\nname = "a"\nstart = 0\nlow = -1\nhigh = 1\nstep = 0.5\n'


def plan(tmp_path, text, space=SPACE):
    (tmp_path / "plan.toml").write_text(text)
    (tmp_path / "space.toml").write_text(space)
    return tmp_path / "plan.toml"


def test_what_is_not_said_has_the_real_defaults(tmp_path):
    read = read_plan(plan(tmp_path, PLAN))
    assert (read.seeds, read.seconds, read.heldout, read.cores, read.deterministic) == (55, 900, 400, 1, True)
    assert (read.policy, read.census) == ("screen", ("play",))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (PLAN + "[trial]\nseedz = 4\n", "plan.toml:4:1: trial.seedz: unknown key; did you mean seeds?"),
        (PLAN + "[trial]\nseeds = 0\n", "plan.toml:4:1: trial.seeds: expected a whole number from 1, got 0"),
        (PLAN + "[trial]\nseconds = inf\n", "trial.seconds: expected a number above 0"),
        (PLAN + "[trial]\ndeterministic = 1\n", "trial.deterministic: expected true or false"),
        (
            PLAN + "[trial]\nseconds = 1e308\n",
            "plan.toml:4:1: trial.seconds: expected a number above 0, at most 1,000,000",
        ),
        (
            PLAN + "[trial]\nplay_timeout_s = 1e308\n",
            "trial.play_timeout_s: expected a number above 0, at most 1,000,000",
        ),
        (PLAN + "[trial]\ncores = 4097\n", "plan.toml:4:1: trial.cores: expected a whole number from 1 to 4096"),
        (PLAN + '[trial]\nneeds = ["gpu", "a b"]\n', "plan.toml:4:1: trial.needs: expected a list of tags, each of"),
        (PLAN + '[trial]\nneeds = [""]\n', "trial.needs: expected a list of tags, each of"),
        ('name = "x"\n', "census: is missing"),
        (PLAN + "[policy]\nfloor = 1\n", "plan.toml:4:1: policy.floor: expected a number from 0 to under 1, got 1"),
        (PLAN + "[policy]\nhorizon = 0.5\n", "policy.horizon: expected a whole number of plays from 2"),
        (PLAN + '[policy]\nname = "magic"\n', 'no policy is called "magic"'),
        (PLAN + "[net]\nshare = 0.5\n", "plan.toml:3:1: net.train: is missing: a share above 0 needs it"),
        ("trial = 3\n" + PLAN, "trial: expected a table"),
        (PLAN + "[[variable]]\n", "stand in the file that `space` names"),
        ("name = \n", "plan.toml:1:8: "),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path, text, told):
    with pytest.raises(BadSettings) as error:
        read_plan(plan(tmp_path, text))
    assert told in str(error.value)


def test_errors_of_both_files_come_at_once(tmp_path):
    with pytest.raises(BadSettings) as error:
        read_plan(plan(tmp_path, PLAN + "[trial]\nseeds = 0\n", SPACE.replace("0.5", "0")))
    assert "trial.seeds" in str(error.value)
    assert "space.toml:6:1: variable[0].step" in str(error.value)
    assert "2 errors" in str(error.value)


def test_the_net_table_is_accepted_while_its_share_is_zero(tmp_path):
    net = '[net]\nshare = 0\nfirst = ["treadcore", "clone"]\njudge_seeds = 400\ntrain_needs = ["gpu"]\n'
    assert read_plan(plan(tmp_path, PLAN + net)).name == "x"


def test_a_missing_plan_names_the_command_that_makes_one(tmp_path):
    with pytest.raises(NotFound, match="fleet-plan init"):
        read_plan(tmp_path / "plan.toml")


def test_a_missing_space_is_said_where_it_is_named(tmp_path):
    path = plan(tmp_path, 'space = "elsewhere.toml"\n' + PLAN)
    with pytest.raises(BadSettings, match=r"plan.toml:1:1: space: .*elsewhere.toml: cannot be read"):
        read_plan(path)
