"""How cells are called."""

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrix_samples import FULL, axes, cell, matrix, write

from gpulayers.matrix import tags
from gpulayers.matrix.load import read
from gpulayers.matrix.select import choose
from gpulayers.refs import is_tag

WIDE = axes(
    os=("debian12", "debian13"),
    python=("3.11", "3.12"),
    cuda=("12.6", "12.8"),
    framework=("torch==2.8.0", "jax==0.7.2"),
    model=("none", "minilm"),
)


def test_a_matrix_of_one_value_each_is_called_by_its_framework() -> None:
    assert tags.tag(matrix(axes()), cell()) == "torch2.8.0"


def test_every_axis_with_more_than_one_value_is_spelled() -> None:
    full = cell(python="3.11", model="minilm")
    assert tags.tag(matrix(WIDE), full) == "torch2.8.0-cu128-py3.11-debian12-minilm"


def test_no_model_leaves_no_dash() -> None:
    assert tags.tag(matrix(WIDE), cell()) == "torch2.8.0-cu128-py3.12-debian12"


def test_an_include_makes_an_axis_spelled() -> None:
    found = matrix(axes(), includes=(cell(cuda="12.10"),))
    assert dict(tags.tags(found, choose(found).kept)) == {
        cell(): "torch2.8.0-cu128",
        cell(cuda="12.10"): "torch2.8.0-cu1210",
    }


@pytest.mark.parametrize(
    ("template", "model", "tag"),
    [
        ("{framework}-{cuda}-{python}-{os}-{model}", "none", "torch2.8.0-cu128-py3.12-debian12"),
        ("{model}-{os}", "none", "debian12"),
        ("{model}-{os}", "minilm", "minilm-debian12"),
        ("v1-{model}-{os}", "none", "v1-debian12"),
        ("x_{model}", "none", "x_"),
        ("{os}{os}", "none", "debian12debian12"),
    ],
)
def test_a_template_of_the_matrix_is_followed(template: str, model: str, tag: str) -> None:
    assert tags.tag(matrix(axes(), tag=template), cell(model=model)) == tag


def test_what_a_tag_cannot_hold_becomes_an_underscore() -> None:
    local = cell(framework="torch==2.8.0+cu128")
    assert tags.tag(matrix(axes()), local) == "torch2.8.0_cu128"


def test_the_highest_channel_has_the_plain_tag() -> None:
    found = matrix(axes())
    assert tags.channel_tag(found, cell(), "stable") == "torch2.8.0"
    assert tags.channel_tag(found, cell(), "edge") == "torch2.8.0-edge"


def test_there_is_room_for_the_key_or_the_longest_channel() -> None:
    assert tags.longest_suffix(matrix(axes())) == len("-0123456789ab")


def test_excluded_cells_have_no_tag(tmp_path: Path) -> None:
    found, _ = read(write(tmp_path, FULL))
    assert found is not None
    names = list(tags.tags(found, choose(found).kept).values())
    assert len(names) == len(set(names)) == 19
    assert names[-1] == "torch2.6.0-cu124-py3.11-debian12"
    assert not any(re.search("jax.*minilm", name) for name in names)


@given(
    st.sampled_from(["debian12", "ubuntu24.04"]),
    st.sampled_from(["torch==2.8.0", "torch==2.8.0+cu128", "a-b==1!2.0.post1"]),
    st.sampled_from(["none", "minilm", "all-minilm-l6.v2"]),
)
def test_a_tag_of_the_default_template_fits_the_grammar(
    os: str, framework: str, model: str
) -> None:
    assert is_tag(tags.tag(matrix(WIDE), cell(os=os, framework=framework, model=model)))


def test_ten_thousand_cells_are_read_checked_and_named_within_three_seconds(
    tmp_path: Path,
) -> None:
    def written(values: list[str]) -> str:
        return str(values).replace("'", '"')

    systems = [f"os{n}" for n in range(10)]
    text = f"""schema = 1
[images]
name = "gpu"
registry = "localhost:5000"
[axes]
os = {written(systems)}
python = {written([f"3.{n}" for n in range(10)])}
cuda = {written([f"12.{n}" for n in range(10)])}
framework = {written([f"torch==2.{n}.0" for n in range(10)])}
"""
    text += "".join(f'[base.{name}]\nsources = ["debian:12"]\n' for name in systems)
    path = write(tmp_path, text)
    start = time.perf_counter()
    found, problems = read(path)
    assert problems == ()
    assert found is not None
    assert len(set(tags.tags(found, choose(found).kept).values())) == 10_000
    assert time.perf_counter() - start < 3
