"""Finds the smoke scripts that an image inherits: those of its layers, lowest first."""

from collections.abc import Iterable
from pathlib import Path

from gpulayers.smoke.model import Check, Level


def read(folders: Iterable[tuple[str, Path]]) -> tuple[Check, ...]:
    """The scripts ``cpu_*.py`` and ``gpu_*.py`` of each folder.

    Shape: ``folders`` are pairs of a layer's name and its smoke folder, from the base upward; that
    order is kept, names are sorted inside a folder; a folder that is not there has no script.
    """
    return tuple(
        Check(layer=layer, name=path.name, level=level, text=path.read_text(encoding="utf-8"))
        for layer, folder in folders
        for path in sorted(folder.glob("*.py"))
        for level in Level
        if path.name.startswith(f"{level}_")
    )
