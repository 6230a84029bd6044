"""An image can be pulled by its tag from an engine that has nothing, and runs there."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import fleet
import pytest
from fleet import Built, Project
from missing import missing

from gpulayers.engine import process

pytestmark = pytest.mark.timeout(1500)
START_S = 60.0


@pytest.fixture
def empty_engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a Docker engine of its own, with no image and no network."""
    if not fleet.has_private_engine():
        missing(request.config, "a second engine is started beside a private one only")
    # Sockets need a short path.
    folder = Path(tempfile.mkdtemp(prefix="gl-", dir="/run"))
    data = Path(tempfile.mkdtemp(prefix="gl-data-"))
    host = f"unix://{folder}/docker.sock"
    config = {
        "data-root": str(data),
        "exec-root": str(folder / "exec"),
        "pidfile": str(folder / "pid"),
        "hosts": [host],
        "bridge": "none",
        "iptables": False,
        "ip6tables": False,
        "features": {"containerd-snapshotter": True},
        "insecure-registries": ["127.0.0.0/8"],
    }
    (folder / "daemon.json").write_text(json.dumps(config), encoding="utf-8")
    program = str(fleet.ROOT / ".engine/bin/dockerd")
    argv = [program, "--config-file", str(folder / "daemon.json")]
    env = {name: value for name, value in os.environ.items() if name != "DOCKER_HOST"}
    with (folder / "log").open("wb") as log:
        engine = subprocess.Popen(argv, env=env, stdout=log, stderr=log)
    try:
        wait(engine, host, folder / "log")
        yield host
    finally:
        engine.terminate()
        engine.wait(60)
        for place in (folder, data):
            shutil.rmtree(place)


def wait(engine: "subprocess.Popen[bytes]", host: str, log: Path) -> None:
    until = time.monotonic() + START_S
    while not process.run(["docker", "--host", host, "version"], timeout_s=30).ok:
        assert engine.poll() is None, log.read_text(errors="replace")[-3000:]
        assert time.monotonic() < until, log.read_text(errors="replace")[-3000:]
        time.sleep(0.2)


def test_an_empty_engine_pulls_an_image_by_its_tag_and_runs_it(
    mini: tuple[Project, Built], empty_engine: str
) -> None:
    def docker(*words: str) -> str:
        done = process.run(["docker", "--host", empty_engine, *words], timeout_s=300)
        assert done.ok, done.stderr
        return done.stdout.strip()

    image = mini[1].images["cupy13.6.0-debian13-alpha"]
    tag = f"{image.repository}:{image.tags[-1]}"
    assert docker("images", "--quiet") == ""
    docker("pull", "--quiet", tag)
    assert image.digest in docker("image", "inspect", "--format={{.RepoDigests}}", tag)
    code = "import cupy; print(cupy.__version__, open('/opt/models/alpha/words.txt').read())"
    said = docker("run", "--rm", "--network=none", tag, "python", "-c", code)
    assert said == "13.6.0 alpha 1"
