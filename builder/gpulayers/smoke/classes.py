"""What a level of the smoke ladder can come to, and whose fault each way of not passing is."""

from enum import StrEnum
from types import MappingProxyType


class Status(StrEnum):
    """The outcome of a level or of all; only ``passed`` is a pass."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not-run"
    SIMULATED = "simulated"


class Class(StrEnum):
    """Why an outcome is not ``passed``; ``NONE`` with ``passed`` alone."""

    NONE = ""
    # The image's own.
    CHECK_FAILED = "check-failed"
    SCRIPT_CRASHED = "script-crashed"
    TIMED_OUT = "timed-out"
    COMMAND_MISSING = "command-missing"
    ENDED_EARLY = "ended-early"
    NO_KERNEL_IMAGE = "no-kernel-image"
    # Nothing was asked, or there was nothing to ask.
    NO_CHECKS = "no-checks"
    EARLIER_LEVEL_FAILED = "earlier-level-failed"
    IMAGE_NOT_PULLED = "image-not-pulled"
    # The engine's, or its configuration's.
    NEVER_STARTED = "never-started"
    ENGINE_LOST = "engine-lost"
    ENGINE_NO_GPU_SUPPORT = "engine-no-gpu-support"
    CDI_UNRESOLVABLE = "cdi-unresolvable"
    CDI_SPEC_BROKEN = "cdi-spec-broken"
    RUNTIME_MISSING = "runtime-missing"
    DEVICE_UNKNOWN = "device-unknown"
    # The host's driver or hardware.
    REQUIREMENT_UNMET = "requirement-unmet"
    NO_DRIVER = "no-driver"
    NO_GPU = "no-gpu"
    DRIVER_TOO_OLD = "driver-too-old"
    PTX_UNSUPPORTED = "ptx-unsupported"
    NOT_READY = "not-ready"
    DRIVER_MISMATCH = "driver-mismatch"
    COMPAT_UNSUPPORTED = "compat-unsupported"
    BUSY = "busy"
    OUT_OF_MEMORY = "out-of-memory"
    # A driver that answers and never computes.
    STUB_DRIVER = "stub-driver"
    STAND_IN_DRIVER = "stand-in-driver"


IMAGE_FAULTS = frozenset(
    {
        Class.CHECK_FAILED,
        Class.SCRIPT_CRASHED,
        Class.TIMED_OUT,
        Class.COMMAND_MISSING,
        Class.ENDED_EARLY,
        Class.NO_KERNEL_IMAGE,
    }
)
_CDI = "found no usable CDI device; wanted one that `docker info` lists: run `nvidia-ctk cdi list`"
NEXT = MappingProxyType(
    {
        Class.NO_CHECKS: "wanted a script cpu_*.py or gpu_*.py in a layer's smoke folder",
        Class.EARLIER_LEVEL_FAILED: "a lower level did not pass; mend that first",
        Class.IMAGE_NOT_PULLED: "nothing was learned about the image; pull it by hand to see why",
        Class.NEVER_STARTED: "the engine did not start the container; the image was not judged",
        Class.ENGINE_LOST: "the engine or the container went away during the checks: run again",
        Class.ENGINE_NO_GPU_SUPPORT: (
            "this engine cannot give a container a GPU: wanted a CDI device nvidia.com/gpu "
            "(engine 28.2 or newer, `nvidia-ctk cdi generate`) or the NVIDIA Container Toolkit"
        ),
        Class.CDI_UNRESOLVABLE: _CDI,
        Class.CDI_SPEC_BROKEN: "the CDI spec is stale or broken: `nvidia-ctk cdi generate` anew",
        Class.RUNTIME_MISSING: "the engine's configuration names no runtime nvidia",
        Class.DEVICE_UNKNOWN: "the GPU asked for is not on this host",
        Class.REQUIREMENT_UNMET: "this host's driver does not meet the image's NVIDIA_REQUIRE_CUDA",
        Class.NO_DRIVER: "no libcuda.so.1 came into the container: install the driver on the host",
        Class.NO_GPU: "a driver is there and shows no GPU",
        Class.DRIVER_TOO_OLD: "this host's driver is too old for the image's CUDA",
        Class.PTX_UNSUPPORTED: "this host's driver cannot compile PTX as new as the image's",
        Class.NOT_READY: "the GPU's system is not up yet (fabric manager, MIG)",
        Class.DRIVER_MISMATCH: "driver and its libraries differ: reload the driver or reboot",
        Class.COMPAT_UNSUPPORTED: "forward compatibility does not work on this GPU",
        Class.BUSY: "every GPU is in use by others, in exclusive mode",
        Class.OUT_OF_MEMORY: "there was too little memory left on this host",
        Class.STUB_DRIVER: "the driver library is a stub, which computes nothing",
        Class.STAND_IN_DRIVER: "a stand-in driver answered, which runs no kernel: no GPU proven",
    }
)


def status_of(cls: Class) -> Status:
    """The status that a class stands for: only an image's own fault makes it ``failed``."""
    if cls is Class.NONE:
        return Status.PASSED
    if cls is Class.STAND_IN_DRIVER:
        return Status.SIMULATED
    return Status.FAILED if cls in IMAGE_FAULTS else Status.NOT_RUN
