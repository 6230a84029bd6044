"""What the catalog says, as types."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpulayers.record import ImageRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLayer:
    """A layer and in how many of the current images it is.

    Units: ``size_bytes`` is compressed.
    """

    digest: str
    step: str
    size_bytes: int
    images: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One image that can be pulled.

    Shape: ``tags`` are whole references that point at it, channels' tags first; ``channels`` are
    those whose tag it holds, lowest first; ``current`` is false for an image that neither a channel
    nor the last run has; ``wheels`` is empty where no bill of materials was kept.
    Units: ``own_bytes`` are compressed bytes that no other current image has.
    """

    image: ImageRecord
    tags: tuple[str, ...]
    channels: tuple[str, ...]
    current: bool
    wheels: Mapping[str, str]
    layers: tuple[SharedLayer, ...]
    own_bytes: int

    @property
    def pull(self) -> str:
        """The command that gets this very image, whatever becomes of its tags."""
        return f"docker pull {self.image.ref}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """Every image we know of.

    Shape: ``entries`` has the current ones first; ``broken`` are those the last run did not make;
    ``layers`` are those of the current images, those first that save most by being
    shared; ``name`` is the repository, "" where there is no image; ``started`` and ``exit_code``
    are the last run's; ``checked`` says whether the registry was asked what the tags point at.
    Units: compressed bytes of the current images; ``unique_bytes`` counts each layer once.
    """

    name: str
    channels: tuple[str, ...]
    entries: tuple[Entry, ...]
    broken: tuple[ImageRecord, ...]
    layers: tuple[SharedLayer, ...]
    unique_bytes: int
    sum_bytes: int
    started: str
    exit_code: int
    checked: bool

    @property
    def current(self) -> tuple[Entry, ...]:
        """The entries that a channel or the last run has."""
        return tuple(entry for entry in self.entries if entry.current)
