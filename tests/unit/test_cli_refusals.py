"""What is wrong in a project is refused before anything starts: whole, and nothing is written."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gpulayers.cli import main
from gpulayers.engine import process

DIGEST = f"sha256:{'0' * 64}"
MATRIX = f"""\
schema = 1

[images]
name = "gpu"
registry = "127.0.0.1:5000/acme"

[axes]
os = ["debian12", "debian13"]
python = ["3.11"]
cuda = ["12.6"]
framework = ["cupy==13.6.0"]
model = ["none", "words"]

[base.debian12]
sources = ["registry.example/debian@{DIGEST}"]

[base.debian13]
sources = ["registry.example/debian@{DIGEST}"]

[model.words]
path = "models/words"
"""
LAYER = """\
schema = 1
kind = "tool"
description = "One of two that need each other."
needs = ["{need}"]
"""
SECRETS = 'secrets = ["hf-token"]\n'
LAYERS = Path(__file__).parents[2] / "layers"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A right project; where something is to run, it is an error of its own."""

    def refuse(*argv: object, **_: object) -> None:
        msg = f"something was started: {argv}"
        raise AssertionError(msg)

    monkeypatch.setattr(process, "run", refuse)
    write(tmp_path / "matrix.toml", MATRIX)
    write(tmp_path / "models" / "words" / "words.txt", "words")
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def files(folder: Path) -> dict[Path, bytes]:
    """All that was written; the file that only one run may hold is empty and says nothing."""
    held = folder / ".gpulayers" / "lock"
    found = (path for path in folder.rglob("*") if path.is_file() and path != held)
    return {path: path.read_bytes() for path in found}


def refused(project: Path, *words: str, command: str = "build") -> Result:
    """Run a command that must leave everything as it was."""
    before = files(project)
    result = CliRunner().invoke(main, [command, "--project", str(project), *words])
    assert files(project) == before
    assert not files(project / ".gpulayers").keys() - {project / ".gpulayers" / "lock"}
    assert result.stdout == ""
    return result


def change(project: Path, old: str, new: str) -> None:
    text = (project / "matrix.toml").read_text(encoding="utf-8")
    assert old in text
    write(project / "matrix.toml", text.replace(old, new))


WRONG = {
    "unknown key": ("name = ", "nmae = 'x'\nname = ", "images.nmae", "did you mean name?"),
    "wrong type": ('cuda = ["12.6"]', "cuda = 12.6", "axes.cuda", "a float (12.6)"),
    "wrong type in a list": ('["12.6"]', "[12.6]", "axes.cuda[0]", 'in quotes: "12.6"'),
    "unknown framework": ("cupy==", "cuppy==", '"cuppy"', "did you mean cupy?"),
    "axis value used nowhere": (
        "[base.debian12]",
        '[[exclude]]\nmatch = { model = "words" }\nreason = "no"\n[base.debian12]',
        "axes.model[1]",
        '"words"',
    ),
    "table used nowhere": (
        "[model.words]",
        '[model.other]\npath = "models/words"\n[model.words]',
        "model.other",
        "which nothing uses",
    ),
    "duplicate tags": ("name = ", 'tag = "{framework}-{model}"\nname = ', "images.tag", "debian1"),
    "tag outside the grammar": (
        "name = ",
        'tag = "-{framework}-{os}-{model}"\nname = ',
        "images.tag",
        "-cupy13.6.0-debian12",
    ),
    "tag too long": (
        "name = ",
        f'tag = "{{framework}}-{{os}}-{{model}}-{"x" * 120}"\nname = ',
        "images.tag",
        "128",
    ),
    "missing folder": ('"models/words"', '"models/wrods"', "model.words.path", "models/wrods"),
    "missing check": (
        'path = "models/words"',
        'path = "models/words"\ncheck = "models/words/check.py"',
        "model.words.check",
        "models/words/check.py",
    ),
}


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("command", ["build", "check", "lock", "plan", "render"])
def test_a_wrong_matrix_ends_with_exit_code_3(project: Path, kind: str, command: str) -> None:
    old, new, *words = WRONG[kind]
    change(project, old, new)
    result = refused(project, command=command)
    assert result.exit_code == 3, result.output
    assert "matrix.toml:" in result.stderr
    assert [word for word in words if word not in result.stderr] == [], result.stderr


