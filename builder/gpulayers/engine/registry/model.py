"""What a registry holds, as types: descriptors, manifests, indexes, image configs."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from gpulayers.refs import Platform

OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
DOCKER_INDEX = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
INDEX_TYPES = frozenset({OCI_INDEX, DOCKER_INDEX})
MANIFEST_TYPES = frozenset({OCI_MANIFEST, DOCKER_MANIFEST})

_ATTESTATION = ("vnd.docker.reference.type", "attestation-manifest")


def digest_of(raw: bytes) -> str:
    """The digest of some bytes, ``sha256:`` and 64 hex digits."""
    return f"sha256:{hashlib.sha256(raw).hexdigest()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """What a manifest or index says about one blob or manifest.

    Shape: ``platform`` is None where none is said; ``annotations`` may be empty.
    """

    media_type: str
    digest: str
    size_bytes: int
    platform: Platform | None
    annotations: Mapping[str, str]

    @property
    def is_attestation(self) -> bool:
        """Whether this is BuildKit's attestation entry and not an image.

        Source: https://docs.docker.com/build/metadata/attestations/attestation-storage/
        (read 2025-12-01).
        """
        name, value = _ATTESTATION
        unknown = Platform("unknown", "unknown")
        return self.annotations.get(name) == value or self.platform == unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One image manifest, with the very bytes that its digest is of.

    Shape: ``layers`` run from the base upwards.
    """

    raw: bytes
    media_type: str
    digest: str
    config: Descriptor
    layers: tuple[Descriptor, ...]
    annotations: Mapping[str, str]

    @property
    def size_bytes(self) -> int:
        """Compressed bytes of a full pull; a layer that comes twice is counted once."""
        return sum({each.digest: each.size_bytes for each in (self.config, *self.layers)}.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """One image index, with the very bytes that its digest is of; attestations are listed too."""

    raw: bytes
    media_type: str
    digest: str
    manifests: tuple[Descriptor, ...]

    @property
    def images(self) -> tuple[Descriptor, ...]:
        """The entries that are images, in their order."""
        return tuple(each for each in self.manifests if not each.is_attestation)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageConfig:
    """What an image's config blob says.

    Shape: ``created`` is RFC 3339 or empty; ``history`` holds each entry's ``created_by``, oldest
    first, empty where none is said; ``made_by`` the same of those entries that made a layer; of an
    environment variable that comes twice, the last counts.
    """

    raw: bytes
    architecture: str
    os: str
    created: str
    env: Mapping[str, str]
    labels: Mapping[str, str]
    user: str
    working_dir: str
    entrypoint: tuple[str, ...]
    cmd: tuple[str, ...]
    diff_ids: tuple[str, ...]
    history: tuple[str, ...]
    made_by: tuple[str, ...] = ()

    @property
    def history_count(self) -> int:
        """How many entries the history has, those without a layer included."""
        return len(self.history)
