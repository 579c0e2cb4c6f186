"""Where a key stands: every error in a settings file points at its line."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetd.errors import BadSettings, NotFound
from fleetd.toml import Doc, locate, read_toml

TEXT = '''\
# a comment with [brackets] and "quotes
top = 1
multi = """
fake = 1
[fake.table]
"""
raw = \'\'\'
also = "fake"
\'\'\'
list = [
  1,  # ] not the end
  2,
]
inline = { x = 1, "y z" = { deep = 2 }, w = [3, 4] }
[host.calber]
lanes = 2
"quoted key" = 3
[host."b.c"]
tags = ["a", "]"]
[[variable]]
name = "one"
step = 0.1
[[variable]]
  name = "two"
  [variable.range]
  low = 0
  [[variable.point]]
  at = 1
  [[variable.point]]
  at = 2
'''


@pytest.mark.parametrize(
    ("keys", "line", "column"),
    [
        (("top",), 2, 1),
        (("multi",), 3, 1),
        (("raw",), 7, 1),
        (("list",), 10, 1),
        (("inline",), 14, 1),
        (("inline", "x"), 14, 12),
        (("inline", "y z"), 14, 19),
        (("inline", "w"), 14, 41),
        (("host", "calber"), 15, 1),
        (("host", "calber", "lanes"), 16, 1),
        (("host", "calber", "quoted key"), 17, 1),
        (("host", "b.c", "tags"), 19, 1),
        (("variable", 0, "step"), 22, 1),
        (("variable", 1), 23, 1),
        (("variable", 1, "name"), 24, 3),
        (("variable", 1, "range", "low"), 26, 3),
        (("variable", 1, "point", 0, "at"), 28, 3),
        (("variable", 1, "point", 1, "at"), 30, 3),
    ],
)
def test_a_key_is_found_where_it_is_written(keys, line, column):
    value = tomllib.loads(TEXT)
    for key in keys:
        value = value[key]
    assert locate(TEXT, keys) == (line, column)


def test_a_key_that_is_not_written_is_shown_at_its_table():
    assert locate(TEXT, ("host", "calber", "missing")) == (15, 1)
    assert locate(TEXT, ("nowhere",)) == (1, 1)


def test_keys_in_nested_inline_tables_are_shown_at_the_nearest_table():
    assert locate(TEXT, ("inline", "y z", "deep"))[0] == 14


BARE = st.from_regex(r"[a-zA-Z0-9_-]{1,6}", fullmatch=True)
QUOTED = st.sampled_from(['"a b"', "'c.d'", '"#"', '"[x]"', "'='"])
PLAIN = ["1", "-2.5e3", "true", '"s # s"', "'raw \\'", '"esc \\" ] }"', "1979-05-27T07:32:00Z", '""', "''"]
NESTED = ["[1, 2]", "[\n 1, # ] x\n 2\n]", "[[1], ['a]']]", "{ p = 1, q = [2, 3] }", "{}", '[{ a = "}" }]']
LONG = ['"""\nk = 1\n[t]\n"""', "'''\nk = 1\n'''", '"""a""b"""', '""""quoted""""', "'''it's'''", '"""\\"""x"""']
VALUE = st.sampled_from([*PLAIN, *NESTED, *LONG])


@st.composite
def documents(draw):
    """TOML text, and the line on which each of its keys was put."""
    lines, where, prefix = [], {}, ()
    for table in [None, *draw(st.lists(st.tuples(BARE, st.booleans()), max_size=4, unique_by=lambda t: t[0].lower()))]:
        if table:
            prefix = (table[0], 0) if table[1] else (table[0],)
            lines.append(f"[[{table[0]}]]" if table[1] else f"[ {table[0]} ]  # x = 1")
        for key in draw(st.lists(BARE | QUOTED, max_size=4, unique_by=lambda key: key.strip("\"'").lower())):
            where[(*prefix, key.strip("\"'"))] = sum(line.count("\n") + 1 for line in lines) + 1
            lines.append(f"{key} = {draw(VALUE)}" + draw(st.sampled_from(["", "  # why = [", "\n# [no]\n"])))
    return "\n".join(lines) + "\n", where


@given(documents())
def test_every_key_of_any_document_is_found_on_its_line(document):
    text, where = document
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert {keys: locate(text, keys)[0] for keys in where} == where


def test_a_syntax_error_names_file_line_and_column(tmp_path):
    (tmp_path / "x.toml").write_text("a = 1\nb = = 2\n")
    with pytest.raises(BadSettings) as caught:
        read_toml(tmp_path / "x.toml")
    head, shown, mark = str(caught.value).splitlines()
    assert head.endswith("x.toml:2:5: no TOML: invalid value")
    assert (shown, mark) == ("    2 | b = = 2", "      |     ^^^")


def test_an_unfinished_file_is_an_error_at_its_end(tmp_path):
    (tmp_path / "x.toml").write_text('a = 1\nb = """\n')
    with pytest.raises(BadSettings, match=r"x\.toml:3:1: "):
        read_toml(tmp_path / "x.toml")


def test_bytes_that_are_no_utf_8_are_an_error_with_their_place(tmp_path):
    (tmp_path / "x.toml").write_bytes(b"a = '\xff'\n")
    with pytest.raises(BadSettings, match="byte 5"):
        read_toml(tmp_path / "x.toml")


def test_a_missing_file_is_not_found(tmp_path):
    with pytest.raises(NotFound, match=r"x\.toml"):
        read_toml(tmp_path / "x.toml")


def test_a_complaint_shows_the_line_with_a_mark_under_the_key(tmp_path):
    doc = Doc(tmp_path / "x.toml", TEXT, tomllib.loads(TEXT))
    first, shown, mark = doc.complaint(("variable", 1, "name"), "taken").splitlines()
    assert first.endswith("x.toml:24:3: variable[1].name: taken")
    assert shown.endswith('  name = "two"')
    assert shown[mark.index("^") :] == 'name = "two"'
