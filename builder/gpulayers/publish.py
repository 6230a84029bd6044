"""Moving names to images that passed: the very bytes under new tags, checked before and after."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gpulayers.engine.registry import Index, Manifest, RegistryError, Trouble
from gpulayers.errors import ProjectError
from gpulayers.matrix.model import Budget
from gpulayers.refs import ImageRef, is_tag

KEY_CHARS = 12
MB = 10**6
STAGING = "staging-"
_CONTENT = re.compile(rf".+-[0-9a-f]{{{KEY_CHARS}}}")


class TagStore(Protocol):
    """What promotion needs of a registry."""

    def resolve(self, ref: ImageRef) -> str | None:
        """The digest that a reference points at, or None."""

    def raw(self, ref: ImageRef) -> Manifest | Index:
        """The manifest or index with its bytes."""

    def put_manifest(self, ref: ImageRef, raw: bytes, media_type: str) -> str:
        """Store the bytes under a tag and return their digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """What is to be written so that all tags point at one digest.

    Shape: ``tags`` are all wanted ones, ``missing`` those to be written, content tags first, so
    that the names people follow move last.
    """

    source: ImageRef
    document: Manifest | Index
    tags: tuple[str, ...]
    missing: tuple[str, ...]


def staging_tag(key: str) -> str:
    """The tag that an image waits under until its gates passed."""
    return f"{STAGING}{_key12(key)}"


def is_content_tag(tag: str) -> bool:
    """Whether a tag names content (``…-KEY12``) and so never moves."""
    return _CONTENT.fullmatch(tag) is not None and not tag.startswith(STAGING)


def tags_for(tag: str, channel: str, key12: str, channels: Sequence[str]) -> tuple[str, ...]:
    """The tags of an image in a channel: the content tag, then the channel's.

    Shape: ``channels`` run from lowest to highest; the highest is the bare tag, the others are
    ``TAG-CHANNEL``.
    Raises: ProjectError: an unknown channel, or a tag beyond the grammar of registries.
    """
    if channel not in channels:
        msg = f"wanted a channel of {', '.join(channels)}, found {channel!r}"
        raise ProjectError(msg, hint="channels are named in matrix.toml under [images]")
    moving = tag if channel == channels[-1] else f"{tag}-{channel}"
    tags = (f"{tag}-{_key12(key12)}", moving)
    for each in tags:
        if not is_tag(each):
            msg = f"{each!r} ({len(each)} characters): wanted a tag of at most 128 of A-Za-z0-9_.-"
            raise ProjectError(msg, hint="shorten [images] tag or the model's name")
    return tags


def promote(registry: TagStore, digest_ref: ImageRef, tags: Sequence[str]) -> tuple[ImageRef, ...]:
    """Let all tags point at a digest, and return them as references.

    Raises: RegistryError: a content tag holds another digest (then nothing was written), the
        registry could not be asked, or something else stands under a tag afterwards.
    """
    return carry_out(registry, prepare(registry, digest_ref, tags))


def prepare(registry: TagStore, digest_ref: ImageRef, tags: Sequence[str]) -> Promotion:
    """Read all that a promotion needs and check it, without writing.

    To move many images together, prepare all before the first is carried out.

    Raises: RegistryError: no digest in the reference, nothing behind it, or a content tag that
        holds another digest.
    """
    if not digest_ref.digest:
        msg = f"cannot promote {digest_ref.format()}: wanted a digest, found a tag"
        raise RegistryError(
            msg, trouble=Trouble.DIGEST, hint="take the digest from the build's report"
        )
    document = registry.raw(digest_ref)
    held = {tag: registry.resolve(digest_ref.with_tag(tag)) for tag in dict.fromkeys(tags)}
    taken = [tag for tag, digest in held.items() if is_content_tag(tag) and digest]
    for tag in taken:
        if held[tag] != document.digest:
            _refuse_taken(digest_ref, tag, held[tag] or "")
    missing = [tag for tag, digest in held.items() if digest != document.digest]
    return Promotion(
        source=digest_ref,
        document=document,
        tags=tuple(held),
        missing=tuple(sorted(missing, key=lambda tag: not is_content_tag(tag))),
    )


