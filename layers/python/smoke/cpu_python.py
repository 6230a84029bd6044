"""The interpreter is the one the image's name says, whole, and in its environment."""

import importlib
import json
import os
import sys

CELL = json.loads(os.environ.get("GPULAYERS_CELL", "{}"))
VENV = "/opt/venv"
# Each of them is a compiled module whose system library a bare base may lack.
MODULES = ("ssl", "ctypes", "lzma", "sqlite3", "bz2", "zlib")


def report(check: str, *, ok: bool, **facts: object) -> bool:
    """Print one JSON line and hand back whether the check held."""
    print(json.dumps({"check": check, "ok": ok, **facts}), flush=True)
    return ok


def import_error(name: str) -> str:
    """Why a module cannot be imported, or an empty text."""
    try:
        importlib.import_module(name)
    except ImportError as error:
        return str(error)
    return ""


def main() -> int:
    """Run every check; 0 when all hold."""
    found = f"{sys.version_info.major}.{sys.version_info.minor}"
    wanted = CELL.get("python", found)
    errors = {name: error for name in MODULES if (error := import_error(name))}
    held = [
        report("python-version", ok=found == wanted, value=found, expected=wanted),
        report("venv", ok=sys.prefix == VENV, value=sys.prefix, expected=VENV),
        report("standard-library", ok=not errors, value=errors or list(MODULES)),
    ]
    return int(not all(held))


if __name__ == "__main__":
    sys.exit(main())
