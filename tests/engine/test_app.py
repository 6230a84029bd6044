"""The example of an app, really built: what is in the image, how it runs, what is made again."""

import json
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fleet
import pytest
from conftest import Docker
from fleet import Built, Image, Project

pytestmark = pytest.mark.timeout(1500)
Web = tuple[Project, Built]
ANYBODY = "12345:0"
HEALTHY_S = 60.0
STOP_S = 5.0


def example(folder: Path, root: str, bases: str, env: dict[str, str]) -> Project:
    """The example's folder elsewhere, on bases that are there already."""
    state = shutil.ignore_patterns(".gpulayers", "matrix.lock.toml", "__pycache__")
    shutil.copytree(fleet.ROOT / "examples" / "app", folder, ignore=state)
    project = Project(folder=folder, root=root, env=env)
    tables = re.split(r"(?m)^(?=\[base\.)", bases)
    ours = "".join(one for one in tables if not one.startswith("[base.debian13]"))
    matrix = (folder / "matrix.toml").read_text(encoding="utf-8")
    text = re.sub(r"(?m)^\[base\.debian12\]\nsources = .*\n", lambda _: ours, matrix)
    project.write("matrix.toml", text)
    return project


@pytest.fixture(scope="module")
def web(
    engine_env: dict[str, str],
    registry: str,
    base_tables: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Web:
    folder = tmp_path_factory.mktemp("app") / "project"
    root = f"{registry}/t-app-{secrets.token_hex(4)}"
    project = example(folder, root, base_tables, engine_env)
    return project, project.build("--only", "cuda=12.6")


def image_of(built: Built) -> Image:
    """The only image of a build that went well."""
    assert built.exit_codes == {0}, built.said
    (image,) = built.images.values()
    return image


@pytest.fixture(scope="module")
def config(web: Web, docker: Docker) -> dict[str, Any]:
    """What the engine says of the image."""
    ref = str(image_of(web[1]).ref)
    docker("pull", "--quiet", ref)
    found: dict[str, Any] = json.loads(docker("image", "inspect", ref).stdout)[0]["Config"]
    return found


@pytest.fixture(scope="module")
def container(web: Web, config: dict[str, Any], docker: Docker) -> Iterator[str]:  # noqa: ARG001 - pulled
    """The app running as a user that no image knows, with no network and nothing to write to."""
    name = f"t-app-{secrets.token_hex(4)}"
    docker(
        *("run", "--detach", f"--name={name}", f"--user={ANYBODY}", "--network=none"),
        *("--read-only", "--tmpfs=/tmp", str(image_of(web[1]).ref)),
    )
    yield name
    docker("rm", "--force", name)


def test_the_image_passes_its_gates_and_the_apps_own_checks(web: Web) -> None:
    image = image_of(web[1])
    assert image.gates["identity"]["status"] == "passed"
    smoke = json.dumps(image.gates)
    assert '"failed"' not in smoke, smoke


def test_the_image_says_how_it_is_run(config: dict[str, Any]) -> None:
    assert config["Entrypoint"] == ["/usr/bin/tini", "-g", "--", "python", "-m", "service"]
    assert config["Cmd"] == ["--port", "8080"]
    assert config["User"] == ANYBODY
    assert config["WorkingDir"] == "/opt/app"
    assert config["ExposedPorts"] == {"8080/tcp": {}}
    assert config["Healthcheck"] == {
        "Test": ["CMD", "python", "-m", "service.healthy", "8080"],
        "Interval": 2 * 10**9,
        "Timeout": 5 * 10**9,
        "StartPeriod": 10**9,
        "Retries": 3,
    }
    assert config["Labels"]["io.gpulayers.app"] == "web"


def ask(docker: Docker, container: str, path: str) -> object:
    script = (
        "import sys, urllib.request as u; "
        f"print(u.urlopen('http://127.0.0.1:8080{path}').read().decode())"
    )
    return json.loads(docker("exec", container, "python", "-c", script).stdout)


def wait_healthy(docker: Docker, container: str) -> str:
    end = time.monotonic() + HEALTHY_S
    status = ""
    while status != "healthy" and time.monotonic() < end:
        time.sleep(1)
        form = "--format={{.State.Status}} {{.State.Health.Status}}"
        state, status = docker("inspect", form, container).stdout.split()
        assert state == "running", docker("logs", container).stdout
    return status


def test_the_app_becomes_healthy_and_answers(container: str, docker: Docker) -> None:
    assert wait_healthy(docker, container) == "healthy"
    assert ask(docker, container, "/sum?n=5") == {"sum": 10.0}
    assert ask(docker, container, "/jq") == {"jq": "hello"}


def test_sigterm_ends_the_app_at_once_and_well(web: Web, docker: Docker) -> None:
    name = f"t-app-{secrets.token_hex(4)}"
    ref = str(image_of(web[1]).ref)
    docker("run", "--detach", f"--name={name}", f"--user={ANYBODY}", "--network=none", ref)
    try:
        wait_healthy(docker, name)
        begin = time.monotonic()
        docker("stop", "--time=30", name)
        assert time.monotonic() - begin < STOP_S + 1
        assert docker("inspect", "--format={{.State.ExitCode}}", name).stdout.strip() == "0"
    finally:
        docker("rm", "--force", name)


def test_what_was_left_out_and_what_compiled_is_not_there(container: str, docker: Docker) -> None:
    script = "ls -A /opt/app; ls /opt/app/service; command -v gcc g++ make; ls /opt/cuda; true"
    said = docker("exec", container, "sh", "-c", script).stdout.split()
    assert said == ["service", "__init__.py", "__main__.py", "healthy.py"]


def test_a_change_of_the_source_makes_its_step_anew_and_nothing_else(
    web: Web, tmp_path: Path
) -> None:
    before = image_of(web[1])
    project = web[0].copy(tmp_path / "project")
    project.change("web/service/__main__.py", '{"ok": True}', '{"ok": True, "version": 2}')
    after = image_of(project.build("--only", "cuda=12.6", "--locked"))
    assert after.status == "built"
    changed = {step for step, _ in set(before.digests()) ^ set(after.digests())}
    assert changed == {"app-web"}
    again = image_of(web[0].build("--only", "cuda=12.6"))
    assert (again.status, again.digest) == ("cached", before.digest)


def test_a_requirement_that_would_replace_the_frameworks_is_refused_by_name(
    web: Web, tmp_path: Path
) -> None:
    project = web[0].copy(tmp_path / "project")
    project.change("matrix.toml", '"orjson>=3.10"', '"orjson>=3.10", "numpy<1.20"')
    finished = project.gpulayers("lock")
    assert finished.code == 3, finished.stderr
    assert "app web" in finished.stderr
    assert "it wants numpy<1.20, the layers below have numpy" in finished.stderr


@pytest.mark.slow
def test_the_devel_flavour_has_nvcc_and_what_nvcc_made_is_in_the_image(
    web: Web, docker: Docker
) -> None:
    image = image_of(web[0].build("--only", "cuda=13.0"))
    docker("pull", "--quiet", str(image.ref))
    said = docker("run", "--rm", "--network=none", str(image.ref), "nvcc", "--version").stdout
    assert "release 13.0" in said
    assert "app-kernels-kernels" in [step for step, _ in image.digests()]
