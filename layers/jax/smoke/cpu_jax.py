"""JAX is the version that the lock names, computes, and has the plugin of the cell's CUDA."""

import json
import os
import sys
import time
from importlib import metadata

# Where no GPU is given, JAX would say so on stderr and go on with the CPU.
os.environ["JAX_PLATFORMS"] = "cpu"
CELL = json.loads(os.environ.get("GPULAYERS_CELL", "{}"))
WHEELS = json.loads(os.environ.get("GPULAYERS_WHEELS", "{}"))


def report(check: str, *, ok: bool, **facts: object) -> bool:
    """Print one JSON line and hand back whether the check held."""
    print(json.dumps({"check": check, "ok": ok, **facts}), flush=True)
    return ok


def check_import() -> bool:
    """The module imports, and is the version the lock installed."""
    start = time.monotonic()
    import jax

    seconds = round(time.monotonic() - start, 2)
    wanted = WHEELS.get("jax", jax.__version__)
    ok = jax.__version__ == wanted
    return report("jax", ok=ok, value=jax.__version__, expected=wanted, seconds=seconds)


def check_plugin() -> bool:
    """There is one plugin, for the CUDA of the cell, at the version of jaxlib's own line."""
    majors = {
        name.partition("-cuda")[2].partition("-")[0]: found.version
        for found in metadata.distributions()
        if (name := (found.metadata["Name"] or "").lower().replace("_", "-")).startswith("jax-cuda")
        and name.endswith("-plugin")
    }
    wanted = CELL.get("cuda", next(iter(majors), "")).partition(".")[0]
    return report("jax-plugin", ok=[*majors] == [wanted], value=majors, expected=wanted)


def check_cpu() -> bool:
    """A compiled product that is exact in binary32, and its gradient."""
    import jax
    import jax.numpy as jnp

    weights = jnp.array([2.0, 0.5, 0.25], jnp.float32)
    function = jax.jit(jax.value_and_grad(lambda x: jnp.sum(x * weights)))
    value, gradient = function(jnp.array([1.5, -2.0, 4.0], jnp.float32))
    found = [float(value), gradient.tolist()]
    wanted = [3.0, [2.0, 0.5, 0.25]]
    return report("jax-cpu", ok=found == wanted, value=found, expected=wanted)


def main() -> int:
    """Run every check; 0 when all hold."""
    held = [check() for check in (check_import, check_plugin, check_cpu)]
    return int(not all(held))


if __name__ == "__main__":
    sys.exit(main())
