"""What stays out of a folder that is copied: patterns in the words of a ``.dockerignore``."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

FILE = ".dockerignore"
# Of no use in an image, and different on every machine.
ALWAYS = ("**/__pycache__", "**/.git", "**/.venv", FILE)


def rules(lines: Sequence[str]) -> tuple[str, ...]:
    """Each pattern as a sign and a regular expression over whole paths, in their order.

    Shape: ``-`` leaves out what matches and all below it, ``+`` (a pattern with ``!``) takes it
    back; the last that matches decides. Empty lines and those that start with ``#`` are none.
    Source: Docker's documentation of ``.dockerignore`` files (read 2026-12-01).
    """
    found: list[str] = []
    for line in lines:
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        sign, pattern = ("+", text[1:]) if text.startswith("!") else ("-", text)
        pattern = pattern.strip().strip("/").removeprefix("./")
        found.append(f"{sign}{''.join(_pieces(pattern))}(/.*)?")
    return tuple(found)


def _pieces(pattern: str) -> Iterator[str]:
    """The regular expression of a pattern, piece by piece."""
    for piece in re.findall(r"\*\*/|\*\*|\\.|\[[^\]]+\]|.", pattern, re.DOTALL):
        match piece[0]:
            case "*" if len(piece) > 1:
                yield "(.*/)?" if piece.endswith("/") else ".*"
            case "*":
                yield "[^/]*"
            case "?":
                yield "[^/]"
            case "[" if len(piece) > 1:
                inner = piece[1:-1]
                yield f"[^{inner[1:]}]" if inner[0] in "!^" else f"[{inner}]"
            case _:
                yield re.escape(piece[-1])


def is_pattern(text: str) -> bool:
    """Whether a text can be read as a pattern."""
    try:
        compiled = [re.compile(rule[1:]) for rule in rules([text])]
    except re.error:
        return False
    return bool(compiled)


def of_folder(folder: Path, more: Sequence[str]) -> tuple[str, ...]:
    """The rules for a folder: those that always hold, its ``.dockerignore``, and more."""
    file = folder / FILE
    own = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return rules((*ALWAYS, *own, *more))


def kept(folder: Path, by: Sequence[str]) -> tuple[Path, ...]:
    """The files and links of a folder that the rules leave in, sorted by name."""
    compiled = [(rule[0] == "-", re.compile(rule[1:])) for rule in by]
    return tuple(path for path in _files(folder) if not _is_out(path.relative_to(folder), compiled))


def _files(folder: Path) -> list[Path]:
    found: list[Path] = []
    for place, folders, files in os.walk(folder):
        links = [name for name in folders if Path(place, name).is_symlink()]
        found += [Path(place, name) for name in (*files, *links)]
    return sorted(path for path in found if path.is_file() or path.is_symlink())


def _is_out(path: Path, compiled: Sequence[tuple[bool, re.Pattern[str]]]) -> bool:
    out = False
    for leaves_out, pattern in compiled:
        if pattern.fullmatch(path.as_posix()):
            out = leaves_out
    return out
