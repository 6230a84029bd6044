"""What stays out of a copied folder: as Docker reads a .dockerignore, and the same in a build."""

import re
from pathlib import Path

import pytest

from gpulayers.matrix import patterns


def left_in(lines: list[str], *names: str) -> list[str]:
    found = []
    for name in names:
        out = False
        for rule in patterns.rules(lines):
            out = rule[0] == "-" if re.fullmatch(rule[1:], name) else out
        found += [] if out else [name]
    return found


@pytest.mark.parametrize(
    ("pattern", "out", "stays"),
    [
        ("*.log", "a.log", "sub/a.log"),
        ("**/*.log", "sub/deep/a.log", "a.logs"),
        ("tests", "tests/unit/test_a.py", "more/tests/a.py"),
        ("/tests/", "tests/a.py", "tests.py"),
        ("a?c", "abc", "a/c"),
        ("a[0-9].txt", "a7.txt", "ab.txt"),
        ("a[!0-9].txt", "ab.txt", "a7.txt"),
        ("a.b", "a.b", "axb"),
        ("docs/**", "docs/a/b", "docs"),
        ("**/cache/**", "a/cache/b", "a/cached/b"),
        (r"a\*b", "a*b", "axb"),
    ],
)
def test_a_pattern_leaves_out_what_docker_would(pattern: str, out: str, stays: str) -> None:
    assert left_in([pattern], out, stays) == [stays]


def test_the_last_pattern_that_matches_decides() -> None:
    lines = ["# all but one", "", "data", "!data/keep.txt", "data/keep.txt.old"]
    names = ("data/a", "data/keep.txt", "data/keep.txt.old", "b")
    assert left_in(lines, *names) == ["data/keep.txt", "b"]


def test_a_folders_own_file_counts_and_the_projects_words_come_last(tmp_path: Path) -> None:
    for name in ("a.py", "a.log", "keep.log", "secret.env", "x/__pycache__/a.pyc", ".git/config"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / ".dockerignore").write_text("*.log\n!keep.log\n")
    (tmp_path / "link").symlink_to("a.py")
    rules = patterns.of_folder(tmp_path, ["*.env"])
    names = [path.name for path in patterns.kept(tmp_path, rules)]
    assert names == ["a.py", "keep.log", "link"]


def test_links_to_folders_are_kept_as_links_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a").write_text("")
    (tmp_path / "there").symlink_to("real")
    names = [p.relative_to(tmp_path).as_posix() for p in patterns.kept(tmp_path, ())]
    assert names == ["real/a", "there"]


@pytest.mark.parametrize("text", ["a[", "*.log", "!x", "é"])
def test_what_can_be_read_is_a_pattern(text: str) -> None:
    assert patterns.is_pattern(text)


@pytest.mark.parametrize("text", ["", "# words", "a[z-a]"])
def test_what_cannot_be_read_is_none(text: str) -> None:
    assert not patterns.is_pattern(text)
