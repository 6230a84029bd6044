"""What `status` tells."""

from pathlib import Path
from typing import TypedDict

from devenv import engine, packages, processes, registry, scanner, version
from devenv.command import ask
from devenv.layout import Layout
from devenv.talk import size


class Status(TypedDict):
    """The state of this checkout. Units: sizes in bytes on disk; an empty text is "not there"."""

    up: bool
    engine: str
    docker: str
    docker_pid: int
    socket: str
    registry: str
    registry_up: bool
    mmdebstrap: str
    trivy: str
    venv: bool
    packages: dict[str, str]
    size_bytes: dict[str, int]


def read_status(layout: Layout) -> Status:
    """Look at everything and start nothing."""
    running = processes.find(engine.DAEMON, layout.daemon_config)
    machine = None if running else engine.machine_versions(layout)
    docker = engine.answers(layout) if running else version.text(machine[0]) if machine else ""
    registry_up = registry.is_up(layout)
    return Status(
        up=bool(docker) and registry_up and layout.env_file.is_file(),
        engine="private" if running else "machine" if machine else "",
        docker=docker,
        docker_pid=running.pid if running else 0,
        socket=str(layout.socket) if running else "",
        registry=registry.address(layout),
        registry_up=registry_up,
        mmdebstrap=_where(layout, "mmdebstrap"),
        trivy=_trivy(layout),
        venv=(layout.venv / "installed").is_file(),
        packages=_packages(layout),
        size_bytes=_sizes(layout),
    )


def _where(layout: Layout, program: str) -> str:
    told = ask(["sh", "-c", f"command -v {program}"], env=_environment(layout))
    return told.out.strip()


def _environment(layout: Layout) -> dict[str, str]:
    env = engine.machine_environment(layout)
    return {**env, "PATH": f"{layout.bin}:{env['PATH']}"}


def _trivy(layout: Layout) -> str:
    where = _where(layout, "trivy")
    return version.text(scanner.read_version(Path(where), Path("/"))) if where else ""


def _packages(layout: Layout) -> dict[str, str]:
    labels = sorted(layout.packages.glob(f"[!.]*/{packages.LABEL}"))
    return {label.parent.name: label.read_text(encoding="utf-8").strip() for label in labels}


def _sizes(layout: Layout) -> dict[str, int]:
    folders = [p for p in (layout.packages, layout.bin, layout.data, layout.registry) if p.is_dir()]
    if not folders:
        return {}
    told = ask(["du", "-skx", *folders], timeout_s=120)
    pairs = (line.split("\t", 1) for line in told.out.splitlines())
    return {Path(path).name: int(count) * 1024 for count, path in pairs}


def show(facts: Status) -> str:
    """The same as lines for people."""
    engine_line = f"{facts['docker']} ({facts['engine']}) {facts['socket']}".rstrip()
    registry_line = f"{facts['registry']} {'up' if facts['registry_up'] else 'not up'}"
    lines = {
        "docker": engine_line if facts["docker"] else "not up",
        "registry": registry_line.strip(),
        "mmdebstrap": facts["mmdebstrap"] or "missing",
        "trivy": facts["trivy"] or "missing",
        "venv": "made" if facts["venv"] else "not made",
        **{f"size {name}": size(count) for name, count in facts["size_bytes"].items()},
        **{f"package {name}": label for name, label in facts["packages"].items()},
    }
    return "".join(f"{name:<32} {text}\n" for name, text in lines.items())
