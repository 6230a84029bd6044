"""What a matrix.toml says, as types."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from gpulayers.matrix.lines import Source
from gpulayers.refs import ImageRef, Platform
from gpulayers.versions import MajorMinor, Pin

AXES = ("os", "python", "cuda", "framework", "model")
NO_MODEL = "none"
# [base.tools] is what build steps work on; no image stands on it.
TOOLS_BASE = "tools"
# The index that is asked where nothing else is said, as the compatibility facts call it.
PLAIN_INDEX = "pypi"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Cell:
    """One combination of axis values."""

    os: str
    python: MajorMinor
    cuda: MajorMinor
    framework: Pin
    model: str

    def values(self) -> dict[str, str]:
        """Axis name to the value as matrix.toml spells it, in the order of ``AXES``."""
        return {
            "os": self.os,
            "python": self.python.format(),
            "cuda": self.cuda.format(),
            "framework": self.framework.format(),
            "model": self.model,
        }

    def format(self) -> str:
        """``os=… python=… cuda=… framework=… model=…``."""
        return " ".join(f"{axis}={value}" for axis, value in self.values().items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """The values of each axis, in the order they were written, without doubles."""

    os: tuple[str, ...]
    python: tuple[MajorMinor, ...]
    cuda: tuple[MajorMinor, ...]
    framework: tuple[Pin, ...]
    model: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclude:
    """A choice of ours: cells that match every axis named here are not built.

    Shape: ``match`` maps an axis to a glob (``fnmatch``), commas separating alternatives; ``line``
    is where it stands in matrix.toml.
    """

    match: Mapping[str, str]
    reason: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A kind of machine that the images must run on."""

    name: str
    driver: str
    gpus: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """Where an OS base comes from: sources of equivalent content, tried in order.

    Shape: a source is an image reference, or ``bootstrap:SUITE``; ``suite`` is the Debian suite of
    images without apt sources of their own, else ""; ``os_packages`` are added to every image on
    this base.
    """

    os: str
    sources: tuple[str, ...]
    suite: str
    os_packages: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderModel:
    """A model that is a folder of the project.

    Shape: ``path`` and ``smoke`` are absolute; ``check`` is a Python file inside the folder that is
    run in the build step over the copied files and stops it with any exit status but 0, or None.
    """

    name: str
    path: Path
    check: Path | None
    smoke: Path | None
    requirements: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageModel:
    """A model that is carried by a package of a Python index, at one exact version."""

    name: str
    package: Pin
    smoke: Path | None
    requirements: tuple[str, ...]


Place = Literal["layer", "reference"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HubModel:
    """A model of a Hugging Face repository, at a revision that the lock makes a commit.

    Shape: ``files`` are globs over the repository's files, empty for all of them; ``place`` says
    whether the files go into the image, or are only named in it; ``check`` as in a folder model,
    but a file anywhere in the project.
    """

    name: str
    repository: str
    revision: str
    files: tuple[str, ...]
    place: Place
    check: Path | None
    smoke: Path | None
    requirements: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactModel:
    """A model of an OCI artifact, whose layers are its files; the rest as in ``HubModel``."""

    name: str
    ref: ImageRef
    place: Place
    check: Path | None
    smoke: Path | None
    requirements: tuple[str, ...]


FetchedModel = HubModel | ArtifactModel
Model = FolderModel | PackageModel | FetchedModel


Flavour = Literal["runtime", "devel"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheck:
    """How an engine asks a running container whether it is well.

    Shape: ``command`` is run as it stands, without a shell.
    Units: seconds; ``start_s`` is how long after the start no failure counts.
    """

    command: tuple[str, ...]
    interval_s: int
    timeout_s: int
    start_s: int
    retries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """What the project itself puts on top of images.

    Shape: ``match`` maps an axis to a glob, as in ``Exclude``, empty for all images; paths are
    absolute, ``extensions`` are folders of Python projects that have to be compiled; ``leave_out``
    are patterns as in a ``.dockerignore``; ``ports`` are ``NUMBER/KIND``; ``user`` and ``workdir``
    are "" where nothing is said.
    """

    name: str
    match: Mapping[str, str]
    flavour: Flavour
    os_packages: tuple[str, ...]
    requirements: tuple[str, ...]
    requirements_file: Path | None
    extensions: tuple[Path, ...]
    source: Path | None
    leave_out: tuple[str, ...]
    target: str
    env: Mapping[str, str]
    ports: tuple[str, ...]
    user: str
    workdir: str
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    health_check: HealthCheck | None
    smoke: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkOptions:
    """What the project changes of a framework's layer.

    Shape: ``cuda_components`` None means the layer's own list; ``requirements`` are added to it;
    ``indexes`` are names of the indexes that its own wheels may come from, in their order.
    """

    cuda_components: tuple[str, ...] | None
    requirements: tuple[str, ...]
    indexes: tuple[str, ...] = (PLAIN_INDEX,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that an image and a layer may weigh; MB = 10^6 compressed bytes; None: no limit.

    Shape: ``growth_mb`` is how much heavier than the released image one may be; ``duplicate_mb``
    how much content may stand twice in it, unpacked.
    """

    image_mb: int | None = None
    layer_mb: int | None = None
    growth_mb: int | None = None
    duplicate_mb: int = 0

    @property
    def has_limits(self) -> bool:
        """Whether there is any limit of weight."""
        return (self.image_mb, self.layer_mb, self.growth_mb) != (None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How steps are cut.

    Shape: a wheel of at least ``big_wheel_mb`` is a step of its own, while an image has at most
    ``max_layers`` layers; files of a fetched model share a step up to ``model_layer_mb``.
    """

    big_wheel_mb: int
    max_layers: int
    model_layer_mb: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """How images are called: ``REGISTRY/NAME:TAG``.

    Shape: ``tag`` is a template over the axes, or None for the default one; ``channels`` run from
    lowest to highest; ``user`` is what the image runs as (``UID:GID``).
    """

    name: str
    registry: str
    tag: str | None
    channels: tuple[str, ...]
    platforms: tuple[Platform, ...]
    os_packages: tuple[str, ...]
    user: str
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A whole matrix.toml, checked as far as it can be without the layer library.

    Shape: ``bases``, ``models``, ``apps`` and ``frameworks`` have what the file has tables for,
    ``pythons`` has every Python that a cell can have; ``source`` gives the lines for messages.
    """

    path: Path
    images: Images
    fleet: tuple[Host, ...]
    axes: Axes
    excludes: tuple[Exclude, ...]
    includes: tuple[Cell, ...]
    bases: Mapping[str, Base]
    pythons: Mapping[str, tuple[str, ...]]
    models: Mapping[str, Model]
    apps: Mapping[str, App]
    frameworks: Mapping[str, FrameworkOptions]
    budget: Budget
    recipe: Recipe
    source: Source = field(default=Source(file="matrix.toml", lines={}), compare=False, repr=False)
