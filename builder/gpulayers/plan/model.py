"""What will be built: unique steps with content keys, and images as ordered lists of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpulayers.layer import Library
from gpulayers.lock.model import Lock, Package
from gpulayers.lock.wanted import PLAINLY, Served
from gpulayers.matrix.model import Cell, HealthCheck, Matrix
from gpulayers.plan.verdicts import Judging
from gpulayers.refs import Platform

# The check of what is installed, whose mark is the highest layer, and Docker's own for a WORKDIR,
# which is empty.
IDENTITY = "identity"
WORKDIR = "workdir"
Named = tuple[tuple[str, tuple[str, ...]], ...]
Value = str | int | bool | tuple[str, ...] | tuple[Package, ...] | Named


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One filesystem tree that images share.

    Shape: ``stage`` is its name in every Dockerfile; ``values`` fill the layer's template;
    ``needs`` are stages that must stand before its own; ``context`` is a folder that it reads
    (name, path); ``secrets`` are the ids of those that it may read, beside the machine's settings.
    Units: ``size_bytes`` is what its inputs weigh as downloads, 0 where unknown.
    """

    name: str
    layer: str
    stage: str
    key: str
    template: Path
    values: Mapping[str, Value]
    needs: tuple[str, ...]
    context: tuple[str, Path] | None
    size_bytes: int
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What an image says of itself; ``user`` is ``UID:GID``.

    Shape: ``ports`` are ``NUMBER/KIND``; ``workdir`` is "" where nothing is said.
    """

    env: Mapping[str, str]
    labels: Mapping[str, str]
    user: str
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    ports: tuple[str, ...] = ()
    workdir: str = ""
    health_check: HealthCheck | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the identity check must find inside the image: all of it from the cell.

    Shape: ``distribution`` is the framework's wheel, ``module`` what it is imported as; ``machine``
    is what ``uname -m`` prints there; ``duplicate_mb`` is how much content may stand there twice.
    """

    python: str
    machine: str
    cuda: str
    distribution: str
    module: str
    version: str
    duplicate_mb: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """One image: its cell, names, steps from the lowest, and what must be true of it.

    Shape: ``target`` is its name in the bake file; ``base`` is an image reference by digest;
    ``tools`` is the step that the others work with and that is no part of it, ``tools_base`` what
    that stands on; ``wheels`` maps a package to the version that the lock installs; ``smoke`` are
    check files in the order of the layers; ``indexes`` are names of those beside the plain one that
    its wheels come from.
    """

    cell: Cell
    platform: Platform
    target: str
    tag: str
    key: str
    base: str
    tools: Step
    tools_base: str
    steps: tuple[Step, ...]
    config: Config
    expected: Expected
    wheels: Mapping[str, str]
    smoke: tuple[Path, ...]
    indexes: tuple[str, ...] = ()

    @property
    def layer_names(self) -> tuple[str, ...]:
        """What the layers above the base are called, lowest first: one a step, and the rest."""
        own = (step.name for step in self.steps)
        return (*own, *((WORKDIR,) if self.config.workdir else ()), IDENTITY)

    @property
    def key12(self) -> str:
        """The start of the key, as tags show it."""
        return self.key[:12]

    @property
    def staging(self) -> str:
        """The tag that it waits under until its gates passed; nobody pulls by it."""
        return f"staging-{self.key12}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Images in the order of the cells, their unique steps in the order of first use.

    Shape: no target is there twice; ``tools`` is that of the first platform.
    """

    images: tuple[Image, ...]
    steps: tuple[Step, ...]
    tools: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a plan is made from.

    Shape: ``root`` is the registry and path that all images are below; ``models`` is the folder
    with the files of fetched models, below the project's; ``served`` is what facts say of the
    cells' wheels; ``judging`` is of the matrix, None to have one made. ``trees``, ``hashes`` (of
    templates) and ``steps`` keep what was worked out already: cells have most of it in common.
    """

    matrix: Matrix
    library: Library
    lock: Lock
    root: str
    trees: dict[tuple[Path, tuple[str, ...]], tuple[str, int]] = field(
        default_factory=dict, compare=False, repr=False
    )
    hashes: dict[Path, tuple[str, ...]] = field(default_factory=dict, compare=False, repr=False)
    steps: dict[tuple[object, ...], tuple[Step, ...]] = field(
        default_factory=dict, compare=False, repr=False
    )
    models: Path = Path(".gpulayers/models")
    served: Served = PLAINLY
    judging: Judging | None = field(default=None, compare=False, repr=False)


def layer_steps(image: Image, count: int) -> tuple[str, ...]:
    """What each of an image's layers is called, lowest first: ``base`` for those of the OS.

    Shape: ``count`` is how many layers it has in all.
    """
    names = image.layer_names
    of_base = count - len(names)
    return (*(("base",) * max(0, of_base)), *names[max(0, -of_base) :])