def test_all_problems_of_all_files_are_told_at_once(project: Path) -> None:
    change(project, "name = ", "nmae = 'x'\nname = ")
    change(project, '"3.11"', "3.11")
    change(project, "cupy==13.6.0", "cuppy==13.6.0")
    change(project, '"models/words"', '"models/wrods"')
    cycle(project)
    write(project / "scans" / "policy.toml", "schmea = 1\n")
    result = refused(project)
    assert result.exit_code == 3
    wanted = ("images.nmae", "axes.python[0]", "model.words.path", "no cycle", "schmea")
    assert [word for word in wanted if word not in result.stderr] == [], result.stderr
    # One line a problem, and the first line counts them.
    told = [line for line in result.stderr.splitlines() if line.startswith("  ")]
    assert f"{len(told)} problems in the files of" in result.stderr


def cycle(project: Path) -> None:
    for name, need in (("one", "two"), ("two", "one")):
        write(project / "layers" / name / "layer.toml", LAYER.format(need=need))
        write(project / "layers" / name / "Dockerfile.j2", "FROM tools AS {{ stage }}\n")


def test_a_cycle_of_layers_is_refused_with_its_way(project: Path) -> None:
    cycle(project)
    result = refused(project)
    assert result.exit_code == 3
    assert "layers/one/layer.toml:4: needs: wanted no cycle, found one -> two -> one" in (
        result.stderr
    )


def test_a_layer_without_its_dockerfile_is_refused(project: Path) -> None:
    write(project / "layers" / "mine" / "layer.toml", LAYER.format(need="init"))
    result = refused(project)
    assert result.exit_code == 3
    assert "layers/mine/layer.toml" in result.stderr
    assert "Dockerfile.j2" in result.stderr


def test_a_missing_secret_is_refused_with_its_id_and_who_asks_for_it(project: Path) -> None:
    write(project / "layers" / "mine" / "layer.toml", LAYER.format(need="init") + SECRETS)
    write(project / "layers" / "mine" / "Dockerfile.j2", "FROM tools AS {{ stage }}\n")
    shutil.copytree(LAYERS / "cupy", project / "layers" / "cupy")
    layer = project / "layers" / "cupy" / "layer.toml"
    text = layer.read_text(encoding="utf-8")
    write(layer, text.replace('needs = ["cuda"]', 'needs = ["cuda", "mine"]'))
    result = refused(project)
    assert result.exit_code == 3
    assert "layer mine asks for the secret hf-token: not given" in result.stderr
    assert "--secret id=hf-token,env=HF_TOKEN" in result.stderr


