"""A framework whose variants are on indexes of their own: locked by name, installed from there."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import fleet
import pytest
import wheel_index
from fleet import Built, Project
from missing import missing

from gpulayers.engine import buildx
from gpulayers.engine.process import Finished
from gpulayers.inputs import read_pip_settings
from gpulayers.inputs.logins import Logins
from gpulayers.inputs.settings import uv_settings

pytestmark = pytest.mark.timeout(900)
MATRIX = """\
schema = 1

[images]
name = "gpu"
registry = "{root}"

[axes]
os = ["debian12", "debian13"]
python = ["3.11"]
cuda = ["12.6"]
framework = ["small==1.0"]

{bases}
[python."3.11"]
sources = ["debian:bookworm"]

[framework.small]
indexes = ["own/cu126", "pypi"]
cuda-components = ["cudart"]
requirements = ["beside==1.0"]
"""
# What of a lock comes from archives and indexes that are no part of the test.
UPSTREAM = ("package ", "tool uv", "wheel idna:")
LAYER = """\
schema = 1
kind = "framework"
description = "A framework of tests."
needs = ["cuda"]
requirements = ["small=={version}"]
cuda-components = ["cudart"]

[identity]
distribution = "small"
module = "small"

[[pair]]
package = "beside"
version = "1.0"
for = "==1.0"
source = "this test"
confidence = "wheel"
"""


@pytest.fixture(scope="module")
def folder_of_indexes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("indexes")
    wheel_index.add(folder / "own", "small", "1.0+cu126", ["idna>=3"])
    wheel_index.add(folder / "own", "beside", "1.0+cu126", ["small==1.0"])
    # What the plain index has is newer, and must be taken from there.
    wheel_index.add(folder / "own", "idna", "3.0")
    return folder


@pytest.fixture(scope="module")
def index(folder_of_indexes: Path) -> Iterator[str]:
    with wheel_index.served(folder_of_indexes) as url:
        yield url


@pytest.fixture(scope="module")
def project(
    request: pytest.FixtureRequest,
    engine_env: dict[str, str],
    registry: str,
    base_tables: str,
    index: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Project:
    if buildx.find("").network != "host":
        missing(request.config, "steps of this builder do not reach a server of this process")
    folder = tmp_path_factory.mktemp("named") / "project"
    settings = tmp_path_factory.mktemp("uv") / "uv.toml"
    root = Path("/")
    pip = read_pip_settings(engine_env, root=root)
    text = uv_settings(
        engine_env, pip, root=root, logins=Logins(environment=engine_env, keyring=None)
    )
    text += f'\n[[index]]\nname = "own-cu126"\nurl = "{index}/own"\nexplicit = true\n'
    settings.write_text(text, encoding="utf-8")
    env = {k: v for k, v in engine_env.items() if not k.startswith("UV_")}
    env |= {"UV_CONFIG_FILE": str(settings)}
    made = Project(folder=folder, root=f"{registry}/t-indexes", env=env)
    made.write("matrix.toml", MATRIX.format(root=made.root, bases=base_tables))
    made.write("layers/small/layer.toml", LAYER)
    made.write("layers/small/Dockerfile.j2", '{% include "wheels.j2" %}\n')
    return made


@pytest.fixture(scope="module")
def build(project: Project) -> Built:
    return project.build()


class Release(Protocol):
    """How a test makes a release."""

    def __call__(self, name: str, version: str, needs: Sequence[str]) -> None:
        """Put it into the project's index."""


@pytest.fixture
def release(folder_of_indexes: Path) -> Iterator[Release]:
    """Releases that are there for one test: the others come in any order."""
    folder, made = folder_of_indexes / "own", []

    def add(name: str, version: str, needs: Sequence[str]) -> None:
        made.append((name, version))
        wheel_index.add(folder, name, version, needs)

    yield add
    for name, version in made:
        wheel_index.remove(folder, name, version)


def test_the_image_is_built_from_the_index_that_the_project_names(build: Built) -> None:
    assert build.exit_codes == {0}, build.said
    assert len(build.images) == 2
    for image in build.images.values():
        assert image.gates["identity"]["status"] == "passed"


def test_the_lock_says_the_index_by_its_name_alone(project: Project, build: Built) -> None:
    assert build.exit_codes == {0}, build.said
    text = (project.folder / fleet.LOCK).read_text(encoding="utf-8")
    assert "127.0.0.1" not in text.partition("[[wheel]]")[2]
    wheels = {w["name"]: w for w in fleet.read_lock(project.folder)["wheel"]}
    assert wheels["small"]["index"] == wheels["beside"]["index"] == "own/cu126"
    assert wheels["small"]["version"] == "1.0+cu126"
    assert wheels["idna"]["index"] == "default"
    assert wheels["idna"]["version"] != "3.0"


