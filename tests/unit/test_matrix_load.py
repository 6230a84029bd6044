"""Reading a right matrix.toml, and files that are no TOML at all."""

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from matrix_samples import FULL, SMALL, write

from gpulayers.matrix.load import check_frameworks, read
from gpulayers.matrix.model import (
    ArtifactModel,
    Base,
    Budget,
    FolderModel,
    FrameworkOptions,
    Host,
    HubModel,
    Matrix,
    PackageModel,
    Recipe,
)
from gpulayers.matrix.select import choose
from gpulayers.refs import ImageRef, Platform
from gpulayers.versions import MajorMinor, Pin


def right(folder: Path, text: str) -> Matrix:
    matrix, problems = read(write(folder, text))
    assert [problem.format() for problem in problems] == []
    assert matrix is not None
    return matrix


def wrong(folder: Path, text: str) -> list[str]:
    matrix, problems = read(write(folder, text))
    assert matrix is None
    return [problem.format() for problem in problems]


def test_a_small_matrix_has_the_documented_defaults(tmp_path: Path) -> None:
    matrix = right(tmp_path, SMALL)
    images = matrix.images
    assert (images.tag, images.channels, images.user) == (None, ("edge", "stable"), "10001:0")
    assert images.platforms == (Platform("linux", "amd64"),)
    assert (images.os_packages, dict(images.env)) == ((), {})
    assert matrix.axes.model == ("none",)
    assert matrix.pythons == {"3.12": ("standalone",)}
    assert (matrix.budget, matrix.recipe) == (
        Budget(image_mb=None, layer_mb=None),
        Recipe(big_wheel_mb=40, max_layers=40, model_layer_mb=1000),
    )
    assert (matrix.fleet, matrix.excludes, matrix.includes) == ((), (), ())
    assert (dict(matrix.models), dict(matrix.frameworks)) == ({}, {})


def test_every_table_of_a_full_matrix_arrives(tmp_path: Path) -> None:
    matrix = right(tmp_path, FULL)
    assert matrix.path == tmp_path / "matrix.toml"
    assert matrix.images.name == "team/gpu"
    assert matrix.images.env == {"OMP_NUM_THREADS": "4"}
    assert matrix.fleet[0] == Host(name="ci", driver="535.183.01", gpus=("T4", "L4"))
    assert matrix.axes.cuda == (MajorMinor(12, 6), MajorMinor(12, 8))
    assert matrix.axes.framework == (Pin("torch", "2.7.1"), Pin("jax", "0.7.2"))
    assert [exclude.line for exclude in matrix.excludes] == [28, 32]
    assert matrix.excludes[1].match == {"framework": "jax==*", "model": "minilm,digits,tiny,boxed"}
    assert matrix.includes[0].format().startswith("os=debian12 python=3.11 cuda=12.4")
    assert matrix.bases["debian13"] == Base(
        os="debian13",
        sources=("docker.io/library/debian:13-slim",),
        suite="trixie",
        os_packages=("libgomp1",),
    )
    assert matrix.pythons == {"3.12": ("standalone",), "3.11": ("debian:bookworm", "standalone")}
    assert matrix.frameworks == {
        "torch": FrameworkOptions(cuda_components=("nvrtc",), requirements=("numpy>=2",))
    }
    assert matrix.budget == Budget(image_mb=6000, layer_mb=2000)
    assert matrix.recipe == Recipe(big_wheel_mb=30, max_layers=60, model_layer_mb=500)


def test_models_are_folders_with_absolute_paths_or_pinned_packages(tmp_path: Path) -> None:
    models = right(tmp_path, FULL).models
    folder = tmp_path.resolve() / "models"
    assert models["minilm"] == FolderModel(
        name="minilm",
        path=folder / "minilm",
        check=folder / "minilm" / "check.py",
        smoke=folder / "smoke",
        requirements=("tokenizers>=0.20",),
    )
    assert models["digits"] == PackageModel(
        name="digits",
        package=Pin("digits-weights", "1.0"),
        smoke=None,
        requirements=(),
    )


def test_models_that_are_fetched_say_from_where_and_to_which_place(tmp_path: Path) -> None:
    models = right(tmp_path, FULL).models
    assert models["tiny"] == HubModel(
        name="tiny",
        repository="acme/tiny",
        revision="v1.0",
        files=("*.safetensors", "config.json"),
        place="reference",
        check=None,
        smoke=None,
        requirements=(),
    )
    assert models["boxed"] == ArtifactModel(
        name="boxed",
        ref=ImageRef(registry="registry.example", repository="models/boxed", tag="1"),
        place="layer",
        check=tmp_path.resolve() / "models" / "minilm" / "check.py",
        smoke=None,
        requirements=(),
    )


def test_the_base_of_the_build_tools_needs_no_cell(tmp_path: Path) -> None:
    table = '[base.tools]\nsources = ["registry.example/debian:12"]\n'
    assert right(tmp_path, SMALL + table).bases["tools"].sources == ("registry.example/debian:12",)


def test_a_framework_table_without_components_leaves_the_layers_own(tmp_path: Path) -> None:
    matrix = right(tmp_path, SMALL + '[framework.torch]\nrequirements = ["numpy"]\n')
    assert matrix.frameworks["torch"].cuda_components is None


@pytest.mark.parametrize(
    "registry",
    ["localhost", "localhost:5000", "ghcr.io/acme", "[::1]:5000/a/b", "registry.example:443"],
)
def test_registries_that_docker_takes_for_one_are_taken(tmp_path: Path, registry: str) -> None:
    matrix = right(tmp_path, SMALL.replace("127.0.0.1:5000/acme", registry))
    assert matrix.images.registry == registry


