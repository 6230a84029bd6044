"""Whole rendered files of the repository's own matrix on a fixed lock, as they were agreed upon.

``GPULAYERS_UPDATE_GOLDEN=1 python -m pytest tests/unit/test_golden.py`` writes them anew: look at
the difference in git before you commit it.
"""

import difflib
import functools
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from lock_samples import DEMO, REPOSITORY, cells_of, lock_for, packaged_library, read_matrix

from gpulayers.lock import file, wanted
from gpulayers.plan.make import make
from gpulayers.plan.model import Ground
from gpulayers.render import files
from gpulayers.render.bake import Surroundings

GOLDEN = REPOSITORY / "tests" / "golden"
LOCK = GOLDEN / "matrix.lock.toml"
ROOT = "127.0.0.1:5000/acme"
NAMES = (
    "images/cupy13-6-0-cu126-debian12.Dockerfile",
    "images/onnxruntime-gpu1-23-2-cu128-debian13-digits.Dockerfile",
    "docker-bake.json",
)
UPDATE = "GPULAYERS_UPDATE_GOLDEN"


@functools.cache
def rendered() -> Mapping[str, str]:
    matrix, library = read_matrix(DEMO / "matrix.toml"), packaged_library()
    if os.environ.get(UPDATE):
        ask = wanted.gather(matrix, library, cells_of(matrix))
        file.write(LOCK, lock_for(ask, matrix))
    lock = file.read(LOCK)
    assert lock is not None
    plan = make(Ground(matrix=matrix, library=library, lock=lock, root=ROOT), cells_of(matrix))
    around = Surroundings(root=ROOT, name=matrix.images.name, project=DEMO)
    return files.render(plan, library, around)


def golden(name: str) -> Path:
    return GOLDEN / Path(name).name


@pytest.mark.parametrize("name", NAMES)
def test_the_rendered_file_is_the_one_that_was_agreed_upon(name: str) -> None:
    new = rendered()[name]
    path = golden(name)
    if os.environ.get(UPDATE):
        path.write_text(new, encoding="utf-8")
    old = path.read_text(encoding="utf-8")
    difference = difflib.unified_diff(
        old.splitlines(keepends=True),
        new.splitlines(keepends=True),
        fromfile=f"tests/golden/{path.name}",
        tofile="rendered now",
    )
    shown = "".join(difference)
    assert not shown, f"{shown}\nwanted this? {UPDATE}=1 writes it"


def test_no_golden_file_is_left_over() -> None:
    names = {golden(name).name for name in NAMES} | {LOCK.name, "README.md"}
    assert {path.name for path in GOLDEN.iterdir()} == names
