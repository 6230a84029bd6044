"""No TOML, however wrong, stops the reader: it gives a matrix or problems, never both."""

import tomllib
from pathlib import Path

import pytest
import tomlkit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matrix_samples import FULL, write

from gpulayers.matrix.load import read

ODD_VALUES = st.sampled_from(
    ["", " ", "none", "3.12", "*", "[", "{os}", "a\u0000b", "../..", "ü", 0, -1, 1.5, True]
) | st.lists(st.sampled_from(["", "a==1", "12.8", 3, [], {}]), max_size=3)


def spots(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    match value:
        case dict():
            inner = [(key, item) for key, item in value.items()]
        case list():
            inner = list(enumerate(value))
        case _:
            inner = []
    return [spot for key, item in inner for spot in [(*path, key), *spots(item, (*path, key))]]


SPOTS = spots(tomllib.loads(FULL))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(changes=st.lists(st.tuples(st.sampled_from(SPOTS), ODD_VALUES), min_size=1, max_size=4))
def test_a_matrix_with_odd_values_anywhere_is_read_or_refused_whole(
    folder: Path, changes: list[tuple[tuple[str | int, ...], object]]
) -> None:
    document: dict[str, object] = tomllib.loads(FULL)
    for path, value in changes:
        put(document, path, value)
    text = tomlkit.dumps(document)
    matrix, problems = read(write(folder, text))
    assert (matrix is None) is bool(problems)
    assert all(1 <= problem.line <= text.count("\n") + 1 for problem in problems)


def put(document: object, path: tuple[str | int, ...], value: object) -> None:
    """Set what a path leads to, where an earlier change left the way open."""
    for part in path[:-1]:
        try:
            document = document[part]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            return
    match document, path[-1]:
        case dict(), key:
            document[key] = value
        case list(), int(index) if index < len(document):
            document[index] = value


@given(cut=st.integers(0, len(FULL)), length=st.integers(1, 40))
def test_a_matrix_with_a_hole_in_it_is_read_or_refused(folder: Path, cut: int, length: int) -> None:
    matrix, problems = read(write(folder, FULL[:cut] + FULL[cut + length :]))
    assert (matrix is None) is bool(problems)
