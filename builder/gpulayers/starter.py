"""A new project: its files with the choices filled in, written whole or not at all."""

import json
import re
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gpulayers.errors import ProjectError
from gpulayers.project import MATRIX_FILE, packaged_data
from gpulayers.versions import MajorMinor, Pin

FOLDER = "starter"
POLICY = "scans/policy.toml"
IGNORED = "# What gpulayers keeps here.\n/.gpulayers/\n"
# Where Debian has that Python itself; every other one is a standalone build.
DEBIAN = {"3.11": "bookworm", "3.13": "trixie"}
CUPY = "cupy"
LISTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a new project's matrix has on its axes, and where its images go."""

    registry: str
    framework: Pin
    cuda: MajorMinor
    python: MajorMinor


def files(choice: Choice, *, packaged: Path | None = None) -> Mapping[str, str]:
    """Path below the project's folder to text, sorted; ``packaged`` None is what comes with us."""
    data = packaged or packaged_data()
    folder = data / FOLDER
    found = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    found[MATRIX_FILE] = matrix(found[MATRIX_FILE], choice)
    found[POLICY] = _without_first_comment((data / POLICY).read_text(encoding="utf-8"))
    found[".gitignore"] = IGNORED
    return dict(sorted(found.items()))


def matrix(text: str, choice: Choice) -> str:
    """The matrix that comes with us with a choice in the place of its values."""
    python = choice.python.format()
    text = _set(text, "registry", json.dumps(choice.registry))
    text = _set(text, "python", json.dumps([python]))
    text = _set(text, "cuda", json.dumps([choice.cuda.format()]))
    text = _set(text, "framework", json.dumps([choice.framework.format()]))
    suite = DEBIAN.get(python)
    if suite is None:
        text = _without(text, '[python."3.11"]')
    else:
        text = text.replace('[python."3.11"]', f'[python."{python}"]')
        text = text.replace('"debian:bookworm"', f'"debian:{suite}"')
    return text if choice.framework.name == CUPY else _without(text, f"[framework.{CUPY}]")


def _set(text: str, key: str, value: str) -> str:
    """Give the one line of a key another value, and keep the comment beside it."""
    line = re.compile(rf"^{key} = (\[[^]]*\]|\"[^\"]*\")", re.MULTILINE)
    return line.sub(lambda _: f"{key} = {value}", text, count=1)


def _without(text: str, header: str) -> str:
    """Leave out a table with the comment above it: a paragraph of the file."""
    kept = [part for part in text.split("\n\n") if f"\n{header}\n" not in f"\n{part}\n"]
    return "\n\n".join(kept)


def _without_first_comment(text: str) -> str:
    """The policy's first line names a page that is not in the project."""
    return "# What a scan may find before an image's tags move.\n" + text.partition("\n")[2]


def in_the_way(folder: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Which files of a folder would be overwritten, or stand where a folder is needed."""
    places = {str(Path(name)) for name in names}
    parents = {str(parent) for name in names for parent in Path(name).parents} - {"."}
    taken = [name for name in places if _is_there(folder / name)]
    taken += [name for name in parents if _is_there(folder / name) and not (folder / name).is_dir()]
    return tuple(sorted(taken))


def _is_there(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def write(folder: Path, texts: Mapping[str, str], check: Callable[[Path], object]) -> None:
    """Write a project, once ``check`` has seen it whole in a folder of its own.

    Raises: ProjectError: files are in the way, each is named; or what ``check`` raises. Then
        nothing was written.
    """
    if folder.exists() and not folder.is_dir():
        msg = f"{folder}: wanted a folder, or nothing there, found a file"
        raise ProjectError(msg, hint="name another folder: gpulayers init DIR")
    taken = in_the_way(folder, tuple(texts))
    if taken:
        shown = "".join(f"\n  {name}" for name in taken[:LISTED])
        msg = f"{folder}: {len(taken)} files are in the way, nothing is overwritten:{shown}"
        raise ProjectError(msg, hint="move them aside, or name another folder: gpulayers init DIR")
    beside = folder if folder.exists() else folder.parent
    scratch = beside / f".gpulayers-init-{secrets.token_hex(4)}"
    try:
        for name, text in texts.items():
            _write(scratch / name, text)
        check(scratch)
        _move(scratch, folder, tuple(texts))
    except OSError as error:
        msg = f"{folder}: the project cannot be written: {error.strerror}"
        raise ProjectError(msg, hint="look at the folder's rights and at the disk") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _move(scratch: Path, folder: Path, names: Sequence[str]) -> None:
    """Move all files, or none; one that came there meanwhile is not overwritten."""
    if not folder.exists():
        scratch.rename(folder)
        return
    made: list[Path] = []
    try:
        for name in names:
            _make_parents(folder / name, made)
            with (folder / name).open("x", encoding="utf-8") as file:
                made.append(folder / name)
                file.write((scratch / name).read_text(encoding="utf-8"))
    except BaseException:
        for path in reversed(made):
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
        raise


def _make_parents(path: Path, made: list[Path]) -> None:
    missing = [parent for parent in path.parents if not parent.exists()]
    for parent in reversed(missing):
        parent.mkdir()
        made.append(parent)
