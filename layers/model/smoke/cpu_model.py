"""The model's folder is in its place, with files that any user can read."""

import json
import os
import sys
from pathlib import Path

CELL = json.loads(os.environ.get("GPULAYERS_CELL", "{}"))
MODELS = Path("/opt/models")


def report(check: str, *, ok: bool, **facts: object) -> bool:
    """Print one JSON line and hand back whether the check held."""
    print(json.dumps({"check": check, "ok": ok, **facts}), flush=True)
    return ok


def main() -> int:
    """Run every check; 0 when all hold."""
    folder = MODELS / CELL.get("model", "none")
    if not folder.exists():
        why = "no model, one in a package, or one that stays outside"
        report("model-files", ok=True, skip=f"{folder} is not there: {why}")
        return 0
    files = [path for path in folder.rglob("*") if path.is_file()]
    closed = [str(path) for path in files if not os.access(path, os.R_OK)]
    ok = bool(files) and not closed
    value = closed or len(files)
    return int(not report("model-files", ok=ok, value=value, unit="files", expected="all readable"))


if __name__ == "__main__":
    sys.exit(main())
