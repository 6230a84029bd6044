"""TensorFlow computes on the GPU what NumPy computes on the CPU, and did it there."""

import json
import re
import sys

import numpy as np
import tensorflow as tf

SIZE = 256
# binary32 without TF32: one rounding elementwise; sums of 256 products in another order.
ELEMENTWISE_TOLERANCE, MATMUL_TOLERANCE = 1e-6, 1e-4
CUDA_ERROR = re.compile(r"CUDA_ERROR_\w+|CUDA error \d+")


def report(check: str, *, ok: bool, **facts: object) -> bool:
    """Print one JSON line and hand back whether the check held."""
    print(json.dumps({"check": check, "ok": ok, **facts}), flush=True)
    return ok


def compare(check: str, found: "tf.Tensor", wanted: "np.ndarray", tolerance: float) -> bool:
    """The greatest relative difference, against the tolerance, of what a GPU computed."""
    difference = float(np.max(np.abs(found.numpy() - wanted) / np.maximum(1, np.abs(wanted))))
    ok = difference <= tolerance and "GPU" in found.device
    return report(
        check,
        ok=ok,
        value=difference,
        unit="relative error",
        expected=tolerance,
        device=found.device,
    )


def compute() -> bool:
    """Name the GPU, then compare both computations."""
    found = tf.config.list_physical_devices("GPU")
    # Without one, TensorFlow says why on stderr and goes on with the CPU.
    details = tf.config.experimental.get_device_details(found[0]) if found else {}
    cc = ".".join(map(str, details.get("compute_capability", ())))
    value = {"name": details.get("device_name", ""), "cc": cc}
    if not report("tensorflow-device", ok=bool(found), value=value, expected="a GPU"):
        return False
    tf.config.experimental.enable_tensor_float_32_execution(enabled=False)
    random = np.random.default_rng(7)
    a, b = (random.standard_normal((SIZE, SIZE), dtype=np.float32) for _ in range(2))
    with tf.device("/GPU:0"):
        elementwise, product = 2 * tf.constant(a) + 1, tf.constant(a) @ tf.constant(b)
    held = [compare("tensorflow-elementwise", elementwise, 2 * a + 1, ELEMENTWISE_TOLERANCE)]
    held.append(compare("tensorflow-matmul", product, a @ b, MATMUL_TOLERANCE))
    return all(held)


def main() -> int:
    """Compute; 0 when every comparison holds."""
    try:
        return int(not compute())
    except (RuntimeError, tf.errors.OpError) as error:
        found = CUDA_ERROR.search(str(error))
        facts = {"code": 0, "name": found[0] if found else str(error)[:600]}
        return int(not report("tensorflow-gpu", ok=False, error=facts))


if __name__ == "__main__":
    sys.exit(main())
