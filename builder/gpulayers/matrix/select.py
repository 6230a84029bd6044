"""Which cells a matrix has: kept, or excluded by a choice of ours."""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from gpulayers.errors import OptionError
from gpulayers.matrix.model import AXES, Axes, Cell, Exclude, Matrix
from gpulayers.matrix.shape import nearest
from gpulayers.versions import MajorMinor, Pin


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The cells of a matrix, each in exactly one of the two lists.

    Shape: both in the order of the axes as written, first axis slowest; ``kept`` ends with the
    includes; an excluded cell comes with the first exclude that matches it. Either may be empty.
    """

    kept: tuple[Cell, ...]
    excluded: tuple[tuple[Cell, Exclude], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Only:
    """One ``--only AXIS=GLOB[,GLOB…]``."""

    axis: str
    glob: str

    def format(self) -> str:
        """``--only AXIS=GLOB``."""
        return f"--only {self.axis}={self.glob}"


def matches(value: str, glob: str) -> bool:
    """Whether a value matches one of the globs between the commas; case counts."""
    return any(fnmatchcase(value, part.strip()) for part in glob.split(","))


def product(axes: Axes) -> Iterator[Cell]:
    """Every combination of the axes' values, the first axis slowest."""
    for os, python, cuda, framework, model in itertools.product(
        axes.os, axes.python, axes.cuda, axes.framework, axes.model
    ):
        yield Cell(os=os, python=python, cuda=cuda, framework=framework, model=model)


def known_values(matrix: Matrix) -> Mapping[str, tuple[str, ...]]:
    """Axis name to every value that a cell can have there, includes too, without doubles."""
    values: dict[str, dict[str, None]] = {
        axis: dict.fromkeys(spelled(value) for value in column)
        for axis, column in columns(matrix.axes).items()
    }
    for cell in matrix.includes:
        for axis, value in cell.values().items():
            values[axis][value] = None
    return {axis: tuple(names) for axis, names in values.items()}


def columns(axes: Axes) -> Mapping[str, tuple[str | MajorMinor | Pin, ...]]:
    """Axis name to its values, in the order of ``AXES``."""
    return {
        "os": axes.os,
        "python": axes.python,
        "cuda": axes.cuda,
        "framework": axes.framework,
        "model": axes.model,
    }


def spelled(value: str | MajorMinor | Pin) -> str:
    """An axis value as matrix.toml spells it."""
    return value if isinstance(value, str) else value.format()


def choose(matrix: Matrix, only: Sequence[str] = ()) -> Selection:
    """The cells that are kept and those that an exclude takes out.

    Shape: ``only`` are ``AXIS=GLOB``; entries for one axis are alternatives, different axes have
    to match together. A cell that ``only`` does not name is in neither list. An include is
    always kept, also where the axes give it and an exclude matches it.
    Raises: OptionError: an ``only`` is not ``AXIS=GLOB``, or names no axis.
    """
    wanted = _wanted(known_values(matrix), parse_only(only))
    hits = _hits(matrix)
    includes = frozenset(matrix.includes)
    kept: list[Cell] = []
    excluded: list[tuple[Cell, Exclude]] = []
    for cell in product(matrix.axes):
        if includes and cell in includes:
            continue
        values = _key(cell)
        if not all(map(frozenset.__contains__, wanted, values)):
            continue
        hit = hits[0][values[0]]
        for column, value in zip(hits[1:], values[1:], strict=True):
            hit &= column[value]
        if hit:
            excluded.append((cell, matrix.excludes[(hit & -hit).bit_length() - 1]))
        else:
            kept.append(cell)
    kept += (
        cell for cell in matrix.includes if all(map(frozenset.__contains__, wanted, _key(cell)))
    )
    return Selection(kept=tuple(kept), excluded=tuple(excluded))


def _key(cell: Cell) -> tuple[str, ...]:
    return tuple(cell.values().values())


def _hits(matrix: Matrix) -> list[dict[str, int]]:
    """For each axis and value the excludes that match there, a bit each: a cell costs five ANDs."""
    table: list[dict[str, int]] = []
    for axis, column in columns(matrix.axes).items():
        hits = dict.fromkeys(map(spelled, column), 0)
        for bit, exclude in enumerate(matrix.excludes):
            glob = exclude.match.get(axis, "*")
            for value in hits:
                hits[value] |= matches(value, glob) << bit
        table.append(hits)
    return table


def parse_only(only: Sequence[str]) -> tuple[Only, ...]:
    """Read what ``--only`` was given.

    Raises: OptionError: an entry is not ``AXIS=GLOB``, or names no axis.
    """
    found: list[Only] = []
    for text in only:
        axis, equals, glob = text.partition("=")
        if not equals or not glob.strip():
            msg = f"--only {text}: wanted AXIS=GLOB, as cuda=12.8 or framework=torch==*"
            raise OptionError(msg, hint=f"the axes are {', '.join(AXES)}")
        if axis.strip() not in AXES:
            msg = f"--only {text}: {axis.strip()!r} is no axis; the axes are {', '.join(AXES)}"
            raise OptionError(msg, hint=nearest(axis.strip(), AXES))
        found.append(Only(axis=axis.strip(), glob=glob.strip()))
    return tuple(found)


def _wanted(known: Mapping[str, tuple[str, ...]], only: tuple[Only, ...]) -> list[frozenset[str]]:
    globs: dict[str, list[str]] = {}
    for entry in only:
        globs.setdefault(entry.axis, []).append(entry.glob)
    return [
        frozenset(v for v in values if matches(v, ",".join(globs.get(axis, ["*"]))))
        for axis, values in known.items()
    ]


def explain_nothing(matrix: Matrix, only: Sequence[str] = ()) -> str:
    """Why ``choose`` keeps no cell: the entry that names no value, else the excludes."""
    known = known_values(matrix)
    entries = parse_only(only)
    lost = [e for e in entries if not any(matches(v, e.glob) for v in known[e.axis])]
    if lost:
        return "; ".join(_explain_lost(entry, known[entry.axis]) for entry in lost)
    excluded = choose(matrix, only).excluded
    asked = " ".join(entry.format() for entry in entries)
    if not excluded:
        return f"{asked}: no cell of the matrix has these values together"
    cells = f"all {len(excluded)} cells" + (f" of {asked}" if asked else "") + " are excluded"
    counts = Counter(exclude.line for _, exclude in excluded)
    reasons = {exclude.line: exclude.reason for _, exclude in excluded}
    texts = (
        f"{count} by {matrix.source.file}:{line} ({reasons[line]})"
        for line, count in sorted(counts.items())
    )
    return f"{cells}: {', '.join(texts)}"


def _explain_lost(entry: Only, values: tuple[str, ...]) -> str:
    text = f"{entry.format()} names no value of the axis, which has {', '.join(values)}"
    starts = [value for value in values if value.startswith(entry.glob)]
    if starts:
        return f"{text}; did you mean {entry.axis}={entry.glob}*?"
    hint = nearest(entry.glob, values)
    return f"{text}; {hint}" if hint.startswith("did you mean") else text
