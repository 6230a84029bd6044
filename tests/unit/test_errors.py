"""The tree of errors, their exit codes, and what a problem looks like."""

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import gpulayers
from gpulayers import errors
from gpulayers.errors import GpulayersError, Problem, ProjectError

OURS = (1, 2, 130)  # a bug, usage, interrupted: never an error class


def import_package() -> None:
    for module in pkgutil.walk_packages(gpulayers.__path__, "gpulayers."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def below(cls: type[GpulayersError]) -> Iterator[type[GpulayersError]]:
    for child in cls.__subclasses__():
        yield child
        yield from below(child)


@pytest.fixture(scope="module", autouse=True)
def whole_package() -> None:
    import_package()


def direct() -> tuple[type[GpulayersError], ...]:
    return tuple(GpulayersError.__subclasses__())


def test_only_the_module_of_errors_has_children_of_the_root() -> None:
    assert {cls.__module__ for cls in direct()} == {errors.__name__}


def test_every_child_of_the_root_has_an_exit_code_of_its_own() -> None:
    codes = [cls.exit_code for cls in direct()]
    assert len(codes) == len(set(codes))
    assert all("exit_code" in vars(cls) for cls in direct())


def test_no_error_has_a_code_that_means_something_else() -> None:
    verdicts = (10, 11, 12)  # the answers of `gpulayers why`, which are no errors
    usage = [errors.OptionError]  # click's own code for what is wrong with an option
    found = [cls for cls in below(GpulayersError) if cls.exit_code in (*OURS, *verdicts)]
    assert found == usage
    assert min(cls.exit_code for cls in direct()) == 2


def test_children_share_the_code_of_their_parent() -> None:
    for cls in direct():
        assert [child for child in below(cls) if child.exit_code != cls.exit_code] == []


def test_the_codes_are_those_of_the_command_lines_contract() -> None:
    assert {cls.__name__: cls.exit_code for cls in direct()} == {
        "OptionError": 2,
        "ProjectError": 3,
        "NothingSelectedError": 4,
        "ToolError": 5,
        "BuildError": 6,
        "ScanRejectedError": 7,
        "ContractError": 8,
        "RemoteError": 9,
        "StaleError": 13,
        "ScanNotMadeError": 14,
        "GpuNotProvenError": 15,
        "BudgetError": 16,
    }


def test_a_problem_says_where_what_was_wanted_what_was_found_and_what_next() -> None:
    problem = Problem(
        file="matrix.toml", line=7, key="axes.cuda", wanted="MAJOR.MINOR", found='"12"', hint="fix"
    )
    assert problem.format() == 'matrix.toml:7: axes.cuda: wanted MAJOR.MINOR, found "12"; fix'


def test_a_problem_without_line_and_hint_leaves_them_out() -> None:
    problem = Problem(file="matrix.toml", line=0, key="(file)", wanted="a file", found="nothing")
    assert problem.format() == "matrix.toml: (file): wanted a file, found nothing"


def test_a_project_error_shows_every_problem() -> None:
    problems = [Problem(file="matrix.toml", line=n, key="k", wanted="a", found="b") for n in (1, 2)]
    error = ProjectError("2 problems", problems=problems, hint="see docs/matrix.md")
    assert str(error).splitlines() == [
        "2 problems",
        "  matrix.toml:1: k: wanted a, found b",
        "  matrix.toml:2: k: wanted a, found b",
    ]
    assert (error.hint, error.problems) == ("see docs/matrix.md", tuple(problems))
