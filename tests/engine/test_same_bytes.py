"""The same inputs give the same bytes on a second engine, whatever the machine is like."""

import os
import sys
from pathlib import Path

import pytest
from fleet import REPORT, Built, Project, built
from layer_files import differences
from tiny import GOOD, Maker, tiny_base, tiny_project

from gpulayers.engine import process
from gpulayers.engine.registry import Registry

__all__ = ["tiny_base", "tiny_project"]
pytestmark = pytest.mark.timeout(1500)
PART = ("--only", "os=debian12", "--only", "model=alpha")
TAG = "cupy13.6.0-debian12-alpha"
RANDOM = "cat /proc/sys/kernel/random/uuid >/out/opt/models/one/random.txt\n"
YEAR_2001 = 1_000_000_000


def elsewhere(project: Project, engine: str, *words: str) -> Built:
    """Build as another user of another machine would: on its engine, in its place and time."""
    other = {"DOCKER_HOST": engine, "TZ": "Asia/Kathmandu", "LC_ALL": "C", "USER": "nobody"}
    argv = [sys.executable, "-m", "gpulayers", "build", *words, "--registry", project.root]
    done = process.run(
        ["sh", "-c", 'umask 077; exec "$@"', "sh", *argv],
        cwd=project.folder,
        env={**project.env, **other},
        timeout_s=900,
    )
    assert done.ok, done.tail(40)
    return built(done, project.folder / REPORT)


def test_a_second_clean_engine_makes_the_same_layers_and_the_same_manifest(
    mini: tuple[Project, Built],
    empty_engine: str,
    fresh_root: str,
    client: Registry,
    tmp_path: Path,
) -> None:
    project = mini[0].copy(tmp_path / "elsewhere" / "with another name", root=fresh_root)
    for path in (project.folder / "models").rglob("*"):
        os.utime(path, (YEAR_2001, YEAR_2001))
        path.chmod(0o700 if path.is_dir() else 0o600)
    again = elsewhere(project, empty_engine, *PART)
    one, same = mini[1].images[TAG], again.images[TAG]
    assert same.status == "built"
    assert differences(one, same, client) == []
    assert same.digests() == one.digests()
    assert same.digest == one.digest


def test_a_file_that_is_not_the_same_twice_is_named(
    tiny_project: Maker, empty_engine: str, fresh_root: str, client: Registry, tmp_path: Path
) -> None:
    project = tiny_project(one=GOOD.replace("models/note", "models/one/note") + RANDOM)
    first = project.build()
    assert first.exit_codes == {0}, first.said
    second = elsewhere(project.copy(tmp_path / "elsewhere", root=fresh_root), empty_engine)
    (one,), (other,) = first.images.values(), second.images.values()
    (line,) = differences(one, other, client)
    assert line.startswith("model-one: opt/models/one/random.txt: sha256 ")
