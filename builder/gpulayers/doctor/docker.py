"""The engine, its image store, buildx, network and disk."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from packaging.version import Version

from gpulayers.doctor.model import Machine, Part, ask, part, skipped

# The oldest that we say work; an engine or builder that is older may still do.
DOCKER_MIN = Version("25.0")
BUILDX_MIN = Version("0.13")
# Times of an image and of its history by SOURCE_DATE_EPOCH: since 0.11 (BuildKit, build-repro.md).
BUILDKIT_MIN = Version("0.11")
DISK_MIN_GB = 10
# What a pair of torch images with CUDA took: stages, linked copies, blobs and wheels at once.
DISK_GOOD_GB = 25
GB = 10**9
NO_ENGINE = "there is no engine to ask"
NONE: frozenset[str] = frozenset()
# What distributions' own builds of the engine say.
UNKNOWN_VERSION = "0.0.0"
# Lines of `docker buildx inspect`: its words, and labels of the builder by their last word.
_TOLD = re.compile(
    r"^\s*(?:org\.mobyproject\.buildkit\.worker\.)?([A-Za-z ]+):[ \t]+(\S+)$", re.MULTILINE
)
_NUMBER = re.compile(r"\d+(\.\d+)+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """The parts of ``docker info`` that matter here; ``asked`` is when it was asked."""

    version: str
    driver: str
    data: str
    cdi: tuple[str, ...]
    runtimes: frozenset[str]
    spec_dirs: tuple[str, ...]
    cgroups: str
    time: str
    asked: datetime


def ask_engine(machine: Machine) -> tuple[Engine | None, str]:
    """What the engine says of itself, or None and why there is no answer."""
    _, stdout, said = ask(machine, "docker", "info", "--format", "{{json .}}")
    try:
        answer: object = json.loads(stdout)
    except ValueError:
        return None, said
    table = answer if isinstance(answer, dict) else {}
    if not table.get("ServerVersion"):
        errors = table.get("ServerErrors")
        return None, str(errors[0]) if isinstance(errors, list) and errors else said
    return _parse(table, machine.now or datetime.now(UTC)), ""


def _parse(info: Mapping[str, object], asked: datetime) -> Engine:
    pairs = info.get("DriverStatus")
    status = {str(p[0]): str(p[-1]) for p in (pairs if isinstance(pairs, list) else ()) if p}
    devices, runtimes = info.get("DiscoveredDevices"), info.get("Runtimes")
    folders = info.get("CDISpecDirs")
    found = [each for each in (devices if isinstance(devices, list) else ()) if each]
    return Engine(
        version=str(info.get("ServerVersion")),
        driver=status.get("driver-type") or str(info.get("Driver")),
        data=str(info.get("DockerRootDir", "")),
        cdi=tuple(str(each.get("ID")) for each in found if isinstance(each, dict)),
        runtimes=frozenset(str(name) for name in runtimes) if isinstance(runtimes, dict) else NONE,
        spec_dirs=tuple(str(each) for each in (folders if isinstance(folders, list) else ())),
        cgroups=str(info.get("CgroupDriver") or ""),
        time=str(info.get("SystemTime") or ""),
        asked=asked,
    )


def _is_at_least(text: str, minimum: Version) -> bool:
    number = _NUMBER.search(text)
    return number is not None and Version(number[0]) >= minimum


def engine_part(engine: Engine | None, said: str) -> Part:
    """Whether an engine answers and is new enough."""
    wanted = f"a Docker engine {DOCKER_MIN} or newer"
    if engine is None:
        fix = "install and start Docker, or set DOCKER_HOST to where an engine listens"
        return part("engine", ok=False, found=said or "no answer", wanted=wanted, fix=fix)
    ok = _is_at_least(engine.version, DOCKER_MIN)
    return part("engine", ok=ok, found=engine.version, wanted=wanted, fix="update Docker")


def store_part(engine: Engine | None) -> Part:
    """Where the engine keeps images: only containerd's store knows zstd layers and indexes."""
    wanted = "the containerd image store"
    if engine is None:
        return skipped("image-store", why=NO_ENGINE, wanted=wanted)
    fix = 'set {"features": {"containerd-snapshotter": true}} in daemon.json and restart the engine'
    fix += ", or name a docker-container builder with --builder"
    ok = engine.driver.startswith("io.containerd.")
    return part("image-store", ok=ok, found=engine.driver, wanted=wanted, fix=fix)


