"""The image's system is the one its name says, and fits an unprivileged, driverless start."""

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

CELL = json.loads(os.environ.get("GPULAYERS_CELL", "{}"))
CA_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
# The driver's files come from the host when a container starts; a copy in the image hides them.
DRIVER_FILES = ("libcuda.so", "libnvidia-ml.so", "libnvidia-ptxjitcompiler.so")
LIBRARY_ROOTS = ("/lib", "/usr/lib", "/usr/lib64", "/usr/local", "/opt")


def report(check: str, *, ok: bool, **facts: object) -> bool:
    """Print one JSON line and hand back whether the check held."""
    print(json.dumps({"check": check, "ok": ok, **facts}), flush=True)
    return ok


def os_release() -> str:
    """ID and VERSION_ID of the system, run together (``debian12``)."""
    lines = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    pairs = (line.partition("=") for line in lines)
    values = {key: value.strip("\"'") for key, _, value in pairs}
    return values.get("ID", "") + values.get("VERSION_ID", "")


def home_error() -> str:
    """Why nothing can be written into HOME, or an empty text."""
    try:
        with tempfile.NamedTemporaryFile(dir=os.environ["HOME"]) as file:
            file.write(b"x")
    except (KeyError, OSError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def driver_files() -> Iterator[str]:
    """Files of the NVIDIA driver that lie in the image, linker stubs and this name's links too."""
    for root in LIBRARY_ROOTS:
        for folder, _, names in os.walk(root):
            yield from (f"{folder}/{name}" for name in names if name.startswith(DRIVER_FILES))


def certificates() -> int:
    """How many certificates the system's bundle holds; 0 where there is no bundle."""
    return CA_BUNDLE.read_bytes().count(b"-----BEGIN CERT") if CA_BUNDLE.is_file() else 0


def main() -> int:
    """Run every check; 0 when all hold."""
    found, error, baked = os_release(), home_error(), sorted(set(driver_files()))
    wanted = CELL.get("os", found)
    count = certificates()
    held = [
        report("os", ok=found == wanted, value=found, expected=wanted),
        report("user", ok=os.getuid() != 0, value=os.getuid(), expected="not 0 (root)"),
        report("home-writable", ok=not error, value=error or os.environ["HOME"]),
        report("ca-bundle", ok=count > 0, value=count, unit="certificates", expected="1 or more"),
        report("no-driver-files", ok=not baked, value=baked[:5], expected=[]),
    ]
    return int(not all(held))


if __name__ == "__main__":
    sys.exit(main())
