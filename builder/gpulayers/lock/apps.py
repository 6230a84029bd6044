"""What an app asks a lock for: packages of the OS, wheels above all others, and what builds it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gpulayers.layer import Library
from gpulayers.lock import demands
from gpulayers.lock.model import Wheel
from gpulayers.matrix import apps
from gpulayers.matrix.model import App, Cell, Matrix
from gpulayers.refs import Platform

DEVEL = "devel"
Texts = Callable[[Sequence[str]], tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One closure of an app: its name, its requirements, and the hashes that it insists on."""

    of: str
    requirements: tuple[str, ...]
    hashes: tuple[tuple[str, str], ...]


def layer_name(app: App) -> str:
    """The name of an app's closure, and of its set of OS packages."""
    return f"app {app.name}"


def build_name(app: App) -> str:
    """The name of the closure that an app's extensions are built with."""
    return f"app {app.name} build"


def needs(app: App) -> tuple[demands.Demand, ...]:
    """All that an app itself needs from a package index.

    Raises: ProjectError: one of its files cannot be read.
    """
    found = [demands.Demand(text=text, sha256=()) for text in app.requirements]
    found += demands.read(app.requirements_file) if app.requirements_file is not None else ()
    texts = (text for folder in app.extensions for text in demands.to_run(folder))
    return (*found, *(demands.Demand(text=text, sha256=()) for text in texts))


def levels(matrix: Matrix, library: Library, cell: Cell, fill: Texts) -> Iterator[Level]:
    """The closures of a cell's app, lowest first; none where it needs no wheels.

    Shape: each stands on all before it; ``fill`` puts the cell's values into a layer's texts.
    Raises: ProjectError: a file that the app names cannot be read.
    """
    app = apps.of(matrix, cell)
    if app is None:
        return
    devel = fill(library.single("devel").requirements) if is_compiled(app) else ()
    if app.flavour == "devel":
        yield Level(of=DEVEL, requirements=devel, hashes=())
    own = needs(app)
    if own:
        pairs = sorted({(one.name, sha256) for one in own for sha256 in one.sha256})
        texts = tuple(one.text for one in own)
        yield Level(of=layer_name(app), requirements=texts, hashes=tuple(pairs))
    if app.extensions:
        tools = {text for folder in app.extensions for text in demands.to_build(folder)}
        requirements = (*devel, *sorted(tools))
        yield Level(of=build_name(app), requirements=requirements, hashes=())


def is_compiled(app: App) -> bool:
    """Whether CUDA's headers and compilers are needed, in the image or beside it."""
    return app.flavour == "devel" or bool(app.extensions)


def os_packages(
    matrix: Matrix, cells: Sequence[Cell], shared: Callable[[str], Sequence[str]]
) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """For each app with packages of its own, and OS: the whole step's, as dpkg has one database.

    Shape: the app's name as in ``layer_name``, the OS, the packages, sorted; ``shared`` gives those
    of all images on an OS.
    """
    pairs = {(app.name, cell.os) for cell in cells if (app := apps.of(matrix, cell)) is not None}
    return tuple(
        (layer_name(app), os, tuple(sorted({*shared(os), *app.os_packages})))
        for name, os in sorted(pairs)
        if (app := matrix.apps[name]).os_packages
    )


def toolchain(
    matrix: Matrix, library: Library, cells: Sequence[Cell]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The layer and packages that extensions are compiled with; empty where there are none."""
    found = (apps.of(matrix, cell) for cell in cells)
    if not any(app is not None and app.extensions for app in found):
        return ()
    layer = library.single("app")
    return ((layer.name, layer.packages.get("debian", ())),)


def clash(
    requirements: Sequence[str], fixed: Sequence[Wheel], python: str, platform: Platform
) -> str:
    """The first requirement that would replace what layers below have, in words, or ""."""
    there = {wheel.name: wheel.version for wheel in fixed}
    environment = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "platform_machine": platform.machine,
        "sys_platform": "linux",
        "platform_system": "Linux",
    }
    for text in requirements:
        wanted = Requirement(text)
        version = there.get(canonicalize_name(wanted.name))
        if version is None or (wanted.marker and not wanted.marker.evaluate(environment)):
            continue
        if not wanted.specifier.contains(version, prereleases=True):
            return f"it wants {text}, the layers below have {wanted.name} {version}, which stays"
    return ""


def strange_hash(hashes: Sequence[tuple[str, str]], wheels: Sequence[Wheel]) -> str:
    """The first wheel that has none of the hashes that its file of requirements allows, or ""."""
    allowed: dict[str, set[str]] = {}
    for name, sha256 in hashes:
        allowed.setdefault(name, set()).add(sha256)
    for wheel in sorted(wheels):
        if wheel.sha256 not in allowed.get(wheel.name, {wheel.sha256}):
            return f"{wheel.file} has the sha256 {wheel.sha256}, which its requirements do not list"
    return ""
