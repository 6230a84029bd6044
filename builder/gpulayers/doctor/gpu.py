"""The GPU of this machine, and whether containers can have it."""

from gpulayers.doctor.docker import NO_ENGINE, Engine
from gpulayers.doctor.model import Machine, Part, ask, part, skipped

GPU_KIND = "nvidia.com/gpu"


def gpu_part(machine: Machine) -> Part:
    """Whether this machine has a GPU whose driver answers."""
    wanted = "an NVIDIA GPU with its driver, for the GPU's own checks"
    nodes = sorted(path.name for path in machine.devices.glob("nvidia[0-9]*"))
    nodes += [path.name for path in machine.devices.glob("dxg")]  # Windows Subsystem for Linux
    query = "--query-gpu=name,driver_version,compute_cap"
    ok, stdout, said = ask(machine, "nvidia-smi", query, "--format=csv,noheader")
    cards = "; ".join(line.strip() for line in stdout.splitlines() if line.strip())
    if ok and cards and nodes:
        return part("gpu", ok=True, found=cards, wanted=wanted, fix="")
    if nodes:
        fix = "install or reload the NVIDIA driver, so that nvidia-smi answers"
        found = f"devices {', '.join(nodes)}; nvidia-smi: {said}"
        return part("gpu", ok=False, found=found, wanted=wanted, fix=fix)
    # A stand-in answers too; without a device it proves nothing.
    found = f"nvidia-smi says {cards}, and there is no GPU device" if ok and cards else "none"
    fix = "run the GPU's checks on a machine that has one"
    if machine.require_gpu:
        return part("gpu", ok=False, found=found, wanted=wanted, fix=fix)
    return skipped("gpu", why=found, wanted=wanted, fix=fix)


def container_part(machine: Machine, engine: Engine | None, gpu: Part) -> Part:
    """Whether the engine can give a container a GPU."""
    name, wanted = "gpu-in-containers", f"a CDI device {GPU_KIND}, or the runtime nvidia"
    if engine is None:
        return skipped(name, why=NO_ENGINE, wanted=wanted)
    devices = [device for device in engine.cdi if device.startswith(f"{GPU_KIND}=")]
    found = ", ".join([*devices, *(["the runtime nvidia"] if "nvidia" in engine.runtimes else [])])
    fix = "install the NVIDIA Container Toolkit, then `nvidia-ctk cdi generate`"
    if found:
        return part(name, ok=True, found=found, wanted=wanted, fix="")
    if gpu.status == "passed" or machine.require_gpu:
        return part(name, ok=False, found="neither", wanted=wanted, fix=fix)
    return skipped(name, why="neither, and no GPU to give", wanted=wanted, fix=fix)
