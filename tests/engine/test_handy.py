"""Commands at hand, on the small project's images: run, shell, inspect, logs, prune, init."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Docker
from fleet import Built, Image, Project

from gpulayers.engine import process
from gpulayers.engine.process import Finished

# The first test that asks for it makes the project, and where there is none yet, the demo.
pytestmark = pytest.mark.timeout(1500)
Mini = tuple[Project, Built]
TAG = "cupy13.6.0-debian12"
CELL = "os=debian12,model=none"
CODE = (
    "import os, sys; s = os.statvfs('/dev/shm');"
    "print(os.getuid(), os.getgid(), os.environ['WORD'], s.f_blocks * s.f_frsize >> 20);"
    "sys.exit(7)"
)


def call(project: Project, *words: str, stdin: str = "", **env: str) -> Finished:
    argv = [sys.executable, "-m", "gpulayers", *words]
    named = {**project.env, **env}
    return process.run(argv, cwd=project.folder, env=named, stdin=stdin, timeout_s=300)


@pytest.fixture(scope="module")
def project(mini: Mini) -> Project:
    assert mini[1].exit_codes == {0}, mini[1].said
    return mini[0]


@pytest.fixture(scope="module")
def image(mini: Mini, docker: Docker) -> Iterator[Image]:
    """The image that is run; the engine forgets it in the end."""
    found = mini[1].images[TAG]
    yield found
    docker("image", "rm", "--force", str(found.ref))


@pytest.mark.usefixtures("image")
def test_an_image_runs_as_any_user_with_what_it_is_given(project: Project) -> None:
    words = ("--user", "12345:0", "--network", "none", "--shm-size", "64m", "--env", "WORD")
    done = call(project, "run", *words, TAG, "--", "python", "-c", CODE, WORD="hush")
    assert done.stdout.split() == ["12345", "0", "hush", "64"], done.stderr
    assert done.code == 7
    assert "warning: no GPU" in done.stderr


@pytest.mark.usefixtures("image")
def test_standard_input_reaches_what_runs(project: Project) -> None:
    done = call(project, "run", CELL, "--", "python", "-", stdin="print(6 * 7)")
    assert (done.code, done.stdout) == (0, "42\n"), done.stderr


@pytest.mark.usefixtures("image")
def test_a_known_error_of_what_ran_is_named_at_its_end(project: Project) -> None:
    code = (
        "raise RuntimeError('CUDA error: no kernel image is available for execution on the device')"
    )
    done = call(project, "run", "--gpu", "none", TAG, "--", "python", "-c", code)
    lines = done.stderr.splitlines()
    assert done.code == 1
    assert lines[-2].startswith("RuntimeError: CUDA error: no kernel image")
    assert lines[-1].startswith("known: no-kernel-image (image): ")
    well = call(
        project, "run", "--gpu", "none", TAG, "--", "python", "-c", code.replace("raise ", "")
    )
    assert well.code == 0
    assert "known:" not in well.stderr


@pytest.mark.usefixtures("image")
def test_a_shell_is_a_shell_in_the_image(project: Project) -> None:
    done = call(project, "shell", "--user", "12345:0", TAG, stdin="id -u; echo $0; exit 5\n")
    assert (done.code, done.stdout) == (5, "12345\nbash\n"), done.stderr


@pytest.mark.usefixtures("image")
def test_a_shell_at_a_terminal_has_a_terminal(project: Project) -> None:
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-m", "gpulayers", "shell", TAG]
    env = {**os.environ, **project.env}
    with subprocess.Popen(
        argv, cwd=project.folder, env=env, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE
    ) as child:
        os.close(theirs)
        os.write(ours, b"test -t 0 && test -t 1 && exit 6\n")
        assert child.wait(120) == 6
    os.close(ours)


@pytest.mark.usefixtures("image")
def test_a_signal_ends_the_container_and_leaves_none(project: Project, docker: Docker) -> None:
    code = "import time; print('up', flush=True); time.sleep(120)"
    argv = [sys.executable, "-m", "gpulayers", "run", "--network", "none", TAG]
    env = {**os.environ, **project.env}
    with subprocess.Popen(
        [*argv, "--", "python", "-c", code],
        cwd=project.folder, env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    ) as child:  # fmt: skip
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
        begin = time.monotonic()
        child.send_signal(signal.SIGTERM)
        assert child.wait(20) == 128 + signal.SIGTERM
        assert time.monotonic() - begin < 10
    left = docker("ps", "--all", "--quiet", "--filter", f"ancestor={project.root}/gpu").stdout
    assert left == ""


def inspected(project: Project, *words: str) -> dict[str, Any]:
    done = call(project, "inspect", "--json", *words)
    assert done.code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_our_image_is_told_step_by_step(project: Project, image: Image) -> None:
    found = inspected(project, "--deep", TAG)
    assert (found["digest"], found["key"]) == (image.digest, image.key)
    layers = [(layer["owner"], layer["digest"], layer["unread"]) for layer in found["layers"]]
    assert layers == [(step, digest, "") for step, digest in image.digests()]
    wheels = {wheel["name"]: wheel for wheel in found["wheels"]}
    assert wheels["cupy-cuda12x"]["version"] == "13.6.0"
    assert {wheel["source"] for wheel in wheels.values()} == {"files"}
    assert any(lib["path"].endswith("/libcudart.so.12") for lib in found["cuda_libraries"])
    assert not any(lib["driver"] for lib in found["cuda_libraries"])
    assert list(found["pythons"].values()) == ["3.11"]
    assert (found["user"], found["entrypoint"]) == ("10001:0", ["/usr/bin/tini", "-g", "--"])


def test_big_layers_are_left_alone_unless_asked_for(project: Project) -> None:
    found = inspected(project, TAG)
    unread = {layer["owner"] for layer in found["layers"] if layer["unread"]}
    assert unread == {layer["owner"] for layer in found["layers"] if layer["bytes"] > 64_000_000}
    assert not inspected(project, "--quick", TAG)["cuda_libraries"]


@pytest.mark.usefixtures("image")
def test_anyones_image_is_told_by_its_history(project: Project) -> None:
    base = inspected(project, "--quick", TAG)["labels"]["org.opencontainers.image.base.name"]
    found = inspected(project, base)
    assert (found["key"], found["wheels"], found["cuda_libraries"]) == ("", [], [])
    assert [layer["owner"] for layer in found["layers"]] == ["ADD base.tar /"]


def test_an_image_that_only_the_engine_has_is_the_same_inside(
    project: Project, image: Image, docker: Docker
) -> None:
    name = "gpulayers-test-local:one"
    docker("pull", "--quiet", str(image.ref))
    docker("tag", str(image.ref), name)
    try:
        found = inspected(project, "--deep", name)
    finally:
        docker("image", "rm", name)
    ours = inspected(project, "--deep", TAG)
    assert found["digest"] == ""
    assert found["cuda_libraries"] != []
    for key in ("labels", "env", "user", "pythons"):
        assert found[key] == ours[key]
    paths = [[lib["path"] for lib in each["cuda_libraries"]] for each in (found, ours)]
    assert paths[0] == paths[1]


def test_every_build_left_its_log(mini: Mini, project: Project) -> None:
    rows = json.loads(call(project, "logs", "--json").stdout)
    assert {row["tag"]: row["status"] for row in rows} == dict.fromkeys(mini[1].images, "built")
    assert {row["detail"] for row in rows} == {image.digest for image in mini[1].images.values()}
    text = call(project, "logs", CELL).stdout
    assert "python-3-11" in text
    assert text.splitlines()[-1].startswith("gpulayers: built sha256:")


def test_prune_lets_go_of_caches_and_keeps_what_tells_of_images(
    project: Project, image: Image, docker: Docker, tmp_path: Path
) -> None:
    copy = project.copy(tmp_path / "copy")
    docker("pull", "--quiet", str(image.ref))
    shown = call(copy, "prune", "--dry-run").stdout
    assert "would go" in shown
    assert (copy.folder / ".gpulayers" / "logs").is_dir()
    shown = call(copy, "prune").stdout
    assert str(image.ref) in shown
    assert docker("image", "inspect", str(image.ref), check=False).code == 1
    state = copy.folder / ".gpulayers"
    assert not (state / "logs").exists()
    assert (state / "report.json").is_file()
    assert any((state / "records").iterdir())
    again = copy.build()
    assert again.statuses == {"cached"}, again.said


def test_a_new_project_builds_at_once_and_runs(
    engine_env: dict[str, str], fresh_root: str, tmp_path: Path
) -> None:
    project = Project(folder=tmp_path, root=fresh_root, env=engine_env)
    assert call(project, "init", "--registry", fresh_root).code == 0
    assert call(project, "check").stdout == "2 cells kept, 0 impossible, 0 excluded; no problems\n"
    build = project.build("--matrix")
    assert build.exit_codes == {0}, build.said
    assert build.statuses == {"built"}
    code = "import os; print(os.listdir('/opt/models'), os.getuid())"
    words = ("run", "--user", "12345:0", "model=example", "--", "python", "-c", code)
    assert call(project, *words).stdout == "['example'] 12345\n"
    assert call(project, "prune", "--all").code == 0
