"""What a project asks a lock for: derived from matrix and layers alone, so it can be compared."""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gpulayers.layer import LayerDef, Library, fill, stack
from gpulayers.lock import apps
from gpulayers.lock import parts as parts_of_cuda
from gpulayers.matrix.model import (
    NO_MODEL,
    TOOLS_BASE,
    ArtifactModel,
    Cell,
    FetchedModel,
    FolderModel,
    HubModel,
    Matrix,
    PackageModel,
)
from gpulayers.refs import Platform

TOOLS = TOOLS_BASE


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What facts say of the wheels of cells.

    Shape: ``missing`` are platforms that a cell has none for; ``indexes`` has the name of the index
    of a cell on a platform, where that is not the plain one.
    """

    missing: Collection[tuple[Cell, Platform]] = frozenset()
    indexes: Mapping[tuple[Cell, Platform], str] = field(default_factory=dict)


PLAINLY = Served()
# Any Debian 12 serves: of it, only Python is taken into images, from its packages.
TOOLS_SOURCES = ("docker.io/library/debian:12-slim", "bootstrap:bookworm")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ClosureWanted:
    """A closure by its name (see ``lock.model.Closure``) and the requirements that make it.

    Shape: ``beside`` are requirements that another layer will bring, and that these wheels must
    allow: a framework that asks for exact parts of CUDA decides which ones are below it;
    ``mixed`` stand in for ``requirements`` where it asks for parts of several patch releases;
    ``hashes`` are packages with a sha256 that their file may have, several lines for several;
    ``sources`` are packages with the name of the one index that they may come from.
    """

    python: str
    platform: Platform
    of: str
    under: tuple[str, ...]
    requirements: tuple[str, ...]
    beside: tuple[str, ...]
    stands_in_for: tuple[str, ...]
    hashes: tuple[tuple[str, str], ...] = ()
    mixed: tuple[str, ...] = ()
    sources: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """All that a lock must hold for these cells; every tuple is sorted and without doubles.

    Shape: ``bases`` are an OS (or ``tools``), its suite or "", and its sources in their order;
    ``models`` are folders; ``fetched`` are a name, where from, at what, and which files of it.
    """

    bases: tuple[tuple[str, str, tuple[str, ...]], ...]
    os_packages: tuple[tuple[str, tuple[str, ...]], ...]
    app_packages: tuple[tuple[str, str, tuple[str, ...]], ...]
    layer_packages: tuple[tuple[str, tuple[str, ...]], ...]
    pythons: tuple[tuple[str, tuple[str, ...]], ...]
    closures: tuple[ClosureWanted, ...]
    models: tuple[str, ...]
    fetched: tuple[tuple[str, str, str, tuple[str, ...]], ...]
    platforms: tuple[Platform, ...]


def components(matrix: Matrix, layer: LayerDef) -> tuple[str, ...]:
    """The parts of CUDA that a framework is given, sorted: the project's choice, or the layer's."""
    options = matrix.frameworks.get(layer.name)
    own = options.cuda_components if options is not None else None
    return tuple(sorted(set(layer.cuda_components if own is None else own)))


def cuda_name(matrix: Matrix, library: Library, cell: Cell) -> str:
    """The name of a cell's CUDA closure: the framework's own where that fixes the parts of CUDA."""
    layer = library.layers[cell.framework.name]
    name = f"cuda=={cell.cuda.format()} {','.join(components(matrix, layer))}"
    return f"{name} for {cell.framework.format()}" if layer.fixes_cuda else name


def model_name(model: str) -> str:
    """The name of a model's closure."""
    return f"model {model}"


def requirement_texts(texts: Sequence[str], cell: Cell, parts: Sequence[str]) -> tuple[str, ...]:
    """Texts of a layer.toml with the cell's values in their places.

    Raises: ProjectError: a text wants a value that there is none of.
    """
    values = {
        "version": cell.framework.version,
        "cuda": cell.cuda.format(),
        "cuda_major": str(cell.cuda.major),
        "components": ",".join(parts),
    }
    return tuple(fill(text, values) for text in texts)


