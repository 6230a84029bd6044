"""Folders of the project by their content: the same files, the same hash, on every machine."""

import hashlib
from collections.abc import MutableMapping, Sequence
from pathlib import Path

from gpulayers.matrix import patterns

# A folder and its rules, to its hash and size: many images have the same folder.
Known = MutableMapping[tuple[Path, tuple[str, ...]], tuple[str, int]]


def digest(folder: Path, rules: Sequence[str], known: Known) -> tuple[str, int]:
    """A hash over names, modes and contents of the files that the rules leave in, and their bytes.

    Shape: of a mode, only whether the owner may run the file; ``known`` is looked into, and added
    to.
    """
    key = (folder, tuple(rules))
    if key not in known:
        known[key] = _read(folder, rules)
    return known[key]


def _read(folder: Path, rules: Sequence[str]) -> tuple[str, int]:
    total = hashlib.sha256()
    size = 0
    for path in patterns.kept(folder, rules):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            total.update(f"{name}\0link\0{path.readlink()}\n".encode())
            continue
        content = path.read_bytes()
        size += len(content)
        found = hashlib.sha256(content).hexdigest()
        total.update(f"{name}\0{path.stat().st_mode & 0o100}\0{found}\n".encode())
    return f"sha256:{total.hexdigest()}", size
