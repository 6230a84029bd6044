"""The plan: a topological order, and keys that change with what they name and nothing else."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lock_samples import (
    AMD64,
    DEMO,
    MB,
    REPOSITORY,
    cells_of,
    hash_of,
    lock_for,
    packaged_library,
    read_matrix,
    with_base,
    with_wheel,
)

from gpulayers.errors import ProjectError
from gpulayers.layer import read_library
from gpulayers.lock import wanted
from gpulayers.lock.make import refresh_models
from gpulayers.matrix.model import Cell, FolderModel, PackageModel
from gpulayers.plan import keys
from gpulayers.plan.make import make
from gpulayers.plan.model import Ground, Image, Plan, Step
from gpulayers.versions import MajorMinor, Pin

ROOT = "127.0.0.1:5000/acme"
ARM64 = replace(AMD64, architecture="arm64")


def ground(**changes: object) -> Ground:
    """The repository's own project with a made-up lock."""
    matrix, library = read_matrix(DEMO / "matrix.toml"), packaged_library()
    lock = lock_for(wanted.gather(matrix, library, cells_of(matrix)), matrix)
    made = Ground(matrix=matrix, library=library, lock=lock, root=ROOT)
    return replace(made, **changes)  # type: ignore[arg-type]


GROUND = ground()


def plan_of(on: Ground, cells: tuple[Cell, ...] | None = None) -> Plan:
    return make(on, cells_of(on.matrix) if cells is None else cells)


PLAN = plan_of(GROUND)


def relocked(on: Ground) -> Ground:
    """The same with a lock for all that it wants now."""
    ask = wanted.gather(on.matrix, on.library, cells_of(on.matrix))
    return replace(on, lock=lock_for(ask, on.matrix))


def step_keys(plan: Plan) -> dict[str, str]:
    """Step to key; steps of one name on different things are told apart by what they hold."""
    found: dict[str, str] = {}
    for image in plan.images:
        for step in image.steps:
            found[f"{image.tag} {step.name}"] = step.key
    return found


def image_keys(plan: Plan) -> dict[str, str]:
    return {image.tag: image.key for image in plan.images}


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    assert before.keys() == after.keys()
    return {name for name in before if before[name] != after[name]}


def names(image: Image) -> list[str]:
    return [step.name for step in image.steps]


def find(plan: Plan, **values: str) -> Image:
    (found,) = [i for i in plan.images if values.items() <= i.cell.values().items()]
    return found


def test_the_plan_is_a_topological_order() -> None:
    for image in PLAN.images:
        above = {image.tools.stage}
        for step in image.steps:
            assert set(step.needs) <= above, step.name
            above.add(step.stage)
    above = {PLAN.tools.stage}
    for step in PLAN.steps:
        assert set(step.needs) <= above
        above.add(step.stage)


def test_every_cell_is_an_image_in_order_and_steps_are_unique() -> None:
    assert [image.cell for image in PLAN.images] == list(cells_of(GROUND.matrix))
    stages = [step.stage for step in PLAN.steps]
    assert len(stages) == len(set(stages))
    assert set(stages) == {step.stage for image in PLAN.images for step in image.steps}


def test_the_steps_of_an_image_run_from_the_os_to_the_model() -> None:
    image = find(PLAN, os="debian13", cuda="12.8", model="digits")
    assert names(image) == [
        "packages-debian13",
        "init",
        "python-3.11",
        "cuda-wheels",
        "nvidia-cublas-cu12-12.8.7",
        "nvidia-cufft-cu12-12.8.7",
        "onnxruntime-gpu-wheels",
        "nvidia-cudnn-cu12-9.10.0",
        "onnxruntime-gpu-1.23.2",
        "model-digits",
    ]


def test_a_package_model_is_a_step_of_wheels() -> None:
    assert names(find(PLAN, os="debian13", cuda="12.8", model="magika"))[-1] == (
        "model-magika-wheels"
    )


def test_the_same_project_gives_the_same_plan() -> None:
    assert plan_of(ground()) == PLAN