@pytest.mark.parametrize(
    "registry", ["acme", "ghcr.io/", "ghcr.io/Acme", "http://ghcr.io", "host:99999", "a b.example"]
)
def test_registries_that_docker_would_not_take_are_refused(tmp_path: Path, registry: str) -> None:
    (problem,) = wrong(tmp_path, SMALL.replace("127.0.0.1:5000/acme", registry))
    assert "images.registry: wanted HOST[:PORT][/PATH]" in problem


def test_a_base_may_be_a_digest_alone(tmp_path: Path) -> None:
    digest = f"debian@sha256:{'0' * 64}"
    matrix = right(tmp_path, SMALL.replace("docker.io/library/debian:12-slim", digest))
    assert matrix.bases["debian12"].sources == (digest,)


def test_a_model_that_a_link_leads_out_of_the_project_is_refused(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "secret").mkdir()
    (project / "linked").symlink_to(tmp_path / "secret")
    (project / "loop").symlink_to("loop")
    text = SMALL.replace("framework =", 'model = ["out", "loop"]\nframework =')
    text += '[model.out]\npath = "linked"\n[model.loop]\npath = "loop"\n'
    out, loop = wrong(project, text)
    assert '"linked", which is not below it' in out
    assert "model.loop.path" in loop
    assert "missing file" in loop


def test_a_matrix_of_which_nothing_is_kept_is_right(tmp_path: Path) -> None:
    text = SMALL + '[[exclude]]\nmatch = { os = "*" }\nreason = "later"\n'
    assert choose(right(tmp_path, text)).kept == ()


def test_a_missing_file_is_one_problem_without_a_line(tmp_path: Path) -> None:
    matrix, (problem,) = read(tmp_path / "matrix.toml")
    assert matrix is None
    assert problem.line == 0
    assert "no such file" in problem.format()
    assert "gpulayers init" in problem.hint


def test_bytes_that_are_no_utf8_are_told_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "matrix.toml"
    path.write_bytes(b'schema = 1\nname = "\xff"\n')
    (problem,) = read(path)[1]
    assert problem.format() == (
        "matrix.toml:2: (encoding): wanted UTF-8, found the byte 0xff; save the file as UTF-8"
    )


def test_windows_line_ends_change_no_line_number(tmp_path: Path) -> None:
    path = tmp_path / "matrix.toml"
    path.write_bytes((SMALL + "[budget]\nimage-mb = 0\n").replace("\n", "\r\n").encode())
    (problem,) = read(path)[1]
    assert (problem.line, problem.key) == (16, "budget.image-mb")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("schema = 1\nname = 'x", 2),
        ("schema = 1\naxes = [\n  1,\n\n", 3),
        ("schema = 1\nschema = 1\n", 2),
        ("schema = " + "9" * 5000, 1),
    ],
    ids=["open-string", "open-array", "doubled-key", "too-long-a-number"],
)
def test_what_is_no_toml_is_one_problem_with_a_line(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "matrix.toml"
    path.write_text(text)
    (problem,) = read(path)[1]
    assert (problem.key, problem.line) == ("(syntax)", line)


@pytest.fixture
def no_collecting() -> Iterator[None]:
    """At the end of the stack, finalizers of what other tests left behind would fail."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_arrays_without_end_are_one_problem(tmp_path: Path, no_collecting: None) -> None:
    assert no_collecting is None
    depth = sys.getrecursionlimit() * 2
    path = tmp_path / "matrix.toml"
    path.write_text("a = " + "[" * depth + "]" * depth)
    (problem,) = read(path)[1]
    assert "nested hundreds deep" in problem.format()


def test_file_names_are_relative_to_the_project_that_is_given(tmp_path: Path) -> None:
    write(tmp_path, "")
    other = tmp_path / "ci" / "small.toml"
    other.parent.mkdir()
    other.write_text(FULL.replace('name = "team/gpu"', "name = 1"))
    (problem,) = read(other, root=tmp_path)[1]
    assert problem.format().startswith("ci/small.toml:4: images.name")


def test_a_problem_in_one_table_hides_none_in_another(tmp_path: Path) -> None:
    text = SMALL.replace('name = "gpu"', 'name = "GPU"').replace("12-slim", "latest")
    text += "[budget]\nimage-mb = 0\n[base.debian9]\nsources = ['debian:9']\n"
    assert [line.split(": ")[1] for line in wrong(tmp_path, text)] == [
        "images.name",
        "base.debian12.sources[0]",
        "budget.image-mb",
        "base.debian9",
    ]


def test_unknown_frameworks_are_told_where_they_are_used_first(tmp_path: Path) -> None:
    matrix = right(tmp_path, FULL)
    assert check_frameworks(matrix, {"torch", "jax"}) == ()
    (problem,) = check_frameworks(matrix, ["torchh", "jax"])
    assert problem.format() == (
        "matrix.toml:25: axes.framework[0]: wanted a framework that a layer is there for, "
        'found "torch"; did you mean torchh?'
    )


def test_an_unknown_framework_of_an_include_is_told_there(tmp_path: Path) -> None:
    matrix = right(tmp_path, FULL.replace("torch==2.6.0", "cupy==13.0"))
    (problem,) = check_frameworks(matrix, ["torch", "jax"])
    assert (problem.key, problem.line) == ("include[0].framework", 41)
