"""ONNX Runtime's CUDA provider computes what NumPy computes on the CPU, and did it itself."""

import json
import re
import sys

import numpy as np
import onnxruntime

PROVIDER = "CUDAExecutionProvider"
SIZE = 64
# binary32 without TF32, sums of 64 products whose order differs.
TOLERANCE = 1e-4
CUDA_ERROR = re.compile(r"CUDA (?:failure|error) (\d+)")


def report(check: str, *, ok: bool, **facts: object) -> bool:
    """Print one JSON line and hand back whether the check held."""
    print(json.dumps({"check": check, "ok": ok, **facts}), flush=True)
    return ok


def field(number: int, value: int | str | bytes) -> bytes:
    """One field of a protobuf message: a small number, or text, bytes or a message."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    data = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2, len(data)]) + data


def value_info(name: str) -> bytes:
    """An ONNX ValueInfoProto: a square matrix of float32."""
    shape = field(1, field(1, SIZE)) * 2
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))


def model() -> bytes:
    """An ONNX file for ``z = x @ y``, put together by hand (IR 8, opset 13)."""
    node = field(1, "x") + field(1, "y") + field(2, "z") + field(4, "MatMul")
    inputs = field(11, value_info("x")) + field(11, value_info("y"))
    graph = field(1, node) + field(2, "product") + inputs + field(12, value_info("z"))
    length = len(graph)
    # A length over 127 takes two bytes in protobuf's own encoding of numbers.
    prefix = bytes([7 << 3 | 2, length & 0x7F | 0x80, length >> 7])
    return field(1, 8) + prefix + graph + field(8, field(2, 13))


def compute() -> bool:
    """Multiply two matrices on the GPU and compare."""
    cuda = (PROVIDER, {"use_tf32": "0"})
    session = onnxruntime.InferenceSession(model(), providers=[cuda, "CPUExecutionProvider"])
    used = session.get_providers()[0]
    # Where the provider cannot start, ONNX Runtime warns and computes on the CPU.
    if not report("ort-provider", ok=used == PROVIDER, value=used, expected=PROVIDER):
        return False
    random = np.random.default_rng(7)
    x, y = (random.standard_normal((SIZE, SIZE), dtype=np.float32) for _ in range(2))
    difference = float(np.max(np.abs(session.run(None, {"x": x, "y": y})[0] - x @ y)))
    ok = bool(np.isfinite(difference)) and difference <= TOLERANCE
    return report("ort-gpu", ok=ok, value=difference, unit="absolute error", expected=TOLERANCE)


def main() -> int:
    """Compute; 0 when the comparison holds."""
    try:
        return int(not compute())
    except Exception as error:  # its classes share no root of their own
        found = CUDA_ERROR.search(str(error))
        facts = {"code": int(found[1]) if found else 0, "name": str(error)[:600]}
        return int(not report("ort-gpu", ok=False, error=facts))


if __name__ == "__main__":
    sys.exit(main())