@settings(deadline=None, max_examples=10)
@given(st.randoms(use_true_random=False))
def test_keys_do_not_depend_on_any_order(random: object) -> None:
    assert hasattr(random, "shuffle")
    cells = list(cells_of(GROUND.matrix))
    files = list(GROUND.lock.wheels.items())
    layers = list(GROUND.library.layers.items())
    for items in (cells, files, layers):
        random.shuffle(items)
    turned = replace(
        GROUND,
        lock=replace(GROUND.lock, wheels=dict(files)),
        library=replace(GROUND.library, layers=dict(layers)),
    )
    plan = make(turned, cells)
    assert image_keys(plan) == image_keys(PLAN)
    assert step_keys(plan) == step_keys(PLAN)


@settings(deadline=None, max_examples=10)
@given(st.data())
def test_a_part_of_the_cells_is_planned_as_in_the_whole(data: st.DataObject) -> None:
    some = tuple(data.draw(st.lists(st.sampled_from(cells_of(GROUND.matrix)), unique=True)))
    part = plan_of(GROUND, some)
    assert {image.key for image in part.images} <= {image.key for image in PLAN.images}
    assert {step.stage for step in part.steps} <= {step.stage for step in PLAN.steps}


def test_keys_do_not_depend_on_the_registry() -> None:
    moved = plan_of(replace(GROUND, root="registry.example/other/path"))
    assert image_keys(moved) == image_keys(PLAN)
    assert moved.images[0].base.startswith("registry.example/other/path/base@sha256:")


def test_keys_do_not_depend_on_the_folder_of_project_and_layers(tmp_path: Path) -> None:
    for source in (DEMO / "matrix.toml", DEMO / "models", REPOSITORY / "layers"):
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, tmp_path / source.name)
    matrix = read_matrix(tmp_path / "matrix.toml")
    library = read_library([tmp_path / "layers"], root=tmp_path)[0]
    lock = lock_for(wanted.gather(matrix, library, cells_of(matrix)), matrix)
    plan = plan_of(Ground(matrix=matrix, library=library, lock=lock, root=ROOT))
    assert image_keys(plan) == image_keys(PLAN)
    assert step_keys(plan) == step_keys(PLAN)
    assert [s.values for s in plan.steps] == [s.values for s in PLAN.steps]


def test_a_changed_model_file_changes_its_step_and_the_images_that_have_it(
    tmp_path: Path,
) -> None:
    digits = GROUND.matrix.models["digits"]
    assert isinstance(digits, FolderModel)
    folder = tmp_path / "digits"
    shutil.copytree(digits.path, folder)
    moved = replace(digits, path=folder, check=folder / "check.py", smoke=folder / "smoke")
    matrix = replace(GROUND.matrix, models={**GROUND.matrix.models, "digits": moved})
    on = replace(GROUND, matrix=matrix, lock=refresh_models(matrix, GROUND.lock))
    assert step_keys(plan_of(on)) == step_keys(PLAN)
    with (folder / "model.onnx").open("ab") as file:
        file.write(b"x")
    after = plan_of(replace(on, lock=refresh_models(matrix, on.lock)))
    steps = changed(step_keys(PLAN), step_keys(after))
    assert {name.split(" ")[1] for name in steps} == {"model-digits"}
    images = changed(image_keys(PLAN), image_keys(after))
    assert images == {i.tag for i in PLAN.images if i.cell.model == "digits"}


def test_a_changed_wheel_changes_its_step_and_the_images_that_have_it() -> None:
    lock = with_wheel(GROUND.lock, "nvidia-cudnn-cu12", hash_of("new"))
    after = plan_of(replace(GROUND, lock=lock))
    steps = changed(step_keys(PLAN), step_keys(after))
    assert {name.split(" ")[1] for name in steps} == {"nvidia-cudnn-cu12-9.10.0"}
    images = changed(image_keys(PLAN), image_keys(after))
    assert images == {i.tag for i in PLAN.images if i.cell.framework.name == "onnxruntime-gpu"}


def test_a_changed_base_changes_the_os_step_and_the_images_of_that_os() -> None:
    lock = with_base(GROUND.lock, "debian12", f"sha256:{hash_of('patched')}")
    after = plan_of(replace(GROUND, lock=lock))
    steps = changed(step_keys(PLAN), step_keys(after))
    assert {name.split(" ")[1] for name in steps} == {"packages-debian12"}
    images = changed(image_keys(PLAN), image_keys(after))
    assert images == {i.tag for i in PLAN.images if i.cell.os == "debian12"}


