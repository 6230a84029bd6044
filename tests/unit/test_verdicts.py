"""Cells judged by facts: the reference fleet, and what `list --why` says of a fleet of hosts."""

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from lock_samples import REPOSITORY, packaged_library, read_matrix

from gpulayers.cli import main
from gpulayers.matrix import select
from gpulayers.matrix.model import FrameworkOptions, Matrix
from gpulayers.plan import sorting
from gpulayers.plan.sorting import Sorting
from gpulayers.plan.verdicts import Judging
from gpulayers.refs import Platform
from gpulayers.versions import Pin

AMD64, ARM64 = Platform("linux", "amd64"), Platform("linux", "arm64")
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


@cache
def sorted_reference() -> tuple[Judging, Sorting]:
    judging = Judging(reference())
    chosen = select.choose(reference())
    return judging, sorting.sort(judging, packaged_library(), chosen)


def cells_of(text: str) -> set[str]:
    return {cell.framework.format() for cell in sorted_reference()[1].kept if text in cell.format()}


def test_every_cell_is_in_exactly_one_of_three() -> None:
    found = sorted_reference()[1]
    every = [*found.kept, *found.impossible, *(cell for cell, _ in found.excluded)]
    assert len(every) == len(set(every)) == len(list(select.product(reference().axes)))
    assert set(every) == set(select.product(reference().axes))


def test_the_reference_fleet_keeps_what_was_locked_against_pypi() -> None:
    """What docs/frameworks.md tells of: the wheels of all of these were resolved for real."""
    found = sorted_reference()[1]
    assert len(found.kept) == 433
    assert sum(map(len, found.kept.values())) == 717


def test_no_kept_cell_of_the_reference_fleet_is_unknown_on_amd64() -> None:
    judging, found = sorted_reference()
    assert {judging.installable(cell, AMD64).verdict for cell in found.kept} == {"ok"}


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ("cuda=12.4", {"torch==2.6.0", "cupy==14.2.0", "onnxruntime-gpu==1.23.2"}),
        ("python=3.14 cuda=12.8", {"torch==2.10.0", "jax==0.10.2", "cupy==14.2.0"}),
        (
            "python=3.12 cuda=13.0",
            {"torch==2.14.1", "vllm==0.33.0", "jax==0.10.2", "cupy==14.2.0"}
            | {"onnxruntime-gpu==1.31.1"},
        ),
        (
            "cuda=13.2",
            {"torch==2.15.0", "jax==0.10.2", "cupy==14.2.0", "onnxruntime-gpu==1.31.1"},
        ),
    ],
)
def test_facts_keep_what_pypi_serves(values: str, kept: set[str]) -> None:
    assert cells_of(values) == kept


def test_each_impossible_cell_has_a_reason_with_a_source() -> None:
    for verdicts in sorted_reference()[1].impossible.values():
        for judged in verdicts.values():
            assert judged.verdict == "broken"
            assert all(reason.facts and reason.facts[0].source for reason in judged.decisive)


def test_what_would_work_is_named_and_does() -> None:
    judging, found = sorted_reference()
    cell = next(c for c in found.impossible if "cuda=12.6 framework=torch==2.8.0" in c.format())
    fixes = judging.explained(cell, AMD64).fixes
    assert [dict(fix.change) for fix in fixes][:2] == [{"index": "pytorch/cu126"}, {"cuda": "12.8"}]
    assert {fix.verdict for fix in fixes} == {"ok"}


def test_a_cell_stays_on_the_platforms_that_have_wheels() -> None:
    found = sorted_reference()[1]
    platforms = {cell.framework.format(): p for cell, p in found.kept.items()}
    assert platforms["tensorflow==2.21.0"] == (AMD64,)
    assert platforms["torch==2.14.1"] == (AMD64, ARM64)


def small(folder: Path, **parts: str) -> Path:
    """A matrix of torch 2.8.0 on CUDA 12.8 and 12.6, which PyPI serves for 12.8 alone."""
    text = f"""\
schema = 1
[images]
name = "gpu"
registry = "127.0.0.1:5000/acme"
platforms = {parts.get("platforms", '["linux/amd64"]')}
{parts.get("fleet", "")}
[axes]
os = ["debian12"]
python = ["3.12"]
cuda = {parts.get("cuda", '["12.6", "12.8"]')}
framework = {parts.get("framework", '["torch==2.8.0"]')}
[base.debian12]
sources = ["docker.io/library/debian@sha256:{"0" * 64}"]
{parts.get("more", "")}
"""
    (folder / "matrix.toml").write_text(text, encoding="utf-8")
    return folder


def run(folder: Path, command: str, *words: str) -> Result:
    return CliRunner().invoke(main, [command, "--project", str(folder), *words])


def host(name: str, driver: str, gpu: str) -> str:
    return f'[fleet.{name}]\ndriver = "{driver}"\ngpus = ["{gpu}"]\n'


