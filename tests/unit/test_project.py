"""Where a project and the packaged files are found."""

from pathlib import Path

import pytest

from gpulayers.errors import OptionError, ProjectError
from gpulayers.project import Project, find, layer_folders, packaged_data, scan_file


def a_project(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "matrix.toml").write_text("schema = 1\n")
    return folder


def test_the_nearest_folder_with_a_matrix_is_the_project(tmp_path: Path) -> None:
    a_project(tmp_path)
    inner = a_project(tmp_path / "a" / "b")
    (inner / "c" / "d").mkdir(parents=True)
    assert find(inner / "c" / "d", project=None, matrix=None).root == inner
    assert find(tmp_path / "a", project=None, matrix=None).root == tmp_path


def test_the_places_of_a_project_are_below_its_root(tmp_path: Path) -> None:
    assert find(a_project(tmp_path), project=None, matrix=None) == Project(
        root=tmp_path,
        matrix_file=tmp_path / "matrix.toml",
        state=tmp_path / ".gpulayers",
        layers=tmp_path / "layers",
        scans=tmp_path / "scans",
    )


def test_a_folder_called_matrix_toml_is_no_project(tmp_path: Path) -> None:
    a_project(tmp_path)
    (tmp_path / "a" / "matrix.toml").mkdir(parents=True)
    assert find(tmp_path / "a", project=None, matrix=None).root == tmp_path


def test_a_named_project_wins_over_the_nearest_one(tmp_path: Path) -> None:
    a_project(tmp_path)
    other = a_project(tmp_path / "other")
    assert find(tmp_path, project=Path("other"), matrix=None).root == other


def test_a_named_matrix_wins_over_both_and_its_folder_is_the_project(tmp_path: Path) -> None:
    a_project(tmp_path)
    file = a_project(tmp_path / "other") / "small.toml"
    file.write_text("schema = 1\n")
    found = find(tmp_path, project=None, matrix=Path("other/small.toml"))
    assert (found.root, found.matrix_file) == (file.parent, file)


def test_a_named_matrix_and_a_named_project_are_each_taken(tmp_path: Path) -> None:
    file = a_project(tmp_path / "ci") / "matrix.toml"
    (tmp_path / "plain").mkdir()
    found = find(tmp_path, project=Path("plain"), matrix=file)
    assert (found.root, found.matrix_file) == (tmp_path / "plain", file)


def test_without_any_project_the_message_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=f"found none in {tmp_path}") as caught:
        find(tmp_path, project=None, matrix=None)
    assert "gpulayers init" in caught.value.hint
    assert "--project DIR" in caught.value.hint


@pytest.mark.parametrize(
    ("project", "matrix", "message", "hint"),
    [
        (None, "gone.toml", "--matrix .*gone.toml: wanted a file, found nothing there", "init"),
        (None, "empty", "--matrix .*empty: wanted a file, found a folder", "--project"),
        ("gone", None, "--project .*gone: wanted a folder, found nothing there", "init"),
        ("file.toml", None, "--project .*file.toml: wanted a folder, found a file", "--matrix"),
        ("empty", None, "--project empty: wanted a folder with a matrix.toml", "init empty"),
    ],
)
def test_a_named_place_that_is_not_there_is_refused_with_what_to_do(
    tmp_path: Path, project: str | None, matrix: str | None, message: str, hint: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.toml").write_text("")
    with pytest.raises(OptionError, match=message) as caught:
        find(
            tmp_path,
            project=None if project is None else Path(project),
            matrix=None if matrix is None else Path(matrix),
        )
    assert hint in caught.value.hint


def test_in_a_checkout_the_packaged_files_are_the_checkouts_own() -> None:
    assert packaged_data() == Path(__file__).parents[2]


def test_packaged_layers_come_first_then_the_projects_own(tmp_path: Path) -> None:
    (tmp_path / "packaged" / "layers").mkdir(parents=True)
    project = Project.at(a_project(tmp_path / "mine"))
    packaged = tmp_path / "packaged"
    assert layer_folders(project, packaged=packaged) == (packaged / "layers",)
    project.layers.mkdir()
    assert layer_folders(project, packaged=packaged) == (packaged / "layers", project.layers)


def test_layers_of_the_checkout_are_not_taken_twice(tmp_path: Path) -> None:
    (tmp_path / "layers").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    project = Project.at(a_project(tmp_path))
    assert layer_folders(project, packaged=tmp_path) == (project.layers,)
    assert len(layer_folders(project, packaged=tmp_path / "link")) == 1


def test_a_scan_file_of_the_project_wins_over_the_packaged_one(tmp_path: Path) -> None:
    project = Project.at(a_project(tmp_path / "mine"))
    packaged = tmp_path / "packaged"
    assert scan_file(project, "policy.toml", packaged=packaged) == packaged / "scans/policy.toml"
    project.scans.mkdir()
    (project.scans / "policy.toml").write_text("")
    assert scan_file(project, "policy.toml", packaged=packaged) == project.scans / "policy.toml"
