"""An engine whose disk is full in the middle, and one that dies: each its own class and code."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import fleet
import pytest
from fleet import Built, Project
from missing import missing
from tiny import Maker, tiny_base, tiny_project

from gpulayers.engine import process

__all__ = ["tiny_base", "tiny_project"]
pytestmark = pytest.mark.timeout(1500)
START_S = 60.0


@dataclass(frozen=True)
class Engine:
    """A Docker engine of its own."""

    host: str
    program: "subprocess.Popen[bytes]"

    def project(self, project: Project) -> Project:
        """The project, built with this engine."""
        env = {**project.env, "DOCKER_HOST": self.host}
        return Project(folder=project.folder, root=project.root, env=env)


@contextlib.contextmanager
def small_engine(size: str, config: pytest.Config) -> Iterator[Engine]:
    """An engine whose data lie in memory, no more than ``size`` of them."""
    if not fleet.has_private_engine():
        missing(config, "a second engine is started beside a private one only")
    folder = Path(tempfile.mkdtemp(prefix="gl-", dir="/run"))
    data = Path(tempfile.mkdtemp(prefix="gl-data-"))
    host = f"unix://{folder}/docker.sock"
    settings = {
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
    (folder / "daemon.json").write_text(json.dumps(settings), encoding="utf-8")
    mounted = process.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(data)])
    if not mounted.ok:
        missing(config, "this machine mounts no tmpfs")
    argv = [str(fleet.ROOT / ".engine/bin/dockerd"), "--config-file", str(folder / "daemon.json")]
    env = {name: value for name, value in os.environ.items() if name != "DOCKER_HOST"}
    with (folder / "log").open("wb") as log:
        engine = subprocess.Popen(argv, env=env, stdout=log, stderr=log)
    try:
        wait_for(host, engine)
        yield Engine(host=host, program=engine)
    finally:
        engine.terminate()
        engine.wait(60)
        end_containerd(folder)
        process.run(["umount", "--recursive", "--lazy", str(data)])
        for place in (folder, data):
            shutil.rmtree(place, ignore_errors=True)


def wait_for(host: str, engine: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + START_S
    while not process.run(["docker", "--host", host, "version"], timeout_s=30).ok:
        assert engine.poll() is None
        assert time.monotonic() < until
        time.sleep(0.2)


def end_containerd(folder: Path) -> None:
    """A killed engine leaves its containerd behind."""
    for path in folder.glob("exec/containerd/containerd.pid"):
        with contextlib.suppress(OSError, ValueError):
            os.kill(int(path.read_text()), signal.SIGTERM)
            time.sleep(1)


def failure_class(build: Built) -> str:
    assert build.exit_codes == {5}, build.said
    (image,) = build.images.values()
    assert (image.status, image.ref, image.tags) == ("failed", "", [])
    assert any(line.strip() for line in image.failure["stderr_tail"])
    return str(image.failure["class"])


@pytest.mark.parametrize(
    "megabytes", [170, 3000], ids=["when-layers-are-written", "while-a-step-runs"]
)
def test_a_disk_that_is_full_in_the_middle_has_its_class(
    megabytes: int, tiny_project: Maker, request: pytest.FixtureRequest
) -> None:
    step = f"dd if=/dev/urandom of=/out/opt/models/weights bs=1M count={megabytes}\n"
    with small_engine("560m", request.config) as engine:
        build = engine.project(tiny_project(big=step)).build()
        assert failure_class(build) == "disk-full", build.said


def when(is_so: Callable[[], bool], do: Callable[[], object]) -> None:
    until = time.monotonic() + 200
    while not is_so() and time.monotonic() < until:
        time.sleep(0.05)
    do()


def test_an_engine_that_dies_in_the_middle_has_its_class(
    tiny_project: Maker, request: pytest.FixtureRequest
) -> None:
    word = f"sleep 200.{time.time_ns()}"
    with small_engine("2g", request.config) as engine:
        project = engine.project(tiny_project(slow=f"{word}\n"))
        killer = threading.Thread(target=when, args=(lambda: runs(word), engine.program.kill))
        killer.start()
        build = project.build()
        killer.join()
        assert failure_class(build) == "engine-lost", build.said


def runs(word: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes().replace(b"\0", b" ").strip() == word.encode():
                return True
    return False
