"""The virtual environment with the project and its development tools."""

import hashlib
import importlib.util
import os
import sys
from pathlib import Path

from devenv import packages
from devenv.command import ask, need
from devenv.layout import Layout
from devenv.state import write_atomically
from devenv.talk import DevenvError, say

STAMP = "installed"
PIP_PACKAGE = "python3-pip-whl"


def fingerprint(pyproject: bytes, python: str) -> str:
    """What an installation depends on: the project's description and the Python below it."""
    return hashlib.sha256(pyproject + b"\0" + python.encode()).hexdigest()


def make(layout: Layout) -> None:
    """Have `.venv` with the project in it, editable.

    Raises: DevenvError: no pyproject.toml, or pip refuses.
    """
    pyproject = layout.checkout / "pyproject.toml"
    if not pyproject.is_file():
        msg = f"{pyproject} is not there"
        raise DevenvError(msg, hint="run this inside a complete checkout")
    wanted = fingerprint(
        pyproject.read_bytes(), f"{os.path.realpath(sys.executable)} {sys.version}"
    )
    stamp, python = layout.venv / STAMP, layout.venv / "bin" / "python"
    is_whole = stamp.is_file() and ask([python, "-c", "import pip"]).code == 0
    if is_whole and stamp.read_text(encoding="utf-8") == wanted:
        say("venv", "found", f"Python {sys.version.split()[0]}, {layout.venv}")
        return
    # Gone while pip works: a call that is cut off leaves no stamp and is begun anew.
    stamp.unlink(missing_ok=True)
    if not is_whole or not _is_same_python(python):
        _create(layout)
    say("venv", "filling", "the project and its development tools; minutes at the first time")
    need(
        [python, "-m", "pip", "install", "--quiet", "--editable", ".[dev]"],
        doing="installing the project into .venv",
        cwd=layout.checkout,
    )
    write_atomically(stamp, wanted)
    say("venv", "made", f"Python {sys.version.split()[0]}, {layout.venv}")


def _is_same_python(python: Path) -> bool:
    return ask([python, "-c", "import sys; print(sys.version)"]).out.strip() == sys.version


def _create(layout: Layout) -> None:
    argv = [sys.executable, "-m", "venv", "--clear"]
    if importlib.util.find_spec("ensurepip") is not None:
        need([*argv, layout.venv], doing="making .venv")
        return
    wheel = pip_wheel(layout)
    need([*argv, "--without-pip", layout.venv], doing="making .venv")
    # A wheel is a zip file that Python can run a program out of.
    runner = [layout.venv / "bin" / "python", wheel / "pip"]
    need([*runner, "install", "--quiet", "--no-index", wheel], doing="putting pip into .venv")


def pip_wheel(layout: Layout) -> Path:
    """Pip as a wheel, where this Python brings none.

    Raises: DevenvError: it cannot be had without changing the system.
    """
    if not packages.is_debian():
        msg = "this Python has neither pip nor ensurepip, so no virtual environment can be made"
        raise DevenvError(msg, hint="install the venv package of your system's Python")
    packages.fetch(layout, packages.own_suite(), [PIP_PACKAGE])
    folder = layout.packages / PIP_PACKAGE / "usr" / "share" / "python-wheels"
    return max(folder.glob("pip-*.whl"))
