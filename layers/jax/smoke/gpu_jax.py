"""JAX computes on the GPU what NumPy computes on the CPU, and did it there."""

import json
import os
import re
import sys

# JAX would else go on with the CPU where the GPU does not work.
os.environ["JAX_PLATFORMS"] = "cuda"

import jax
import jax.numpy as jnp
import numpy as np

SIZE = 256
# binary32 without TF32: one rounding elementwise; sums of 256 products in another order.
ELEMENTWISE_TOLERANCE, MATMUL_TOLERANCE = 1e-6, 1e-4
CUDA_ERROR = re.compile(r"CUDA error:? \(?(\d+)")


def report(check: str, *, ok: bool, **facts: object) -> bool:
    """Print one JSON line and hand back whether the check held."""
    print(json.dumps({"check": check, "ok": ok, **facts}), flush=True)
    return ok


def compare(check: str, found: jax.Array, wanted: "np.ndarray", tolerance: float) -> bool:
    """The greatest relative difference, against the tolerance."""
    difference = float(np.max(np.abs(np.asarray(found) - wanted) / np.maximum(1, np.abs(wanted))))
    ok = difference <= tolerance
    return report(check, ok=ok, value=difference, unit="relative error", expected=tolerance)


def compute() -> bool:
    """Name the GPU, then compare both computations."""
    device = jax.devices()[0]
    value = {"name": device.device_kind, "cc": getattr(device, "compute_capability", "")}
    held = [report("jax-device", ok=device.platform == "gpu", value=value, expected="gpu")]
    random = np.random.default_rng(7)
    a, b = (random.standard_normal((SIZE, SIZE), dtype=np.float32) for _ in range(2))
    elementwise = jax.jit(lambda x: 2 * x + 1)(jnp.asarray(a))
    held.append(compare("jax-elementwise", elementwise, 2 * a + 1, ELEMENTWISE_TOLERANCE))
    product = jax.jit(lambda x, y: jnp.matmul(x, y, precision="highest"))(a, b)
    held.append(compare("jax-matmul", product, a @ b, MATMUL_TOLERANCE))
    return all(held)


def main() -> int:
    """Compute; 0 when every comparison holds."""
    try:
        return int(not compute())
    except (RuntimeError, AssertionError) as error:
        found = CUDA_ERROR.search(str(error))
        facts = {"code": int(found[1]) if found else 0, "name": str(error)[:600]}
        return int(not report("jax-gpu", ok=False, error=facts))


if __name__ == "__main__":
    sys.exit(main())