def model_requirements(matrix: Matrix, model: str) -> tuple[str, ...]:
    """What a model needs from a package index; empty for a folder that needs nothing."""
    if model == NO_MODEL:
        return ()
    found = matrix.models[model]
    own = (found.package.format(),) if isinstance(found, PackageModel) else ()
    return (*own, *found.requirements)


def platforms(
    matrix: Matrix, library: Library, cell: Cell, served: Served = PLAINLY
) -> tuple[Platform, ...]:
    """The platforms of a cell's images: the matrix's, as far as its framework has wheels there."""
    layer = library.layers[cell.framework.name]
    version = cell.framework.version
    return tuple(
        each
        for each in matrix.images.platforms
        if (cell, each) not in served.missing
        # What a layer says of its wheels it says of the plain index.
        and (layer.has_wheels(version, each) or (cell, each) in served.indexes)
    )


def closures(
    matrix: Matrix, library: Library, cell: Cell, served: Served = PLAINLY
) -> Iterator[ClosureWanted]:
    """The closures of a cell, lowest first, for each platform."""
    framework = library.layers[cell.framework.name]
    cuda = library.single("cuda")
    parts = components(matrix, framework)
    options = matrix.frameworks.get(framework.name)
    low = requirement_texts(cuda.requirements, cell, parts)
    middle = requirement_texts(framework.requirements, cell, parts)
    # What is built for the same CUDA, and comes from the same index.
    own = {canonicalize_name(Requirement(text).name) for text in middle}
    own |= {canonicalize_name(pair.package) for pair in framework.pairs}
    middle += framework.paired(cell.framework.version)
    middle += options.requirements if options is not None else ()
    top = model_requirements(matrix, cell.model)
    names = (cuda_name(matrix, library, cell), cell.framework.format(), model_name(cell.model))
    levels = [(names[0], (), low), (names[1], names[:1], middle)]
    levels += [(names[2], names[:2], top)] if top else []
    hashes: dict[str, tuple[tuple[str, str], ...]] = {}
    for level in apps.levels(matrix, library, cell, lambda t: requirement_texts(t, cell, parts)):
        levels.append((level.of, (*levels[-1][1], levels[-1][0]), level.requirements))
        hashes[level.of] = level.hashes
    mixed = parts_of_cuda.alone(cell.cuda, parts) if framework.fixes_cuda else ()
    for platform in platforms(matrix, library, cell, served):
        index = served.indexes.get((cell, platform), "")
        sources = tuple((name, index) for name in sorted(own)) if index else ()
        for of, under, requirements in levels:
            yield ClosureWanted(
                python=cell.python.format(),
                platform=platform,
                of=of,
                under=under,
                requirements=requirements,
                beside=middle if framework.fixes_cuda and not under else (),
                mixed=mixed if not under else (),
                stands_in_for=framework.stands_in_for if under or framework.fixes_cuda else (),
                hashes=hashes.get(of, ()),
                sources=sources,
            )


