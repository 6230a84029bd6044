"""Tells apart why a container did not start and why a check did not hold."""

import re
from collections.abc import Sequence

from gpulayers.engine.docker import ContainerState
from gpulayers.smoke.classes import Class
from gpulayers.smoke.model import Level, ScriptResult

# CUresult and cudaError_t agree on these numbers since CUDA 10.1.
# Source: https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html, and measured with
# the CUDA runtimes 11.7 to 13.5.
CUDA_CODES = {
    2: Class.OUT_OF_MEMORY,
    34: Class.STUB_DRIVER,
    35: Class.DRIVER_TOO_OLD,
    36: Class.DRIVER_TOO_OLD,
    46: Class.BUSY,
    100: Class.NO_GPU,
    209: Class.NO_KERNEL_IMAGE,
    222: Class.PTX_UNSUPPORTED,
    802: Class.NOT_READY,
    803: Class.DRIVER_MISMATCH,
    804: Class.COMPAT_UNSUPPORTED,
}
NOT_SUPPORTED = 801
# Sentences of the engine and of NVIDIA's hooks; the first that is found decides, so that a hook's
# own reason comes before the engine's remark that a hook failed.
STARTS = (
    (r"requirement error", Class.REQUIREMENT_UNMET),
    (r"device error: .*unknown device", Class.DEVICE_UNKNOWN),
    (r"driver/library version mismatch", Class.DRIVER_MISMATCH),
    (r"driver not loaded|load library failed: libnvidia-ml", Class.NO_DRIVER),
    (r"unresolvable CDI devices", Class.CDI_UNRESOLVABLE),
    (r"could not select device driver", Class.ENGINE_NO_GPU_SUPPORT),
    (r"failed to discover GPU vendor from CDI", Class.ENGINE_NO_GPU_SUPPORT),
    (r"AMD CDI spec not found", Class.ENGINE_NO_GPU_SUPPORT),
    (r"unexpected count in CDI device request", Class.ENGINE_NO_GPU_SUPPORT),
    (r"unknown or invalid runtime name", Class.RUNTIME_MISSING),
    (r"no such image", Class.IMAGE_NOT_PULLED),
    (r"exec: .*(executable file not found|no such file|permission denied)", Class.COMMAND_MISSING),
)
BROKEN_SPEC = re.compile(r"error running (\w+ )?hook|error mounting", re.IGNORECASE)
CODE_IN_TEXT = re.compile(r"CUDA (?:failure|error) (\d+)")
COMMAND_NOT_FOUND = (126, 127)


def of_start(level: Level, state: ContainerState, said: str) -> Class:
    """Why a container that was asked for never ran.

    Source: the sentences of engine 28.5 (measured) and 29 (its source).
    """
    text = f"{state.error}\n{said}"
    for pattern, cls in STARTS:
        if re.search(pattern, text, re.IGNORECASE):
            return cls
    if level is Level.GPU and BROKEN_SPEC.search(text):
        return Class.CDI_SPEC_BROKEN
    return Class.NEVER_STARTED


def of_script(level: Level, result: ScriptResult) -> Class:
    """Why one script did not pass, or ``NONE``.

    At the GPU level an error of CUDA that a framework only logs, before it goes on without the GPU,
    is found in what it said.
    """
    if result.ok:
        return Class.NONE
    if result.timed_out:
        return Class.TIMED_OUT
    known = _of_cuda(result) if level is Level.GPU else Class.NONE
    if known:
        return known
    if result.broken:
        return Class.CHECK_FAILED
    return Class.COMMAND_MISSING if result.code in COMMAND_NOT_FOUND else Class.SCRIPT_CRASHED


def _of_cuda(result: ScriptResult) -> Class:
    errors = [line.error for line in result.broken if line.error is not None]
    if any(error.name.startswith("LIBCUDA_NOT_FOUND") for error in errors):
        return Class.NO_DRIVER
    logged = (int(code) for text in result.said for code in CODE_IN_TEXT.findall(text))
    codes = (*(error.code for error in errors), *logged)
    return next((CUDA_CODES[code] for code in codes if code in CUDA_CODES), Class.NONE)


def is_stand_in(results: Sequence[ScriptResult]) -> bool:
    """Whether a stand-in driver answered all that it can, which is all but running a kernel."""
    lines = [line for result in results for line in result.lines]
    errors = [line.error for line in lines if not line.ok]
    first = errors[0].code if errors and errors[0] is not None else 0
    return any(line.stand_in for line in lines) and (not errors or first == NOT_SUPPORTED)