def test_changed_tools_change_every_step_as_all_are_made_with_them() -> None:
    lock = with_base(GROUND.lock, "tools", f"sha256:{hash_of('other')}")
    after = plan_of(replace(GROUND, lock=lock))
    assert changed(step_keys(PLAN), step_keys(after)) == step_keys(PLAN).keys()


def test_steps_are_shared_across_os_frameworks_and_models() -> None:
    stages = {image.tag: {step.name: step.stage for step in image.steps} for image in PLAN.images}
    cupy = stages[find(PLAN, os="debian12", cuda="12.8", framework="cupy==13.6.0").tag]
    for os in ("debian12", "debian13"):
        for model in ("digits", "magika"):
            other = stages[find(PLAN, os=os, cuda="12.8", model=model).tag]
            for name in ("init", "python-3.11", "cuda-wheels", "nvidia-cublas-cu12-12.8.7"):
                assert cupy[name] == other[name]


def test_cuda_releases_share_no_step_of_cuda() -> None:
    one = find(PLAN, os="debian12", cuda="12.6", model="digits")
    two = find(PLAN, os="debian12", cuda="12.8", model="digits")
    shared = {s.name for s in one.steps} & {s.name for s in two.steps if s in one.steps}
    assert shared == {
        *("packages-debian12", "init", "python-3.11", "model-digits"),
        *("onnxruntime-gpu-wheels", "nvidia-cudnn-cu12-9.10.0", "onnxruntime-gpu-1.23.2"),
    }


def small_library(tmp_path: Path) -> Ground:
    shutil.copytree(REPOSITORY / "layers", tmp_path / "layers", dirs_exist_ok=True)
    library = read_library([tmp_path / "layers"], root=tmp_path)[0]
    return replace(GROUND, library=library)


@pytest.mark.parametrize(
    ("file", "steps"),
    [
        ("init/Dockerfile.j2", {"init"}),
        ("base/Dockerfile.j2", {"packages-debian12", "packages-debian13"}),
        ("cupy/Dockerfile.j2", {"cupy-cuda12x-13.6.0", "cupy-wheels"}),
        ("base/smoke/cpu_base.py", set()),
        ("identity.py", set()),
    ],
)
def test_a_changed_file_of_a_layer_changes_the_steps_that_it_makes(
    tmp_path: Path, file: str, steps: set[str]
) -> None:
    before = step_keys(plan_of(small_library(tmp_path)))
    assert before == step_keys(PLAN)
    with (tmp_path / "layers" / file).open("a") as text:
        text.write("# changed\n")
    after = step_keys(plan_of(small_library_again(tmp_path)))
    assert {name.split(" ")[1] for name in changed(before, after)} == steps


def small_library_again(tmp_path: Path) -> Ground:
    return replace(GROUND, library=read_library([tmp_path / "layers"], root=tmp_path)[0])


def test_a_changed_template_that_others_include_changes_their_steps(tmp_path: Path) -> None:
    before = step_keys(plan_of(small_library(tmp_path)))
    shared = tmp_path / "layers" / "wheels.j2"
    shared.write_text(shared.read_text() + "{% include 'more.j2' %}\n")
    between = step_keys(plan_of(small_library_again(tmp_path)))
    wheels = {name for name in before if "wheels" in name or "-cu12-" in name or "gpu-1" in name}
    assert wheels <= changed(before, between)
    (tmp_path / "layers" / "more.j2").write_text("# one more\n")
    assert wheels <= changed(between, step_keys(plan_of(small_library_again(tmp_path))))


def test_templates_are_followed_once_each_and_the_projects_own_first(tmp_path: Path) -> None:
    own, ours = tmp_path / "own", tmp_path / "ours"
    for folder in (own, ours):
        folder.mkdir()
    (ours / "a.j2").write_text('{% include "b.j2" %}{%- import "c.j2" as c %}{% include "gone" %}')
    (ours / "b.j2").write_text("{% extends 'a.j2' %}{% from 'c.j2' import x %}")
    (ours / "c.j2").touch()
    (own / "b.j2").write_text('{% include "a.j2" %}')
    found = keys.templates(ours / "a.j2", [own, ours])
    assert found == (ours / "a.j2", own / "b.j2", ours / "c.j2")


