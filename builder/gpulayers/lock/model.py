"""What a lock file says: everything a build will use, by digest or hash."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpulayers.refs import Platform

# The index of wheels that say no other.
PLAIN_INDEX = "default"
# The closure with uv for a platform beside the first.
UV = "uv"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class LockedBase:
    """An OS base: the platform's manifest by digest, and the source that gave it.

    Shape: ``repository`` is ``HOST/PATH`` for a base that is pulled, "" for one that we made and
    keep below the project's own registry; ``suite`` is the Debian suite, "" where unknown;
    ``blanks`` are sorted names of its environment that images of it set to nothing.
    """

    os: str
    platform: Platform
    source: str
    repository: str
    digest: str
    suite: str
    blanks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Package:
    """A package of the OS's archive at one version, by the hash of its file."""

    name: str
    version: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class PackageSet:
    """Packages that one step installs.

    Shape: ``layer`` is a layer's name, or ``base`` with the ``os`` it is for.
    """

    layer: str
    os: str
    platform: Platform
    packages: tuple[Package, ...]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Wheel:
    """One wheel: its file, hash and size, and the index it came from by name, never by address."""

    file: str
    name: str
    version: str
    sha256: str
    size_bytes: int
    index: str


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Closure:
    """The wheels that a layer adds to those of the layers below it.

    Shape: ``of`` names the closure (``cuda==12.6 cublas,cudart``, ``torch==2.8.0``,
    ``model magika``); ``under`` are the closures below it, in the same words, lowest first;
    ``files`` are names of wheels, sorted.
    """

    python: str
    platform: Platform
    of: str
    under: tuple[str, ...]
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class LockedFile:
    """One file of a fetched model; its name may have folders in it."""

    name: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class LockedModel:
    """A model that is a folder or is fetched: the hash over its files, and their sum in bytes.

    Shape: of a folder nothing more. Of a fetched one, ``source`` is ``huggingface:ORG/NAME`` or
    ``oci:HOST/REPOSITORY``, ``revision`` a commit or the digest of a manifest; ``files`` are sorted
    by name.
    """

    name: str
    digest: str
    size_bytes: int
    source: str = ""
    revision: str = ""
    files: tuple[LockedFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class LockedPython:
    """Where a Python comes from: ``debian`` packages, or a ``standalone`` build at a version."""

    python: str
    source: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """A whole lock.

    Shape: every tuple is sorted; ``inputs`` is the hash of what the lock was made for, so that a
    lock that does not fit the project is seen; ``uv`` is the first platform's, the closures called
    ``uv`` have those of others; ``wheels`` maps a file name to the wheel.
    """

    inputs: str
    uv: Wheel
    bases: tuple[LockedBase, ...]
    packages: tuple[PackageSet, ...]
    pythons: tuple[LockedPython, ...]
    wheels: Mapping[str, Wheel]
    closures: tuple[Closure, ...]
    models: tuple[LockedModel, ...]
    # Each entry by its kind and what it is asked for by; a plan asks for some of them a cell.
    _entries: Mapping[Hashable, Any] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Make the entries to be found; of two with one name, the first."""
        entries: dict[Hashable, Any] = {}
        for base in self.bases:
            entries.setdefault((LockedBase, base.os, base.platform), base)
        for python in self.pythons:
            entries.setdefault((LockedPython, python.python), python)
        for model in self.models:
            entries.setdefault((LockedModel, model.name), model)
        for one in self.packages:
            entries.setdefault((PackageSet, one.layer, one.os, one.platform), one)
        for each in self.closures:
            entries.setdefault((Closure, each.python, each.platform, each.of, each.under), each)
            if each.of == UV:
                entries.setdefault((UV, each.platform), each)
        object.__setattr__(self, "_entries", entries)

    @property
    def indexes(self) -> tuple[str, ...]:
        """The names of the indexes beside the plain one that wheels come from, sorted."""
        return tuple(sorted({wheel.index for wheel in self.wheels.values()} - {PLAIN_INDEX}))

    def base(self, os: str, platform: Platform) -> LockedBase:
        """The base of an OS; KeyError when the lock is for another matrix."""
        found: LockedBase = self._entries[LockedBase, os, platform]
        return found

    def python(self, python: str) -> LockedPython:
        """Where a Python comes from; KeyError when the lock is for another matrix."""
        found: LockedPython = self._entries[LockedPython, python]
        return found

    def model(self, name: str) -> LockedModel:
        """A model that is a folder or is fetched; KeyError when the lock is for another matrix."""
        found: LockedModel = self._entries[LockedModel, name]
        return found

    def uv_for(self, platform: Platform) -> Wheel:
        """The wheel that brings uv into the build on a platform."""
        found: Closure | None = self._entries.get((UV, platform))
        return self.uv if found is None else self.wheels[found.files[0]]

    def package_set(self, layer: str, platform: Platform, *, os: str = "") -> tuple[Package, ...]:
        """The packages of a layer's step, empty where it has none."""
        found: PackageSet | None = self._entries.get((PackageSet, layer, os, platform))
        return () if found is None else found.packages

    def closure(
        self, python: str, platform: Platform, of: str, under: tuple[str, ...]
    ) -> tuple[Wheel, ...]:
        """The wheels that a layer adds; KeyError when the lock is for another matrix."""
        found: Closure = self._entries[Closure, python, platform, of, under]
        return tuple(self.wheels[file] for file in found.files)
