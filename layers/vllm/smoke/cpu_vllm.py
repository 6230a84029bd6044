"""The engine vLLM is the version that the lock names, on a torch for the cell's CUDA."""

import importlib.util
import json
import os
import sys
import time
from importlib import metadata

CELL = json.loads(os.environ.get("GPULAYERS_CELL", "{}"))
WHEELS = json.loads(os.environ.get("GPULAYERS_WHEELS", "{}"))


def report(check: str, *, ok: bool, **facts: object) -> bool:
    """Print one JSON line and hand back whether the check held."""
    print(json.dumps({"check": check, "ok": ok, **facts}), flush=True)
    return ok


def check_import() -> bool:
    """The module imports, and is the version the lock installed."""
    start = time.monotonic()
    import vllm

    seconds = round(time.monotonic() - start, 2)
    found = metadata.version("vllm")
    wanted = WHEELS.get("vllm", found)
    ok = found == wanted
    return report("vllm", ok=ok, value=found, expected=wanted, seconds=seconds, file=vllm.__file__)


def check_torch() -> bool:
    """Its torch is built for the CUDA of the cell."""
    import torch

    found, wanted = torch.version.cuda, CELL.get("cuda", torch.version.cuda)
    return report(
        "vllm-torch", ok=found is not None and found == wanted, value=found, expected=wanted
    )


def check_kernels() -> bool:
    """The compiled part is there; loading it needs a driver."""
    found = importlib.util.find_spec("vllm._C") or importlib.util.find_spec(
        "vllm._C_stable_libtorch"
    )
    value = found.origin if found is not None else "none"
    return report("vllm-kernels", ok=found is not None, value=value)


def check_parameters() -> bool:
    """What requests are made of can be made."""
    from vllm import SamplingParams

    found = SamplingParams(temperature=0.5, max_tokens=7)
    value = [found.temperature, found.max_tokens]
    return report("vllm-parameters", ok=value == [0.5, 7], value=value, expected=[0.5, 7])


def main() -> int:
    """Run every check; 0 when all hold."""
    checks = (check_import, check_torch, check_kernels, check_parameters)
    held = [check() for check in checks]
    return int(not all(held))


if __name__ == "__main__":
    sys.exit(main())
