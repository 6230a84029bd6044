"""ONNX Runtime computes on the CPU, and its CUDA provider has every library it will ask for."""

import ctypes
import json
import mmap
import os
import re
import sys
import time
from pathlib import Path

import numpy as np

WHEELS = json.loads(os.environ.get("GPULAYERS_WHEELS", "{}"))
PROVIDER = "CUDAExecutionProvider"
PROVIDER_FILE = "libonnxruntime_providers_cuda.so"
CUDA_LIBRARY = re.compile(rb"lib(?:cublasLt|cublas|cudnn|cufft|curand|cudart)\.so\.\d+(?:\.\d+)?")


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
    """An ONNX ValueInfoProto: a vector of three float32."""
    shape = field(1, field(1, 3))
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))


def model() -> bytes:
    """An ONNX file for ``z = x * y``, put together by hand (IR 8, opset 13)."""
    node = field(1, "x") + field(1, "y") + field(2, "z") + field(4, "Mul")
    inputs = field(11, value_info("x")) + field(11, value_info("y"))
    graph = field(1, node) + field(2, "product") + inputs + field(12, value_info("z"))
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


def check_import() -> bool:
    """The module imports, and is the version the lock installed."""
    start = time.monotonic()
    import onnxruntime

    seconds = round(time.monotonic() - start, 2)
    found = onnxruntime.__version__
    wanted = WHEELS.get("onnxruntime-gpu", found)
    return report("onnxruntime", ok=found == wanted, value=found, expected=wanted, seconds=seconds)


def check_providers() -> bool:
    """The build knows CUDA: the CPU package laid over the GPU one would not."""
    import onnxruntime

    found = onnxruntime.get_available_providers()
    return report("ort-providers", ok=PROVIDER in found, value=found, expected=PROVIDER)


def check_cpu() -> bool:
    """A product of vectors that is exact in binary32."""
    import onnxruntime

    session = onnxruntime.InferenceSession(model(), providers=["CPUExecutionProvider"])
    x, y = np.array([1.5, -2, 4], np.float32), np.array([2, 0.5, 0.25], np.float32)
    found = session.run(None, {"x": x, "y": y})[0].tolist()
    return report("ort-cpu", ok=found == [3.0, -1.0, 1.0], value=found, expected=[3.0, -1.0, 1.0])


def provider_libraries() -> list[str]:
    """The CUDA libraries that the provider's file names, by soname."""
    import onnxruntime

    path = Path(onnxruntime.__file__).parent / "capi" / PROVIDER_FILE
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return sorted({match.decode() for match in CUDA_LIBRARY.findall(data)})


def load_error(name: str) -> str:
    """Why the loader cannot give a library by its name, or an empty text."""
    try:
        ctypes.CDLL(name)
    except OSError as error:
        return str(error)
    return ""


def check_libraries() -> bool:
    """Every library of CUDA that the provider will ask for loads by name."""
    names = provider_libraries()
    errors = {name: error for name in names if (error := load_error(name))}
    ok = bool(names) and not errors
    return report("ort-cuda-libraries", ok=ok, value=errors or names, expected=names)


def main() -> int:
    """Run every check; 0 when all hold."""
    checks = (check_import, check_providers, check_cpu, check_libraries)
    held = [check() for check in checks]
    return int(not all(held))


if __name__ == "__main__":
    sys.exit(main())
