"""One of vLLM's own kernels computes on the GPU what torch computes on the CPU."""

import json
import re
import sys

import torch

ROWS, WIDTH, EPSILON = 4, 256, 1e-6
# binary32: a mean of 256 squares, its root, two products.
TOLERANCE = 1e-5
CUDA_ERROR = re.compile(r"(?:CUDA error|Error) (\d+)")


def report(check: str, *, ok: bool, **facts: object) -> bool:
    """Print one JSON line and hand back whether the check held."""
    print(json.dumps({"check": check, "ok": ok, **facts}), flush=True)
    return ok


def compute() -> bool:
    """Name the GPU, then compare a layer's norm (RMS)."""
    from vllm import _custom_ops as ops

    major, minor = torch.cuda.get_device_capability(0)
    value = {"name": torch.cuda.get_device_name(0), "cc": f"{major}.{minor}"}
    report("vllm-device", ok=True, value=value)
    torch.manual_seed(7)
    x, weight = torch.randn(ROWS, WIDTH), torch.randn(WIDTH)
    wanted = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON) * weight
    found = torch.empty(ROWS, WIDTH, device="cuda")
    ops.rms_norm(found, x.cuda(), weight.cuda(), EPSILON)
    difference = float((found.cpu() - wanted).abs().max())
    ok = difference <= TOLERANCE
    return report("vllm-gpu", ok=ok, value=difference, unit="absolute error", expected=TOLERANCE)


def main() -> int:
    """Compute; 0 when the comparison holds."""
    try:
        return int(not compute())
    except (RuntimeError, AssertionError, ImportError) as error:
        found = CUDA_ERROR.search(str(error))
        facts = {"code": int(found[1]) if found else 0, "name": str(error)[:600]}
        return int(not report("vllm-gpu", ok=False, error=facts))


if __name__ == "__main__":
    sys.exit(main())
