"""The digits classifier gives the same probabilities on the GPU as on the CPU."""

import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import onnxruntime

MODEL = Path(os.environ.get("DIGITS_MODEL", "/opt/models/digits/model.onnx"))
CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
# binary32 without TF32 on both sides, sums of 64 products whose order differs.
TOLERANCE = 1e-4
PICTURES = 32
CUDA_ERROR = re.compile(r"CUDA (?:failure|error) (\d+)")


def report(check: str, *, ok: bool, **facts: object) -> bool:
    """Print one JSON line and hand back whether the check held."""
    print(json.dumps({"check": check, "ok": ok, **facts}), flush=True)
    return ok


def compute() -> bool:
    """Classify random pictures on both, and compare."""
    on_gpu = onnxruntime.InferenceSession(
        str(MODEL), providers=[(CUDA, {"use_tf32": "0"}), (CPU, {})]
    )
    used = on_gpu.get_providers()[0]
    # Where the provider cannot start, ONNX Runtime warns and computes on the CPU.
    if not report("digits-provider", ok=used == CUDA, value=used, expected=CUDA):
        return False
    on_cpu = onnxruntime.InferenceSession(str(MODEL), providers=[CPU])
    pixels = {"pixels": np.random.default_rng(7).random((PICTURES, 64), dtype=np.float32)}
    difference = float(np.abs(on_gpu.run(None, pixels)[0] - on_cpu.run(None, pixels)[0]).max())
    ok = bool(np.isfinite(difference)) and difference <= TOLERANCE
    return report("digits-gpu", ok=ok, value=difference, expected=TOLERANCE)


def main() -> int:
    """Compute; 0 when the comparison holds."""
    try:
        return int(not compute())
    except Exception as error:  # noqa: BLE001 - its classes share no root of their own
        found = CUDA_ERROR.search(str(error))
        facts = {"code": int(found[1]) if found else 0, "name": str(error)[:600]}
        return int(not report("digits-gpu", ok=False, error=facts))


if __name__ == "__main__":
    sys.exit(main())
