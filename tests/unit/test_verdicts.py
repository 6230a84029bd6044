"""Cells judged by facts: the reference fleet, and what `list --why` says of a fleet of hosts."""

import json
import re
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from lock_samples import REPOSITORY, read_matrix

from gpulayers.cli import main
from gpulayers.facts.find import FactError
from gpulayers.matrix import select
from gpulayers.matrix.model import Matrix
from gpulayers.plan.verdicts import Judging
from gpulayers.refs import Platform

AMD64 = Platform("linux", "amd64")
MATRIX = (REPOSITORY / "matrix.toml").read_text(encoding="utf-8")
FLEET = """
[fleet.ci]
driver = "535.183.01"
gpus = ["T4", "RTX 4090"]

[fleet.new]
driver = "580.95.05"
gpus = ["B200"]

[axes]"""


@cache
def reference() -> Matrix:
    return read_matrix(REPOSITORY / "matrix.toml")


def with_fleet(folder: Path, fleet: str = FLEET) -> Path:
    (folder / "matrix.toml").write_text(MATRIX.replace("\n[axes]", fleet, 1), encoding="utf-8")
    return folder


def listed(folder: Path, *words: str) -> Result:
    only = ("--only", "os=debian12", "--only", "python=3.12")
    return CliRunner().invoke(main, ["list", "--why", "--project", str(folder), *only, *words])


def test_every_cell_that_the_reference_fleet_keeps_can_be_installed() -> None:
    judging = Judging(reference())
    kept = select.choose(reference()).kept
    words = {judging.of(cell, AMD64).install.verdict for cell in kept}
    assert words == {"ok"}


def test_facts_agree_with_the_excludes_that_pythons_decide() -> None:
    judging = Judging(reference())
    for cell, exclude in select.choose(reference()).excluded:
        if exclude.reason == "no wheels for Python 3.14":
            found = judging.of(cell, AMD64).install
            assert found.verdict == "broken"
            assert "python" in {reason.rule for reason in found.decisive}


def test_what_is_not_on_plain_pypi_is_on_an_index_with_a_name() -> None:
    """What the other excludes of facts take out is broken, or served by PyTorch's own indexes."""
    judging = Judging(reference())
    for cell, exclude in select.choose(reference()).excluded:
        if "PyPI" not in exclude.reason:
            continue
        found = judging.of(cell, AMD64).install
        said = " ".join(reason.text for reason in found.reasons)
        assert found.verdict == "broken" or "pytorch/" in said or found.verdict == "unknown", said


def test_list_why_says_what_runs_on_each_host(tmp_path: Path) -> None:
    said = listed(with_fleet(tmp_path)).stdout
    assert "ci: T4, RTX 4090: ok-minor-compat: CUDA 12 runs from driver 525.60.13" in said
    assert re.search(r"new: B200: broken: torch 2\.6\.0 \(cu124\)", said)
    assert "[torch/build/2.6.0-cu124-amd64]" in said
    assert [line for line in said.splitlines() if line.startswith("  ") and len(line) > 80] == []


def test_list_why_as_json_has_a_verdict_for_each_host_and_gpu(tmp_path: Path) -> None:
    found = json.loads(listed(with_fleet(tmp_path), "--json").stdout)
    (torch,) = [c for c in found["kept"] if c["cell"]["framework"] == "torch==2.8.0"]
    assert torch["install"]["verdict"] == "ok"
    assert torch["hosts"]["ci"]["T4"]["verdict"] == "ok-minor-compat"
    assert torch["hosts"]["ci"]["T4"]["facts"]
    assert torch["hosts"]["new"]["B200"]["verdict"] == "ok"


def test_without_why_nothing_is_judged(tmp_path: Path) -> None:
    with_fleet(tmp_path, FLEET.replace('"T4"', '"T44"'))
    done = CliRunner().invoke(main, ["list", "--project", str(tmp_path)])
    assert done.exit_code == 0
    assert "ok-minor-compat" not in done.stdout


def test_a_gpu_of_the_fleet_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    done = listed(with_fleet(tmp_path, FLEET.replace('"T4"', '"T44"')))
    assert done.exit_code == FactError.exit_code
    assert "unknown GPU 'T44'" in done.stderr
    assert "did you mean" in done.stderr


def test_a_framework_of_the_projects_own_is_unknown_and_stays(tmp_path: Path) -> None:
    text = MATRIX.replace("torch==2.6.0", "torch==2.99.0")
    (tmp_path / "matrix.toml").write_text(text, encoding="utf-8")
    done = listed(tmp_path)
    assert done.exit_code == 0, done.stderr
    assert "facts: unknown: nothing is known of torch 2.99.0" in done.stdout


@pytest.mark.parametrize("word", ["--why", "--json"])
def test_list_of_the_whole_reference_fleet_ends_well(word: str) -> None:
    done = CliRunner().invoke(main, ["list", "--project", str(REPOSITORY), word])
    assert done.exit_code == 0
