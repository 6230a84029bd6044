"""TensorFlow is the version that the lock names, computes, and was built for the cell's CUDA."""

import ctypes
import json
import os
import sys
import time

CELL = json.loads(os.environ.get("GPULAYERS_CELL", "{}"))
WHEELS = json.loads(os.environ.get("GPULAYERS_WHEELS", "{}"))
# TensorFlow opens these by name when it looks for a GPU, and goes on with the CPU without them.
LIBRARIES = ("cudart", "cublas", "cublasLt", "cufft", "cusolver", "cusparse", "cudnn", "nccl")
# Those that do not have CUDA's own major in their names.
OTHERS = {"cufft": {"12": "11", "13": "12"}, "cusolver": {"12": "11", "13": "12"}}
FIXED = {"cudnn": "9", "nccl": "2"}


def report(check: str, *, ok: bool, **facts: object) -> bool:
    """Print one JSON line and hand back whether the check held."""
    print(json.dumps({"check": check, "ok": ok, **facts}), flush=True)
    return ok


def check_import() -> bool:
    """The module imports, and is the version the lock installed."""
    start = time.monotonic()
    import tensorflow as tf

    seconds = round(time.monotonic() - start, 2)
    wanted = WHEELS.get("tensorflow", tf.__version__)
    ok = tf.__version__ == wanted
    return report("tensorflow", ok=ok, value=tf.__version__, expected=wanted, seconds=seconds)


def check_cuda() -> bool:
    """The build is for the CUDA major of the cell: a CPU-only wheel has none."""
    import tensorflow as tf

    found = str(tf.sysconfig.get_build_info().get("cuda_version", ""))
    wanted = CELL.get("cuda", found).partition(".")[0]
    ok = bool(found) and found.partition(".")[0] == wanted
    return report("tensorflow-cuda", ok=ok, value=found, expected=wanted)


def soname(library: str) -> str:
    """The file name that TensorFlow asks the loader for."""
    major = CELL.get("cuda", "12").partition(".")[0]
    number = FIXED.get(library) or OTHERS.get(library, {}).get(major, major)
    return f"lib{library}.so.{number}"


def check_libraries() -> bool:
    """Every library of CUDA that it will ask for loads by name."""
    errors = {}
    for name in map(soname, LIBRARIES):
        try:
            ctypes.CDLL(name)
        except OSError as error:
            errors[name] = str(error)
    wanted = [soname(name) for name in LIBRARIES]
    return report("tensorflow-libraries", ok=not errors, value=errors or wanted, expected=wanted)


def check_cpu() -> bool:
    """A product that is exact in binary32, and its gradient."""
    import tensorflow as tf

    x = tf.Variable([1.5, -2.0, 4.0])
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(x * tf.constant([2.0, 0.5, 0.25]))
    found = [float(total), tape.gradient(total, x).numpy().tolist()]
    wanted = [3.0, [2.0, 0.5, 0.25]]
    return report("tensorflow-cpu", ok=found == wanted, value=found, expected=wanted)


def main() -> int:
    """Run every check; 0 when all hold."""
    checks = (check_import, check_cuda, check_libraries, check_cpu)
    held = [check() for check in checks]
    return int(not all(held))


if __name__ == "__main__":
    sys.exit(main())