def test_no_address_of_the_index_is_in_what_is_rendered(project: Project, build: Built) -> None:
    assert build.exit_codes == {0}, build.said
    assert project.gpulayers("render").ok
    files = [p for p in (project.folder / ".gpulayers/render").rglob("*") if p.is_file()]
    texts = "".join(path.read_text(encoding="utf-8") for path in files)
    assert "id=uv-config-own-cu126,src=${INPUTS}/uv-own-cu126.toml" in texts
    assert "id=uv-config-own-cu126,required=true,target=/etc/uv/uv.toml" in texts
    assert "/own" not in texts


def test_a_machine_that_knows_no_such_index_is_told_which_to_name(
    project: Project, build: Built, engine_env: dict[str, str], fresh_root: str, tmp_path: Path
) -> None:
    assert build.exit_codes == {0}, build.said
    # Where the images are there already, no index is needed.
    other = project.copy(tmp_path / "project", root=fresh_root)
    elsewhere = Project(folder=other.folder, root=other.root, env=engine_env)
    for command in ("lock", "build"):
        done = elsewhere.gpulayers(command)
        assert done.code == 3, done.stderr
        assert 'an index named "own-cu126" (for own/cu126), found none' in done.stderr


def test_a_mirror_that_is_down_is_passed_over_and_named(
    project: Project, build: Built, tmp_path: Path
) -> None:
    assert build.exit_codes == {0}, build.said
    settings = Path(project.env["UV_CONFIG_FILE"]).read_text(encoding="utf-8")
    own = '[[index]]\nname = "own-cu126"\n'
    assert settings.count(own) == 1
    down = f'{own}url = "http://127.0.0.1:9/simple"\nexplicit = true\n\n'
    mirrored = tmp_path / "uv.toml"
    mirrored.write_text(settings.replace(own, down + own), encoding="utf-8")
    elsewhere = replace(project, env={**project.env, "UV_CONFIG_FILE": str(mirrored)})
    done = elsewhere.gpulayers("lock", "--update", "small")
    assert done.ok, done.stderr
    told = "index own/cu126: passed over http://127.0.0.1:9/simple: ConnectionError"
    assert told in done.stderr


def test_a_release_upstream_is_named_by_a_check_and_changes_no_lock(
    project: Project, build: Built, release: Release
) -> None:
    assert build.exit_codes == {0}, build.said
    before = (project.folder / fleet.LOCK).read_bytes()
    first = project.gpulayers("lock", "--check")
    earlier = moved_lines(first)
    # The archive and the plain index are real ones: what moves there is no fault of ours.
    assert not [one for one in earlier if not one.startswith(UPSTREAM)], first.stderr
    assert first.code == (13 if earlier else 0), first.stderr
    release("small", "1.0+cu126.1", ["idna>=3"])
    moved = project.gpulayers("lock", "--check")
    assert moved.code == 13, moved.stderr
    line = "wheel small: 1.0+cu126, now 1.0+cu126.1 (small==1.0, Python 3.11, linux/amd64)"
    found = [one for one in moved_lines(moved) if not one.startswith(UPSTREAM)]
    assert found == [line], moved.stderr
    assert (project.folder / fleet.LOCK).read_bytes() == before
    again = project.build("--locked")
    assert again.statuses == {"cached"}, again.said


def test_an_update_moves_what_it_names_and_nothing_else(
    project: Project, build: Built, release: Release, fresh_root: str, tmp_path: Path
) -> None:
    assert build.exit_codes == {0}, build.said
    for name in ("small", "beside"):
        needs = {"small": ["idna>=3"], "beside": ["small==1.0"]}[name]
        release(name, "1.0+cu126.2", needs)
    made = project.copy(tmp_path / "project", root=fresh_root)
    old = versions(made)
    wrong = made.gpulayers("lock", "--update", "smal", "beside")
    assert wrong.code == 3, wrong.stderr
    assert "smal: the lock has nothing of that name; did you mean small?" in wrong.stderr
    assert versions(made) == old
    done = made.gpulayers("lock", "--update", "beside")
    assert done.ok, done.stderr
    line = "wheel beside: 1.0+cu126, now 1.0+cu126.2 (small==1.0, Python 3.11, linux/amd64)"
    assert done.stdout.splitlines()[0] == line
    assert versions(made) == old | {"beside": "1.0+cu126.2"}
    again = made.gpulayers("lock", "--update", "beside")
    assert again.stdout.splitlines()[0] == "beside: nothing newer fits what stays"
    assert made.build("--locked").exit_codes == {0}


def moved_lines(done: Finished) -> list[str]:
    """What a check says has moved."""
    return [line[2:] for line in done.stderr.splitlines() if line.startswith("  ")]


def versions(project: Project) -> dict[str, str]:
    """The wheels of a lock by name."""
    return {wheel["name"]: wheel["version"] for wheel in fleet.read_lock(project.folder)["wheel"]}