def test_an_index_with_a_name_makes_its_variant_possible(tmp_path: Path) -> None:
    assert "1 kept, 1 impossible, 0 excluded" in run(small(tmp_path), "list").stdout
    more = '[framework.torch]\nindexes = ["pytorch/cu126", "pypi"]'
    done = run(small(tmp_path, more=more), "list")
    assert "2 kept, 0 impossible, 0 excluded" in done.stdout, done.stderr


def test_an_include_overrules_facts_with_a_warning(tmp_path: Path) -> None:
    more = INCLUDE.format(cuda="12.6")
    done = run(small(tmp_path, cuda='["12.8"]', more=more), "check")
    assert done.exit_code == 0, done.stderr
    assert "2 cells kept, 0 impossible" in done.stdout
    assert "kept as an include, and torch==2.8.0 cannot be installed" in done.stderr


INCLUDE = """[[include]]
os = "debian12"
python = "3.12"
cuda = "{cuda}"
framework = "torch==2.8.0"
model = "none"
"""


def test_an_include_of_the_axes_overrules_facts_and_excludes_alike(tmp_path: Path) -> None:
    more = '[[exclude]]\nmatch = { cuda = "12.8" }\nreason = "too new"\n'
    more += INCLUDE.format(cuda="12.6") + INCLUDE.format(cuda="12.8")
    done = run(small(tmp_path, more=more), "list")
    assert "2 kept, 0 impossible, 0 excluded" in done.stdout, done.stderr


def test_an_include_that_changes_nothing_is_refused(tmp_path: Path) -> None:
    done = run(small(tmp_path, more=INCLUDE.format(cuda="12.8")), "list")
    assert done.exit_code == 3
    assert "include[0]: wanted a cell of its own" in done.stderr
    assert "which the axes give already" in done.stderr


def test_nothing_but_impossible_cells_is_told_with_the_fact(tmp_path: Path) -> None:
    done = run(small(tmp_path, cuda='["12.6"]'), "check")
    assert done.exit_code == 4
    assert "1 cannot be: torch 2.8.0 cu126 is served by index pytorch/cu126" in done.stderr


def test_a_cell_that_runs_on_no_host_is_an_error_with_what_would(tmp_path: Path) -> None:
    done = run(small(tmp_path, fleet=host("old", "470.256.02", "RTX 2080 Ti")), "check")
    assert done.exit_code == 3
    assert "matrix.toml:14" in done.stderr
    assert "framework=torch==2.8.0 cuda=12.8 (1 cell), which runs on none" in done.stderr
    assert "old: broken: CUDA 12 runs from driver 525.60.13 on" in done.stderr
    assert "on old (RTX 2080 Ti), driver 570.124.06 would be ok" in done.stderr
    listed = run(tmp_path, "list", "--why")
    assert listed.exit_code == 0
    assert "old: RTX 2080 Ti: broken" in listed.stdout


def test_forward_compatibility_is_not_in_our_images_so_it_runs_nowhere(tmp_path: Path) -> None:
    fleet = host("old", "535.183.01", "A100")
    done = run(
        small(tmp_path, fleet=fleet, framework='["torch==2.14.1"]', cuda='["13.0"]'), "check"
    )
    assert done.exit_code == 3
    assert "needs-forward-compat" in done.stderr


def test_one_host_that_runs_it_is_enough_and_the_other_a_warning(tmp_path: Path) -> None:
    fleet = host("old", "470.256.02", "T4") + host("new", "580.95.05", "L4")
    done = run(small(tmp_path, fleet=fleet), "check")
    assert done.exit_code == 0, done.stderr
    assert "warning: host old: no kept cell is known to run there" in done.stderr
    assert "host new" not in done.stderr


def test_strict_refuses_what_is_unknown(tmp_path: Path) -> None:
    folder = small(tmp_path, framework='["torch==2.99.0"]')
    assert "is known of torch 2.99.0" in run(folder, "check").stderr
    done = run(folder, "check", "--strict")
    assert done.exit_code == 3
    assert "2 kept cells are not known to work" in done.stderr


def test_an_arm64_host_is_served_by_the_arm64_image_alone(tmp_path: Path) -> None:
    fleet = host("grace", "580.95.05", "GH200")
    done = run(
        small(tmp_path, fleet=fleet, framework='["torch==2.14.1"]', cuda='["13.0"]'), "check"
    )
    assert done.exit_code == 3
    both = '["linux/amd64", "linux/arm64"]'
    folder = small(
        tmp_path, fleet=fleet, framework='["torch==2.14.1"]', cuda='["13.0"]', platforms=both
    )
    done = run(folder, "check")
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize(
    ("tag", "said"),
    [
        ("12.4.0-base-ubuntu22.04", "nvidia/cuda:12.4.0 has ended (12.4.1 follows it)"),
        ("12.4-base-ubuntu22.04", "the tag names no patch release, and moves or is gone"),
    ],
)
def test_a_base_that_goes_away_is_warned_of(tmp_path: Path, tag: str, said: str) -> None:
    folder = small(tmp_path, cuda='["12.8"]')
    text = (folder / "matrix.toml").read_text().replace("debian12", "nvidia12.4-ubuntu22.04")
    text = text.replace("[base.nvidia12.4-ubuntu22.04]", '[base."nvidia12.4-ubuntu22.04"]')
    source = f"docker.io/nvidia/cuda:{tag}"
    text = re.sub(r"docker.io/library/debian@sha256:0+", source, text)
    text += '[python."3.12"]\nsources = ["standalone"]\n'
    (folder / "matrix.toml").write_text(text, encoding="utf-8")
    done = run(folder, "check")
    assert done.exit_code == 0, done.stderr
    assert f"warning: base nvidia12.4-ubuntu22.04: {source}: " in done.stderr
    assert said in done.stderr