def test_a_secret_that_is_not_there_is_refused_and_a_wrong_option_not_repeated(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NOT_THERE", raising=False)
    result = refused(project, "--secret", "id=hf-token,env=NOT_THERE")
    assert result.exit_code == 3
    assert "secret hf-token: wanted its value in the variable NOT_THERE" in result.stderr
    result = refused(project, "--secret", "open-sesame-1")
    assert result.exit_code == 2
    assert "wanted id=NAME,env=VARIABLE" in result.stderr
    assert "open-sesame-1" not in result.stderr


def test_a_moving_base_without_a_lock_is_refused_and_names_each_source(project: Path) -> None:
    change(project, f"debian@{DIGEST}", "debian:12")
    result = refused(project)
    assert result.exit_code == 3
    for os in ("debian12", "debian13"):
        assert f"base.{os}.sources[0]: wanted a digest, or a lock that holds one" in result.stderr
    assert "hint: run: gpulayers lock" in result.stderr


def test_a_file_that_is_no_lock_is_refused(project: Path) -> None:
    write(project / "matrix.lock.toml", "schema = 1\n")
    result = refused(project)
    assert result.exit_code == 3
    assert "matrix.lock.toml is not a lock of this version" in result.stderr


@pytest.mark.parametrize("words", [["--matrix", "nothing.toml"], ["--matrix", "models"]])
def test_a_matrix_that_is_no_file_is_refused(project: Path, words: list[str]) -> None:
    result = refused(project, *words)
    assert result.exit_code == 2
    assert words[1] in result.stderr


def test_a_project_without_a_matrix_is_refused(project: Path) -> None:
    (project / "matrix.toml").unlink()
    result = refused(project)
    assert result.exit_code == 2
    assert "gpulayers init" in result.stderr


@pytest.mark.parametrize("command", ["build", "lock", "plan", "render", "check", "test", "scan"])
def test_an_only_that_hits_no_cell_is_exit_code_4(project: Path, command: str) -> None:
    result = refused(project, "--only", "cuda=99.9", command=command)
    assert result.exit_code == 4, result.output
    assert "cuda=99.9" in result.stderr


def test_a_matrix_whose_cells_are_all_excluded_is_exit_code_4(project: Path) -> None:
    change(
        project, "[base.debian12]", '[[exclude]]\nmatch = { os = "*" }\nreason = "not today"\n'
        "[base.debian12]"
    )  # fmt: skip
    result = refused(project)
    assert result.exit_code == 4
    assert "not today" in result.stderr


def test_an_only_on_an_unknown_axis_is_refused(project: Path) -> None:
    result = refused(project, "--only", "coda=12.6")
    assert result.exit_code in {2, 3, 4}
    assert "coda" in result.stderr


def test_locked_without_a_lock_is_exit_code_13(project: Path) -> None:
    result = refused(project, "--locked")
    assert result.exit_code == 13
    assert "there is no matrix.lock.toml" in result.stderr


def test_no_push_into_a_registry_of_others_is_refused(project: Path) -> None:
    result = refused(project, "--no-push", "--registry", "ghcr.io/acme")
    assert result.exit_code == 5
    assert "a registry of this machine" in result.stderr


def test_the_project_of_the_fixture_is_right(project: Path) -> None:
    result = CliRunner().invoke(main, ["check", "--project", str(project)])
    assert result.exit_code == 0, result.output
    assert result.stdout == "4 cells kept, 0 impossible, 0 excluded; no problems\n"
    assert shutil.which("docker") is None or not (project / ".gpulayers").exists()


def test_an_unknown_framework_and_a_moving_base_are_told_beside_another_problem(
    project: Path,
) -> None:
    text = MATRIX.replace("cupy==13.6.0", "cuppy==13.6.0").replace("[axes]", "[axes]\nfoo = 1")
    text = text.replace(f"debian@{DIGEST}", "debian:12-slim")
    write(project / "matrix.toml", text)
    result = refused(project)
    assert result.exit_code == 3
    for word in ("axes.foo", "did you mean cupy?", "a digest, or a lock that holds one"):
        assert word in result.stderr, result.stderr


@pytest.mark.parametrize(
    "registry", ["https://x.example/y", "x.example/UP", "a b/c", "x.example/y\nz"]
)
def test_a_registry_that_is_none_is_refused(project: Path, registry: str) -> None:
    result = refused(project, "--registry", registry, command="check")
    assert result.exit_code == 3
    assert "is not an image reference" in result.stderr


def test_a_file_that_cannot_be_read_is_told_and_is_no_bug(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "layers/words/layer.toml")

    monkeypatch.setattr("gpulayers.cli.loaded.read_library", refuse)
    result = refused(project, command="check")
    assert result.exit_code == 3
    assert "error: layers/words/layer.toml: Permission denied" in result.stderr


def test_only_that_hits_no_cell_is_told_by_list_too(project: Path) -> None:
    result = refused(project, "--only", "os=zz", command="list")
    assert result.exit_code == 4


@pytest.mark.parametrize("kind", ["folder", "dangling link"])
def test_a_policy_that_is_no_file_is_refused_and_never_passed_over(
    project: Path, kind: str
) -> None:
    place = project / "scans" / "policy.toml"
    place.parent.mkdir()
    if kind == "folder":
        place.mkdir()
    else:
        place.symlink_to("gone.toml")
    result = CliRunner().invoke(main, ["check", "--project", str(project)])
    assert result.exit_code == 3
    assert "policy.toml" in result.stderr


SHELL = {
    "a reader that has seen enough": ("{run} | head -1", 141),
    "a full disk": ("{run} > /dev/full", 5),
    "no output at all": ("{run} >&-", 0),
}


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize("case", SHELL)
def test_output_that_cannot_be_written_is_no_bug(tmp_path: Path, case: str) -> None:
    text, code = SHELL[case]
    root = Path(__file__).parents[2]
    run = f"{shlex.quote(sys.executable)} -m gpulayers list --project {shlex.quote(str(root))}"
    script = f"set -o pipefail; {text.format(run=run)}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    assert "bug" not in done.stderr