def test_big_wheels_are_steps_of_their_own_and_the_rest_of_a_layer_is_one() -> None:
    for image in PLAN.images:
        for step in image.steps:
            wheels = step.values.get("wheels")
            if wheels and step.size_bytes >= GROUND.matrix.recipe.big_wheel_mb * MB:
                assert isinstance(wheels, tuple)
                assert len(wheels) == 1
    cuda = [s for s in PLAN.images[0].steps if s.layer == "cuda"]
    lines = [line for s in cuda for line in s.values["wheels"]]  # type: ignore[union-attr]
    assert len(lines) == 6
    assert all(" --hash=sha256:" in str(line) for line in lines)


@pytest.mark.parametrize("most", [8, 9, 10, 12, 40])
def test_an_image_has_no_more_layers_than_the_recipe_says(most: int) -> None:
    recipe = replace(GROUND.matrix.recipe, max_layers=most, big_wheel_mb=1)
    on = replace(GROUND, matrix=replace(GROUND.matrix, recipe=recipe))
    for image in plan_of(on).images:
        assert len(image.steps) + 1 <= most


def test_where_there_is_little_room_the_biggest_wheels_are_still_alone() -> None:
    recipe = replace(GROUND.matrix.recipe, max_layers=9)
    on = replace(GROUND, matrix=replace(GROUND.matrix, recipe=recipe))
    image = find(plan_of(on), os="debian12", cuda="12.8", model="digits")
    assert [n for n in names(image) if "-cu12-" in n] == ["nvidia-cudnn-cu12-9.10.0"]


def test_however_wheels_are_cut_each_is_installed_once() -> None:
    def lines(plan: Plan) -> Iterator[list[str]]:
        for image in plan.images:
            steps = [step.values.get("wheels", ()) for step in image.steps]
            yield sorted(str(line) for wheels in steps for line in wheels)  # type: ignore[union-attr]

    recipe = replace(GROUND.matrix.recipe, max_layers=8)
    cut = plan_of(replace(GROUND, matrix=replace(GROUND.matrix, recipe=recipe)))
    assert list(lines(cut)) == list(lines(PLAN))
    for found in lines(PLAN):
        assert len(found) == len(set(found))


def twins(first: str, second: str) -> Ground:
    """A project whose two models have names that bake cannot tell apart."""
    models = {
        name: PackageModel(name=name, package=Pin("m", "1.0"), smoke=None, requirements=())
        for name in (first, second)
    }
    axes = replace(
        GROUND.matrix.axes,
        os=("debian12",),
        cuda=(MajorMinor(12, 8),),
        framework=(Pin("cupy", "13.6.0"),),
        model=(first, second),
    )
    matrix = replace(GROUND.matrix, axes=axes, models=models, excludes=())
    return relocked(replace(GROUND, matrix=matrix))


def test_two_tags_that_bake_cannot_tell_apart_are_refused_with_both_cells() -> None:
    with pytest.raises(ProjectError) as caught:
        plan_of(twins("mini.lm", "mini-lm"))
    message = str(caught.value)
    assert "found 'cupy13-6-0-mini-lm'" in message
    assert "model=mini.lm (tag cupy13.6.0-mini.lm)" in message
    assert "model=mini-lm (tag cupy13.6.0-mini-lm)" in message
    assert "change images.tag" in caught.value.hint


def test_names_that_bake_can_tell_apart_are_fine() -> None:
    targets = [image.target for image in plan_of(twins("mini.lm", "minilm")).images]
    assert targets == ["cupy13-6-0-mini-lm", "cupy13-6-0-minilm"]


@pytest.mark.parametrize(("tag", "target"), [("default", "image-default"), ("_", "image")])
def test_bakes_own_words_are_no_targets(tag: str, target: str) -> None:
    on = twins("a", "b")
    cell = cells_of(on.matrix)[0]
    images = replace(on.matrix.images, tag=tag)
    plan = make(replace(on, matrix=replace(on.matrix, images=images)), [cell])
    assert [image.target for image in plan.images] == [target]


@given(st.text())
def test_any_text_gives_a_name_that_bake_and_docker_take(text: str) -> None:
    assert set(keys.slug(text)) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert keys.slug(keys.slug(text)) == keys.slug(text)


