"""space.toml: what is accepted, what is refused with file, line and field, and how a value moves."""

import pytest

from fleetd import BadSettings
from planner.space import Variable, read_space

GOOD = 'name = "a"\nstart = 0.25\nlow = -2.0\nhigh = 2.0\nstep = 0.1\n'


def space(tmp_path, *tables):
    path = tmp_path / "space.toml"
    path.write_text("".join(f"[[variable]]\n{table}\n" for table in tables))
    return path


@pytest.mark.parametrize(
    ("old", "new", "line", "field"),
    [
        ("step = 0.1", "step = 0", 6, "step"),
        ("step = 0.1", "step = -0.1", 6, "step"),
        ("step = 0.1", "step = nan", 6, "step"),
        ("high = 2.0", "high = inf", 5, "high"),
        ("start = 0.25", "start = nan", 3, "start"),
        ("low = -2.0", "low = 3.0", 4, "low"),
        ("start = 0.25", "start = 2.5", 3, "start"),
        ("step = 0.1", 'step = 0.3\ntype = "int"', 6, "step"),
        ("start = 0.25", 'start = "a lot"', 3, "start"),
        ("start = 0.25", "start = true", 3, "start"),
        ('name = "a"', 'name = ""', 2, "name"),
        ("step = 0.1", 'step = 0.1\ntype = "whole"', 7, "type"),
        ("step = 0.1", 'step = 0.1\ngroup = "fun"', 7, "group"),
        ("step = 0.1", "", 1, "step"),
        ("step = 0.1", "step = 4.5", 6, "step"),
        ("step = 0.1", "step = 1e300", 6, "step"),
        ("step = 0.1", "step = 1e-17", 6, "step"),
        ("high = 2.0", "high = 1e17", 6, "step"),
        ("high = 2.0", f"high = 1{'0' * 400}", 5, "high"),
        ("high = 2.0", "high = 1.7e308", 5, "high"),
        ("high = 2.0", f"high = 0x{'f' * 5000}", 5, "high"),
        ("high = 2.0", 'high = 1_000_000_000_000_000_000_000\ntype = "int"', 5, "high"),
    ],
)
def test_a_bad_variable_is_refused_with_line_and_field(tmp_path, old, new, line, field):
    path = space(tmp_path, GOOD.replace(old, new))
    with pytest.raises(BadSettings, match=rf"space.toml:{line}:\d+: variable\[0\].{field}: "):
        read_space(path)


def test_a_number_of_thousands_of_digits_is_refused_with_the_file(tmp_path):
    with pytest.raises(BadSettings, match=r"space.toml.*digits"):
        read_space(space(tmp_path, GOOD.replace("step = 0.1", f"step = {'9' * 5000}")))


def test_every_error_is_told_at_once(tmp_path):
    bad = GOOD.replace("step = 0.1", "step = 0").replace("low = -2.0", "low = inf")
    with pytest.raises(BadSettings) as told:
        read_space(space(tmp_path, bad, GOOD, "stepp = 1\n" + GOOD))
    message = str(told.value)
    assert all(
        part in message for part in ("step: expected a step above 0", "low: expected a finite", "did you mean step?")
    )
    assert 'variable[2].name: "a" is the name of an earlier variable' in message


def test_spaces_negative_numbers_and_blank_last_lines_are_fine(tmp_path):
    text = 'name = "left  arm"\nstart=-1\n  low =  -2.5\nhigh = -0.5\nstep = 1e-1\n\n \n'
    assert read_space(space(tmp_path, text)).starts() == {"left  arm": -1.0}


def test_no_variable_at_all_is_refused(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text("\n")
    with pytest.raises(BadSettings, match="at least one"):
        read_space(path)


def variable(**changes):
    return Variable(**({"name": "a", "start": 0.0, "low": -1.0, "high": 1.0, "step": 0.3} | changes))


def test_a_step_that_does_not_divide_the_range_is_cut_at_the_bound():
    assert variable().moved(0.8, 1) == 1.0
    assert variable().moved(-0.8, -1) == -1.0


def test_a_step_may_be_the_whole_range_and_a_fixed_variable_has_any(tmp_path):
    read_space(space(tmp_path, GOOD.replace("step = 0.1", "step = 4.0")))
    fixed = GOOD.replace("low = -2.0", "low = 0.25").replace("high = 2.0", "high = 0.25")
    assert read_space(space(tmp_path, fixed)).starts() == {"a": 0.25}


def test_a_value_is_played_inside_of_the_range():
    assert [variable().inside(v) for v in (-3.0, 0.123456789, 1.0, 7.0)] == [-1.0, 0.123456789, 1.0, 1.0]
    assert repr(variable(type="int", step=1.0).inside(0.7)) == "1"


def test_at_its_bound_a_variable_does_not_move():
    assert variable().moved(1.0, 1) is None
    assert variable().moved(0.9, 1) is None
    assert variable(low=0.0, high=0.0).moved(0.0, 1) is None
    assert variable(high=0.5).moved(0.8, 1) is None


def test_the_played_value_is_the_recorded_value():
    value, walked = variable(step=0.1), [0.0]
    while (to := value.moved(walked[-1], 1)) is not None:
        walked.append(to)
    assert walked == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]


def test_steps_there_and_back_end_where_they_began():
    third = variable(step=1 / 3)
    assert third.moved(third.moved(0.0, 1), -1) == 0.0


def test_whole_numbers_stay_whole():
    whole = variable(low=-5.0, high=5.0, step=2.0, type="int")
    assert [repr(whole.moved(v, 1)) for v in (0, 3, 4)] == ["2", "5", "5"]
    assert whole.moved(5, 1) is None
