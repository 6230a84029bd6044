"""Which cells are kept, excluded, or not asked for."""

import time
from collections import Counter
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrix_samples import axes, cell, matrix

from gpulayers.errors import OptionError
from gpulayers.matrix.model import AXES, Cell, Exclude, Matrix
from gpulayers.matrix.select import choose, explain_nothing, product

VALUES = {
    "os": ("debian12", "debian13", "ubuntu24.04"),
    "python": ("3.11", "3.12"),
    "cuda": ("12.6", "12.8", "12.10"),
    "framework": ("torch==2.7.1", "torch==2.8.0", "jax==0.7.2"),
    "model": ("none", "minilm"),
}
GLOBS = {
    "os": ("*", "debian*", "debian12", "debian13,ubuntu*"),
    "python": ("3.11", "3.*"),
    "cuda": ("12.?", "12.8,12.10", "12.[68]"),
    "framework": ("torch==*", "jax==*, torch==2.8.0", "*"),
    "model": ("none", "minilm"),
}


def exclude(line: int = 1, **match: str) -> Exclude:
    return Exclude(match=match, reason=f"reason {line}", line=line)


def subset(axis: str) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(VALUES[axis]), min_size=1, unique=True).map(tuple)


AXES_ST = st.fixed_dictionaries({axis: subset(axis) for axis in AXES}).map(
    lambda values: axes(**values)
)
MATCH_ST = st.fixed_dictionaries(
    {}, optional={axis: st.sampled_from(globs) for axis, globs in GLOBS.items()}
).filter(bool)
CELL_ST = st.fixed_dictionaries(
    {axis: st.sampled_from(values) for axis, values in VALUES.items()}
).map(lambda values: cell(**values))
ONLY_ST = st.lists(
    st.sampled_from([f"{axis}={glob}" for axis, globs in GLOBS.items() for glob in globs]),
    max_size=3,
)


@st.composite
def matrices(draw: st.DrawFn) -> Matrix:
    found = draw(AXES_ST)
    matches = draw(st.lists(MATCH_ST, max_size=4))
    inside = set(product(found))
    includes = [c for c in draw(st.lists(CELL_ST, max_size=3, unique=True)) if c not in inside]
    return matrix(
        found,
        excludes=tuple(exclude(line, **match) for line, match in enumerate(matches, 1)),
        includes=tuple(includes),
    )


def hits(one: Cell, match: dict[str, str]) -> bool:
    """The plain meaning, one cell at a time."""
    values = one.values()
    return all(
        any(fnmatchcase(values[axis], part.strip()) for part in glob.split(","))
        for axis, glob in match.items()
    )


@given(matrices())
def test_kept_and_excluded_are_a_partition_of_product_and_includes(found: Matrix) -> None:
    selection = choose(found)
    both = [*selection.kept, *(one for one, _ in selection.excluded)]
    assert Counter(both) == Counter([*product(found.axes), *found.includes])


@given(matrices())
def test_a_cell_is_excluded_by_the_first_exclude_that_hits_it(found: Matrix) -> None:
    first = {
        one: next((e for e in found.excludes if hits(one, dict(e.match))), None)
        for one in product(found.axes)
    }
    selection = choose(found)
    assert dict(selection.excluded) == {one: e for one, e in first.items() if e is not None}
    assert selection.kept == (*(one for one, e in first.items() if e is None), *found.includes)


@given(matrices(), ONLY_ST)
def test_only_takes_out_what_it_does_not_name_and_moves_nothing_else(
    found: Matrix, only: list[str]
) -> None:
    wanted: dict[str, list[str]] = {}
    for text in only:
        axis, _, glob = text.partition("=")
        wanted.setdefault(axis, []).append(glob)
    joined = {axis: ",".join(globs) for axis, globs in wanted.items()}
    everything, some = choose(found), choose(found, only)
    assert some.kept == tuple(one for one in everything.kept if hits(one, joined))
    assert some.excluded == tuple(pair for pair in everything.excluded if hits(pair[0], joined))


@given(matrices(), ONLY_ST)
def test_nothing_can_always_be_explained(found: Matrix, only: list[str]) -> None:
    if not choose(found, only).kept:
        assert explain_nothing(found, only)


