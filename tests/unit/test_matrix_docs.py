"""docs/matrix.md tells what the reader does."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from matrix_samples import FULL

from gpulayers.matrix.load import read
from gpulayers.matrix.select import choose

PAGE = (Path(__file__).parents[2] / "docs" / "matrix.md").read_text(encoding="utf-8")
CHOSEN_NAMES = {"fleet", "base", "python", "model", "app", "framework"}  # [fleet.NAME] and so on


def keys(table: dict[str, object], *, named: bool) -> Iterator[str]:
    for key, value in table.items():
        if not named:
            yield key
        inner = value if isinstance(value, list) else [value]
        for item in inner:
            if isinstance(item, dict) and key not in {"env", "match"}:
                yield from keys(item, named=key in CHOSEN_NAMES and not named)


def test_the_whole_example_is_right_and_has_as_many_images_as_the_page_says(
    tmp_path: Path,
) -> None:
    example = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert example is not None
    path = tmp_path / "matrix.toml"
    path.write_text(example[1], encoding="utf-8")
    matrix, problems = read(path)
    assert [problem.format() for problem in problems] == []
    assert matrix is not None
    assert f"It has {len(choose(matrix).kept)} images" in PAGE


def test_every_key_is_on_the_page() -> None:
    known = set(keys(tomllib.loads(FULL), named=False)) | {"path", "package"}
    missing = [
        key
        for key in sorted(known)
        if not re.search(rf"`{key}`|^### \[+{key}\b", PAGE, re.MULTILINE)
    ]
    assert missing == []


def test_the_messages_on_the_page_are_the_real_ones(tmp_path: Path) -> None:
    path = tmp_path / "matrix.toml"
    path.write_text(
        "schema = 1\n\n\n\n\n\n\n[axes]\ncuda = ['12.8', 12.6]\n" + "\n" * 20 + "[images]\n"
        "os_packages = []\n"
    )
    messages = [problem.format() for problem in read(path)[1]]
    shown = [line for line in PAGE.splitlines() if line.startswith("matrix.toml:")]
    assert len(shown) == 2
    assert [line for line in shown if line not in messages] == []
