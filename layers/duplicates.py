"""Does big content stand twice in the image? Runs inside it, before it is pushed.

Files of more than 1 MB with the same content at several paths, and libraries of CUDA that stand
both in the base and in a package, with the copy that the loader takes.
"""

import ctypes
import hashlib
import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

MB = 10**6
# Not of the image: the kernel's, and what the build mounts.
ELSEWHERE = ("/proc", "/sys", "/dev", "/run")
VENV = "/opt/venv/"
CUDA = re.compile(
    r"lib(cudart|cublas|cublasLt|cufft|curand|cusolver|cusparse|cudnn|nccl|nvrtc|nvJitLink)\.so\.\d+"
)

allowed_mb = json.loads(sys.argv[1])["duplicate_mb"]


def files() -> Iterator[tuple[Path, os.stat_result]]:
    """Every regular file of the image, once: links to it are no second copy."""
    seen = set()
    for folder, folders, names in os.walk("/"):
        if folder == "/":
            folders[:] = [name for name in folders if f"/{name}" not in ELSEWHERE]
        for name in names:
            path = Path(folder, name)
            try:
                found = path.lstat()
            except OSError:
                continue
            if stat.S_ISREG(found.st_mode) and (found.st_dev, found.st_ino) not in seen:
                seen.add((found.st_dev, found.st_ino))
                yield path, found


def content(path: Path) -> str:
    """A hash of all bytes of a file."""
    total = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(MB):
            total.update(piece)
    return total.hexdigest()


def taken(name: str) -> str:
    """The file that the loader opens for a library's name."""
    try:
        ctypes.CDLL(name)
    except OSError:
        return "none of them"
    with Path("/proc/self/maps").open(encoding="utf-8") as maps:
        paths = [line.split(maxsplit=5)[5].rstrip("\n") for line in maps if ".so" in line]
    return next((path for path in paths if Path(path).name.startswith(name)), "another")


by_size: dict[int, list[Path]] = {}
libraries: dict[str, list[str]] = {}
for path, found in files():
    if found.st_size > MB:
        by_size.setdefault(found.st_size, []).append(path)
    library = CUDA.match(path.name)
    if library is not None:
        libraries.setdefault(library[0], []).append(str(path))
wrong = []
cost = 0
for size, paths in sorted(by_size.items(), reverse=True):
    same: dict[str, list[str]] = {}
    for path in paths if len(paths) > 1 else ():
        same.setdefault(content(path), []).append(str(path))
    for twins in same.values():
        if len(twins) > 1:
            cost += size * (len(twins) - 1)
            wrong.append(f"{size / MB:.1f} MB stand {len(twins)} times: {', '.join(sorted(twins))}")
if cost <= allowed_mb * MB:
    wrong = []
for name, paths in sorted(libraries.items()):
    own = [path for path in paths if path.startswith(VENV)]
    if own and len(own) < len(paths):
        others = ", ".join(sorted(set(paths) - set(own)))
        wrong.append(
            f"{name} stands in the base ({others}) and in a package ({', '.join(sorted(own))}): "
            f"the loader takes {taken(name)}"
        )
for line in wrong:
    print(f"duplicates: {line}", file=sys.stderr)
if wrong:
    print(
        f"duplicates: {cost / MB:.1f} MB in all, {allowed_mb} MB are allowed "
        "([budget] duplicate-mb)",
        file=sys.stderr,
    )
sys.exit(1 if wrong else 0)
