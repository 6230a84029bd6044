"""What is given to others: exactly the files meant for it, and a program that runs from them.

No network is needed: the build backend is one of the development tools.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

import gpulayers

ROOT = Path(__file__).resolve().parents[2]
# Where the checkout's folders lie in the wheel, and what of it the sdist holds.
WHEEL_FOLDERS: Mapping[str, str] = {
    "builder/gpulayers/": "gpulayers/",
    "layers/": "gpulayers/_data/layers/",
    "scans/": "gpulayers/_data/scans/",
    "starter/": "gpulayers/_data/starter/",
}
SDIST_FOLDERS = (*WHEEL_FOLDERS, "docs/", "examples/", "tests/", "tools/")
SDIST_FILES = (
    *(".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md"),
    *("matrix.toml", "pyproject.toml"),
)
DIST_INFO = f"gpulayers-{gpulayers.__version__}.dist-info"
METADATA = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")


def run(*argv: str | Path, cwd: Path = ROOT) -> str:
    """The standard output of a program that must end well."""
    words = [str(word) for word in argv]
    # A PYTHONPATH of the caller's would show the checkout to what is to run without it.
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def build(target: str, folder: Path) -> Path:
    run(sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", folder)
    (found,) = folder.iterdir()
    return found


def names_in_wheel(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="session")
def files() -> tuple[str, ...]:
    """The checkout's files by git's account: tracked, or new and not ignored."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: there is no list to compare with")
    shown = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    return tuple(name for name in shown.split("\0") if (ROOT / name).is_file())


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", tmp_path_factory.mktemp("sdist"))


def test_the_wheel_holds_package_and_data_and_nothing_else(
    wheel: Path, files: tuple[str, ...]
) -> None:
    mapped = {
        name.replace(folder, inside, 1)
        for name in files
        for folder, inside in WHEEL_FOLDERS.items()
        if name.startswith(folder)
    }
    wanted = mapped | {"gpulayers/_data/matrix.toml"} | {f"{DIST_INFO}/{m}" for m in METADATA}
    assert sorted(names_in_wheel(wheel)) == sorted(wanted)


def test_the_sdist_holds_what_builds_and_tests_the_project(
    sdist: Path, files: tuple[str, ...]
) -> None:
    wanted = {n for n in files if n.startswith(SDIST_FOLDERS) or n in SDIST_FILES} | {"PKG-INFO"}
    with tarfile.open(sdist) as archive:
        found = {member.name.partition("/")[2] for member in archive if member.isfile()}
    assert sorted(found) == sorted(wanted)


def test_a_wheel_made_from_the_sdist_has_the_same_files(
    wheel: Path, sdist: Path, tmp_path: Path
) -> None:
    options = ("--no-build-isolation", "--no-deps", "--no-index", "--quiet")
    run(sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", tmp_path, sdist)
    (again,) = tmp_path.iterdir()
    with zipfile.ZipFile(wheel) as first, zipfile.ZipFile(again) as second:
        assert sorted(first.namelist()) == sorted(second.namelist())
        different = [n for n in first.namelist() if first.read(n) != second.read(n)]
    assert different == []


def test_two_builds_give_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    assert build("wheel", tmp_path).read_bytes() == wheel.read_bytes()


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel alone; what it depends on is seen from ours."""
    folder = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index")
    run(*pip, "--quiet", wheel)
    (packages,) = folder.glob("lib/python*/site-packages")
    # A folder named in a .pth file is searched last, and its own .pth files (our editable
    # installation is one) are not read.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def test_the_installed_package_is_the_wheels(installed: Path) -> None:
    code = "import gpulayers; print(gpulayers.__file__)"
    shown = run(installed / "bin" / "python", "-c", code, cwd=Path("/"))
    assert Path(shown.strip()).is_relative_to(installed)


def test_the_installed_program_says_its_version(installed: Path) -> None:
    shown = run(installed / "bin" / "gpulayers", "--version", cwd=Path("/"))
    assert re.search(rf"\b{re.escape(gpulayers.__version__)}\b", shown)


def test_the_installed_program_lists_a_project_with_the_packaged_layers(
    installed: Path, tmp_path: Path
) -> None:
    demo = ROOT / "examples" / "demo"
    shutil.copy(demo / "matrix.toml", tmp_path)
    shutil.copytree(demo / "models", tmp_path / "models")
    shown = run(installed / "bin" / "gpulayers", "list", "--matrix", cwd=tmp_path)
    assert "onnxruntime-gpu" in shown
    assert "cupy" in shown


def test_the_packaged_reference_fleet_is_whole(installed: Path) -> None:
    """It names no file, and the layers that it needs are packaged beside it."""
    (data,) = installed.glob("lib/python*/site-packages/gpulayers/_data")
    program = installed / "bin" / "gpulayers"
    shown = run(program, "list", "--matrix", data / "matrix.toml", cwd=Path("/"))
    assert "torch" in shown
    assert "vllm" in shown
