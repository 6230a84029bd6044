"""Reading a matrix.toml strictly: either all of it is right, or every problem is told at once."""

import re
import tomllib
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from gpulayers.errors import Problem
from gpulayers.matrix import checks, sections
from gpulayers.matrix.lines import Source, locate
from gpulayers.matrix.model import Matrix
from gpulayers.matrix.shape import Report, Table, nearest, quoted, typed

SCHEMAS = (1,)
_SYNTAX_PLACE = re.compile(r"\s*\(at (?:line (?P<line>\d+), column \d+|end of document)\)$")


def read(path: Path, *, root: Path | None = None) -> tuple[Matrix | None, tuple[Problem, ...]]:
    """A matrix, or None and every problem of the file, from its top to its end.

    Shape: ``root`` is the project's folder, where models are looked for and which file names in
    problems are relative to; None means the file's own folder.
    """
    matrix, problems = read_with_gaps(path, root=root)
    return (None if problems or matrix is None else _filled(matrix)), problems


def read_with_gaps(
    path: Path, *, root: Path | None = None
) -> tuple[Matrix | None, tuple[Problem, ...]]:
    """What could be read of a matrix, so that checks of others can tell theirs at the same time.

    Shape: as ``read``; with problems, the matrix lacks what they are about.
    """
    root = (root or path.parent).absolute()
    path = path.absolute()
    file = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
    text = _text(path, file)
    if isinstance(text, Problem):
        return None, (text,)
    values = _values(text, file)
    if isinstance(values, Problem):
        return None, (values,)
    report = Report(source=Source(file=file, lines=locate(text)))
    document = Table(report, (), values)
    if not _is_known_schema(document):
        return None, report.ordered()
    matrix = sections.matrix(document, path=path, root=root)
    checks.run(matrix, report)
    return matrix, report.ordered()


def check_frameworks(matrix: Matrix, known: Collection[str]) -> tuple[Problem, ...]:
    """A problem for each framework that the layer library does not have."""
    return tuple(
        matrix.source.problem(
            path,
            wanted="a framework that a layer is there for",
            found=quoted(name),
            hint=nearest(name, known),
        )
        for name, path in checks.unknown_frameworks(matrix, known)
    )


def _text(path: Path, file: str) -> str | Problem:
    try:
        data = path.read_bytes()
        return data.decode().replace("\r\n", "\n")
    except OSError as error:
        return Problem(
            file=file,
            line=0,
            key="(file)",
            wanted="a file that can be read",
            found=(error.strerror or str(error)).lower(),
            hint="`gpulayers init` makes one",
        )
    except UnicodeDecodeError as error:
        return Problem(
            file=file,
            line=error.object.count(b"\n", 0, error.start) + 1,
            key="(encoding)",
            wanted="UTF-8",
            found=f"the byte 0x{error.object[error.start]:02x}",
            hint="save the file as UTF-8",
        )


def _values(text: str, file: str) -> dict[str, object] | Problem:
    try:
        values: dict[str, object] = tomllib.loads(text)
    except RecursionError:
        found, line = "arrays or tables nested hundreds deep", 1
    except ValueError as error:  # TOMLDecodeError is one, and so is an integer without end
        message = str(error)
        place = _SYNTAX_PLACE.search(message)
        found = message[: place.start()] if place else message
        line = int(place["line"]) if place and place["line"] else text.rstrip().count("\n") + 1
    else:
        return values
    found = found[:1].lower() + found[1:]
    return Problem(file=file, line=line, key="(syntax)", wanted="TOML", found=found)


def _is_known_schema(document: Table) -> bool:
    """Whether to read on: a file of another schema would only give noise."""
    value = document.take("schema")
    known = ", ".join(map(str, SCHEMAS))
    if isinstance(value, int) and not isinstance(value, bool):
        if value in SCHEMAS:
            return True
        document.add(
            "schema",
            wanted=f"a schema that this version knows ({known})",
            found=str(value),
            hint="a newer gpulayers may know it",
        )
        return False
    found = "nothing" if value is None else typed(value)
    hint = f"write schema = {SCHEMAS[-1]} at the top"
    document.add("schema", wanted=f"an integer ({known})", found=found, hint=hint)
    return True


def _filled(matrix: Matrix) -> Matrix:
    """The matrix with a source for every Python of a cell."""
    used = [*matrix.axes.python, *(cell.python for cell in matrix.includes)]
    names = dict.fromkeys(python.format() for python in used)
    pythons = {name: matrix.pythons.get(name, ("standalone",)) for name in names}
    return replace(matrix, pythons=pythons)