def test_entries_for_one_axis_are_alternatives_and_axes_have_to_agree() -> None:
    found = matrix(axes(cuda=("12.6", "12.8", "12.10"), os=("debian12", "debian13")))
    kept = choose(found, ["cuda=12.6", "cuda=12.10", "os=*13"]).kept
    assert kept == (cell(os="debian13", cuda="12.6"), cell(os="debian13", cuda="12.10"))


def test_a_glob_knows_no_order_of_numbers_and_no_prefixes() -> None:
    found = matrix(axes(cuda=("12.1", "12.10")))
    assert choose(found, ["cuda=12.1"]).kept == (cell(cuda="12.1"),)


def test_an_include_is_kept_whatever_the_excludes_say() -> None:
    include = cell(cuda="12.4")
    found = matrix(axes(), includes=(include,), excludes=(exclude(os="debian12"),))
    assert choose(found).kept == (include,)


@pytest.mark.parametrize("only", ["cuda", "cuda=", "=12.8", ""])
def test_an_only_that_is_no_pair_is_refused(only: str) -> None:
    with pytest.raises(OptionError, match="--only"):
        choose(matrix(axes()), [only])


def test_an_only_for_no_axis_names_the_axes_and_the_nearest_one() -> None:
    with pytest.raises(OptionError, match="'cuad' is no axis; the axes are os, python") as caught:
        choose(matrix(axes()), ["cuad=12.8"])
    assert caught.value.hint == "did you mean cuda?"
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("only", "text"),
    [
        (
            ["cuda=12.9"],
            (
                "--only cuda=12.9 names no value of the axis, which has 12.6, 12.8, 12.4; "
                "did you mean 12.8?"
            ),
        ),
        (
            ["framework=torch"],
            (
                "--only framework=torch names no value of the axis, which has torch==2.8.0; "
                "did you mean framework=torch*?"
            ),
        ),
        (
            ["cuda=12.4", "os=debian13"],
            "--only cuda=12.4 --only os=debian13: no cell of the matrix has these values together",
        ),
        (
            ["os=debian13"],
            (
                "all 2 cells of --only os=debian13 are excluded: "
                "1 by matrix.toml:7 (reason 7), 1 by matrix.toml:9 (reason 9)"
            ),
        ),
        (
            ["os=arch", "cuda=11.*"],
            (
                "--only os=arch names no value of the axis, which has debian12, debian13; "
                "--only cuda=11.* names no value of the axis, which has 12.6, 12.8, 12.4"
            ),
        ),
    ],
    ids=["no-value", "no-version", "not-together", "all-excluded", "two-at-once"],
)
def test_nothing_is_explained_by_what_caused_it(only: list[str], text: str) -> None:
    found = matrix(
        axes(os=("debian12", "debian13"), cuda=("12.6", "12.8")),
        excludes=(exclude(7, os="debian13", cuda="12.6"), exclude(9, os="debian13")),
        includes=(cell(cuda="12.4"),),
    )
    assert choose(found, only).kept == ()
    assert explain_nothing(found, only) == text


def test_a_matrix_that_excludes_itself_is_explained_without_only() -> None:
    found = matrix(axes(), excludes=(exclude(3, os="*"),))
    assert explain_nothing(found) == "all 1 cells are excluded: 1 by matrix.toml:3 (reason 3)"


def test_ten_thousand_cells_are_selected_within_a_second() -> None:
    found = matrix(
        axes(
            os=tuple(f"os{n}" for n in range(10)),
            python=tuple(f"3.{n}" for n in range(10)),
            cuda=tuple(f"12.{n}" for n in range(10)),
            framework=tuple(f"torch==2.{n}.0" for n in range(10)),
        ),
        excludes=tuple(exclude(n, os=f"os{n % 10},x*", cuda=f"12.{n // 10}") for n in range(100))[
            :90
        ],
    )
    start = time.perf_counter()
    selection = choose(found)
    seconds = time.perf_counter() - start
    assert (len(selection.kept), len(selection.excluded)) == (1000, 9000)
    assert seconds < 1
