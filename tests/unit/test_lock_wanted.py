"""What a lock is asked for: from matrix and layers alone, so that it can be compared."""

import functools
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lock_samples import AMD64, DEMO, REPOSITORY, cells_of, packaged_library, read_matrix
from matrix_samples import FULL, write

from gpulayers.errors import ProjectError
from gpulayers.layer import Library
from gpulayers.lock import parts, wanted
from gpulayers.lock.wanted import Wanted
from gpulayers.matrix.model import Cell, FolderModel, Matrix
from gpulayers.versions import MajorMinor


@pytest.fixture(scope="module")
def library() -> Library:
    return packaged_library()


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return read_matrix(DEMO / "matrix.toml")


@pytest.fixture(scope="module")
def ask(matrix: Matrix, library: Library) -> Wanted:
    return wanted.gather(matrix, library, cells_of(matrix))


def model(folder: Path, *, check: str = "", smoke: str = "") -> FolderModel:
    folder.mkdir(exist_ok=True)
    return FolderModel(
        name="m",
        path=folder,
        check=folder / check if check else None,
        smoke=folder / smoke if smoke else None,
        requirements=(),
    )


def test_every_list_is_sorted_and_without_doubles(ask: Wanted) -> None:
    for name in ("bases", "os_packages", "layer_packages", "pythons", "closures", "models"):
        values = getattr(ask, name)
        assert list(values) == sorted(set(values)), name


def test_the_order_of_the_cells_does_not_matter(matrix: Matrix, library: Library) -> None:
    cells = cells_of(matrix)
    turned = wanted.gather(matrix, library, cells[::-1])
    assert turned == wanted.gather(matrix, library, cells)
    assert wanted.digest(turned) == wanted.digest(wanted.gather(matrix, library, cells))


def test_the_hash_does_not_depend_on_the_projects_folder(library: Library, tmp_path: Path) -> None:
    more = {name: replace(library.layers["cupy"], name=name) for name in ("torch", "jax")}
    own = replace(library, layers={**library.layers, **more})
    digests = set()
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        found = read_matrix(write(tmp_path / name, FULL))
        digests.add(wanted.digest(wanted.gather(found, own, cells_of(found))))
    assert len(digests) == 1


def test_the_hash_changes_with_what_is_wanted(ask: Wanted) -> None:
    more = replace(ask, models=(*ask.models, "other"))
    turned = replace(ask, bases=tuple((o, s, tuple(reversed(n))) for o, s, n in ask.bases))
    digests = {wanted.digest(one) for one in (ask, more, turned)}
    assert len(digests) == 3


def test_a_cuda_closure_is_shared_by_frameworks_with_the_same_parts(ask: Wanted) -> None:
    names = {one.of for one in ask.closures if not one.under}
    assert names == {f"cuda=={cuda} cublas,cudart,cufft,curand,nvrtc" for cuda in ("12.6", "12.8")}


def test_a_framework_stands_on_its_cuda_and_a_model_on_both(ask: Wanted) -> None:
    for one in ask.closures:
        if one.of.startswith("model "):
            assert [under.partition("==")[0] for under in one.under] == ["cuda", "onnxruntime-gpu"]
        elif one.under:
            assert [under.partition("==")[0] for under in one.under] == ["cuda"]


@pytest.mark.parametrize(
    ("cuda", "wanted_texts"),
    [
        ("12.6", ("nvidia-cublas-cu12", "nvidia-cuda-runtime-cu12==12.6.*")),
        ("13.0", ("nvidia-cublas", "nvidia-cuda-runtime==13.0.*")),
    ],
)
def test_parts_of_cuda_have_packages_of_their_own(cuda: str, wanted_texts: tuple[str, ...]) -> None:
    assert parts.alone(MajorMinor.parse(cuda), ("cublas", "cudart")) == wanted_texts


def test_a_framework_that_fixes_cuda_has_a_cuda_closure_of_its_own(library: Library) -> None:
    matrix = read_matrix(REPOSITORY / "matrix.toml")
    torch = [cell for cell in cells_of(matrix) if cell.framework.format() == "torch==2.8.0"][:1]
    closures = wanted.gather(matrix, library, torch).closures
    assert [one.platform for one in closures] == [AMD64, AMD64]
    low, high = closures
    assert low.of.endswith(" for torch==2.8.0")
    assert low.beside == high.requirements
    assert "torchvision==0.23.0" in high.requirements
    assert high.under == (low.of,)
    assert high.beside == high.mixed == ()


def test_what_stands_in_for_another_package_is_told_above_cuda_only(ask: Wanted) -> None:
    told = {(bool(one.under), one.stands_in_for) for one in ask.closures if "onnx" in one.of}
    assert told == {(True, ("onnxruntime",))}
    assert {one.stands_in_for for one in ask.closures if not one.under} == {()}


def test_requirements_have_the_values_of_the_cell(ask: Wanted) -> None:
    texts = {text for one in ask.closures for text in one.requirements}
    assert "cupy-cuda12x==13.6.0" in texts
    assert "onnxruntime-gpu[cudnn]==1.23.2" in texts
    assert "cuda-toolkit[cublas,cudart,cufft,curand,nvrtc]==12.8.*" in texts
    assert not any("{" in text for text in texts)


def test_a_placeholder_that_nobody_fills_is_told(matrix: Matrix) -> None:
    with pytest.raises(ProjectError, match=r"'x=={foo}': wanted .*\{version\}.*, found \{foo\}"):
        wanted.requirement_texts(["x=={foo}"], cells_of(matrix)[0], ())


def test_a_folder_model_without_requirements_has_no_closure(ask: Wanted) -> None:
    assert {one.of for one in ask.closures if one.of.startswith("model ")} == {"model magika"}
    assert ask.models == ("digits",)


