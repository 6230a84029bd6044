"""Every wrong matrix under tests/wrong/ gives the problems marked in it, at their lines."""

import re
from pathlib import Path

import pytest

from gpulayers.errors import Problem
from gpulayers.matrix.load import read

WRONG = Path(__file__).parents[1] / "wrong"
FILES = sorted(WRONG.glob("*.toml"))
Mark = tuple[int, str, tuple[str, ...]]


def marks(path: Path) -> list[Mark]:
    found: list[Mark] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for mark in re.split(r"#!", line)[1:]:
            key, *words = (part.strip() for part in mark.split(" ~ "))
            found.append((number, key, tuple(words)))
    return found


def fits(problem: Problem, mark: Mark) -> bool:
    line, key, words = mark
    text = problem.format()
    return (problem.line, problem.key) == (line, key) and all(word in text for word in words)


def test_there_are_wrong_files_and_each_marks_something() -> None:
    assert len(FILES) > 10
    assert [path.name for path in FILES if not marks(path)] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_wrong_matrix_gives_every_marked_problem_and_no_other(path: Path) -> None:
    matrix, problems = read(path)
    left = list(problems)
    missed = []
    for mark in sorted(marks(path), key=lambda mark: -sum(map(len, mark[2]))):
        problem = next((p for p in left if fits(p, mark)), None)
        if problem is None:
            missed.append(mark)
        else:
            left.remove(problem)
    shown = "\n".join(problem.format() for problem in problems)
    assert missed == [], shown
    assert [problem.format() for problem in left] == []
    assert matrix is None


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_problems_run_from_the_top_of_the_file_to_its_end(path: Path) -> None:
    lines = [problem.line for problem in read(path)[1]]
    assert lines == sorted(lines)
    assert {problem.file for problem in read(path)[1]} == {path.name}
