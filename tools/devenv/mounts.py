"""Mounts below our folders, and the removal of what is ours."""

import ctypes
import os
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from devenv.command import ask
from devenv.layout import Layout
from devenv.talk import DevenvError

MNT_DETACH = 2
MOUNTINFO = Path("/proc/self/mountinfo")
# All of these are git-ignored; what git tracks is never removed.
MADE = (
    ".engine",
    ".venv",
    ".gpulayers",
    "matrix.lock.toml",
    "examples/demo/.gpulayers",
    "examples/demo/matrix.lock.toml",
    "examples/app/.gpulayers",
    "examples/app/matrix.lock.toml",
    "build",
    "dist",
    "htmlcov",
    ".coverage",
    ".hypothesis",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
)
CACHES = ("__pycache__", "*.egg-info")


def parse_mountinfo(text: str) -> list[str]:
    """The mount points, in the order in which they were mounted."""
    points = (line.split()[4] for line in text.splitlines() if len(line.split()) > 4)  # noqa: PLR2004
    return [re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), point) for point in points]


def below(points: Iterable[str], folders: Iterable[Path]) -> list[str]:
    """Those mount points that lie in one of the folders, the last mounted first."""
    prefixes = tuple(f"{folder}/" for folder in folders)
    inside = [p for p in points if p.startswith(prefixes) or f"{p}/" in prefixes]
    return inside[::-1]


def ours(layout: Layout) -> list[str]:
    """What is mounted below the folders of this checkout now."""
    if not MOUNTINFO.is_file():
        return []
    points = parse_mountinfo(MOUNTINFO.read_text(encoding="utf-8", errors="replace"))
    return below(points, (layout.engine, layout.run))


def unmount(layout: Layout) -> None:
    """Unmount everything below our folders.

    Raises: DevenvError: something stays mounted.
    """
    for point in ours(layout):
        _detach(point)
    if rest := ours(layout):
        msg = f"still mounted: {', '.join(rest)}"
        raise DevenvError(msg, hint="end what uses it, then run the same command again")


def _detach(point: str) -> None:
    # A minimal Debian has no umount program. Detached: gone from here at once, freed after its use.
    ctypes.CDLL(None, use_errno=True).umount2(os.fsencode(point), MNT_DETACH)


def remove(layout: Layout) -> list[str]:
    """Remove what was made in the checkout; the names of what was there.

    Raises: DevenvError: something is still mounted below, and would be emptied.
    """
    if rest := ours(layout):
        msg = f"still mounted: {', '.join(rest)}"
        raise DevenvError(msg)
    found = [layout.checkout / name for name in MADE]
    found += [p for name in CACHES for p in _walk(layout.checkout, name)]
    gone = [path for path in found if path.exists() and _is_ignored(layout.checkout, path)]
    for path in gone:
        _remove_one(path)
    shown = [str(path.relative_to(layout.checkout)) for path in gone]
    return [name for name in shown if name in MADE]


def _walk(checkout: Path, pattern: str) -> list[Path]:
    tops = [p for p in checkout.iterdir() if p.is_dir() and p.name not in (".git", *MADE)]
    inside = [path for top in tops for path in top.rglob(pattern)]
    return [*checkout.glob(pattern), *inside]


def _is_ignored(checkout: Path, path: Path) -> bool:
    told = ask(["git", "-C", checkout, "check-ignore", "--quiet", path])
    # 1 is git's "no"; where git has no answer (an unpacked archive) only the sure names go.
    return told.code == 0 or (told.code != 1 and path.name != "matrix.lock.toml")


def _remove_one(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=sys.platform == "darwin")
    else:
        path.unlink(missing_ok=True)
