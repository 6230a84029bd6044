"""The image registry of this checkout, on the loopback interface."""

import http.client
import json
import os
import shutil
from contextlib import closing, suppress

from devenv import engine, packages, processes, state
from devenv.command import ask, need
from devenv.layout import Layout
from devenv.talk import DevenvError, say

SERVER = "docker-registry"
# Where no Debian package can be had, the same program comes as an image.
IMAGE = "registry:2"
READY_S = 30.0
HTTP_OK = 200


def address(layout: Layout) -> str:
    """HOST:PORT of the registry; empty before the first `up`."""
    port = state.read_state(layout).get("registry_port", "")
    return f"{state.LOOPBACK}:{port}" if port else ""


def format_config(layout: Layout, port: int) -> str:
    """The server's configuration. JSON strings are YAML strings, whatever is in the path."""
    return f"""\
version: 0.1
log:
  level: warn
  accesslog:
    disabled: true
storage:
  filesystem:
    rootdirectory: {json.dumps(str(layout.registry))}
  delete:
    enabled: true
http:
  addr: {state.LOOPBACK}:{port}
"""


def answers(port: int) -> bool:
    """Whether a registry answers there."""
    connection = http.client.HTTPConnection(state.LOOPBACK, port, timeout=5)
    with closing(connection), suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/v2/")
        return connection.getresponse().status == HTTP_OK
    return False


def up(layout: Layout) -> None:
    """Have the registry answer."""
    if packages.is_debian():
        engine.fetch_registry(layout)
        _up_server(layout)
    else:
        _up_container(layout)


def _up_server(layout: Layout) -> None:
    kept = state.read_state(layout).get("registry_port", "")
    running = processes.find(SERVER, layout.registry_config)
    if running and kept and answers(int(kept)):
        say("registry", "found", f"{address(layout)}, pid {running.pid}")
        return
    if running:
        processes.stop(running, patience_s=5)
    port = _port(layout, kept)
    layout.registry.mkdir(parents=True, exist_ok=True)
    state.write_atomically(layout.registry_config, format_config(layout, port))
    processes.start(
        [layout.bin / SERVER, "serve", layout.registry_config],
        log=layout.log / "registry.log",
        # OTEL_ variables of ours would make it look for a collector.
        env=processes.server_environment(engine.server_path({})),
        ready=lambda: answers(port),
        deadline_s=READY_S,
    )
    say("registry", "started", address(layout))


def _port(layout: Layout, kept: str) -> int:
    port = state.choose_port(kept)
    if kept and str(port) != kept:
        say("registry", "moved", f"port {kept} is taken by something else, now {port}")
    state.remember(layout, registry_port=str(port))
    return port


def _up_container(layout: Layout) -> None:
    env = engine.machine_environment(layout)
    docker = shutil.which("docker", path=env["PATH"]) or "docker"
    kept = state.read_state(layout).get("registry_port", "")
    if kept and answers(int(kept)) and _is_running(docker, layout.name, env):
        say("registry", "found", f"{address(layout)}, container {layout.name}")
        return
    ask([docker, "rm", "--force", layout.name], env=env)
    port = _port(layout, kept)
    argv = [docker, "run", "--detach", "--name", layout.name]
    argv += [
        "--publish",
        f"{state.LOOPBACK}:{port}:5000",
        "--volume",
        f"{layout.name}:/var/lib/registry",
    ]
    argv += ["--env", "REGISTRY_STORAGE_DELETE_ENABLED=true", IMAGE]
    need(argv, doing="starting the registry", env=env, timeout_s=600)
    if not processes.wait_until(lambda: answers(port), deadline_s=READY_S):
        said = ask([docker, "logs", "--tail", "15", layout.name], env=env)
        msg = (
            f"the registry on port {port} did not answer within {READY_S:g} s\n{said.out}{said.err}"
        )
        raise DevenvError(msg)
    say("registry", "started", f"{address(layout)}, container {layout.name}")


def _is_running(docker: str, name: str, env: dict[str, str]) -> bool:
    told = ask([docker, "inspect", "--format", "{{.State.Running}}", name], env=env)
    return told.out.strip() == "true"


def stop(layout: Layout, *, with_data: bool = False) -> bool:
    """End the registry; say whether one ran."""
    running = processes.find(SERVER, layout.registry_config)
    if running:
        processes.stop(running, patience_s=10)
        return True
    env = engine.machine_environment(layout)
    docker = shutil.which("docker", path=env["PATH"])
    if docker is None or packages.is_debian():
        return False
    removed = ask([docker, "rm", "--force", layout.name], env=env)
    if with_data:
        ask([docker, "volume", "rm", layout.name], env=env)
    return layout.name in removed.out.split()


def is_up(layout: Layout) -> bool:
    """Whether the registry of this checkout answers."""
    port = state.read_state(layout).get("registry_port", "")
    return bool(port) and answers(int(port))


def environment(layout: Layout) -> dict[str, str]:
    """The variable that the other tools read."""
    return {"GPULAYERS_REGISTRY": address(layout), "PATH_PREFIX": os.fspath(layout.bin)}
