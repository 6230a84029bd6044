"""Stops a build whose copy of the model is not, file for file, what the manifest says.

python check.py [FOLDER]        FOLDER: where the files were copied to; else the current one
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

MANIFEST = "manifest.json"
# They lie beside the model in the project and are not copied into images.
NOT_COPIED = ("check.py", "smoke", "__pycache__")


def differences(folder: Path) -> Iterator[str]:
    """One sentence for each file that is missing, changed or not in the manifest."""
    wanted = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
    for name, entry in sorted(wanted.items()):
        path = folder / name
        if not path.is_file():
            yield f"{name}: wanted a file of {entry['bytes']} bytes, found none"
            continue
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != entry["sha256"]:
            yield f"{name}: wanted sha256 {entry['sha256']}, found {found}"
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        known = name.parts[0] in NOT_COPIED or str(name) in {*wanted, MANIFEST}
        if path.is_file() and not known:
            yield f"{name}: found a file that {MANIFEST} does not name"


def main(arguments: list[str]) -> int:
    """Name every difference; 0 when there is none."""
    folder = Path(arguments[0] if arguments else ".").resolve()
    try:
        wrong = list(differences(folder))
    except (OSError, ValueError, KeyError, TypeError) as error:
        wrong = [f"{MANIFEST}: cannot be read ({type(error).__name__}: {error})"]
    for line in wrong:
        print(f"{folder}: {line}; make the model again or restore it", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
