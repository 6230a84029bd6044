"""Everything in its order, and all of it as JSON."""

from collections.abc import Sequence
from pathlib import Path

from gpulayers.doctor import docker, gpu, remote, toolkit
from gpulayers.doctor.model import Machine, Part

SCHEMA = 1


def examine(machine: Machine) -> tuple[Part, ...]:
    """Look at everything, in the order in which a build needs it; nothing is changed.

    Shape: engine, image-store, buildx, buildkit, network, disk, registry, trivy, trivy-database,
    gpu, gpu-in-containers, container-toolkit, cdi-spec, cgroup-driver, shared-memory, clock: always
    all of them.
    """
    engine, said = docker.ask_engine(machine)
    client = docker.buildx_part(machine)
    card = gpu.gpu_part(machine)
    kit = toolkit.toolkit_part(machine, card)
    return (
        docker.engine_part(engine, said),
        docker.store_part(engine),
        client,
        docker.buildkit_part(machine, engine, client),
        docker.network_part(machine, engine),
        docker.disk_part(machine, engine),
        remote.registry_part(machine),
        *remote.trivy_parts(machine),
        card,
        gpu.container_part(machine, engine, card, kit),
        kit,
        toolkit.spec_part(machine, engine),
        toolkit.cgroup_part(engine),
        gpu.memory_part(machine, card),
        toolkit.clock_part(engine),
    )


def examine_tools(machine: Machine) -> tuple[Part, ...]:
    """Only what a build cannot do without: the engine and buildx."""
    engine, said = docker.ask_engine(machine)
    return (docker.engine_part(engine, said), docker.buildx_part(machine))


def data_folder(machine: Machine) -> Path | None:
    """Where the engine keeps its data, or None where none answers."""
    engine, _ = docker.ask_engine(machine)
    return Path(engine.data) if engine is not None and engine.data else None


def is_fit(parts: Sequence[Part]) -> bool:
    """Whether nothing failed."""
    return all(part.status != "failed" for part in parts)


def format_json(parts: Sequence[Part]) -> dict[str, object]:
    """The parts as ``doctor --json`` prints them."""
    rows = [
        {
            "name": part.name,
            "status": part.status,
            "found": part.found,
            "wanted": part.wanted,
            "fix": part.fix,
        }
        for part in parts
    ]
    return {"schema": SCHEMA, "ok": is_fit(parts), "checks": rows}
