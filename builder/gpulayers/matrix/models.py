"""The ``[model.NAME]`` tables: a folder, a package, an OCI artifact, a Hugging Face repository."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpulayers.matrix import rules
from gpulayers.matrix.model import (
    NO_MODEL,
    ArtifactModel,
    FolderModel,
    HubModel,
    Model,
    PackageModel,
    Place,
)
from gpulayers.matrix.shape import Table, quoted

CARRIERS = ("path", "package", "oci", "huggingface")
_EITHER = (
    "exactly one of path (a folder), package (NAME==VERSION), oci (an artifact) and huggingface "
    "(a repository)"
)
_CHECKED = "check only where files are copied: it is run over them in the build"
_USE_SMOKE = "a file of smoke can look at a package, when it is installed"
_OF_HUB = "revision and files only beside huggingface"
_OF_FETCHED = "place only beside oci and huggingface"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Common:
    """What every kind of model may have."""

    name: str
    place: Place
    check: Path | None
    smoke: Path | None
    requirements: tuple[str, ...]


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
    carriers = [key for key in CARRIERS if table.has(key)]
    carrier = _only(table, carriers)
    _fit_keys(table, carriers)
    common = _Common(
        name=name,
        place="reference" if table.one("place", rules.PLACE) == "reference" else "layer",
        check=inside(table, "check", root, wanted="a file", fits=Path.is_file),
        smoke=inside(table, "smoke", root, wanted="a folder or file", fits=Path.exists),
        requirements=table.many("requirements", rules.REQUIREMENT, default=()),
    )
    found = {
        "path": _folder(table, root, common),
        "package": _package(table, common),
        "oci": _artifact(table, common),
        "huggingface": _hub(table, common, needed=carrier == "huggingface"),
    }
    _fit_check(table, carrier, common)
    return found.get(carrier)


def _only(table: Table, carriers: list[str]) -> str:
    """The one key that says where the files are, or ""."""
    if not carriers:
        table.report.add(table.path, wanted=_EITHER, found="none of them")
    for key in carriers[1:]:
        table.add(key, wanted=_EITHER, found=" and ".join(carriers))
    return carriers[0] if len(carriers) == 1 else ""


def _fit_keys(table: Table, carriers: list[str]) -> None:
    of_hub = "huggingface" in carriers or not carriers
    of_fetched = of_hub or "oci" in carriers
    for key in ("revision", "files"):
        if table.has(key) and not of_hub:
            table.add(key, wanted=_OF_HUB, found=f"a model by {carriers[0]}")
    if table.has("place") and not of_fetched:
        table.add("place", wanted=_OF_FETCHED, found=f"a model by {carriers[0]}")


def _fit_check(table: Table, carrier: str, common: _Common) -> None:
    if common.check is None:
        return
    if carrier == "package":
        table.add("check", wanted=_CHECKED, found="a model that is a package", hint=_USE_SMOKE)
    elif carrier in {"oci", "huggingface"} and common.place == "reference":
        found = "a model that is outside the image"
        table.add("check", wanted=_CHECKED, found=found)


def _folder(table: Table, root: Path, common: _Common) -> Model | None:
    path = inside(table, "path", root, wanted="a folder", fits=Path.is_dir)
    if path is None:
        return None
    check, smoke = common.check, common.smoke
    if check is not None and not check.is_relative_to(path):
        found = f"{quoted(check.name)}, which is not in it"
        table.add("check", wanted=f"a file in the model's folder {path.name}/", found=found)
    if smoke is not None and path.is_relative_to(smoke):
        wanted = "a file or folder beside the model's files, which go into the image without it"
        table.add("smoke", wanted=wanted, found="the model's own folder")
    return FolderModel(
        name=common.name, path=path, check=check, smoke=smoke, requirements=common.requirements
    )


def _package(table: Table, common: _Common) -> Model | None:
    package = table.one("package", rules.PACKAGE_PIN)
    if package is None:
        return None
    return PackageModel(
        name=common.name, package=package, smoke=common.smoke, requirements=common.requirements
    )


def _artifact(table: Table, common: _Common) -> Model | None:
    ref = table.one("oci", rules.ARTIFACT)
    if ref is None:
        return None
    return ArtifactModel(
        name=common.name,
        ref=ref,
        place=common.place,
        check=common.check,
        smoke=common.smoke,
        requirements=common.requirements,
    )


def _hub(table: Table, common: _Common, *, needed: bool) -> Model | None:
    repository = table.one("huggingface", rules.HUB_REPOSITORY)
    ask = table.need if needed else table.one
    revision = ask("revision", rules.REVISION)
    files = table.many("files", rules.GLOB, least=1, default=())
    if repository is None or revision is None:
        return None
    return HubModel(
        name=common.name,
        repository=repository,
        revision=revision,
        files=files,
        place=common.place,
        check=common.check,
        smoke=common.smoke,
        requirements=common.requirements,
    )


def inside(
    table: Table, key: str, root: Path, *, wanted: str, fits: Callable[[Path], bool]
) -> Path | None:
    """The file or folder of the project that a key names; tells where there is none."""
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
    except (OSError, RuntimeError, ValueError):  # a loop of links, or a name no file system takes
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