def test_the_tools_have_a_base_even_when_the_matrix_names_none(ask: Wanted) -> None:
    assert [os for os, _, _ in ask.bases] == ["debian12", "debian13", "tools"]


def test_a_projects_own_base_for_the_tools_is_taken(matrix: Matrix, library: Library) -> None:
    base = replace(matrix.bases["debian12"], os="tools", sources=("r.example/d:12",), suite="s")
    own = replace(matrix, bases={**matrix.bases, "tools": base})
    found = wanted.gather(own, library, cells_of(own)).bases
    assert ("tools", "s", ("r.example/d:12",)) in found


def test_os_packages_of_project_base_and_layers_are_one_list(
    matrix: Matrix, library: Library
) -> None:
    base = replace(matrix.bases["debian12"], os_packages=("libgomp1",))
    own = replace(
        matrix,
        bases={**matrix.bases, "debian12": base},
        images=replace(matrix.images, os_packages=("curl", "ca-certificates")),
    )
    found = dict(wanted.gather(own, library, cells_of(own)).os_packages)
    assert found == {
        "debian12": ("ca-certificates", "curl", "libgomp1"),
        "debian13": ("ca-certificates", "curl"),
    }


def test_each_platform_has_closures_of_its_own(matrix: Matrix, library: Library) -> None:
    arm = replace(AMD64, architecture="arm64")
    both = replace(matrix, images=replace(matrix.images, platforms=(arm, AMD64)))
    cells = [
        cell
        for cell in cells_of(matrix)
        if library.layers[cell.framework.name].has_wheels(cell.framework.version, arm)
    ]
    one = wanted.gather(matrix, library, cells)
    two = wanted.gather(both, library, cells)
    assert one.closures
    assert len(two.closures) == 2 * len(one.closures)
    assert two.platforms == (AMD64, arm)


def test_components_of_the_project_replace_those_of_the_layer(
    matrix: Matrix, library: Library
) -> None:
    assert "cusolver" not in wanted.components(matrix, library.layers["cupy"])
    bare = replace(matrix, frameworks={})
    assert "cusolver" in wanted.components(bare, library.layers["cupy"])


def test_the_names_of_cuda_closures_do_not_depend_on_the_order_of_parts(
    matrix: Matrix, library: Library
) -> None:
    layer = library.layers["cupy"]
    turned = replace(layer, cuda_components=layer.cuda_components[::-1])
    bare = replace(matrix, frameworks={})
    assert wanted.components(bare, turned) == wanted.components(bare, layer)


def test_the_files_of_a_model_are_those_that_go_into_the_image(tmp_path: Path) -> None:
    found = model(tmp_path / "m", check="check.py", smoke="smoke")
    for name in ("b.bin", "a/x.bin", "check.py", "smoke/cpu.py", "a/__pycache__/x.pyc"):
        (found.path / name).parent.mkdir(parents=True, exist_ok=True)
        (found.path / name).write_text(name)
    (found.path / "link").symlink_to("b.bin")
    names = [path.relative_to(found.path).as_posix() for path in wanted.model_files(found)]
    assert names == ["a/x.bin", "b.bin", "link"]


def test_the_hash_of_a_model_sees_names_contents_modes_links_and_the_check(
    tmp_path: Path,
) -> None:
    found = model(tmp_path / "m", check="check.py")
    weights, check = found.path / "w.bin", found.path / "check.py"
    weights.write_text("1")
    check.write_text("")
    digests = [wanted.model_digest(found)[0]]

    def note() -> None:
        digests.append(wanted.model_digest(found)[0])

    weights.write_text("2")
    note()
    weights.chmod(0o755)
    note()
    weights.rename(found.path / "v.bin")
    note()
    check.write_text("raise SystemExit(1)")
    note()
    (found.path / "link").symlink_to("v.bin")
    note()
    (found.path / "link").unlink()
    (found.path / "link").symlink_to("gone.bin")
    note()
    assert len(digests) == len(set(digests))


def test_the_hash_of_a_model_does_not_see_times_umask_place_and_smoke(tmp_path: Path) -> None:
    digests = set()
    for number, name in enumerate(("one", "other")):
        found = model(tmp_path / name, smoke="smoke")
        weights = found.path / "w.bin"
        weights.write_text("1")
        weights.chmod(0o600 if number else 0o644)
        os.utime(weights, (number, number))
        (found.path / "smoke").mkdir()
        (found.path / "smoke" / "cpu.py").write_text(name)
        digests.add(wanted.model_digest(found))
    assert len(digests) == 1
    assert digests.pop()[1] == 1


def test_the_bytes_of_a_model_are_those_of_the_image(tmp_path: Path) -> None:
    found = model(tmp_path / "m", check="check.py")
    (found.path / "w.bin").write_bytes(b"x" * 1000)
    (found.path / "check.py").write_bytes(b"y" * 50)
    assert wanted.model_digest(found)[1] == 1000


@settings(deadline=None, max_examples=20)
@given(st.data())
def test_any_part_of_the_cells_wants_a_part_of_the_whole(data: st.DataObject) -> None:
    matrix, library = _repository()
    everything = cells_of(matrix)
    some = data.draw(st.lists(st.sampled_from(everything), unique=True, max_size=4))
    part = wanted.gather(matrix, library, some)
    whole = wanted.gather(matrix, library, everything)
    assert set(part.closures) <= set(whole.closures)
    assert set(part.bases) <= set(whole.bases)
    assert {one.of for one in part.closures if "==" in one.of and one.under} == _names(some)


@functools.cache
def _repository() -> tuple[Matrix, Library]:
    return read_matrix(DEMO / "matrix.toml"), packaged_library()


def _names(cells: list[Cell]) -> set[str]:
    return {cell.framework.format() for cell in cells}