def buildx_part(machine: Machine) -> Part:
    """Whether the client has buildx, new enough."""
    ok, stdout, said = ask(machine, "docker", "buildx", "version")
    words = stdout.split()
    found = words[1].removeprefix("v") if ok and len(words) > 1 else said
    fix = "install the buildx plugin (docker-buildx), or a newer one"
    good = ok and _is_at_least(found, BUILDX_MIN)
    return part("buildx", ok=good, found=found, wanted=f"buildx {BUILDX_MIN} or newer", fix=fix)


def buildkit_part(machine: Machine, engine: Engine | None, buildx: Part) -> Part:
    """Whether the builder's BuildKit can do what we ask of it, as far as it says its version."""
    wanted = f"a builder with BuildKit {BUILDKIT_MIN} or newer"
    if engine is None:
        return skipped("buildkit", why=NO_ENGINE, wanted=wanted)
    if buildx.status == "failed":
        return skipped("buildkit", why=f"see {buildx.name}", wanted=wanted)
    ok, stdout, said = ask(machine, "docker", "buildx", "inspect")
    told: dict[str, str] = dict(_TOLD.findall(stdout))
    version = told.get("BuildKit version", "").removeprefix("v")
    if not ok or not told:
        fix = "`docker buildx ls`; start the builder, or name another with --builder"
        return part("buildkit", ok=False, found=said, wanted=wanted, fix=fix)
    known = bool(version) and not version.startswith(UNKNOWN_VERSION)
    more = {"snapshotter": "snapshotter", "network": "steps' network"}
    parts = [version if known else "of a version that it does not say"]
    parts += [f"{text} {told[name]}" for name, text in more.items() if name in told]
    fix = "update Docker, or name a newer builder with --builder"
    good = not known or _is_at_least(version, BUILDKIT_MIN)
    return part("buildkit", ok=good, found=", ".join(parts), wanted=wanted, fix=fix)


def network_part(machine: Machine, engine: Engine | None) -> Part:
    """Whether containers have a network of their own; without one the host's is used."""
    wanted = "a bridge network, or the host's for build steps"
    if engine is None:
        return skipped("network", why=NO_ENGINE, wanted=wanted)
    argv = ("docker", "network", "ls", "--filter=driver=bridge", "--format={{.Name}}")
    ok, stdout, said = ask(machine, *argv)
    if not ok:
        return part("network", ok=False, found=said, wanted=wanted, fix="`docker network ls`")
    found = "bridge" if "bridge" in stdout.split() else "no bridge: build steps use the host's"
    return part("network", ok=True, found=found, wanted=wanted, fix="")


def disk_part(machine: Machine, engine: Engine | None) -> Part:
    """How much room there is where the engine keeps its data."""
    data = Path(engine.data) if engine is not None and engine.data else machine.disk
    place = data if data.is_dir() else machine.disk
    wanted = f"{DISK_MIN_GB} GB free, {DISK_GOOD_GB} GB for images with torch"
    try:
        free = machine.free_bytes(place)
    except OSError as error:
        return skipped("disk", why=f"{place}: {error.strerror}", wanted=wanted)
    fix = "`docker buildx prune`, or give the engine a larger disk (data-root in daemon.json)"
    found = f"{free / GB:.0f} GB free in {place}"
    return part("disk", ok=free >= DISK_MIN_GB * GB, found=found, wanted=wanted, fix=fix)
