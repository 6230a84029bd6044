"""Apps from matrix.toml to the rendered image: which images have one, what it brings, its key."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from lock_samples import (
    AMD64,
    REPOSITORY,
    cells_of,
    lock_for,
    packaged_library,
    read_matrix,
    wheel,
)

from gpulayers.layer import Library
from gpulayers.lock import apps as locked
from gpulayers.lock import wanted
from gpulayers.matrix import apps
from gpulayers.matrix.model import App, Matrix
from gpulayers.plan.make import make
from gpulayers.plan.model import Ground, Image, Plan
from gpulayers.render import bake, dockerfile
from gpulayers.render.bake import Surroundings

ROOT = "registry.example/acme"


@pytest.fixture(scope="module")
def library() -> Library:
    return packaged_library()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The example's folder, to be changed."""
    folder = tmp_path / "app"
    state = shutil.ignore_patterns(".gpulayers", "matrix.lock.toml", "__pycache__", "*.egg-info")
    shutil.copytree(REPOSITORY / "examples" / "app", folder, ignore=state)
    return folder


@pytest.fixture
def matrix(project: Path) -> Matrix:
    return read_matrix(project / "matrix.toml")


def plan_of(matrix: Matrix, library: Library) -> Plan:
    cells = cells_of(matrix)
    lock = lock_for(wanted.gather(matrix, library, cells), matrix)
    return make(Ground(matrix=matrix, library=library, lock=lock, root=ROOT), cells)


def changed(matrix: Matrix, name: str, **what: object) -> Matrix:
    app: App = replace(matrix.apps[name], **what)  # type: ignore[arg-type]
    return replace(matrix, apps={**matrix.apps, name: app})


def images(matrix: Matrix, library: Library) -> tuple[Image, Image]:
    """That of the web app, and that of the kernels."""
    web, kernels = plan_of(matrix, library).images
    return web, kernels


def names(image: Image) -> list[str]:
    return [step.name for step in image.steps]


def text_of(image: Image, library: Library) -> str:
    return dockerfile.text(image, dockerfile.environment(library))


def test_an_app_is_for_the_cells_that_it_matches(matrix: Matrix) -> None:
    found = [(cell.cuda.format(), apps.of(matrix, cell)) for cell in cells_of(matrix)]
    assert [(cuda, app.name if app else "") for cuda, app in found] == [
        ("12.6", "web"),
        ("13.0", "kernels"),
    ]
    none = replace(matrix, apps={})
    assert [apps.of(none, cell) for cell in cells_of(none)] == [None, None]


def test_a_lock_is_asked_for_an_apps_wheels_above_all_others(
    matrix: Matrix, library: Library
) -> None:
    found = wanted.gather(matrix, library, cells_of(matrix))
    shown = {one.of: (one.under[1:], one.requirements) for one in found.closures if one.under}
    devel = ("cuda-toolkit[cccl,cudart,nvcc]==12.6.*",)
    assert shown["app web"] == (("cupy==13.6.0",), ("orjson>=3.10",))
    assert shown["app web build"] == (
        ("cupy==13.6.0", "app web"),
        (*devel, "setuptools>=70"),
    )
    assert shown["devel"] == (("cupy==13.6.0",), ("cuda-toolkit[cccl,cudart,nvcc]==13.0.*",))
    assert shown["app kernels build"][0] == ("cupy==13.6.0", "devel")
    assert found.app_packages == (("app web", "debian12", ("ca-certificates", "jq")),)
    assert found.os_packages == (("debian12", ("ca-certificates",)),)
    assert ("app", ("g++", "libpython3.11-dev", "make")) in found.layer_packages


def test_a_project_without_apps_asks_for_nothing_of_theirs(
    matrix: Matrix, library: Library
) -> None:
    none = replace(matrix, apps={})
    found = wanted.gather(none, library, cells_of(none))
    assert found.app_packages == ()
    assert "app" not in dict(found.layer_packages)
    assert {one.of.partition("=")[0] for one in found.closures} == {"cuda", "cupy"}


def test_a_requirements_file_and_its_hashes_are_part_of_what_is_wanted(
    project: Path, matrix: Matrix, library: Library
) -> None:
    path = project / "requirements.txt"
    own = changed(matrix, "web", requirements_file=path)
    found = []
    for text in ("a==1\n", "a==2\n", f"a==2 --hash=sha256:{'a' * 64}\n"):
        path.write_text(text)
        found.append(wanted.gather(own, library, cells_of(own)))
    assert len({wanted.digest(one) for one in found}) == 3
    (one,) = (one for one in found[-1].closures if one.of == "app web")
    assert one.hashes == (("a", "a" * 64),)
    assert one.requirements == ("orjson>=3.10", "a==2")


