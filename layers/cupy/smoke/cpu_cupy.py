"""CuPy is the version that the lock names, and compiles for a GPU without having one."""

import json
import os
import sys
import time
from importlib import metadata
from pathlib import Path

WHEELS = json.loads(os.environ.get("GPULAYERS_WHEELS", "{}"))
ARCHITECTURE = "sm_80"
# carray.cuh is what every elementwise kernel of CuPy includes; it needs CUDA's own headers.
SOURCE = """
#include <cupy/complex.cuh>
#include <cupy/carray.cuh>
extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2.0f; }
"""


def report(check: str, *, ok: bool, **facts: object) -> bool:
    """Print one JSON line and hand back whether the check held."""
    print(json.dumps({"check": check, "ok": ok, **facts}), flush=True)
    return ok


def distribution() -> str:
    """The installed CuPy package (``cupy-cuda12x``)."""
    packages = metadata.packages_distributions().get("cupy", ["cupy"])
    return packages[0]


def include_options() -> tuple[str, ...]:
    """Compiler options for CuPy's own headers and those of the NVIDIA wheels."""
    import cupy

    own = Path(cupy.__file__).parent / "_core" / "include"
    return tuple(f"-I{path}" for path in (own, *own.parents[2].glob("nvidia/*/include")))


def compile_cubin() -> bytes:
    """Machine code of a kernel with CuPy's headers, made by NVRTC through CuPy's binding."""
    from cupy.cuda import nvrtc

    options = (f"--gpu-architecture={ARCHITECTURE}", "--std=c++17", *include_options())
    program = nvrtc.createProgram(SOURCE, "twice.cu", (), ())
    try:
        nvrtc.compileProgram(program, options)
    except nvrtc.NVRTCError as error:
        msg = f"{error}: {nvrtc.getProgramLog(program).strip()[:600]}"
        raise RuntimeError(msg) from error
    return bytes(nvrtc.getCUBIN(program))


def check_import() -> bool:
    """The module imports, and is the version the lock installed."""
    start = time.monotonic()
    import cupy

    seconds = round(time.monotonic() - start, 2)
    wanted = WHEELS.get(distribution(), cupy.__version__)
    ok = cupy.__version__ == wanted
    return report("cupy", ok=ok, value=cupy.__version__, expected=wanted, seconds=seconds)


def check_compile() -> bool:
    """The compiler makes an ELF file for the architecture asked for."""
    try:
        cubin = compile_cubin()
    except (ImportError, RuntimeError) as error:
        return report("cupy-nvrtc", ok=False, value=str(error), expected=f"code for {ARCHITECTURE}")
    ok = cubin.startswith(b"\x7fELF")
    return report("cupy-nvrtc", ok=ok, value=len(cubin), unit="bytes", expected=ARCHITECTURE)


def main() -> int:
    """Run every check; 0 when all hold."""
    return int(not all([check_import(), check_compile()]))


if __name__ == "__main__":
    sys.exit(main())
