"""What a lock file says: everything a build will use, by digest or hash."""

from collections.abc import Mapping
from dataclasses import dataclass

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

    @property
    def indexes(self) -> tuple[str, ...]:
        """The names of the indexes beside the plain one that wheels come from, sorted."""
        return tuple(sorted({wheel.index for wheel in self.wheels.values()} - {PLAIN_INDEX}))

    def base(self, os: str, platform: Platform) -> LockedBase:
        """The base of an OS; KeyError when the lock is for another matrix."""
        for base in self.bases:
            if (base.os, base.platform) == (os, platform):
                return base
        raise KeyError(os)

    def python(self, python: str) -> LockedPython:
        """Where a Python comes from; KeyError when the lock is for another matrix."""
        for entry in self.pythons:
            if entry.python == python:
                return entry
        raise KeyError(python)

    def model(self, name: str) -> LockedModel:
        """A model that is a folder or is fetched; KeyError when the lock is for another matrix."""
        for entry in self.models:
            if entry.name == name:
                return entry
        raise KeyError(name)

    def uv_for(self, platform: Platform) -> Wheel:
        """The wheel that brings uv into the build on a platform."""
        for entry in self.closures:
            if (entry.of, entry.platform) == (UV, platform):
                return self.wheels[entry.files[0]]
        return self.uv

    def package_set(self, layer: str, platform: Platform, *, os: str = "") -> tuple[Package, ...]:
        """The packages of a layer's step, empty where it has none."""
        for entry in self.packages:
            if (entry.layer, entry.os, entry.platform) == (layer, os, platform):
                return entry.packages
        return ()

    def closure(
        self, python: str, platform: Platform, of: str, under: tuple[str, ...]
    ) -> tuple[Wheel, ...]:
        """The wheels that a layer adds; KeyError when the lock is for another matrix."""
        for entry in self.closures:
            if (entry.python, entry.platform, entry.of, entry.under) == (
                python,
                platform,
                of,
                under,
            ):
                return tuple(self.wheels[file] for file in entry.files)
        raise KeyError(of)
