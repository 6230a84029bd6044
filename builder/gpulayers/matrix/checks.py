"""What has to hold between the tables of a matrix.toml."""

from collections.abc import Collection, Iterator, Mapping

from gpulayers.matrix import apps, tags
from gpulayers.matrix.lines import KeyPath
from gpulayers.matrix.model import AXES, NO_MODEL, TOOLS_BASE, Cell, Exclude, Matrix
from gpulayers.matrix.select import Selection, choose, columns, matches, spelled
from gpulayers.matrix.shape import Report, nearest, quoted
from gpulayers.refs import is_tag

_TAG_LIMIT = 128
# Names of tables that need no cell: the one has a meaning of its own, the other is told elsewhere.
_FREE: Mapping[str, Collection[str]] = {
    "base": (TOOLS_BASE,),
    "python": (),
    "model": (NO_MODEL,),
    "framework": (),
}


def run(matrix: Matrix, report: Report) -> None:
    """Add what is wrong between tables to the report.

    Shape: a check whose tables have problems of their own is left out, as its answer would only
    repeat them.
    """
    if not report.is_clean("axes", "include"):
        return
    can_select = report.is_clean("exclude")
    _check_tables(matrix, report)
    _check_includes(matrix, report)
    _check_excludes(matrix, report)
    if not can_select:
        return
    selection = choose(matrix)
    _check_values(matrix, selection, report)
    apps.check(matrix, selection.kept, report)
    if report.is_clean("images"):
        _check_tags(matrix, selection, report)


def places(matrix: Matrix, axis: str) -> Iterator[tuple[str, KeyPath]]:
    """Every value of an axis as spelled, with where it stands: the axis first, then includes."""
    for index, value in enumerate(columns(matrix.axes)[axis]):
        yield spelled(value), ("axes", axis, index)
    for index, cell in enumerate(matrix.includes):
        yield cell.values()[axis], ("include", index, axis)


def _first_places(matrix: Matrix, axis: str) -> dict[str, KeyPath]:
    found: dict[str, KeyPath] = {}
    for value, path in places(matrix, axis):
        found.setdefault(value, path)
    return found


def _check_tables(matrix: Matrix, report: Report) -> None:
    used = {axis: _first_places(matrix, axis) for axis in AXES}
    names = {value.partition("==")[0]: path for value, path in used["framework"].items()}
    used["model"].pop(NO_MODEL, None)
    if TOOLS_BASE in used["os"]:
        report.add(
            used["os"].pop(TOOLS_BASE),
            wanted="another name",
            found=quoted(TOOLS_BASE),
            hint=f"[base.{TOOLS_BASE}] is what build steps work on, and no image's",
        )
    _check_missing("base", report.names["base"], used["os"], report)
    _check_missing("model", report.names["model"], used["model"], report)
    for section, known in (
        ("base", used["os"]),
        ("python", used["python"]),
        ("model", used["model"]),
        ("framework", names),
    ):
        _check_unused(section, known, report)


def _check_missing(
    section: str, tables: Collection[str], used: Mapping[str, KeyPath], report: Report
) -> None:
    for name, path in used.items():
        if name not in tables:
            report.add(
                (section, name),
                wanted=f"a table [{section}.{_name(name)}]",
                found=f"none, and {quoted(name)} is used here",
                hint=nearest(name, tables),
                at=path,
            )


def _name(name: str) -> str:
    return f'"{name}"' if "." in name else name


def _check_unused(section: str, used: Mapping[str, KeyPath], report: Report) -> None:
    for name in report.names[section]:
        if name not in used and name not in _FREE[section]:
            report.add(
                (section, name),
                wanted="a table that an axis or an include uses",
                found=f"{quoted(name)}, which nothing uses",
                hint=nearest(name, used),
            )


def _check_includes(matrix: Matrix, report: Report) -> None:
    seen: set[Cell] = set()
    for index, cell in enumerate(matrix.includes):
        if cell in seen:
            report.add(
                ("include", index),
                wanted="a cell of its own",
                found=f"{cell.format()} a second time",
                hint="remove it",
            )
        seen.add(cell)


def _check_excludes(matrix: Matrix, report: Report) -> None:
    for index, exclude in enumerate(matrix.excludes):
        for axis, glob in exclude.match.items():
            if axis in AXES:
                values = tuple(map(spelled, columns(matrix.axes)[axis]))
                _check_globs(("exclude", index, "match", axis), glob, values, report)


