"""The CUDA runtime and its compiler load by name and work, as far as they can without a GPU."""

import ctypes
import json
import os
import sys
from pathlib import Path

CELL = json.loads(os.environ.get("GPULAYERS_CELL", "{}"))
WHEELS = json.loads(os.environ.get("GPULAYERS_WHEELS", "{}"))
SOURCE = b'extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2.0f; }\n\0'
ARCHITECTURE = "compute_80"
# CUDA 11 gave both sonames a minor version; later majors have the major alone.
SONAMES = {("cudart", "11"): "libcudart.so.11.0", ("nvrtc", "11"): "libnvrtc.so.11.2"}


class CallError(Exception):
    """An entry point of the library returned an error."""


def report(check: str, *, ok: bool, **facts: object) -> bool:
    """Print one JSON line and hand back whether the check held."""
    print(json.dumps({"check": check, "ok": ok, **facts}), flush=True)
    return ok


def soname(library: str) -> str:
    """The file name that programs of the cell's CUDA major ask the loader for."""
    major = CELL.get("cuda", "12").partition(".")[0]
    return SONAMES.get((library, major), f"lib{library}.so.{major}")


def is_locked(package: str) -> bool:
    """Whether the lock installed the NVIDIA package; true where no lock was handed in."""
    names = {name.rpartition("-cu")[0] or name for name in WHEELS}
    return not WHEELS or package in names or package in WHEELS


def loaded_from(name: str) -> str:
    """The file that a loaded library really came from."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    return next((line.split()[-1] for line in lines if name in line), "")


def call(library: ctypes.CDLL, name: str, *arguments: object) -> None:
    """Call an entry point; anything but 0 is an error."""
    code = getattr(library, name)(*arguments)
    if code:
        msg = f"{name} returned {code}"
        raise CallError(msg)


def runtime_version() -> str:
    """MAJOR.MINOR of the CUDA runtime, as it says itself."""
    version = ctypes.c_int()
    call(ctypes.CDLL(soname("cudart")), "cudaRuntimeGetVersion", ctypes.byref(version))
    return f"{version.value // 1000}.{version.value % 1000 // 10}"


def compile_ptx() -> str:
    """PTX of a small kernel, made by NVRTC."""
    nvrtc, program, size = ctypes.CDLL(soname("nvrtc")), ctypes.c_void_p(), ctypes.c_size_t()
    options = (ctypes.c_char_p * 1)(f"--gpu-architecture={ARCHITECTURE}".encode())
    call(nvrtc, "nvrtcCreateProgram", ctypes.byref(program), SOURCE, b"twice.cu", 0, None, None)
    call(nvrtc, "nvrtcCompileProgram", program, 1, options)
    call(nvrtc, "nvrtcGetPTXSize", program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    call(nvrtc, "nvrtcGetPTX", program, text)
    return text.value.decode()


def check_runtime() -> bool:
    """The runtime's version is the cell's."""
    if not is_locked("nvidia-cuda-runtime"):
        return report("cuda-runtime", ok=True, skip="the lock has no CUDA runtime package")
    wanted = CELL.get("cuda", "")
    try:
        found = runtime_version()
    except (OSError, AttributeError, CallError) as error:
        return report("cuda-runtime", ok=False, value=str(error), expected=wanted)
    ok = found == (wanted or found)
    return report(
        "cuda-runtime", ok=ok, value=found, expected=wanted, file=loaded_from("libcudart.so")
    )


def check_nvrtc() -> bool:
    """The compiler turns C++ into PTX for the architecture asked for."""
    if not is_locked("nvidia-cuda-nvrtc"):
        return report("nvrtc", ok=True, skip="the lock has no NVRTC package")
    try:
        text = compile_ptx()
    except (OSError, AttributeError, CallError) as error:
        return report("nvrtc", ok=False, value=str(error), expected=f"PTX for {ARCHITECTURE}")
    ok = ".target sm_80" in text and ".entry twice" in text
    return report(
        "nvrtc", ok=ok, value=len(text), unit="characters", file=loaded_from("libnvrtc.so")
    )


def main() -> int:
    """Run every check; 0 when all hold."""
    return int(not all([check_runtime(), check_nvrtc()]))


if __name__ == "__main__":
    sys.exit(main())
