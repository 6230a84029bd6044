"""The catalog of a state: tags with their holders, layers with how many images share each."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpulayers.catalog.model import Catalog, Entry, SharedLayer
from gpulayers.catalog.state import State
from gpulayers.record import ImageRecord, Layer
from gpulayers.refs import ImageRef

KEY_CHARS = 12


@dataclass(frozen=True, slots=True)
class _Ground:
    state: State
    channels: Sequence[str]
    held: Mapping[str, tuple[ImageRef, ...]]
    layers: Mapping[str, SharedLayer]


def make(state: State, channels: Sequence[str], *, checked: bool = False) -> Catalog:
    """The catalog of all images in a state.

    Shape: ``channels`` run from lowest to highest; the highest is the bare tag.
    """
    held = _held(state)
    last = {image.digest for image in state.last}
    current = [i for i in state.images if i.digest in last or _channels(i, held, channels)]
    layers = _layers(current)
    ground = _Ground(state, channels, held, layers)
    fresh = {image.digest for image in current}
    older = [image for image in state.images if image.digest not in fresh]
    return Catalog(
        name=ImageRef.parse(state.images[0].ref).name if state.images else "",
        channels=tuple(channels),
        entries=(
            *(_entry(image, ground, current=True) for image in current),
            *(_entry(image, ground, current=False) for image in older),
        ),
        broken=tuple(image for image in state.last if not image.digest),
        layers=tuple(sorted(layers.values(), key=_most_shared)),
        unique_bytes=sum(layer.size_bytes for layer in layers.values()),
        sum_bytes=sum(image.size_bytes for image in current),
        started=state.started,
        exit_code=state.exit_code,
        checked=checked,
    )


def _held(state: State) -> Mapping[str, tuple[ImageRef, ...]]:
    """Digest to the tags that point at it."""
    held: dict[str, list[ImageRef]] = {}
    for ref, digest in sorted(state.holders.items()):
        held.setdefault(digest, []).append(ImageRef.parse(ref))
    return {digest: tuple(refs) for digest, refs in held.items()}


def _channels(
    image: ImageRecord, held: Mapping[str, tuple[ImageRef, ...]], channels: Sequence[str]
) -> tuple[str, ...]:
    tags = {ref.tag for ref in held.get(image.digest, ())}
    return tuple(channel for channel in channels if channel_tag(image, channel, channels) in tags)


def channel_tag(image: ImageRecord, channel: str, channels: Sequence[str]) -> str:
    """The tag that a channel moves: plain for the highest, else ``TAG-CHANNEL``."""
    return image.tag if channel == channels[-1] else f"{image.tag}-{channel}"


def _layers(images: Sequence[ImageRecord]) -> Mapping[str, SharedLayer]:
    every = {layer.digest: layer for image in images for layer in image.layers}
    counts = Counter(digest for image in images for digest in {it.digest for it in image.layers})
    return {digest: _shared(layer, counts[digest]) for digest, layer in every.items()}


def _shared(layer: Layer, images: int) -> SharedLayer:
    return SharedLayer(
        digest=layer.digest, step=layer.step, size_bytes=layer.size_bytes, images=images
    )


def _most_shared(layer: SharedLayer) -> tuple[int, int, str, str]:
    saved = layer.size_bytes * (layer.images - 1)
    return (-saved, -layer.size_bytes, layer.step, layer.digest)


def _entry(image: ImageRecord, ground: _Ground, *, current: bool) -> Entry:
    layers = tuple(_found(layer, ground.layers) for layer in image.layers)
    alone = {layer.digest: layer.size_bytes for layer in layers if layer.images == 1}
    return Entry(
        image=image,
        tags=tuple(ref.format() for ref in _ordered(image, ground)),
        channels=_channels(image, ground.held, ground.channels),
        current=current,
        wheels=ground.state.wheels.get(image.digest, {}),
        layers=layers,
        own_bytes=sum(alone.values()) if current else 0,
    )


def _found(layer: Layer, layers: Mapping[str, SharedLayer]) -> SharedLayer:
    return layers.get(layer.digest) or _shared(layer, 0)


def _ordered(image: ImageRecord, ground: _Ground) -> tuple[ImageRef, ...]:
    """The highest channel's tag first, tags of content last."""
    ranks = {
        channel_tag(image, channel, ground.channels): -rank
        for rank, channel in enumerate(ground.channels)
    }
    content = f"{image.tag}-{image.key[:KEY_CHARS]}"
    refs = ground.held.get(image.digest, ())
    return tuple(sorted(refs, key=lambda ref: (ref.tag == content, ranks.get(ref.tag, 1), ref.tag)))
