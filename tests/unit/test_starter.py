"""`gpulayers init`: a project without problems, or nothing at all."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gpulayers import starter
from gpulayers.cli import main
from gpulayers.cli.loaded import Where, load
from gpulayers.errors import ProjectError
from gpulayers.starter import Choice
from gpulayers.versions import MajorMinor, Pin

NAMES = (
    ".gitignore",
    "README.md",
    "matrix.toml",
    "models/example/check.py",
    "models/example/smoke/cpu_example.py",
    "models/example/weights.json",
    "scans/policy.toml",
)


def init(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["init", "--no-lock", str(folder), *words])


def texts(folder: Path) -> dict[str, str]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in paths}


@pytest.mark.parametrize("exists", [True, False])
def test_a_new_project_has_all_files_and_no_problem(tmp_path: Path, *, exists: bool) -> None:
    folder = tmp_path / "project"
    if exists:
        folder.mkdir()
    result = init(folder)
    assert result.exit_code == 0, result.output
    assert tuple(texts(folder)) == NAMES
    assert result.stdout.split() == [str(folder / name) for name in NAMES]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["project"]
    checked = CliRunner().invoke(main, ["check", "--project", str(folder)])
    assert checked.stdout == "2 cells kept, 0 impossible, 0 excluded; no problems\n"


@pytest.mark.parametrize(
    ("words", "framework", "python"),
    [
        ((), "cupy==13.6.0", ("debian:bookworm",)),
        (("--python", "3.13"), "cupy==13.6.0", ("debian:trixie",)),
        (("--python", "3.12"), "cupy==13.6.0", None),
        (("--framework", "onnxruntime-gpu==1.23.2"), "onnxruntime-gpu==1.23.2", None),
    ],
)
def test_choices_stand_on_the_axes(
    tmp_path: Path, words: tuple[str, ...], framework: str, python: tuple[str, ...] | None
) -> None:
    result = init(tmp_path, "--registry", "r.example/team/", "--cuda", "12.6", *words)
    assert result.exit_code == 0, result.output
    matrix = load(Where(project=tmp_path, matrix=None, only=(), registry="")).matrix
    assert matrix.images.registry == "r.example/team"
    assert [each.format() for each in matrix.axes.framework] == [framework]
    assert [each.format() for each in matrix.axes.cuda] == ["12.6"]
    assert ("cupy" in matrix.frameworks) == framework.startswith("cupy")
    (version,) = matrix.axes.python
    if python is not None:
        assert matrix.pythons[version.format()] == python


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--framework", "cuppy==1"), 3, "did you mean cupy?"),
        (("--framework", "cupy"), 3, "is not NAME==VERSION"),
        (("--registry", "https://r.example"), 3, "images.registry"),
        (("--cuda", "12.8.1"), 3, "is not MAJOR.MINOR"),
    ],
)
def test_wrong_choices_write_nothing(
    tmp_path: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    result = init(tmp_path / "project", *words)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_every_file_in_the_way_is_named_and_kept(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine", encoding="utf-8")
    (tmp_path / "models").write_text("a file", encoding="utf-8")
    (tmp_path / ".gitignore").symlink_to("nowhere")
    before = sorted(path.name for path in tmp_path.iterdir())
    result = init(tmp_path)
    assert result.exit_code == 3
    assert "3 files are in the way" in result.stderr
    for name in before:
        assert f"\n  {name}" in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_other_files_of_a_folder_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mine.txt").write_text("mine", encoding="utf-8")
    assert init(tmp_path).exit_code == 0
    assert set(texts(tmp_path)) == {*NAMES, "models/mine.txt"}


def test_a_file_is_no_folder_for_a_project(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    result = init(tmp_path / "file")
    assert result.exit_code == 3
    assert "wanted a folder, or nothing there, found a file" in result.stderr


def test_a_write_that_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    choice = Choice(
        registry="r.example/team",
        framework=Pin("cupy", "13.6.0"),
        cuda=MajorMinor(12, 8),
        python=MajorMinor(3, 11),
    )

    def late(_: Path) -> None:
        # Somebody else writes one of the last files between our look and our move.
        (tmp_path / "scans").mkdir()
        (tmp_path / "scans" / "policy.toml").write_text("theirs", encoding="utf-8")

    with pytest.raises(ProjectError, match="cannot be written: File exists"):
        starter.write(tmp_path, starter.files(choice), late)
    assert texts(tmp_path) == {"scans/policy.toml": "theirs"}
    assert [path.name for path in tmp_path.iterdir()] == ["scans"]


def test_the_file_that_comes_with_us_says_the_defaults() -> None:
    choice = Choice(
        registry="127.0.0.1:5000/images",
        framework=Pin("cupy", "13.6.0"),
        cuda=MajorMinor(12, 8),
        python=MajorMinor(3, 11),
    )
    text = (Path(__file__).parents[2] / "starter" / "matrix.toml").read_text(encoding="utf-8")
    assert starter.matrix(text, choice) == text
