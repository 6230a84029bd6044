"""What an inspection finds, as types and as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gpulayers.fatbin import Code

# Layers of more are read only when asked for: CUDA's weigh half a gigabyte each.
CAP_BYTES = 64 * 10**6
KEY_LABEL = "io.gpulayers.key"
WHEEL_LABEL = "io.gpulayers.wheel."


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A layer, and who brought it.

    Shape: ``owner`` is a step of ours (``base`` for the OS) or what the image's history says;
    ``unread`` says why its files are not known, "" where they are.
    Units: ``size_bytes`` is compressed.
    """

    digest: str
    size_bytes: int
    owner: str
    unread: str


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Wheel:
    """An installed Python package.

    Shape: ``owner`` is its layer's; ``source`` tells how it is known: its files were seen, a label
    of ours names it, or the bill of materials of a scan does.
    """

    name: str
    version: str
    owner: str
    source: Literal["files", "label", "sbom"]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Library:
    """A library of CUDA or its driver; ``size_bytes`` is unpacked.

    Shape: ``is_driver`` tells that it belongs to the host's driver and hides the host's own.
    """

    path: str
    size_bytes: int
    owner: str
    is_driver: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """All that was found of one image.

    Shape: ``key`` is "" for images that are not ours; ``layers`` run from the base upwards; wheels
    and libraries are sorted; ``pythons`` maps a folder (``opt/python/lib/python3.11``) to its
    release; ``glibc`` is a release, ``system`` an OS as ``debian12``, both "" where not seen;
    ``code`` maps files that are not CUDA's own to the GPU code in them, where it was asked for.
    """

    name: str
    digest: str
    platform: str
    created: str
    key: str
    user: str
    working_dir: str
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    env: Mapping[str, str]
    labels: Mapping[str, str]
    layers: tuple[Layer, ...]
    wheels: tuple[Wheel, ...]
    libraries: tuple[Library, ...]
    pythons: Mapping[str, str]
    glibc: str
    system: str
    code: Mapping[str, Code]

    @property
    def size_bytes(self) -> int:
        """Compressed bytes of all layers, each counted once."""
        return sum({layer.digest: layer.size_bytes for layer in self.layers}.values())


def format_json(found: Inspected) -> dict[str, object]:
    """An image as ``inspect --json`` has it."""
    return {
        "name": found.name,
        "digest": found.digest,
        "platform": found.platform,
        "created": found.created,
        "key": found.key,
        "user": found.user,
        "working_dir": found.working_dir,
        "entrypoint": list(found.entrypoint),
        "command": list(found.command),
        "bytes": found.size_bytes,
        "env": dict(found.env),
        "labels": dict(found.labels),
        "layers": [
            {"digest": x.digest, "bytes": x.size_bytes, "owner": x.owner, "unread": x.unread}
            for x in found.layers
        ],
        "wheels": [
            {"name": x.name, "version": x.version, "owner": x.owner, "source": x.source}
            for x in found.wheels
        ],
        "cuda_libraries": [
            {"path": x.path, "bytes": x.size_bytes, "owner": x.owner, "driver": x.is_driver}
            for x in found.libraries
        ],
        "pythons": dict(found.pythons),
        "glibc": found.glibc,
        "system": found.system,
    }
