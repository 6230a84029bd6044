"""Lines of tables, keys and elements in TOML texts, the odd ones too."""

import tomllib
from collections.abc import Iterator

import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from gpulayers.matrix.lines import KeyPath, Source, dotted, locate

ODD = """\
# [not.a.table]
top = "a ] string # with = signs"
[a.b]
key = [ # comment ]
  "one", "[two]",
  '''three
  ]
  ''',
  # "not an element",
  { x = 1, "y z" = [
    2,
  ] },
]
"quoted.key" = 1
'literal' = 1
dotted . inner = \"\"\"
[c]
quote: \\\"\"\" and one more\"\"\"\"
after.inner2.deep = 2026-01-02 03:04:05 # a date with a blank
[[rows]]
n = 1
[rows.sub]
k = 1
[[rows]]
[[rows.deeper]]
n = 1
[[rows.deeper]]
n = 2
[ "a" . 'c' ]
empty = {}
none = []
inline = { p.q = "}", r = [[1], [2,
3]] }
[a]
late = true
"""


def test_odd_texts_are_located() -> None:
    lines = locate(ODD)
    expected: dict[KeyPath, int] = {
        ("top",): 2,
        ("a",): 34,
        ("a", "b"): 3,
        ("a", "b", "key"): 4,
        ("a", "b", "key", 0): 5,
        ("a", "b", "key", 1): 5,
        ("a", "b", "key", 2): 6,
        ("a", "b", "key", 3): 10,
        ("a", "b", "key", 3, "x"): 10,
        ("a", "b", "key", 3, "y z"): 10,
        ("a", "b", "key", 3, "y z", 0): 11,
        ("a", "b", "quoted.key"): 14,
        ("a", "b", "literal"): 15,
        ("a", "b", "dotted"): 16,
        ("a", "b", "dotted", "inner"): 16,
        ("a", "b", "after"): 19,
        ("a", "b", "after", "inner2"): 19,
        ("a", "b", "after", "inner2", "deep"): 19,
        ("rows",): 20,
        ("rows", 0): 20,
        ("rows", 0, "n"): 21,
        ("rows", 0, "sub"): 22,
        ("rows", 0, "sub", "k"): 23,
        ("rows", 1): 24,
        ("rows", 1, "deeper"): 25,
        ("rows", 1, "deeper", 0): 25,
        ("rows", 1, "deeper", 0, "n"): 26,
        ("rows", 1, "deeper", 1): 27,
        ("rows", 1, "deeper", 1, "n"): 28,
        ("a", "c"): 29,
        ("a", "c", "empty"): 30,
        ("a", "c", "none"): 31,
        ("a", "c", "inline"): 32,
        ("a", "c", "inline", "p"): 32,
        ("a", "c", "inline", "p", "q"): 32,
        ("a", "c", "inline", "r"): 32,
        ("a", "c", "inline", "r", 0): 32,
        ("a", "c", "inline", "r", 0, 0): 32,
        ("a", "c", "inline", "r", 1): 32,
        ("a", "c", "inline", "r", 1, 0): 32,
        ("a", "c", "inline", "r", 1, 1): 33,
        ("a", "late"): 35,
    }
    assert lines == expected


def paths(value: object, path: KeyPath = ()) -> Iterator[KeyPath]:
    match value:
        case dict():
            for key, item in value.items():
                yield (*path, str(key))
                yield from paths(item, (*path, str(key)))
        case list():
            for index, item in enumerate(value):
                yield (*path, index)
                yield from paths(item, (*path, index))
        case _:
            pass


def test_every_path_of_the_odd_text_is_located_and_nothing_else() -> None:
    assert set(locate(ODD)) == set(paths(tomllib.loads(ODD)))


KEYS = st.text("ab.-[]#=' ", min_size=1, max_size=5)
SCALARS = (
    st.integers()
    | st.booleans()
    | st.floats(allow_nan=False)
    | st.text("ab[]{}#=\"',\\\n", max_size=8)
    | st.dates()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, VALUES, max_size=6))
def test_whatever_another_writer_makes_every_path_has_a_line_that_shows_its_key(
    values: dict[str, object],
) -> None:
    text = tomlkit.dumps(values)
    lines = locate(text)
    rows = text.split("\n")
    for path in paths(tomllib.loads(text)):
        assert path in lines
        last = path[-1]
        if isinstance(last, str):
            assert last in rows[lines[path] - 1]


@given(st.text("ab[]{}#=\"',\\\n. ", max_size=40))
def test_no_text_stops_the_scanner(text: str) -> None:
    assert all(1 <= line <= text.count("\n") + 1 for line in locate(text).values())


def test_a_key_that_is_not_there_has_the_line_of_its_table() -> None:
    source = Source(file="matrix.toml", lines=locate(ODD))
    assert source.line(("a", "c", "missing", 3)) == 29
    assert source.line(("nowhere", "at", "all")) == 1
    assert source.line(()) == 1


def test_paths_are_written_as_in_the_file() -> None:
    assert dotted(("axes", "cuda", 0)) == "axes.cuda[0]"
    assert dotted(("python", "3.11", "sources")) == 'python."3.11".sources'
    assert dotted(("my host",)) == '"my host"'
