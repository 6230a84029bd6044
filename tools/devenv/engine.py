"""The Docker engine: the machine's own where it is good enough, else a private one."""

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress

from devenv import layout as places
from devenv import packages, processes, programs, version
from devenv.command import Outcome, ask, path_without
from devenv.layout import Layout
from devenv.state import read_state, remember, write_atomically
from devenv.talk import DevenvError, say, size

READY_S = 90.0
STOP_S = 40.0
DAEMON = "dockerd"
# What a dockerd that was killed leaves running.
CHILDREN = ("containerd", "containerd-shim-runc-v2", "runc")
# Below this, not even the smallest image of the demo can be built and tested.
LEAST_FREE = 5 * 10**9
# The build cache gives way before the disk is full. An engine before 28 knows the first alone.
GARBAGE = {
    "enabled": True,
    "defaultKeepStorage": "10GB",
    "defaultReservedSpace": "10GB",
    "defaultMaxUsedSpace": "40GB",
    "defaultMinFreeSpace": "12GB",
}


def machine_environment(layout: Layout) -> dict[str, str]:
    """Our environment without what points at the private engine of this checkout."""
    env = {**os.environ, "PATH": path_without(layout.bin)}
    for name, own in (
        ("DOCKER_HOST", f"unix://{layout.socket}"),
        ("DOCKER_CONFIG", str(layout.docker_config)),
    ):
        if env.get(name) == own:
            del env[name]
    return env


def private_environment(layout: Layout) -> dict[str, str]:
    """The variables that point a client at the private engine."""
    return {"DOCKER_HOST": f"unix://{layout.socket}", "DOCKER_CONFIG": str(layout.docker_config)}


def machine_versions(layout: Layout) -> tuple[version.Version, version.Version] | None:
    """The versions of the machine's own engine and buildx; None where no engine answers."""
    env = machine_environment(layout)
    docker = shutil.which("docker", path=env["PATH"])
    if docker is None:
        return None
    told = ask([docker, "info", "--format", "{{.ServerVersion}}"], env=env)
    if told.code or not told.out.strip():
        return None
    buildx = ask([docker, "buildx", "version"], env=env)
    return version.parse(told.out), version.parse("" if buildx.code else buildx.out)


def is_private(layout: Layout) -> bool:
    """Whether this checkout is to have an engine of its own.

    Raises: DevenvError: ENGINE has a word that is not known.
    """
    wish = os.environ.get("ENGINE", "")
    if wish not in {"", "private"}:
        msg = f"ENGINE={wish} is not known"
        raise DevenvError(msg, hint="unset it, or set ENGINE=private")
    if wish or processes.find(DAEMON, layout.daemon_config):
        return True
    found = machine_versions(layout)
    if found is None:
        return True
    if reason := version.lacks(*found):
        say("docker", "refused", f"the machine's own engine: {reason}")
        return True
    return False


def found_line(layout: Layout) -> str:
    """The machine's own engine in words."""
    docker, buildx = machine_versions(layout) or ((), ())
    env = machine_environment(layout)
    store = ask(["docker", "info", "--format", "{{.DriverStatus}}"], env=env).out
    note = "" if "io.containerd.snapshotter" in store else ", without the containerd image store"
    return f"{version.text(docker)}, buildx {version.text(buildx)}, the machine's own{note}"


def check_disk(layout: Layout) -> None:
    """Refuse a disk that fills up at the first image.

    Raises: DevenvError: with what to do instead.
    """
    free = shutil.disk_usage(layout.checkout).free
    if free < LEAST_FREE:
        msg = (
            f"too little disk for an engine: wanted {size(LEAST_FREE)} free, "
            f"found {size(free)} in {layout.checkout}"
        )
        raise DevenvError(msg, hint="make room (`make clean` gives back all that was made here)")


def check_possible() -> None:
    """Refuse a private engine where it cannot run.

    Raises: DevenvError: with what to do instead.
    """
    install = "install Docker with buildx, then the same command works"
    if not packages.is_debian():
        msg = "no usable Docker here, and a private engine can be made on Debian only"
        raise DevenvError(msg, hint=install)
    if os.geteuid() != 0:
        msg = "no usable Docker here, and only root can start a private engine"
        raise DevenvError(msg, hint=f"run it as root, or {install}")


def format_daemon_config(layout: Layout) -> str:
    """The private engine's configuration: no bridge and no firewall rule, so clones do not meet."""
    config = {
        "data-root": str(layout.data),
        "exec-root": str(layout.exec_root),
        "pidfile": str(layout.pid_file),
        "hosts": [f"unix://{layout.socket}"],
        "bridge": "none",
        "iptables": False,
        "ip6tables": False,
        "ip-forward": False,
        "ip-masq": False,
        "userland-proxy": False,
        "features": {"containerd-snapshotter": True, "cdi": True},
        "cdi-spec-dirs": [str(layout.cdi)],
        "insecure-registries": ["127.0.0.0/8"],
        "builder": {"gc": GARBAGE},
    }
    return json.dumps(config, indent=2, sort_keys=True) + "\n"