def test_what_an_extension_needs_to_run_is_wanted_too(
    project: Path, matrix: Matrix, library: Library
) -> None:
    file = project / "fast" / "pyproject.toml"
    text = file.read_text().replace("[project]", '[project]\ndependencies = ["idna>=3"]')
    file.write_text(text)
    found = wanted.gather(matrix, library, cells_of(matrix))
    (one,) = (one for one in found.closures if one.of == "app web")
    assert one.requirements == ("orjson>=3.10", "idna>=3")


NUMPY = (wheel("numpy", "2.1.0"), wheel("cupy-cuda12x", "13.6.0"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("NumPy<2", "it wants NumPy<2, the layers below have NumPy 2.1.0, which stays"),
        ("cupy_cuda12x==14.0", "the layers below have cupy_cuda12x 13.6.0, which stays"),
        ("numpy>=2", ""),
        ("numpy", ""),
        ("numpy<2; python_version < '3.10'", ""),
        ("numpy<2; platform_machine == 'x86_64'", "numpy 2.1.0"),
        ("orjson<1", ""),
    ],
)
def test_a_requirement_that_would_replace_a_lower_layers_package_is_named(
    text: str, told: str
) -> None:
    found = locked.clash([text], NUMPY, "3.11", AMD64)
    assert told in found if told else found == ""


def test_a_wheel_without_a_listed_hash_is_named() -> None:
    one = wheel("a", "1")
    assert locked.strange_hash([("a", "0" * 64), ("a", one.sha256)], [one]) == ""
    assert locked.strange_hash([("b", "0" * 64)], [one]) == ""
    assert one.file in locked.strange_hash([("a", "0" * 64)], [one])


def test_an_app_stands_on_top_and_its_source_highest(matrix: Matrix, library: Library) -> None:
    web, kernels = images(matrix, library)
    assert names(web)[-3:] == ["app-wheels", "app-web-fast", "app-web"]
    assert names(kernels)[-3:] == ["devel-wheels", "cuda-home", "app-kernels-kernels"]
    assert web.layer_names[-3:] == ("app-web", "workdir", "identity")
    assert kernels.layer_names[-2:] == ("app-kernels-kernels", "identity")


def test_wheels_that_only_compile_are_not_in_the_image(matrix: Matrix, library: Library) -> None:
    pinned = changed(matrix, "web", requirements=("orjson==3.10.0",))
    web, kernels = images(pinned, library)
    assert web.wheels["orjson"] == "3.10.0"
    assert "setuptools" not in web.wheels
    assert "nvidia-nvcc-cu12" not in web.wheels
    assert "nvidia-nvcc-cu12" in kernels.wheels


def test_an_image_says_what_its_app_says(matrix: Matrix, library: Library) -> None:
    web, kernels = images(matrix, library)
    config = web.config
    assert config.entrypoint == ("/usr/bin/tini", "-g", "--", "python", "-m", "service")
    assert (config.command, config.user) == (("--port", "8080"), "12345:0")
    assert (config.workdir, config.ports) == ("/opt/app", ("8080/tcp",))
    assert config.env["SERVICE_GREETING"] == "hello"
    assert config.labels["io.gpulayers.app"] == "web"
    assert [path.name for path in web.smoke][-1:] == ["cpu_web.py"]
    assert kernels.config.entrypoint == ("/usr/bin/tini", "-g", "--")
    assert (kernels.config.command, kernels.config.user) == (("python",), "10001:0")
    assert kernels.config.env["CUDA_HOME"] == "/opt/cuda"
    assert "cpu_devel.py" in [path.name for path in kernels.smoke]


def test_the_rendered_image_holds_docker_instructions_for_it(
    matrix: Matrix, library: Library
) -> None:
    web, kernels = images(matrix, library)
    text = text_of(web, library)
    final = text[text.index("FROM base AS final") : text.index("AS identity")]
    assert "\nWORKDIR /opt/app\nEXPOSE 8080/tcp\n" in final
    assert "HEALTHCHECK --interval=2s --timeout=5s --start-period=1s --retries=3 \\\n" in final
    assert f"    CMD {json.dumps(['python', '-m', 'service.healthy', '8080'])}\n" in final
    assert 'ENTRYPOINT ["/usr/bin/tini", "-g", "--", "python", "-m", "service"]' in final
    assert final.index("COPY") < final.index("WORKDIR"), "its folder is there by then"
    assert not re.search("WORKDIR|EXPOSE|HEALTHCHECK", text_of(kernels, library))


