"""A folder tree with the test machine's own Python, enough for a small image without a network."""

import re
import shutil
import sys
import sysconfig
from pathlib import Path

from gpulayers.engine import process

LEFT_OUT = shutil.ignore_patterns(
    "test", "tests", "site-packages", "dist-packages", "__pycache__", "config-*", "idlelib",
    "ensurepip", "tkinter", "lib2to3", "pydoc_data", "*.a", "turtledemo"
)  # fmt: skip
LIBRARY = re.compile(r"(/\S+) \(0x")
EXTENSIONS = "lib-dynload"


def libraries(path: Path) -> set[Path]:
    """What the loader would load for an ELF file, by the names it asks for."""
    answer = process.run(["ldd", str(path)])
    return {Path(name) for name in LIBRARY.findall(answer.stdout)}


def make(root: Path) -> None:
    """Put ``/usr/bin/python``, its library and the system's C library below a folder."""
    python = Path(sys.executable).resolve()
    stdlib = Path(sysconfig.get_paths()["stdlib"])
    # The interpreter finds its library by its own place, so both keep their paths.
    target = root / python.relative_to("/")
    target.parent.mkdir(parents=True)
    shutil.copy2(python, target)
    shutil.copytree(stdlib, root / stdlib.relative_to("/"), ignore=LEFT_OUT)
    needed = libraries(python)
    for extension in (stdlib / EXTENSIONS).glob("*.so"):
        needed |= libraries(extension)
    for library in needed:
        place = root / library.relative_to("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(library.resolve(), place)
    link = root / "usr/bin/python"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(python)
    for name in ("tmp", "home", "proc", "dev", "sys", "etc"):
        (root / name).mkdir(exist_ok=True)
    # Any user with group 0 may write where the images of the fleet let it.
    (root / "tmp").chmod(0o1777)
    (root / "home").chmod(0o775)