def test_platforms_have_tools_bases_and_targets_of_their_own() -> None:
    images = replace(GROUND.matrix.images, platforms=(AMD64, ARM64))
    on = relocked(replace(GROUND, matrix=replace(GROUND.matrix, images=images)))
    plan = plan_of(on)
    # onnxruntime-gpu has no wheels for arm64 before 1.29, as its layer says: CuPy has.
    both = [image for image in plan.images if image.cell.framework.name == "cupy"]
    one = {image.platform for image in plan.images if image not in both}
    assert (one, len(both)) == ({AMD64}, 8)
    assert len({image.key for image in plan.images}) == len(plan.images)
    amd64, arm64 = both[:2]
    assert (amd64.platform, arm64.platform) == (AMD64, ARM64)
    assert arm64.target == f"{amd64.target}-arm64"
    assert arm64.tools.key != amd64.tools.key
    assert arm64.tools_base != amd64.tools_base
    assert arm64.expected.machine == "aarch64"
    assert plan.tools == amd64.tools
    for image in plan.images:
        assert image.steps[1].needs == (image.tools.stage,)


def test_the_stage_of_the_tools_is_the_one_that_templates_name() -> None:
    assert PLAN.tools.stage == "tools"


@pytest.mark.parametrize(
    "part", ["bases", "pythons", "closures", "models"], ids=lambda part: f"without {part}"
)
def test_a_lock_for_other_cells_is_a_key_error(part: str) -> None:
    nothing = {name: () for name in ("bases", "pythons", "closures", "models") if name == part}
    lock = replace(GROUND.lock, **nothing)  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        plan_of(replace(GROUND, lock=lock))


def test_what_an_image_says_of_itself_is_its_cell_its_base_and_its_libraries() -> None:
    image = find(PLAN, os="debian12", cuda="12.8", model="digits")
    labels = image.config.labels
    assert labels["io.gpulayers.cuda"] == "12.8"
    assert labels["io.gpulayers.framework.name"] == "onnxruntime-gpu"
    assert labels["io.gpulayers.key"] == image.key
    assert labels["org.opencontainers.image.version"] == image.tag
    assert labels["org.opencontainers.image.base.name"] == "bootstrap:bookworm"
    assert labels["io.gpulayers.wheel.nvidia-cudnn-cu12"] == "9.10.0"
    assert not any(ROOT in value or str(REPOSITORY) in value for value in labels.values())
    assert list(labels) == sorted(labels)


def test_the_environment_is_that_of_the_layers_and_the_projects_over_it() -> None:
    images = replace(GROUND.matrix.images, env={"PYTHONUNBUFFERED": "0", "MINE": "1"})
    on = replace(GROUND, matrix=replace(GROUND.matrix, images=images))
    config = plan_of(on).images[0].config
    assert config.env["PYTHONUNBUFFERED"] == "0"
    assert config.env["MINE"] == "1"
    assert config.env["VIRTUAL_ENV"] == "/opt/venv"
    assert config.entrypoint[0] == "/usr/bin/tini"
    assert changed(image_keys(PLAN), image_keys(plan_of(on))) == image_keys(PLAN).keys()
    assert step_keys(plan_of(on)) == step_keys(PLAN)


def test_an_image_says_which_drivers_it_needs() -> None:
    config = find(PLAN, os="debian12", cuda="12.8", model="digits").config
    assert config.labels["io.gpulayers.driver.minimum"] == "525.60.13"
    assert config.labels["io.gpulayers.driver.native"].startswith("570.")
    assert config.env["NVIDIA_REQUIRE_CUDA"] == "driver>=525.60.13,arch>=7.5"


def test_the_projects_own_requirement_stands() -> None:
    images = replace(GROUND.matrix.images, env={"NVIDIA_REQUIRE_CUDA": "cuda>=12.8"})
    on = replace(GROUND, matrix=replace(GROUND.matrix, images=images))
    assert plan_of(on).images[0].config.env["NVIDIA_REQUIRE_CUDA"] == "cuda>=12.8"


def test_what_a_base_asks_of_hosts_gives_way_to_what_the_image_needs() -> None:
    bases = tuple(replace(b, blanks=("NVIDIA_REQUIRE_CUDA",)) for b in GROUND.lock.bases)
    on = replace(GROUND, lock=replace(GROUND.lock, bases=bases))
    asked = {image.config.env["NVIDIA_REQUIRE_CUDA"] for image in plan_of(on).images}
    assert all(text.startswith("driver>=525.60.13") for text in asked)


