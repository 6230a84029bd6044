"""Images of which nothing changed: the registry's tags and our records say all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gpulayers import publish
from gpulayers.catalog.parse import parse_image
from gpulayers.engine.registry import Registry
from gpulayers.matrix.model import Budget
from gpulayers.plan.model import Image
from gpulayers.record import GATES, NO_BUDGET, ImageRecord, Records
from gpulayers.refs import ImageRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where images are, and what is known of them.

    Shape: ``repository`` is that of all images; ``channel`` is the one whose tags are to point at
    them, "" for none; ``channels`` run from the lowest to the highest; ``budget`` is that of today.
    """

    repository: ImageRef
    registry: Registry
    records: Records
    channel: str
    channels: Sequence[str]
    budget: Budget


def known(
    place: Place, passed: Mapping[str, str], images: Sequence[Image]
) -> dict[str, ImageRecord]:
    """The records, by key, of images that need neither gates nor tags: both are as they should be.

    Shape: ``passed`` maps keys to digests of images that have passed their gates.
    Raises: RemoteError: the registry cannot be asked; ProjectError: a record is of another schema.
    """
    records = {i.key: _record(place, i, passed[i.key]) for i in images if i.key in passed}
    found = {key: record for key, record in records.items() if record is not None}
    if not place.channel:
        return {key: replace(record, tags=()) for key, record in found.items()}
    tags = {i.key: _tags(place, i) for i in images if i.key in found}
    refs = {key: place.repository.with_tag(each[-1]) for key, each in tags.items()}
    digests = place.registry.resolve_many(refs.values())
    return {
        key: replace(record, tags=tags[key])
        for key, record in found.items()
        if digests[refs[key].format()] == record.digest
    }


def _tags(place: Place, image: Image) -> tuple[str, ...]:
    return publish.tags_for(image.tag, place.channel, image.key12, place.channels)


def _record(place: Place, image: Image, digest: str) -> ImageRecord | None:
    """What was noted of an image when it was made, if all of it was, as that of a later run."""
    found = parse_image(place.records.read(digest))
    if found is None or found.failure is not None or found.gates.keys() != set(GATES):
        return None
    if (found.digest, found.key, found.tag) != (digest, image.key, image.tag) or not found.layers:
        return None
    if not publish.fits([layer.size_bytes for layer in found.layers], place.budget):
        return None
    if (found.gates["size"].cls == NO_BUDGET) == place.budget.has_limits:
        return None
    ref = place.repository.with_digest(digest)
    return replace(found, ref=ref.format(), cell=image.cell.values(), status="cached")
