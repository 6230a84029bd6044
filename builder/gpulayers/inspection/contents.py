"""What an image is, as far as a verdict needs it: by its labels, packages and environment."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gpulayers.compat.model import PLAIN_CUDA
from gpulayers.fatbin import Code
from gpulayers.inspection.model import Inspected
from gpulayers.versions import Pin

LABEL = "io.gpulayers"
OURS = "a label of gpulayers"
# Folders of packages whose libraries hold a framework's GPU code.
CODE_OF: Mapping[str, re.Pattern[str]] = {
    name: re.compile(rf"/(?:site|dist)-packages/(?:{folders})/")
    for name, folders in (
        ("vllm", "torch"),
        ("torch", "torch"),
        ("tensorflow", "tensorflow"),
        ("jax", r"jaxlib|jax_cuda\d+_plugin|jax_plugins"),
        ("onnxruntime-gpu", "onnxruntime"),
    )
}
# A package to the framework that it stands for; those that stand on others first.
FRAMEWORKS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        ("vllm", "vllm"),
        ("torch", "torch"),
        ("tensorflow", "tensorflow"),
        ("jax", "jax"),
        ("onnxruntime-gpu", "onnxruntime-gpu"),
        (r"cupy-cuda\d+x", "cupy"),
    )
)
CUDA_OF_CUPY = re.compile(r"cupy-cuda(\d+)x")
LOCAL = re.compile(r"(?P<version>[^+]+)\+(?P<variant>cu\d{2,3}|cpu)\b")
RUNTIME = re.compile(r"nvidia-cuda-runtime(-cu\d+)?")
# NVIDIA's own libraries have code for all GPUs of their release, whatever the program has.
OF_CUDA = re.compile(r"(^|/)usr/local/cuda|(^|/)nvidia/|(^|/)opt/nvidia/")
COMPAT = re.compile(r"(^|/)cuda[^/]*/compat/")
REQUIRE = re.compile(r"NVIDIA_REQUIRE_(?!JETPACK)\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What is judged of an image.

    Shape: ``framework`` is None where nothing that is known was found; ``variant`` and ``cuda`` as
    in a query, at most one of them; ``requirements`` are its ``NVIDIA_REQUIRE_*`` by name;
    ``compat`` are folders of forward-compatibility libraries; ``seen`` says in words where each
    thing was read; ``by_label`` that the image itself says what it is; ``code`` is the GPU code of
    the framework, or of all programs where there is none, nothing where it was not read.
    """

    framework: Pin | None
    variant: str
    cuda: str
    python: str
    os: str
    cudnn: str
    glibc: str
    code: Code
    requirements: Mapping[str, str]
    compat: tuple[str, ...]
    seen: Mapping[str, str]
    by_label: bool


def contents(found: Inspected) -> Contents:
    """What an inspected image holds; one of ours says it by labels."""
    wheels = {wheel.name: wheel.version for wheel in found.wheels}
    requirements = {k: v for k, v in found.env.items() if REQUIRE.fullmatch(k) and v}
    compat = sorted({x.path.rpartition("/")[0] for x in found.libraries if COMPAT.search(x.path)})
    cudnn = next((v for k, v in wheels.items() if k.startswith("nvidia-cudnn-cu")), "")
    cudnn = cudnn or found.env.get("NV_CUDNN_VERSION", "").partition("-")[0]
    framework, variant, cuda, seen = _framework(found, wheels)
    labels = found.labels
    pythons = sorted({release for release in found.pythons.values() if release})
    python = labels.get(f"{LABEL}.python", pythons[0] if len(pythons) == 1 else "")
    return Contents(
        framework=framework,
        variant=variant,
        cuda=cuda,
        python=".".join(python.split(".")[:2]),
        os=labels.get(f"{LABEL}.os", found.system),
        cudnn=cudnn,
        glibc=found.glibc,
        code=_code(found, framework),
        requirements=requirements,
        compat=tuple(compat),
        seen=seen,
        by_label=seen.get("framework") == OURS,
    )


def _code(found: Inspected, framework: Pin | None) -> Code:
    whole = Code()
    if any(layer.unread for layer in found.layers):
        return whole  # half a list is a wrong one
    if framework is None or (framework.name != PLAIN_CUDA and framework.name not in CODE_OF):
        return whole
    for path, code in found.code.items():
        own = CODE_OF.get(framework.name)
        if (own is None and not OF_CUDA.search(path)) or (own and own.search(f"/{path}")):
            whole.add(code)
    return whole


def _framework(
    found: Inspected, wheels: Mapping[str, str]
) -> tuple[Pin | None, str, str, Mapping[str, str]]:
    labels = found.labels
    name, version = (labels.get(f"{LABEL}.framework.{key}", "") for key in ("name", "version"))
    if name and version:
        seen = {"framework": OURS, "cuda": OURS}
        return Pin(name, version), "", labels.get(f"{LABEL}.cuda", ""), seen
    for pattern, framework in FRAMEWORKS:
        for wheel, text in wheels.items():
            if pattern.fullmatch(wheel):
                pin, variant, cuda = _of_wheel(framework, wheel, text, wheels)
                return pin, variant, cuda, {"framework": f"the package {wheel} {text}"}
    toolkit = found.env.get("CUDA_VERSION", "")
    if toolkit:
        seen = {"framework": "CUDA_VERSION in the environment"}
        return Pin(PLAIN_CUDA, toolkit), "", "", seen
    return None, "", "", {}


def _of_wheel(
    framework: str, wheel: str, text: str, wheels: Mapping[str, str]
) -> tuple[Pin, str, str]:
    """The release and its build: by its local version, its name, or the CUDA runtime beside it."""
    match = LOCAL.match(text)
    if match is not None:
        return Pin(framework, match["version"]), match["variant"], ""
    cupy = CUDA_OF_CUPY.fullmatch(wheel)
    runtime = next((v for k, v in wheels.items() if RUNTIME.fullmatch(k)), "")
    cuda = ".".join(runtime.split(".")[:2])
    if cupy is not None:
        return Pin(framework, text), "" if cuda else f"cu{cupy[1]}", cuda
    # Of a framework with one build a release the runtime is the build's own.
    return Pin(framework, text), "", cuda if framework in {"jax", "tensorflow"} else ""
