"""An image says what was promised, runs for any user, and stops when it is told to."""

import re
import signal
import time
from collections.abc import Iterator

import fleet
import pytest
from conftest import Docker
from fleet import Built, Image, Project

from gpulayers.engine.registry import Registry
from gpulayers.refs import ImageRef, Platform

# The first test that asks for it makes the project, and where there is none yet, the demo.
pytestmark = pytest.mark.timeout(1500)
Mini = tuple[Project, Built]


def test_the_config_of_an_image_is_as_promised(mini: Mini, client: Registry) -> None:
    image = mini[1].images["cupy13.6.0-debian12-alpha"]
    at = ImageRef.parse(image.ref)
    config = client.config(at, client.manifest(at, Platform("linux", "amd64")))
    assert config.user == "10001:0"
    assert config.env["PATH"].startswith("/opt/venv/bin:")
    assert config.env["NVIDIA_VISIBLE_DEVICES"] == "all"
    assert config.env["NVIDIA_DRIVER_CAPABILITIES"] == "compute,utility"
    assert "LD_LIBRARY_PATH" not in config.env
    assert config.entrypoint == ("/usr/bin/tini", "-g", "--")
    assert config.cmd == ("python",)
    assert config.created == "1980-01-01T00:00:00Z"
    labels = {
        "org.opencontainers.image.title": "gpu",
        "org.opencontainers.image.version": "cupy13.6.0-debian12-alpha",
        "io.gpulayers.key": image.key,
        "io.gpulayers.framework.name": "cupy",
        "io.gpulayers.framework.version": "13.6.0",
        "io.gpulayers.cuda": "12.6",
        "io.gpulayers.python": "3.11",
        "io.gpulayers.os": "debian12",
        "io.gpulayers.model": "alpha",
        "io.gpulayers.wheel.nvidia-cuda-runtime-cu12": "12.6.77",
    }
    assert {name: config.labels.get(name) for name in labels} == labels
    assert re.fullmatch(
        r"sha256:[0-9a-f]{64}", config.labels["org.opencontainers.image.base.digest"]
    )


@pytest.fixture(scope="module")
def plain(mini: Mini, docker: Docker) -> Iterator[Image]:
    """One image, pulled to the engine by its tag, and removed from it again."""
    image = mini[1].images["cupy13.6.0-debian13"]
    tag = f"{image.repository}:{image.tags[-1]}"
    docker("pull", "--quiet", tag)
    yield Image({**image.table, "by_tag": tag})
    docker("image", "rm", "--force", tag)


@pytest.mark.parametrize("user", ["", "12345:0", "0:0", "12345:54321"])
def test_an_image_works_for_any_user(plain: Image, docker: Docker, user: str) -> None:
    code = (
        "import cupy, os, pathlib; pathlib.Path.home().joinpath('x').write_text('x');"
        "os.makedirs(os.environ['CUPY_CACHE_DIR']); print(cupy.__version__, os.getuid())"
    )
    asked = (f"--user={user}",) if user else ()
    said = docker("run", "--rm", "--network=none", *asked, plain.by_tag, "python", "-c", code)
    assert said.stdout.split() == ["13.6.0", user.partition(":")[0] or "10001"]


def test_a_container_stops_at_sigterm_and_says_so_by_its_status(
    plain: Image, docker: Docker
) -> None:
    code = "import time; print('up', flush=True); time.sleep(120)"
    words = ("--network=none", plain.by_tag, "python", "-c", code)
    name = docker("run", "--detach", *words).stdout.strip()
    try:
        fleet.wait_until(lambda: "up" in docker("logs", name).stdout, deadline_s=30, why="never up")
        begin = time.monotonic()
        docker("stop", "--time=20", name)
        assert time.monotonic() - begin < 5
        code = docker("inspect", "--format={{.State.ExitCode}}", name).stdout.strip()
        assert code == str(128 + signal.SIGTERM)
    finally:
        docker("rm", "--force", name)
