"""The ``[model.NAME]`` tables: a folder of the project, or a package of a Python index."""

from collections.abc import Callable, Mapping
from pathlib import Path

from gpulayers.matrix import rules
from gpulayers.matrix.model import NO_MODEL, FolderModel, Model, PackageModel
from gpulayers.matrix.shape import Table, quoted
from gpulayers.versions import Pin

_CHECKED = "check only beside path: it is run over the copied files of a folder"
_USE_SMOKE = "a file of smoke can look at a package, when it is installed"
_EITHER = "exactly one of path (a folder) and package (NAME==VERSION)"


def read(document: Table, root: Path) -> Mapping[str, Model]:
    """The models by name, without those whose table is wrong."""
    found: dict[str, Model] = {}
    for name, table in document.named("model", rules.MODEL):
        if name == NO_MODEL:
            table.report.add(
                table.path,
                wanted="another name",
                found='"none"',
                hint='"none" on the axis means an image without a model, and has no table',
            )
        model = _model(name, table, root.resolve())
        table.close()
        if model is not None:
            found[name] = model
    return found


def _model(name: str, table: Table, root: Path) -> Model | None:
    both, neither = _either(table)
    path = _inside(table, "path", root, wanted="a folder", fits=Path.is_dir)
    package = table.one("package", rules.PACKAGE_PIN)
    check = _inside(table, "check", root, wanted="a file", fits=Path.is_file)
    smoke = _inside(table, "smoke", root, wanted="a folder or file", fits=Path.exists)
    requirements = table.many("requirements", rules.REQUIREMENT, default=())
    if both or neither:
        return None
    _fit_together(table, path, check=check, smoke=smoke)
    return _made(name, (path, package), check=check, smoke=smoke, requirements=requirements)


def _fit_together(
    table: Table, path: Path | None, *, check: Path | None, smoke: Path | None
) -> None:
    if check is not None and path is None:
        table.add("check", wanted=_CHECKED, found="a model that is a package", hint=_USE_SMOKE)
    elif check is not None and path is not None and not check.is_relative_to(path):
        found = f"{quoted(check.name)}, which is not in it"
        table.add("check", wanted=f"a file in the model's folder {path.name}/", found=found)
    if path is not None and smoke is not None and path.is_relative_to(smoke):
        wanted = "a file or folder beside the model's files, which go into the image without it"
        table.add("smoke", wanted=wanted, found="the model's own folder")


def _made(
    name: str,
    carrier: tuple[Path | None, Pin | None],
    *,
    check: Path | None,
    smoke: Path | None,
    requirements: tuple[str, ...],
) -> Model | None:
    path, package = carrier  # exactly one
    if path is not None:
        return FolderModel(
            name=name, path=path, check=check, smoke=smoke, requirements=requirements
        )
    if package is not None:
        return PackageModel(name=name, package=package, smoke=smoke, requirements=requirements)
    return None


def _either(table: Table) -> tuple[bool, bool]:
    both = table.has("path") and table.has("package")
    neither = not table.has("path") and not table.has("package")
    if both:
        table.add("package", wanted=_EITHER, found="both")
    if neither:
        table.report.add(table.path, wanted=_EITHER, found="neither")
    return both, neither


def _inside(
    table: Table, key: str, root: Path, *, wanted: str, fits: Callable[[Path], bool]
) -> Path | None:
    text = table.one(key, rules.PATH)
    if text is None:
        return None
    path = _resolved(root, text)
    wanted = f"{wanted} in the project"
    if Path(text).is_absolute():
        table.add(key, wanted=f"{wanted}, by its relative path", found=quoted(text))
    elif not path.is_relative_to(root) or path == root:
        table.add(key, wanted=wanted, found=f"{quoted(text)}, which is not below it")
    elif not fits(path):
        table.add(key, wanted=wanted, found=f"{quoted(text)}, {_what(path)}", hint=_missing(path))
    else:
        return path
    return None


def _resolved(root: Path, text: str) -> Path:
    try:
        path = (root / text).resolve()
        path.exists()
    except (OSError, RuntimeError):  # a loop of links, or a name that no file system takes
        return root / "(a path that leads nowhere)"
    return path


def _what(path: Path) -> str:
    if path.is_dir():
        return "a folder"
    return "a file" if path.exists() else "a missing file"


def _missing(path: Path) -> str:
    if path.exists():
        return ""
    near = path.parent
    return "make it, or correct the path" if near.is_dir() else f"{near.name}/ is missing too"