def fetch(layout: Layout) -> None:
    """Unpack the engine and what it needs."""
    _fetch_newer(layout, programs.ENGINE_PACKAGES)
    packages.fetch(layout, packages.own_suite(), programs.ENGINE_HELPERS, with_needs=True)
    programs.link(layout, (*programs.ENGINE_PACKAGES, *programs.ENGINE_HELPERS))
    plugin = programs.FILES["docker-buildx"]["docker-buildx"]
    programs.link_one(
        layout.docker_config / "cli-plugins" / "docker-buildx",
        layout.packages / "docker-buildx" / plugin,
    )


def fetch_registry(layout: Layout) -> None:
    """Unpack the registry server."""
    _fetch_newer(layout, programs.REGISTRY_PACKAGES)
    programs.link(layout, programs.REGISTRY_PACKAGES)


def _fetch_newer(layout: Layout, names: tuple[str, ...]) -> None:
    if all(packages.is_unpacked(layout, name) for name in names):
        return
    kept = read_state(layout).get("suite", "")
    order = dict.fromkeys(
        [*([kept] if kept in programs.ENGINE_SUITES else []), *programs.ENGINE_SUITES]
    )
    refusals: list[str] = []
    for suite in order:
        try:
            packages.fetch(layout, suite, names)
        except DevenvError as error:
            refusals.append(f"{suite}: {error}")
            continue
        remember(layout, suite=suite)
        return
    msg = f"none of the suites {', '.join(order)} gave {', '.join(names)}\n" + "\n".join(refusals)
    raise DevenvError(msg, hint="install Docker with buildx, then the same command works")


def client(layout: Layout, *words: str) -> Outcome:
    """Ask the private engine through its own client."""
    env = {
        **os.environ,
        **private_environment(layout),
        "PATH": f"{layout.bin}{os.pathsep}{path_without(layout.bin)}",
    }
    return ask([layout.bin / "docker", *words], env=env)


def answers(layout: Layout) -> str:
    """The private engine's version; empty when it does not answer."""
    if not layout.socket.exists():
        return ""
    told = client(layout, "info", "--format", "{{.ServerVersion}}")
    return "" if told.code else told.out.strip()


def start(layout: Layout) -> None:
    """Start the private engine unless it runs with the same configuration."""
    config = format_daemon_config(layout)
    running = processes.find(DAEMON, layout.daemon_config)
    is_same = layout.daemon_config.is_file() and layout.daemon_config.read_text() == config
    if running and is_same and processes.wait_until(lambda: bool(answers(layout)), deadline_s=10):
        say("docker", "found", f"{_line(layout)}, pid {running.pid}")
        return
    if running:
        say("docker", "stopping", f"pid {running.pid} does not answer or has an old configuration")
        processes.stop(running, patience_s=STOP_S)
    places.make_run_folder(layout)
    for folder in (layout.data, layout.cdi):
        folder.mkdir(parents=True, exist_ok=True)
    write_atomically(layout.daemon_config, config)
    _stop_children(layout)
    # A killed engine leaves its number, and the next one refuses to start while anything has it;
    # that of its containerd makes the next one wait 10 s for a process that is gone.
    for number in (layout.pid_file, layout.exec_root / "containerd" / "containerd.pid"):
        number.unlink(missing_ok=True)
    processes.start(
        [layout.bin / DAEMON, "--config-file", layout.daemon_config],
        log=layout.log / "dockerd.log",
        env=processes.server_environment(f"{layout.bin}{os.pathsep}{server_path(os.environ)}"),
        ready=lambda: bool(answers(layout)),
        deadline_s=READY_S,
    )
    say("docker", "started", _line(layout))


def server_path(environ: Mapping[str, str]) -> str:
    """PATH of a server: ours, with the folders of system programs that a user's may lack."""
    parts = environ.get("PATH", "").split(os.pathsep)
    system = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
    return os.pathsep.join(dict.fromkeys(part for part in (*parts, *system) if part))


def _line(layout: Layout) -> str:
    buildx = version.text(version.parse(client(layout, "buildx", "version").out))
    return f"{answers(layout)}, buildx {buildx}, private, {layout.socket}"


def stop(layout: Layout) -> bool:
    """End the private engine and all its containers; say whether there was anything to end."""
    running = processes.find(DAEMON, layout.daemon_config)
    if running:
        processes.stop(running, patience_s=STOP_S)
    rest = _stop_children(layout)
    with suppress(OSError):
        layout.pid_file.unlink()
    return bool(running or rest)


def _stop_children(layout: Layout) -> bool:
    rest = processes.left_over(CHILDREN, layout.run)
    for process in rest:
        processes.stop(process, patience_s=0)
    return bool(rest)
