"""Where a project's files are, and those that come with the package."""

import os
from dataclasses import dataclass
from pathlib import Path

from gpulayers.errors import OptionError, ProjectError

MATRIX_FILE = "matrix.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The places of a project; all paths are absolute.

    Shape: ``state`` is ours and not in git; ``layers`` and ``scans`` may be missing.
    """

    root: Path
    matrix_file: Path
    state: Path
    layers: Path
    scans: Path

    @classmethod
    def at(cls, root: Path, matrix_file: Path | None = None) -> "Project":
        """The project in a folder; its matrix is the folder's own where none is given."""
        root = root.absolute()
        return cls(
            root=root,
            matrix_file=(matrix_file or root / MATRIX_FILE).absolute(),
            state=root / ".gpulayers",
            layers=root / "layers",
            scans=root / "scans",
        )


def find(start: Path, *, project: Path | None, matrix: Path | None) -> Project:
    """The project to work on: of ``--matrix``, of ``--project``, else the nearest one above.

    Shape: relative paths are relative to ``start``. A ``--matrix`` alone makes its own folder the
    project; with a ``--project`` beside it, that is the project and the matrix is the file given.
    Raises: ProjectError: there is none; the message says where it was looked for;
        OptionError: an option names none.
    """
    start = start.absolute()
    if matrix is not None:
        file = _matrix_file(start / matrix)
        return Project.at(file.parent if project is None else _folder(start / project), file)
    if project is not None:
        root = _folder(start / project)
        if not (root / MATRIX_FILE).is_file():
            msg = f"--project {project}: wanted a folder with a {MATRIX_FILE}, found none in {root}"
            raise OptionError(msg, hint=f"`gpulayers init {project}` makes one")
        return Project.at(root)
    return _nearest(start)


def _matrix_file(path: Path) -> Path:
    if path.is_file():
        return path
    found = "a folder" if path.is_dir() else "nothing there"
    msg = f"--matrix {path}: wanted a file, found {found}"
    hint = f"use --project {path}" if path.is_dir() else "correct the path, or `gpulayers init`"
    raise OptionError(msg, hint=hint)


def _folder(path: Path) -> Path:
    if path.is_dir():
        return path
    found = "a file" if path.exists() else "nothing there"
    msg = f"--project {path}: wanted a folder, found {found}"
    hint = f"use --matrix {path}" if path.exists() else f"`gpulayers init {path}` makes one"
    raise OptionError(msg, hint=hint)


def _nearest(start: Path) -> Project:
    for folder in (start, *start.parents):
        if (folder / MATRIX_FILE).is_file():
            return Project.at(folder)
    msg = f"wanted a {MATRIX_FILE}, found none in {start} nor in a folder above it"
    raise ProjectError(msg, hint="start one with `gpulayers init`, or name one with --project DIR")


def packaged_data() -> Path:
    """The folder with the ``layers/`` and ``scans/`` that come with us.

    Shape: ``_data`` inside the installed package; in a checkout, the checkout's root.
    """
    package = Path(__file__).parent
    data = package / "_data"
    return data if data.is_dir() else package.parents[1]


def layer_folders(project: Project, *, packaged: Path | None = None) -> tuple[Path, ...]:
    """The folders with layers, those that come with us first; a later one may replace an earlier.

    Shape: only folders that exist, none twice (in our own checkout both are one); ``packaged`` None
    means ``packaged_data()``.
    """
    folders = ((packaged or packaged_data()) / "layers", project.layers)
    found = {folder.resolve(): folder for folder in reversed(folders) if folder.is_dir()}
    return tuple(reversed(found.values()))


def scan_file(project: Project, name: str, *, packaged: Path | None = None) -> Path:
    """A file about scanning: the project's own, else the one that comes with us.

    Shape: whatever stands in its place is the project's own; only where nothing does is it ours.
    """
    own = project.scans / name
    return own if os.path.lexists(own) else (packaged or packaged_data()) / "scans" / name
