"""Torch computes on the GPU what it computes on the CPU, through cuBLAS, cuDNN and a kernel."""

import json
import re
import sys

import torch

SIZE = 256
# binary32 without TF32: one rounding elementwise; sums of 256 or 72 products in another order.
ELEMENTWISE_TOLERANCE, MATMUL_TOLERANCE, CONVOLUTION_TOLERANCE = 1e-6, 1e-4, 1e-4
CUDA_ERROR = re.compile(r"(?:CUDA error|Error) (\d+)")


def report(check: str, *, ok: bool, **facts: object) -> bool:
    """Print one JSON line and hand back whether the check held."""
    print(json.dumps({"check": check, "ok": ok, **facts}), flush=True)
    return ok


def compare(check: str, found: torch.Tensor, wanted: torch.Tensor, tolerance: float) -> bool:
    """The greatest relative difference, against the tolerance."""
    scale = wanted.abs().clamp(min=1)
    difference = float(((found.cpu() - wanted).abs() / scale).max())
    # No comparison with NaN holds.
    ok = difference <= tolerance
    return report(check, ok=ok, value=difference, unit="relative error", expected=tolerance)


def check_device() -> bool:
    """The GPU in use, and that the wheel has code for it (or PTX for an older one)."""
    major, minor = torch.cuda.get_device_capability(0)
    value = {"name": torch.cuda.get_device_name(0), "cc": f"{major}.{minor}"}
    return report("torch-device", ok=True, value=value, architectures=torch.cuda.get_arch_list())


def compute() -> bool:
    """Name the GPU, then compare three computations."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(7)
    held = [check_device()]
    a, b = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE)
    image, kernel = torch.randn(1, 8, 32, 32), torch.randn(8, 8, 3, 3)
    on_gpu = [each.cuda() for each in (a, b, image, kernel)]
    held.append(compare("torch-elementwise", 2 * on_gpu[0] + 1, 2 * a + 1, ELEMENTWISE_TOLERANCE))
    held.append(compare("torch-matmul", on_gpu[0] @ on_gpu[1], a @ b, MATMUL_TOLERANCE))
    convolved = torch.nn.functional.conv2d(on_gpu[2], on_gpu[3])
    wanted = torch.nn.functional.conv2d(image, kernel)
    held.append(compare("torch-convolution", convolved, wanted, CONVOLUTION_TOLERANCE))
    torch.cuda.synchronize()
    return all(held)


def main() -> int:
    """Compute; 0 when every comparison holds."""
    try:
        return int(not compute())
    except (RuntimeError, AssertionError) as error:  # AssertionError: a torch without CUDA
        found = CUDA_ERROR.search(str(error))
        code = getattr(error, "error_code", None) or (int(found[1]) if found else 0)
        facts = {"code": code, "name": str(error)[:600]}
        return int(not report("torch-gpu", ok=False, error=facts))


if __name__ == "__main__":
    sys.exit(main())