def _check_globs(path: KeyPath, glob: str, values: tuple[str, ...], report: Report) -> None:
    for part in glob.split(","):
        if part.strip() and not any(matches(value, part) for value in values):
            report.add(
                path,
                wanted=f"a glob that hits a cell (the axis has {', '.join(values)})",
                found=f"{quoted(part.strip())}, which hits none",
                hint=nearest(part.strip(), values),
            )


def _check_values(matrix: Matrix, selection: Selection, report: Report) -> None:
    if not selection.kept:
        return  # no cell at all is the caller's to tell
    kept = {axis: set[str]() for axis in AXES}
    for cell in selection.kept:
        for axis, value in cell.values().items():
            kept[axis].add(value)
    for axis, column in columns(matrix.axes).items():
        for index, value in enumerate(map(spelled, column)):
            if value not in kept[axis]:
                report.add(
                    ("axes", axis, index),
                    wanted="a value that at least one cell keeps",
                    found=f"{quoted(value)}, all of whose cells are excluded",
                    hint=f"excluded by {_responsible(selection, axis, value)}",
                )


def _responsible(selection: Selection, axis: str, value: str) -> str:
    by_line: dict[int, Exclude] = {
        exclude.line: exclude
        for cell, exclude in selection.excluded
        if cell.values()[axis] == value
    }
    return ", ".join(f"line {line} ({e.reason})" for line, e in sorted(by_line.items()))


def _check_tags(matrix: Matrix, selection: Selection, report: Report) -> None:
    template = tags.template(matrix)
    spelling = {cell: tags.expand(template, cell) for cell in selection.kept}
    _check_grammar(matrix, spelling, report)
    told: set[tuple[str, ...]] = set()
    first: dict[str, Cell] = {}
    for cell, tag in spelling.items():
        twin = first.setdefault(tag, cell)
        differ = tuple(axis for axis in AXES if cell.values()[axis] != twin.values()[axis])
        if twin != cell and differ not in told:
            told.add(differ)  # once for each kind: thousands of cells may share one cause
            _add_twins(report, tag, (twin, cell), tags.fields(template))
    _check_channels(matrix, first, report)


def _add_twins(
    report: Report, tag: str, cells: tuple[Cell, Cell], spelled_axes: Collection[str]
) -> None:
    one, other = (cell.values() for cell in cells)
    left_out = [f"{{{a}}}" for a in AXES if one[a] != other[a] and a not in spelled_axes]
    report.add(
        ("images", "tag"),
        wanted="a tag of its own for each cell",
        found=f"{quoted(tag)} for {cells[0].format()} and for {cells[1].format()}",
        hint=f"the template leaves out {', '.join(left_out)}"
        if left_out
        else "the values run together: put another character between them",
    )


def _check_channels(matrix: Matrix, cells: Mapping[str, Cell], report: Report) -> None:
    for (tag, cell), channel in (
        (pair, channel) for pair in cells.items() for channel in matrix.images.channels
    ):
        twin = cells.get(f"{tag}-{channel}")
        if twin is not None:
            report.add(
                ("images", "channels"),
                wanted="tags of channels that are no other cell's tag",
                found=f"{quoted(f'{tag}-{channel}')} for channel {channel} of {cell.format()} "
                f"and for {twin.format()}",
                hint="rename the channel or the value",
            )
            return


def _check_grammar(matrix: Matrix, spelling: Mapping[Cell, str], report: Report) -> None:
    room = _TAG_LIMIT - tags.longest_suffix(matrix)
    wrong = [(cell, tag) for cell, tag in spelling.items() if not is_tag(tag) or len(tag) > room]
    if not wrong:
        return
    cell, tag = max(wrong, key=lambda pair: len(pair[1]))
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    report.add(
        ("images", "tag"),
        wanted=f"a tag of at most {room} characters that starts with a letter, a digit or _ "
        f"(the longest channel or key takes the rest of {_TAG_LIMIT})",
        found=f"{len(tag)} characters, {quoted(tag)} for {cell.format()}{more}",
        hint="write a shorter images.tag, or shorter names",
    )


def unknown_frameworks(matrix: Matrix, known: Collection[str]) -> Iterator[tuple[str, KeyPath]]:
    """Each framework that is not known, with the first place that uses it."""
    firsts: dict[str, KeyPath] = {}
    for value, path in places(matrix, "framework"):
        firsts.setdefault(value.partition("==")[0], path)
    return ((name, path) for name, path in firsts.items() if name not in known)
