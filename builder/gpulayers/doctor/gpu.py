"""The GPU of this machine, and whether containers can have it."""

from gpulayers.doctor.docker import NO_ENGINE, Engine
from gpulayers.doctor.model import Machine, Part, ask, part, skipped

GPU_KIND = "nvidia.com/gpu"
MEMORY_MIN_GB = 1
GB = 10**9
MOUNT = "mount -o remount,size=50% /dev/shm; or docker run --shm-size=1g"


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


def container_part(machine: Machine, engine: Engine | None, gpu: Part, kit: Part) -> Part:
    """Whether the engine can give a container a GPU.

    Shape: ``kit`` is what was found of the container toolkit; where that failed, it says this too.
    """
    name, wanted = "gpu-in-containers", f"a CDI device {GPU_KIND}, or the runtime nvidia"
    if engine is None:
        return skipped(name, why=NO_ENGINE, wanted=wanted)
    devices = [device for device in engine.cdi if device.startswith(f"{GPU_KIND}=")]
    found = ", ".join([*devices, *(["the runtime nvidia"] if "nvidia" in engine.runtimes else [])])
    fix = "install the NVIDIA Container Toolkit, then `nvidia-ctk cdi generate`"
    if found:
        return part(name, ok=True, found=found, wanted=wanted, fix="")
    if kit.status == "failed":
        return skipped(name, why=f"neither: see {kit.name}", wanted=wanted)
    if gpu.status == "passed" or machine.require_gpu:
        return part(name, ok=False, found="neither", wanted=wanted, fix=fix)
    return skipped(name, why="neither, and no GPU to give", wanted=wanted, fix=fix)


def memory_part(machine: Machine, gpu: Part) -> Part:
    """Whether processes that share tensors find room, where containers share this machine's.

    Source: Docker's reference of `docker run`: a container has 64 MiB in /dev/shm unless --shm-size
    or --ipc=host gives it more; loaders of torch that find none end by a bus error.
    """
    name, place = "shared-memory", machine.devices / "shm"
    wanted = f"{MEMORY_MIN_GB} GB in /dev/shm for --ipc=host; else containers need --shm-size"
    if gpu.status != "passed":
        return skipped(name, why="no GPU whose work would share memory", wanted=wanted)
    try:
        total = machine.total_bytes(place)
    except OSError as error:
        return part(name, ok=False, found=f"{place}: {error.strerror}", wanted=wanted, fix=MOUNT)
    found = f"{total / GB:.1f} GB"
    return part(name, ok=total >= MEMORY_MIN_GB * GB, found=found, wanted=wanted, fix=MOUNT)
