"""Which Python: the first source that has it, a standalone build by its exact release."""

import json

import pytest
from lock_samples import AMD64

from gpulayers.errors import ProjectError, ToolError
from gpulayers.lock import pythons
from gpulayers.refs import Platform

ARM64 = Platform("linux", "arm64")


def row(version: str, arch: str = "x86_64", **more: str) -> dict[str, str]:
    plain = {"implementation": "cpython", "os": "linux", "libc": "gnu", "variant": "default"}
    return {"version": version, "arch": arch, **plain, **more}


ROWS = [
    row("3.12.16"),
    row("3.12.9"),
    row("3.13.0rc1"),
    row("3.12.17", variant="freethreaded"),
    row("3.12.18", libc="musl"),
    row("3.12.19", implementation="pypy"),
    row("3.1.20"),
    row("3.12.9", "aarch64"),
]


def test_the_newest_final_release_of_plain_cpython_is_taken() -> None:
    builds = pythons.read_builds(json.dumps(ROWS))
    assert pythons.pick(builds, "3.12", [AMD64]) == "3.12.16"


def test_one_release_serves_all_platforms() -> None:
    builds = pythons.read_builds(json.dumps(ROWS))
    assert pythons.pick(builds, "3.12", [AMD64, ARM64]) == "3.12.9"


def test_a_python_without_a_build_is_told_with_its_platforms() -> None:
    builds = pythons.read_builds(json.dumps(ROWS))
    with pytest.raises(ProjectError, match=r"no standalone Python 3\.1 for linux/arm64$"):
        pythons.pick(builds, "3.1", [AMD64, ARM64])
    with pytest.raises(ProjectError, match=r"no standalone Python 3\.13 for linux/amd64"):
        pythons.pick(builds, "3.13", [AMD64])


def test_an_answer_that_is_no_json_is_uvs_fault() -> None:
    with pytest.raises(ToolError, match="no JSON"):
        pythons.read_builds("cpython-3.12")
    assert pythons.read_builds("{}") == ()


def test_a_version_that_is_none_is_no_release() -> None:
    assert not pythons._is_final("3.12.x")
