"""Putting an image together over the registry's API: layers mounted, two documents written."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gpulayers.compose import config as documents
from gpulayers.compose.config import Unlike
from gpulayers.compose.parts import Held, Parts, parts_of
from gpulayers.engine.registry import Manifest, Registry, digest_of
from gpulayers.engine.registry.model import OCI_MANIFEST, Descriptor, ImageConfig
from gpulayers.plan.model import Image
from gpulayers.refs import ImageRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """An image that was put together and that no tag points at yet."""

    digest: str
    raw: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    layers: tuple[Descriptor, ...]
    config: bytes


@dataclass(slots=True)
class Composer:
    """Puts images together in one repository; may be used from any thread.

    Shape: ``name`` is that of the images (``HOST/PATH``); ``warn`` hears once why no image is put
    together any more.
    """

    registry: Registry
    name: str
    warn: Callable[[str], None]
    parts: Parts = field(init=False)
    _bases: dict[str, _Base] = field(default_factory=dict)
    _there: set[str] = field(default_factory=set)
    _is_off: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Find steps where the images are."""
        self.parts = Parts(registry=self.registry, name=self.name)

    def missing(self, image: Image) -> tuple[str, ...]:
        """The keys of the steps of an image that the registry does not hold.

        Raises: RegistryError: it cannot be asked.
        """
        return tuple(x for x in parts_of(image) if self.parts.find(x, image.platform) is None)

    def is_able(self, image: Image) -> bool:
        """Whether an image may be put together here: its base is in the registry of its layers."""
        return not self._is_off and image.base.partition("/")[0] == self.name.partition("/")[0]

    def compose(self, image: Image) -> Composed | None:
        """Write an image by its digest, or None where it has to be built.

        Raises: RegistryError: the registry could not be asked, or did not take it.
        """
        if not self.is_able(image):
            return None
        held = [self.parts.find(key, image.platform) for key in parts_of(image)]
        found = [each for each in held if each is not None]
        if len(found) < len(held):
            return None
        try:
            base = self._base(image)
            config, raw = self._documents(image, base, found)
        except Unlike:
            return None
        if not self._brought(image, base, found):
            return None
        self.registry.put_blob(self.name, config)
        place = ImageRef.parse(self.name).with_digest(digest_of(raw))
        self.registry.put_manifest(place, raw, OCI_MANIFEST)
        return Composed(digest=place.digest, raw=raw)

    def note(self, image: Image, manifest: Manifest, config: ImageConfig) -> None:
        """Learn the steps of an image that was built, when this would have been the very image.

        Raises: RegistryError: the registry could not be asked, or did not take them.
        """
        if not self.is_able(image):
            return
        count = len(parts_of(image))
        layers = zip(manifest.layers[-count:], config.diff_ids[-count:], strict=False)
        held = [Held(layer=layer, diff_id=diff_id) for layer, diff_id in layers]
        try:
            made = self._documents(image, self._base(image), held)[1]
            if digest_of(made) == manifest.digest:
                self.parts.note(image, manifest, config)
            else:
                self._stop(image, manifest.digest, digest_of(made))
        except Unlike:
            return

    def _documents(self, image: Image, base: _Base, held: Sequence[Held]) -> tuple[bytes, bytes]:
        diff_ids = [each.diff_id for each in held]
        config = documents.config(base.config, image.config, diff_ids, steps=len(image.steps))
        layers = [*base.layers, *(each.layer for each in held)]
        return config, documents.manifest(config, layers)

    def _base(self, image: Image) -> _Base:
        with self._lock:
            found = self._bases.get(image.base)
        if found is None:
            ref = ImageRef.parse(image.base)
            manifest = self.registry.manifest(ref, image.platform)
            config = self.registry.blob(ref, manifest.config.digest)
            found = _Base(layers=manifest.layers, config=config)
            with self._lock:
                self._bases[image.base] = found
        return found

    def _brought(self, image: Image, base: _Base, held: Sequence[Held]) -> bool:
        """Have all layers in the repository of the images; False where one cannot be mounted."""
        below = ImageRef.parse(image.base).name
        sources = [(layer.digest, below) for layer in base.layers]
        sources += [(each.layer.digest, self.parts.repository) for each in held]
        for digest, source in sources:
            with self._lock:
                if digest in self._there:
                    continue
            if not self.registry.mount_blob(self.name, digest, source=source):
                return False
            with self._lock:
                self._there.add(digest)
        return True

    def _stop(self, image: Image, built: str, made: str) -> None:
        """One image is never to have two digests: from here on all are built."""
        with self._lock:
            is_first, self._is_off = not self._is_off, True
        if is_first:
            self.warn(
                f"{image.tag}: the builder made {built}, put together it would be {made}: from here"
                " on all images are built"
            )
