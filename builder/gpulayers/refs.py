"""Names of things in a registry: image references, digests, platforms, tags."""

import re
from dataclasses import dataclass
from typing import Self

from gpulayers.errors import ProjectError

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
# The OCI distribution specification, "Pulling manifests".
TAG = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}")
REPOSITORY = re.compile(r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*")


class RefError(ProjectError):
    """A text is not an image reference, digest or platform."""


def is_digest(text: str) -> bool:
    """Whether the text is ``sha256:`` and 64 hex digits."""
    return DIGEST.fullmatch(text) is not None


def is_tag(text: str) -> bool:
    """Whether the text fits the OCI tag grammar (at most 128 characters)."""
    return TAG.fullmatch(text) is not None


def is_repository(text: str) -> bool:
    """Whether the text fits the OCI repository grammar (no registry in it)."""
    return REPOSITORY.fullmatch(text) is not None


def _is_host(text: str) -> bool:
    return "." in text or ":" in text or text == "localhost"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRef:
    """A reference to an image: registry, repository, then tag or digest or both, each may be empty.

    Shape: Docker's short names are made whole (``debian`` is ``docker.io/library/debian``).
    """

    registry: str
    repository: str
    tag: str = ""
    digest: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``[HOST[:PORT]/]REPOSITORY[:TAG][@DIGEST]``.

        Raises: RefError: the text fits no part of that grammar.
        """
        rest, _, digest = text.partition("@")
        if digest and not is_digest(digest):
            msg = f"{text!r}: the part after @ is not sha256 and 64 hex digits"
            raise RefError(msg)
        first, slash, path = rest.partition("/")
        registry, path = (first, path) if slash and _is_host(first) else ("docker.io", rest)
        repository, colon, tag = path.partition(":")
        if registry == "docker.io" and "/" not in repository:
            repository = f"library/{repository}"
        if not is_repository(repository) or (colon and not is_tag(tag)):
            msg = f"{text!r} is not an image reference (HOST/REPOSITORY:TAG or …@DIGEST)"
            raise RefError(msg)
        return cls(registry=registry, repository=repository, tag=tag, digest=digest)

    @property
    def name(self) -> str:
        """Registry and repository, without tag and digest."""
        return f"{self.registry}/{self.repository}"

    def format(self) -> str:
        """The text that ``parse`` reads back to the same reference."""
        text = self.name
        text += f":{self.tag}" if self.tag else ""
        return text + (f"@{self.digest}" if self.digest else "")

    def with_tag(self, tag: str) -> "ImageRef":
        """The same repository at a tag."""
        return ImageRef(registry=self.registry, repository=self.repository, tag=tag)

    def with_digest(self, digest: str) -> "ImageRef":
        """The same repository at a digest."""
        return ImageRef(registry=self.registry, repository=self.repository, digest=digest)


@dataclass(frozen=True, slots=True, order=True)
class Platform:
    """An OCI platform: ``linux/amd64``, ``linux/arm64``."""

    os: str
    architecture: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``OS/ARCHITECTURE``; only the Linux ones that GPU wheels exist for are known.

        Raises: RefError: another platform.
        """
        if text not in {"linux/amd64", "linux/arm64"}:
            msg = f"unknown platform {text!r}: wanted linux/amd64 or linux/arm64"
            raise RefError(msg)
        os, _, architecture = text.partition("/")
        return cls(os, architecture)

    def format(self) -> str:
        """``OS/ARCHITECTURE``."""
        return f"{self.os}/{self.architecture}"

    @property
    def machine(self) -> str:
        """What ``uname -m`` prints there (``x86_64``, ``aarch64``)."""
        return {"amd64": "x86_64", "arm64": "aarch64"}[self.architecture]