def test_nothing_of_the_compiler_is_copied_into_the_image(matrix: Matrix, library: Library) -> None:
    text = text_of(images(matrix, library)[0], library)
    final = text[text.index("FROM base AS final") :]
    assert "-compiler" in text
    assert not re.search(r"--from=\S+-(compiler|wheel) ", final)


def test_folders_are_contexts_of_the_bake_file(
    project: Path, matrix: Matrix, library: Library
) -> None:
    around = Surroundings(root=ROOT, name="app", project=project)
    document = json.loads(bake.text(plan_of(matrix, library), around))
    target = document["target"]["cupy13-6-0-cu126"]
    assert target["contexts"]["app-web"] == "${PROJECT}/web"
    assert target["contexts"]["app-web-fast"] == "${PROJECT}/fast"


def test_a_change_of_the_source_makes_its_own_step_anew_and_no_other(
    project: Path, matrix: Matrix, library: Library
) -> None:
    before = images(matrix, library)
    (project / "web" / "service" / "healthy.py").write_text("print('well')\n")
    after = images(matrix, library)
    assert after[1].key == before[1].key
    assert after[0].key != before[0].key
    pairs = zip(before[0].steps, after[0].steps, strict=True)
    assert [new.name for old, new in pairs if old.key != new.key] == ["app-web"]


@pytest.mark.parametrize("name", ["web/README.md", "web/service/__pycache__/a.pyc", "README.md"])
def test_what_is_left_out_changes_nothing(
    project: Path, matrix: Matrix, library: Library, name: str
) -> None:
    before = images(matrix, library)
    (project / name).parent.mkdir(exist_ok=True)
    (project / name).write_text("other words\n")
    assert images(matrix, library) == before


def test_a_change_of_an_extension_makes_only_its_wheel_anew(
    project: Path, matrix: Matrix, library: Library
) -> None:
    before = images(matrix, library)[0]
    (project / "fast" / "fastsum.c").write_text("/* other */\n")
    after = images(matrix, library)[0]
    pairs = zip(before.steps, after.steps, strict=True)
    assert [new.name for old, new in pairs if old.key != new.key] == ["app-web-fast"]


@pytest.mark.parametrize(
    "what",
    [
        {"ports": ("9000/tcp",)},
        {"workdir": "/srv"},
        {"health_check": None},
        {"command": ("--port", "1")},
        {"entrypoint": ()},
        {"user": "1:1"},
        {"env": {}},
        {"target": "/srv/web"},
        {"leave_out": ()},
        {"source": None},
    ],
    ids=lambda what: next(iter(what)),
)
def test_every_choice_is_part_of_the_images_key(
    matrix: Matrix, library: Library, what: dict[str, object]
) -> None:
    keys = {images(one, library)[0].key for one in (matrix, changed(matrix, "web", **what))}
    assert len(keys) == 2


def test_big_wheels_of_an_app_are_steps_of_their_own(matrix: Matrix, library: Library) -> None:
    big = changed(matrix, "web", requirements=("onnxruntime-gpu==1.23.2",))
    assert "onnxruntime-gpu-1.23.2" in names(images(big, library)[0])
    few = replace(big, recipe=replace(big.recipe, max_layers=12))
    assert "onnxruntime-gpu-1.23.2" not in names(images(few, library)[0])


def test_all_images_of_an_app_share_its_source(matrix: Matrix, library: Library) -> None:
    everywhere = changed(replace(matrix, apps={"web": matrix.apps["web"]}), "web", match={})
    web, other = images(everywhere, library)
    assert web.steps[-1] == other.steps[-1]


def test_what_an_extension_is_built_with_is_asked_of_the_index_that_has_it(
    matrix: Matrix, library: Library
) -> None:
    cells = cells_of(matrix)
    lock = lock_for(wanted.gather(matrix, library, cells), matrix)
    wheels = {
        file: replace(wheel, index="own/cu126") if wheel.name.startswith("setuptools") else wheel
        for file, wheel in lock.wheels.items()
    }
    elsewhere = replace(lock, wheels=wheels)
    web = make(Ground(matrix=matrix, library=library, lock=elsewhere, root=ROOT), cells).images[0]
    text = text_of(web, library)
    part = text[text.index("id=uv-config-own-cu126,") :]
    assert part.index("setuptools") < part.index("\nWHEELS\n")
    plainly = text_of(images(matrix, library)[0], library)
    assert "id=uv-config-own" not in plainly
    assert plainly.count("uv pip install -q --no-cache") + 1 == text.count(
        "uv pip install -q --no-cache"
    )
