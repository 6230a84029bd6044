"""The ``[app.NAME]`` tables: what the project itself puts on top of images."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from gpulayers.matrix import fields, patterns, rules
from gpulayers.matrix.model import App, Cell, HealthCheck, Matrix
from gpulayers.matrix.models import inside
from gpulayers.matrix.select import matches
from gpulayers.matrix.shape import Report, Rule, Table, quoted

TARGET = "/opt/app"
PATTERN = Rule(
    'a pattern as in a .dockerignore, as "**/*.log"',
    lambda text: text if patterns.is_pattern(text) and "\n" not in text else None,
)
_PROJECT_FILES = ("pyproject.toml", "setup.py")


def of(matrix: Matrix, cell: Cell) -> App | None:
    """The app of a cell's images, if they have one; a right matrix has at most one for a cell."""
    return next((app for app in matrix.apps.values() if fits(app, cell)), None)


def fits(app: App, cell: Cell) -> bool:
    """Whether an app is for a cell."""
    values = cell.values()
    return all(matches(values[axis], glob) for axis, glob in app.match.items() if axis in values)


def read(document: Table, root: Path) -> Mapping[str, App]:
    """The apps by name."""
    found: dict[str, App] = {}
    for name, table in document.named("app", rules.APP):
        found[name] = _app(name, table, root.resolve())
        table.close()
    return found


def _app(name: str, table: Table, root: Path) -> App:
    if table.has("leave-out") and not table.has("source"):
        table.add("leave-out", wanted="source beside it", found="none")
    source = inside(table, "source", root, wanted="a folder", fits=Path.is_dir)
    target = table.one("target", rules.PLACE_IN_IMAGE) or TARGET
    return App(
        name=name,
        match=fields.match(table),
        flavour="devel" if table.one("flavour", rules.FLAVOUR) == "devel" else "runtime",
        os_packages=table.many("os-packages", rules.OS_PACKAGE, default=()),
        requirements=table.many("requirements", rules.REQUIREMENT, default=()),
        requirements_file=inside(
            table, "requirements-file", root, wanted="a file", fits=Path.is_file
        ),
        extensions=_extensions(table, root),
        source=source,
        leave_out=table.many("leave-out", PATTERN, default=()),
        target=target,
        env=fields.env(table),
        ports=table.many("ports", rules.PORT, default=()),
        user=table.one("user", rules.USER) or "",
        workdir=table.one("workdir", rules.WORKDIR) or (target if source is not None else ""),
        entrypoint=table.many("entrypoint", rules.WORD, default=()),
        command=table.many("command", rules.WORD, default=()),
        health_check=_health_check(table),
        smoke=inside(table, "smoke", root, wanted="a folder or file", fits=Path.exists),
    )


def _extensions(table: Table, root: Path) -> tuple[Path, ...]:
    found: list[Path] = []
    for index, text in enumerate(table.many("extensions", rules.PATH, default=())):
        key = (*table.path, "extensions", index)
        path = (root / text).resolve()
        wanted = f"a folder in the project with a {' or '.join(_PROJECT_FILES)}"
        if not path.is_relative_to(root) or path == root or not path.is_dir():
            table.report.add(key, wanted=wanted, found=f"{quoted(text)}, which is none")
        elif not any((path / name).is_file() for name in _PROJECT_FILES):
            table.report.add(key, wanted=wanted, found=f"{quoted(text)} without one")
        elif path.name in {other.name for other in found}:
            wanted = "folders with names of their own"
            table.report.add(key, wanted=wanted, found=f"{quoted(path.name)} a second time")
        else:
            found.append(path)
    return tuple(found)


def _health_check(table: Table) -> HealthCheck | None:
    if not table.has("health-check"):
        table.take("health-check")
        return None
    inner = table.sub("health-check")
    found = HealthCheck(
        command=inner.many("command", rules.WORD, least=1),
        interval_s=inner.number("interval-s", least=1) or 30,
        timeout_s=inner.number("timeout-s", least=1) or 5,
        start_s=inner.number("start-s", least=0) or 0,
        retries=inner.number("retries", least=1) or 3,
    )
    inner.close()
    return found


def check(matrix: Matrix, cells: Sequence[Cell], report: Report) -> None:
    """Add apps that are for no cell, and cells that would have two of them."""
    if not cells or not report.is_clean("app"):
        return
    for name, app in matrix.apps.items():
        if not any(fits(app, cell) for cell in cells):
            shown = ", ".join(f"{axis} = {quoted(glob)}" for axis, glob in app.match.items())
            wanted = "a match that hits a cell"
            report.add(("app", name, "match"), wanted=wanted, found=f"{shown}, which hits none")
    names = [*matrix.apps]
    for number, name in enumerate(names):
        for other in names[:number]:
            _check_pair(matrix.apps[other], matrix.apps[name], cells, report)


def _check_pair(one: App, other: App, cells: Sequence[Cell], report: Report) -> None:
    both = next((cell for cell in cells if fits(one, cell) and fits(other, cell)), None)
    if both is not None:
        report.add(
            ("app", other.name),
            wanted="at most one app in an image",
            found=f"app {one.name} and app {other.name} for {both.format()}",
            hint="write a match into both, so that no cell has two",
        )
