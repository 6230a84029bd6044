"""Is what is installed what the name says? Runs inside the image, before it is pushed."""

import ctypes
import importlib
import importlib.metadata
import json
import platform
import sys
from types import ModuleType

expected = json.loads(sys.argv[1])
wrong = []


def compare(what: str, found: str, wanted: str) -> None:
    """Note a difference."""
    if found != wanted:
        wrong.append(f"identity: {what}: the name says {wanted}, installed is {found}")


def cuda_runtime(major: str) -> str:
    """What the runtime library says of itself; needs no GPU."""
    try:
        library = ctypes.CDLL(f"libcudart.so.{major}")
    except OSError as error:
        return f"none ({error})"
    version = ctypes.c_int()
    library.cudaRuntimeGetVersion(ctypes.byref(version))
    return f"{version.value // 1000}.{version.value % 1000 // 10}"


def framework_version(distribution: str) -> str:
    """The installed version, or ``none``."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def built_for(module: ModuleType) -> str:
    """The CUDA major that the framework says it was built for, or "" where it does not say."""
    name = module.__name__
    if name in {"torch", "vllm"}:
        torch = importlib.import_module("torch")
        return (torch.version.cuda or "none").split(".")[0]
    if name == "jax":
        majors = (major for major in range(12, 20) if has(f"jax-cuda{major}-plugin"))
        return "+".join(map(str, majors)) or "none"
    if name == "tensorflow":
        return str(module.sysconfig.get_build_info().get("cuda_version", "none")).split(".")[0]
    if name == "cupy":
        return str(module.cuda.runtime.runtimeGetVersion() // 1000)
    if name == "onnxruntime":
        from onnxruntime.capi import build_and_package_info as info

        return (getattr(info, "cuda_version", "") or "none").split(".")[0]
    return ""


def has(distribution: str) -> bool:
    """Whether a distribution is installed."""
    return framework_version(distribution) != "none"


compare("Python", f"{sys.version_info[0]}.{sys.version_info[1]}", expected["python"])
compare("architecture", platform.machine(), expected["machine"])
compare("CUDA runtime", cuda_runtime(expected["cuda"].split(".")[0]), expected["cuda"])
name = expected["distribution"]
compare(name, framework_version(name), expected["version"])
try:
    module = importlib.import_module(expected["module"])
except Exception as error:
    wrong.append(f"identity: import {expected['module']}: {type(error).__name__}: {error}")
else:
    said = built_for(module)
    if said:
        compare(f"CUDA of {name}", said, expected["cuda"].split(".")[0])
for line in wrong:
    print(line, file=sys.stderr)
sys.exit(1 if wrong else 0)
