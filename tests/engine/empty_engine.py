"""A second engine beside the private one: nothing was ever built or pulled there."""

import contextlib
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
from missing import missing

from gpulayers.engine import process

START_S = 60.0


@contextlib.contextmanager
def started(config: pytest.Config) -> Iterator[str]:
    """The address of a Docker engine of its own, with no image and no network."""
    if not fleet.has_private_engine():
        missing(config, "a second engine is started beside a private one only")
    # Sockets need a short path.
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
    program = str(fleet.ROOT / ".engine/bin/dockerd")
    argv = [program, "--config-file", str(folder / "daemon.json")]
    env = {name: value for name, value in os.environ.items() if name != "DOCKER_HOST"}
    with (folder / "log").open("wb") as log:
        engine = subprocess.Popen(argv, env=env, stdout=log, stderr=log)
    try:
        _wait(engine, host, folder / "log")
        yield host
    finally:
        engine.terminate()
        engine.wait(60)
        for place in (folder, data):
            shutil.rmtree(place)


def _wait(engine: "subprocess.Popen[bytes]", host: str, log: Path) -> None:
    until = time.monotonic() + START_S
    while not process.run(["docker", "--host", host, "version"], timeout_s=30).ok:
        assert engine.poll() is None, log.read_text(errors="replace")[-3000:]
        assert time.monotonic() < until, log.read_text(errors="replace")[-3000:]
        time.sleep(0.2)