def test_the_identity_to_prove_is_that_of_the_cell() -> None:
    expected = find(PLAN, os="debian12", cuda="12.6", framework="cupy==13.6.0").expected
    assert (expected.distribution, expected.module) == ("cupy-cuda12x", "cupy")
    assert (expected.version, expected.python, expected.cuda) == ("13.6.0", "3.11", "12.6")


def test_checks_run_in_the_order_of_the_layers_and_the_models_last() -> None:
    files = [path.name for path in find(PLAN, os="debian12", cuda="12.8", model="digits").smoke]
    assert files == [
        *("cpu_base.py", "cpu_python.py", "cpu_cuda.py", "gpu_cuda.py", "cpu_ort.py"),
        *("gpu_ort.py", "cpu_model.py", "cpu_digits.py", "gpu_digits.py"),
    ]


def test_what_a_model_leaves_out_are_words_for_a_shell(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    (folder / "my smoke").mkdir(parents=True)
    (folder / "it's.py").touch()
    digits = FolderModel(
        name="digits",
        path=folder,
        check=folder / "it's.py",
        smoke=folder / "my smoke",
        requirements=(),
    )
    matrix = replace(GROUND.matrix, models={**GROUND.matrix.models, "digits": digits})
    on = replace(GROUND, matrix=matrix, lock=refresh_models(matrix, GROUND.lock))
    step = find(plan_of(on), os="debian12", cuda="12.8", model="digits").steps[-1]
    assert step.values["leave_out"] == (
        "__pycache__",
        """'./it'"'"'s.py'""",
        "'./my smoke'",
    )
    assert step.values["check"] == """'it'"'"'s.py'"""


def test_only_plain_values_and_packages_have_a_key() -> None:
    with pytest.raises(TypeError, match="no key for"):
        keys.of_value({"a": object()})
    assert keys.of_value({"a": 1, "b": (1, 2)}) == keys.of_value({"b": [1, 2], "a": 1})


@pytest.mark.sweep
def test_a_fleet_of_five_hundred_images_is_planned_within_seconds() -> None:
    frameworks = tuple(Pin("cupy", f"13.{minor}.0") for minor in range(25))
    axes = replace(
        GROUND.matrix.axes,
        cuda=tuple(MajorMinor(12, minor) for minor in range(10)),
        framework=frameworks,
        model=("none",),
    )
    on = relocked(replace(GROUND, matrix=replace(GROUND.matrix, axes=axes, excludes=())))
    cells = cells_of(on.matrix)
    assert len(cells) == 500
    start = time.thread_time()
    plan = make(on, cells)
    assert time.thread_time() - start < 8
    assert len(plan.images) == 500


def test_a_step_is_what_its_name_says_of_its_layer() -> None:
    by_layer: dict[str, set[str]] = {}
    for step in PLAN.steps:
        assert isinstance(step, Step)
        by_layer.setdefault(step.layer, set()).add(step.name)
    assert by_layer["base"] == {"packages-debian12", "packages-debian13"}
    assert by_layer["model"] == {"model-digits", "model-magika-wheels"}


def test_wheels_of_a_model_from_two_indexes_are_two_steps() -> None:
    one = PackageModel(name="lm", package=Pin("m", "1.0"), smoke=None, requirements=("extra==2.0",))
    axes = replace(
        GROUND.matrix.axes,
        os=("debian12",),
        cuda=(MajorMinor(12, 8),),
        framework=(Pin("cupy", "13.6.0"),),
        model=("lm",),
    )
    matrix = replace(GROUND.matrix, axes=axes, models={"lm": one}, excludes=())
    on = relocked(replace(GROUND, matrix=matrix))
    wheels = {
        file: replace(wheel, index="own/cu126") if wheel.name == "extra" else wheel
        for file, wheel in on.lock.wheels.items()
    }
    (image,) = plan_of(replace(on, lock=replace(on.lock, wheels=wheels))).images
    found = {
        step.name: (step.values.get("uv_config"), [str(w).split()[0] for w in wheels_of(step)])
        for step in image.steps
        if step.name.startswith("model-lm-wheels")
    }
    assert found == {
        "model-lm-wheels": (None, ["m==1.0"]),
        "model-lm-wheels-own-cu126": ("uv-config-own-cu126", ["extra==2.0"]),
    }


def wheels_of(step: Step) -> tuple[object, ...]:
    found = step.values["wheels"]
    assert isinstance(found, tuple)
    return found