def gather(
    matrix: Matrix, library: Library, cells: Sequence[Cell], served: Served = PLAINLY
) -> Wanted:
    """All that these cells need."""
    tools = library.single("tools")
    oses = {cell.os for cell in cells}
    found = [matrix.bases[os] for os in {*oses, TOOLS} if os in matrix.bases]
    bases = {base.os: (base.suite, base.sources) for base in found}
    bases.setdefault(TOOLS, ("", TOOLS_SOURCES))
    layers = {layer.name: layer for cell in cells for layer in stack(library, cell.framework.name)}
    shared = [*library.single("base").os_packages, *matrix.images.os_packages]
    shared += [name for layer in layers.values() for name in layer.os_packages]
    pythons = {cell.python.format() for cell in cells}

    def packages_of(os: str) -> tuple[str, ...]:
        return tuple(sorted({*shared, *matrix.bases[os].os_packages}))

    return Wanted(
        bases=tuple(sorted((os, *base) for os, base in bases.items())),
        os_packages=tuple((os, packages_of(os)) for os in sorted(oses)),
        app_packages=apps.os_packages(matrix, cells, packages_of),
        layer_packages=(
            *apps.toolchain(matrix, library, cells),
            *(
                (name, layer.packages["debian"])
                for name, layer in sorted({**layers, tools.name: tools}.items())
                if "debian" in layer.packages
            ),
        ),
        pythons=tuple((python, matrix.pythons[python]) for python in sorted(pythons)),
        closures=tuple(
            sorted({one for cell in cells for one in closures(matrix, library, cell, served)})
        ),
        models=tuple(sorted({cell.model for cell in cells if _is_folder(matrix, cell.model)})),
        fetched=tuple(sorted({one for cell in cells for one in _fetched(matrix, cell.model)})),
        platforms=tuple(sorted(matrix.images.platforms)),
    )


def _is_folder(matrix: Matrix, model: str) -> bool:
    return model != NO_MODEL and isinstance(matrix.models[model], FolderModel)


def _fetched(matrix: Matrix, name: str) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    match matrix.models.get(name):
        case HubModel() as hub:
            yield name, source_of(hub), hub.revision, tuple(sorted(hub.files))
        case ArtifactModel() as artifact:
            yield name, source_of(artifact), artifact.ref.digest or artifact.ref.tag, ()
        case _:
            return


def source_of(model: FetchedModel) -> str:
    """Where a fetched model comes from, as a lock says it."""
    if isinstance(model, HubModel):
        return f"huggingface:{model.repository}"
    return f"oci:{model.ref.name}"


def digest(wanted: Wanted) -> str:
    """A hash over everything that is wanted: a lock for another one does not fit."""
    shape: Mapping[str, object] = {
        "bases": wanted.bases,
        "os-packages": wanted.os_packages,
        "layer-packages": wanted.layer_packages,
        "pythons": wanted.pythons,
        "closures": [
            (c.python, c.platform.format(), c.of, c.under, c.requirements, c.stands_in_for)
            + ((c.beside, c.mixed) if c.beside else ())
            + ((c.hashes,) if c.hashes else ())
            + ((c.sources,) if c.sources else ())
            for c in wanted.closures
        ],
        "models": wanted.models,
        "platforms": [platform.format() for platform in wanted.platforms],
        # Locks of projects without any stay as they are.
        **({"fetched": wanted.fetched} if wanted.fetched else {}),
        **({"app-packages": wanted.app_packages} if wanted.app_packages else {}),
    }
    text = json.dumps(shape, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def model_files(model: FolderModel) -> tuple[Path, ...]:
    """The files and links of a folder model that go into the image, sorted; its checks do not."""
    left_out = [path for path in (model.check, model.smoke) if path is not None]
    return tuple(
        path
        for path in sorted(model.path.rglob("*"))
        if (path.is_file() or path.is_symlink())
        and "__pycache__" not in path.relative_to(model.path).parts
        and not any(path.is_relative_to(out) for out in left_out)
    )


def model_digest(model: FolderModel) -> tuple[str, int]:
    """A hash over names, modes and contents of a model's files and its check, and their bytes.

    Units: bytes of what goes into the image, so without the check's.
    """
    total = hashlib.sha256()
    files = model_files(model)
    for path in (*files, *((model.check,) if model.check is not None else ())):
        total.update(f"{path.relative_to(model.path)}\0{_content(path)}\n".encode())
    size = sum(path.stat().st_size for path in files if not path.is_symlink())
    return f"sha256:{total.hexdigest()}", size


def _content(path: Path) -> str:
    if path.is_symlink():
        return f"link\0{path.readlink()}"
    with path.open("rb") as file:  # weights do not fit into memory
        content = hashlib.file_digest(file, "sha256").hexdigest()
    return f"{path.stat().st_mode & 0o100}\0{content}"
