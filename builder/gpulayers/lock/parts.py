"""The packages of CUDA's parts one by one, for what mixes patch releases."""

from collections.abc import Sequence

from gpulayers.versions import MajorMinor

# Parts of CUDA that have its version, to their packages; the others are called as their part.
# Source: what cuda-toolkit 12.6 and 13.0 on PyPI require (read 2026-12-01).
NUMBERED = {
    "cudart": "cuda-runtime",
    "cupti": "cuda-cupti",
    "nvcc": "cuda-nvcc",
    "nvrtc": "cuda-nvrtc",
    "nvtx": "nvtx",
}
# The first CUDA whose packages do not have its number in their names.
BARE = 13


def alone(cuda: MajorMinor, parts: Sequence[str]) -> tuple[str, ...]:
    """Requirements for parts of CUDA without the package that ties them to one patch release.

    Shape: what has CUDA's own version stays in the cell's release; maths libraries, which have
    others, are left open.
    """
    suffix = "" if cuda.major >= BARE else f"-cu{cuda.major}"
    return tuple(
        f"nvidia-{NUMBERED.get(part, part)}{suffix}"
        + (f"=={cuda.format()}.*" if part in NUMBERED else "")
        for part in parts
    )
