"""Files that we write: whole or not at all, and of a schema that says who can read them."""

import os
import re
import secrets
from contextlib import suppress
from pathlib import Path

from gpulayers.errors import ProjectError

# What is written beside a file's final name, and left there by a writer that was killed.
SCRATCH = ".new"
_OURS = re.compile(r"\..+\.[0-9a-f]{8}\.new")


def write(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Put a text into a file: whoever reads it, at whatever moment, has the old or the new one.

    Shape: folders are made; it is on the disk, not only on its way there, when this returns.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(4)}{SCRATCH}")
    try:
        _write_through(scratch, text, mode)
        scratch.replace(path)
    except BaseException:
        with suppress(OSError):
            scratch.unlink()
        raise
    _sync_folder(path.parent)


def _write_through(path: Path, text: str, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(os.open(path, flags, mode), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """A rename is in the folder, which is written on its own."""
    with suppress(OSError):  # some file systems know no such thing
        place = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(place)
        finally:
            os.close(place)


def sweep(folder: Path) -> None:
    """Remove what killed writers left directly in a folder; nobody may be writing there."""
    for scratch in folder.glob(f".*{SCRATCH}"):
        if _OURS.fullmatch(scratch.name):
            with suppress(OSError):
                scratch.unlink()


def demand_schema(found: object, known: int, *, path: Path, remedy: str) -> None:
    """Refuse a file of another schema than the one that is known here.

    Raises: ProjectError: it is newer, older or none; says what to do.
    """
    number = found if isinstance(found, int) and not isinstance(found, bool) else 0
    if number == known:
        return
    if number > known:
        msg = f"{path}: wanted schema {known}, found schema {number}, of a newer gpulayers"
        raise ProjectError(msg, hint=f"update gpulayers; or {remedy}")
    shown = "none" if found is None else repr(found)
    msg = f"{path}: wanted schema {known}, found {shown}"
    raise ProjectError(msg, hint=remedy)
