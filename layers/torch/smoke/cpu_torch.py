"""Torch is the version that the lock names, computes, and was built for the cell's CUDA."""

import json
import os
import sys
import time

CELL = json.loads(os.environ.get("GPULAYERS_CELL", "{}"))
WHEELS = json.loads(os.environ.get("GPULAYERS_WHEELS", "{}"))
PAIRED = ("torchvision", "torchaudio")


def report(check: str, *, ok: bool, **facts: object) -> bool:
    """Print one JSON line and hand back whether the check held."""
    print(json.dumps({"check": check, "ok": ok, **facts}), flush=True)
    return ok


def check_import() -> bool:
    """The module imports, and is the version the lock installed."""
    start = time.monotonic()
    import torch

    seconds = round(time.monotonic() - start, 2)
    found = torch.__version__.partition("+")[0]
    wanted = WHEELS.get("torch", found)
    return report("torch", ok=found == wanted, value=found, expected=wanted, seconds=seconds)


def check_cuda() -> bool:
    """The build is for the CUDA of the cell: a CPU-only wheel has none."""
    import torch

    found, wanted = torch.version.cuda, CELL.get("cuda", torch.version.cuda)
    return report(
        "torch-cuda", ok=found is not None and found == wanted, value=found, expected=wanted
    )


def check_architectures() -> bool:
    """The wheel names the GPUs that it has code for."""
    import torch

    # get_arch_list() is empty where there is no GPU; the flags are read from the library.
    found = torch._C._cuda_getArchFlags().split()  # noqa: SLF001 - no public name for it
    return report("torch-architectures", ok=bool(found), value=found)


def check_cpu() -> bool:
    """A product of matrices that is exact in binary32, and its gradient."""
    import torch

    x = torch.tensor([[1.5, -2.0], [4.0, 0.5]], requires_grad=True)
    product = x @ torch.tensor([[2.0, 0.0], [0.5, 4.0]])
    product.sum().backward()
    found = [product.tolist(), x.grad.tolist() if x.grad is not None else []]
    wanted = [[[2.0, -8.0], [8.25, 2.0]], [[2.0, 4.5], [2.0, 4.5]]]
    return report("torch-cpu", ok=found == wanted, value=found, expected=wanted)


def check_pairs() -> bool:
    """Torchvision and torchaudio, where the lock has them, load on this torch."""
    import importlib

    errors, found = {}, {}
    for name in PAIRED:
        if name in WHEELS:
            try:
                found[name] = importlib.import_module(name).__version__.partition("+")[0]
            except Exception as error:
                errors[name] = f"{type(error).__name__}: {error}"
    if not found and not errors:
        return report("torch-pairs", ok=True, skip="the lock has neither")
    wanted = {name: WHEELS[name] for name in PAIRED if name in WHEELS}
    return report("torch-pairs", ok=found == wanted, value={**found, **errors}, expected=wanted)


def main() -> int:
    """Run every check; 0 when all hold."""
    checks = (check_import, check_cuda, check_architectures, check_cpu, check_pairs)
    held = [check() for check in checks]
    return int(not all(held))


if __name__ == "__main__":
    sys.exit(main())
