"""How containers get the GPU: the container toolkit, CDI specs, cgroups; and the engine's clock."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import yaml

from gpulayers.doctor.docker import NO_ENGINE, Engine
from gpulayers.doctor.model import Machine, Part, ask, part, skipped

# Where engines and NVIDIA's tools look when nothing else is said (CDI specification, 1.0).
SPEC_DIRS = ("/etc/cdi", "/var/run/cdi")
KIND = "nvidia.com/gpu"
FIX = "`nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`, after each change of the driver"
MOST_SKEW_S = 60
SHOWN = 3


def toolkit_part(machine: Machine, gpu: Part) -> Part:
    """Whether NVIDIA's container toolkit is installed."""
    name, wanted = "container-toolkit", "the NVIDIA Container Toolkit, where there is a GPU"
    ok, stdout, said = ask(machine, "nvidia-ctk", "--version")
    found = (stdout.splitlines() or [""])[0].strip()
    if ok and found:
        return part(name, ok=True, found=found, wanted=wanted, fix="")
    fix = "install nvidia-container-toolkit"
    if gpu.status == "passed":
        return part(name, ok=False, found=said or "no answer", wanted=wanted, fix=fix)
    return skipped(name, why="none, and no GPU to give", wanted=wanted)


def spec_part(machine: Machine, engine: Engine | None) -> Part:
    """Whether what the CDI specs of the GPU name is still there.

    Shape: a spec names files of the driver by their version, and programs that run when a
    container starts; a driver that was updated leaves it stale.
    """
    name, wanted = "cdi-spec", f"specs of {KIND} whose files and hooks are all there"
    if engine is None:
        return skipped(name, why=NO_ENGINE, wanted=wanted)
    files = [*_specs(machine, engine.spec_dirs or SPEC_DIRS)]
    if not files:
        return skipped(name, why=f"no spec of {KIND}", wanted=wanted)
    told = []
    for file, text in files:
        try:
            hooks, others = _named(text)
        except ValueError as error:
            told.append(f"{file} is broken: {error}")
            continue
        lost_hooks = [path for path in hooks if not _there(machine, path)]
        lost = [path for path in others if not _there(machine, path)]
        if lost_hooks:
            told.append(f"{file} is broken: its hook {', '.join(lost_hooks)} is not there")
        if lost:
            more = f" and {len(lost) - SHOWN} more" if len(lost) > SHOWN else ""
            shown = ", ".join(lost[:SHOWN]) + more
            told.append(f"{file} is stale: {shown} {'are' if len(lost) > 1 else 'is'} not there")
    found = "; ".join(told) or ", ".join(file for file, _ in files)
    return part(name, ok=not told, found=found, wanted=wanted, fix=FIX)


def _specs(machine: Machine, folders: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Name and text of each spec of the GPU."""
    for folder in folders:
        place = machine.host / folder.lstrip("/")
        for path in sorted(place.glob("*")) if place.is_dir() else ():
            if path.suffix in {".json", ".yaml", ".yml"}:
                try:
                    text = path.read_text(encoding="utf-8", errors="replace")
                except OSError:
                    continue
                if KIND in text:
                    yield f"{folder}/{path.name}", text


def _named(text: str) -> tuple[list[str], list[str]]:
    """Programs of hooks, and other files of the host, each once.

    Source: the CDI specification: edits of containers for all devices, and for each.
    Raises: ValueError: it is no such specification, in YAML or JSON.
    """
    try:
        spec = yaml.safe_load(text)
    except yaml.YAMLError as error:
        msg = f"no YAML or JSON: {' '.join(str(error).split())}"
        raise ValueError(msg) from error
    whole = next(_tables([spec]), None)
    if whole is None:
        msg = "wanted a table with kind and devices"
        raise ValueError(msg)
    edits = [each.get("containerEdits") for each in (whole, *_tables(whole.get("devices")))]
    hooks: dict[str, None] = {}
    others: dict[str, None] = {}
    for edit in _tables(edits):
        for hook in _tables(edit.get("hooks")):
            hooks[str(hook.get("path"))] = None
        for node in _tables(edit.get("deviceNodes")):
            # The host's own name of a device, where it has another in the container.
            others[str(node.get("hostPath") or node.get("path"))] = None
        for mount in _tables(edit.get("mounts")):
            others[str(mount.get("hostPath"))] = None
    return [*hooks], [*others]


def _tables(value: object) -> Iterator[dict[str, object]]:
    """The tables of a list; what is neither is passed over."""
    for each in value if isinstance(value, list) else ():
        if isinstance(each, dict):
            yield each


def _there(machine: Machine, path: str) -> bool:
    return (machine.host / path.lstrip("/")).exists()


def cgroup_part(engine: Engine | None) -> Part:
    """Whether running containers keep their GPU when systemd reads its units anew.

    Source: NVIDIA's container toolkit, troubleshooting: with the systemd driver, devices that a
    hook gave are lost at a reload; those of CDI and of --device are not.
    """
    name = "cgroup-driver"
    wanted = "cgroupfs, or GPUs by CDI: with systemd and the hook a reload takes the GPU away"
    if engine is None:
        return skipped(name, why=NO_ENGINE, wanted=wanted)
    by_hook = "nvidia" in engine.runtimes and not any(d.startswith(KIND) for d in engine.cdi)
    fix = "`nvidia-ctk cdi generate`, then --device nvidia.com/gpu=all"
    bad = engine.cgroups == "systemd" and by_hook
    return part(name, ok=not bad, found=engine.cgroups or "not said", wanted=wanted, fix=fix)


def clock_part(engine: Engine | None) -> Part:
    """Whether the engine's clock is ours: certificates, tokens and archives look at it."""
    name, wanted = "clock", f"the engine's clock within {MOST_SKEW_S} s of this machine's"
    if engine is None:
        return skipped(name, why=NO_ENGINE, wanted=wanted)
    try:
        theirs = datetime.fromisoformat(re.sub(r"\.\d+", "", engine.time))
    except ValueError:
        return skipped(name, why="the engine does not say its time", wanted=wanted)
    if theirs.tzinfo is None:
        theirs = theirs.replace(tzinfo=UTC)
    apart = round(abs((engine.asked - theirs).total_seconds()))
    found = f"{apart} s apart"
    fix = "set both clocks by NTP"
    return part(name, ok=apart <= MOST_SKEW_S, found=found, wanted=wanted, fix=fix)