def carry_out(registry: TagStore, promotion: Promotion) -> tuple[ImageRef, ...]:
    """Write the missing tags, see that all point at the digest, and return them as references.

    Raises: RegistryError: a tag was not taken, or points at something else; it names the tags
        that had moved by then.
    """
    moved: list[str] = []
    for tag in promotion.missing:
        ref = promotion.source.with_tag(tag)
        try:
            registry.put_manifest(ref, promotion.document.raw, promotion.document.media_type)
            _see(registry, ref, promotion.document.digest)
        except RegistryError as error:
            _refuse_rest(error, promotion, moved)
        moved.append(tag)
    return tuple(promotion.source.with_tag(tag) for tag in promotion.tags)


def size_violations(manifest: Manifest, budget: Budget) -> tuple[str, ...]:
    """What of an image is over its budget, a sentence each; empty: nothing."""
    return check_limits(manifest, layer_mb=budget.layer_mb, image_mb=budget.image_mb)


def check_limits(
    manifest: Manifest, *, layer_mb: int | None, image_mb: int | None
) -> tuple[str, ...]:
    """What of an image is over these limits, a sentence each; layers from the base upwards.

    Units: MB = 10^6 compressed bytes, as in the manifest; None is no limit.
    """
    found = [
        f"layer {number} of {len(manifest.layers)} ({layer.digest}) weighs"
        f" {_mb(layer.size_bytes)}, over the layer budget of {layer_mb} MB"
        for number, layer in enumerate(manifest.layers, start=1)
        if layer_mb is not None and layer.size_bytes > layer_mb * MB
    ]
    if image_mb is not None and manifest.size_bytes > image_mb * MB:
        found.append(
            f"the image weighs {_mb(manifest.size_bytes)}, over the image budget of {image_mb} MB"
        )
    return tuple(found)


def fits(layers: Sequence[int], budget: Budget) -> bool:
    """Whether layers of these sizes are within the limits of layer and image, beyond doubt.

    Shape: an image of which the manifest has to tell whether it fits does not.
    Units: compressed bytes.
    """
    layer_mb, image_mb = budget.layer_mb, budget.image_mb
    is_over = layer_mb is not None and max(layers, default=0) > layer_mb * MB
    # A config, which is no layer, weighs some kB.
    return not (is_over or (image_mb is not None and sum(layers) + MB > image_mb * MB))


def _key12(key: str) -> str:
    return key.removeprefix("sha256:")[:KEY_CHARS]


def _mb(size_bytes: int) -> str:
    """Megabytes, rounded up, so that what is over a limit never reads as equal to it."""
    return f"{-(-size_bytes * 10 // MB) / 10:.1f} MB"


def _see(registry: TagStore, ref: ImageRef, digest: str) -> None:
    found = registry.resolve(ref)
    if found != digest:
        msg = f"{ref.format()}: wanted {digest} after the promotion, found {found or 'nothing'}"
        raise RegistryError(
            msg, trouble=Trouble.DIGEST, hint="somebody else moved it: promote again, alone"
        )


def _refuse_taken(source: ImageRef, tag: str, found: str) -> None:
    msg = (
        f"{source.with_tag(tag).format()} names content and already points at {found},"
        f" wanted {source.digest}; no tag was moved"
    )
    hint = "the same key gave other bytes: find out why the build is not repeatable"
    raise RegistryError(msg, trouble=Trouble.IMMUTABLE_TAG, hint=hint)


def _refuse_rest(error: RegistryError, promotion: Promotion, moved: Sequence[str]) -> None:
    left = [tag for tag in promotion.missing if tag not in moved]
    msg = (
        f"{error}; of the tags of {promotion.source.name}, moved: {', '.join(moved) or 'none'};"
        f" not moved: {', '.join(left)}"
    )
    raise RegistryError(msg, trouble=error.trouble, status=error.status, hint=error.hint) from error