def test_the_reference_fleet_stands_on_bases_that_stay() -> None:
    judging, found = sorted_reference()
    assert [line for line in sorting.warnings(judging, found) if line.startswith("base ")] == []


def test_a_requirement_of_the_project_is_judged_beside_the_framework(tmp_path: Path) -> None:
    more = '[framework.torch]\nrequirements = ["torchvision==0.22.1"]'
    done = run(small(tmp_path, cuda='["12.8"]', more=more), "check")
    assert done.exit_code == 4
    assert "torchvision 0.22.1 asks for torch==2.7.1" in done.stderr


def test_list_why_says_what_runs_on_each_host(tmp_path: Path) -> None:
    said = listed(with_fleet(tmp_path)).stdout
    assert "ci: T4, RTX 4090: ok-minor-compat: CUDA 12 runs from driver 525.60.13" in said
    assert re.search(r"new: B200: broken: torch 2\.6\.0 \(cu124\)", said)
    assert "[torch/build/2.6.0-cu124-amd64]" in said
    assert [
        line
        for line in said.splitlines()
        if line.startswith("  ") and len(line) > 80 and " http" not in line
    ] == []


def test_list_why_as_json_has_a_verdict_for_each_host_and_gpu(tmp_path: Path) -> None:
    found = json.loads(listed(with_fleet(tmp_path), "--json").stdout)
    (torch,) = [c for c in found["kept"] if c["cell"]["framework"] == "torch==2.8.0"]
    assert torch["install"]["verdict"] == "ok"
    assert torch["hosts"]["ci"]["T4"]["verdict"] == "ok-minor-compat"
    assert torch["hosts"]["ci"]["T4"]["facts"]
    assert torch["hosts"]["new"]["B200"]["verdict"] == "ok"


def test_a_gpu_of_the_fleet_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    done = listed(with_fleet(tmp_path, FLEET.replace('"T4"', '"T44"')))
    assert done.exit_code == 3
    assert "fleet.ci.gpus[0]: wanted a model as A100-80GB" in done.stderr
    assert "unknown GPU 'T44'" in done.stderr
    assert "did you mean" in done.stderr


def test_a_framework_of_the_projects_own_is_unknown_and_stays(tmp_path: Path) -> None:
    text = MATRIX.replace("torch==2.6.0", "torch==2.99.0")
    (tmp_path / "matrix.toml").write_text(text, encoding="utf-8")
    done = listed(tmp_path)
    assert done.exit_code == 0, done.stderr
    assert "facts: unknown: nothing is known of torch 2.99.0" in done.stdout


@pytest.mark.sweep
def test_list_why_of_the_reference_fleet_tells_of_each_cell_once_in_80_columns() -> None:
    done = run(REPOSITORY, "list", "--why")
    assert done.exit_code == 0
    assert [x for x in done.stdout.splitlines() if len(x) > 80 and "http" not in x] == []
    out = re.findall(r"^(?:impossible|excluded) +(\d+) cells?:", done.stdout, re.MULTILINE)
    kept = re.findall(r"^kept ", done.stdout, re.MULTILINE)
    assert len(kept) + sum(map(int, out)) == len(list(select.product(reference().axes)))


def test_list_json_of_the_reference_fleet_has_each_cell_once() -> None:
    found = json.loads(run(REPOSITORY, "list", "--json").stdout)
    every = [json.dumps(e["cell"]) for kind in found.values() for e in kind]
    assert len(every) == len(set(every)) == 6 * 4 * 6 * 12
    assert all(e["platforms"]["linux/amd64"]["facts"] for e in found["impossible"])


@pytest.mark.parametrize(
    ("text", "pin"),
    [
        ("NumPy==2.1.0", Pin("numpy", "2.1.0")),
        ("nvidia_cudnn_cu12[all] == 9.1", Pin("nvidia-cudnn-cu12", "9.1")),
        ("numpy==2.*", None),
        ("numpy==2.1; python_version < '3.12'", None),
        ("numpy>=2,==2.1", None),
        ("numpy", None),
    ],
)
def test_of_what_a_project_adds_exact_versions_are_judged(text: str, pin: Pin | None) -> None:
    matrix = reference()
    options = FrameworkOptions(cuda_components=None, requirements=(text,))
    name = matrix.axes.framework[0].name
    judging = Judging(replace(matrix, frameworks={name: options}))
    cell = next(c for c in select.choose(matrix).kept if c.framework.name == name)
    assert judging.query(cell, AMD64).packages == ((pin,) if pin is not None else ())
