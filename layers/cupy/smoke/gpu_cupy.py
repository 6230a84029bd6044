"""CuPy computes on the GPU what NumPy computes on the CPU."""

import json
import os
import sys

import cupy
import numpy as np

WHEELS = json.loads(os.environ.get("GPULAYERS_WHEELS", "{}"))
SIZE = 256
# binary32: one rounding in `2x + 1`; sums of 256 products, whose order differs, in a product of
# matrices (TF32 is off in CuPy unless CUPY_TF32 asks for it).
ELEMENTWISE_TOLERANCE, MATMUL_TOLERANCE = 1e-6, 1e-4


def report(check: str, *, ok: bool, **facts: object) -> bool:
    """Print one JSON line and hand back whether the check held."""
    print(json.dumps({"check": check, "ok": ok, **facts}), flush=True)
    return ok


def device() -> dict[str, object]:
    """Name and compute capability of the GPU in use."""
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    cc = f"{properties['major']}.{properties['minor']}"
    return {"name": properties["name"].decode(), "cc": cc}


def compare(check: str, found: "cupy.ndarray", wanted: "np.ndarray", tolerance: float) -> bool:
    """The greatest relative difference, against the tolerance."""
    difference = float(np.max(np.abs(cupy.asnumpy(found) - wanted) / np.maximum(1, np.abs(wanted))))
    ok = bool(np.isfinite(difference)) and difference <= tolerance
    return report(check, ok=ok, value=difference, unit="relative error", expected=tolerance)


def compute() -> bool:
    """Name the GPU, then compare both computations."""
    held = [report("cupy-device", ok=True, value=device())]
    random = np.random.default_rng(7)
    a, b = (random.standard_normal((SIZE, SIZE), dtype=np.float32) for _ in range(2))
    on_gpu = cupy.asarray(a)
    wanted = 2 * a + 1
    held.append(compare("cupy-elementwise", 2 * on_gpu + 1, wanted, ELEMENTWISE_TOLERANCE))
    if WHEELS and not any(name.startswith("nvidia-cublas") for name in WHEELS):
        held.append(report("cupy-matmul", ok=True, skip="the lock has no cuBLAS package"))
    else:
        held.append(compare("cupy-matmul", on_gpu @ cupy.asarray(b), a @ b, MATMUL_TOLERANCE))
    cupy.cuda.runtime.deviceSynchronize()
    return all(held)


def main() -> int:
    """Compute; 0 when every comparison holds."""
    try:
        return int(not compute())
    except (RuntimeError, ImportError) as error:
        facts = {"code": getattr(error, "status", 0), "name": str(error)[:600]}
        return int(not report("cupy-gpu", ok=False, error=facts))


if __name__ == "__main__":
    sys.exit(main())
