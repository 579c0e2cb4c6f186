"""fleet.toml: all its errors at once, each at its place."""

import pytest

from fleetd.errors import BadSettings
from fleetd.settings import Host, Settings, read_settings


@pytest.fixture
def read(tmp_path):
    def written(text):
        (tmp_path / "fleet.toml").write_text(text)
        return read_settings(tmp_path / "fleet.toml")

    return written


@pytest.fixture
def wrong(read):
    def said(text):
        with pytest.raises(BadSettings) as refused:
            read(text)
        return str(refused.value)

    return said


def test_every_key_has_a_default(read, tmp_path):
    assert read("") == read_settings(tmp_path / "none.toml") == Settings()
    assert (Settings().poll_s, Settings().grace_s, Settings().failures, Settings().rest_s) == (2.0, 10.0, 5, 300)


def test_a_host_gets_its_own_table_and_others_the_defaults(read):
    settings = read('[host.calber]\nlanes = 2\ntags = ["gpu"]\nssh = "c"\n')
    assert settings.host("calber") == Host(lanes=2, tags=("gpu",), ssh="c")
    assert settings.host("other") == Host()


def test_all_errors_come_at_once_each_with_its_line(wrong):
    said = wrong('poll_s = 0\ngrace_s = "x"\nfailures = 2.5\n[host.calber]\nlanes = 0\ntags = "gpu"\n')
    for place in ("1:1: poll_s", "2:1: grace_s", "3:1: failures", "5:1: host.calber.lanes", "6:1: host.calber.tags"):
        assert f"fleet.toml:{place}" in said
    assert "5 errors" in said


def test_an_unknown_key_is_an_error_with_the_nearest_name(wrong):
    said = wrong("pol_s = 1\n[host.calber]\nlane = 2\n")
    assert "did you mean poll_s?" in said
    assert "did you mean lanes?" in said


def test_nothing_like_any_key_offers_nothing(wrong):
    assert "did you mean" not in wrong("zzzzzz = 1\n")


@pytest.mark.parametrize("value", ["2", "true", '"1"', "1.5"])
def test_another_format_is_refused(wrong, value):
    assert "spool: expected 1" in wrong(f"spool = {value}\n")


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "true", '"2"', "[]"])
@pytest.mark.parametrize("key", ["poll_s", "rest_s", "log_max_mb", "min_free_mb"])
def test_a_number_is_finite_and_not_negative(wrong, key, value):
    assert f"fleet.toml:1:1: {key}" in wrong(f"{key} = {value}\n")


@pytest.mark.parametrize(
    "text", ["host = 3\n", '[host."a/b"]\n', 'host.calber = "x"\n', 'home = "../up"\n', "[[host]]\n"]
)
def test_what_is_no_host_is_refused(wrong, text):
    assert "fleet.toml:1:" in wrong(text)


@pytest.mark.parametrize("key", ["spool", "poll_s", "grace_s", "failures", "rest_s", "log_max_mb", "min_free_mb"])
def test_keys_of_the_page_are_known(read, key):
    assert getattr(read(f"{key} = 1\n"), key) == 1
