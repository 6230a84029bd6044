"""Steps that the registry holds: each as an image of one layer, under the step's key."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gpulayers.compose.config import LAYER_TYPES, Unlike, part_config
from gpulayers.compose.config import manifest as manifest_of
from gpulayers.engine.registry import Manifest, Registry
from gpulayers.engine.registry.model import OCI_MANIFEST, Descriptor, ImageConfig
from gpulayers.plan import keys
from gpulayers.plan.model import IDENTITY, WORKDIR, Image
from gpulayers.refs import ImageRef, Platform

SUFFIX = "-steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A layer that the registry has; ``diff_id`` is the digest of what it unpacks to."""

    layer: Descriptor
    diff_id: str


def parts_of(image: Image) -> tuple[str, ...]:
    """Keys of an image's layers above its base, lowest first; each stands for the same bytes."""
    found = [step.key for step in image.steps]
    if image.config.workdir:
        # A folder that is there already: nothing is in that layer, whatever lies below.
        found.append(_fixed(WORKDIR, image.config.workdir))
    return (*found, _fixed(IDENTITY, ""))


def _fixed(name: str, value: str) -> str:
    return keys.of_value({"recipe": keys.RECIPE, "layer": name, "value": value})


@dataclass(slots=True)
class Parts:
    """The steps in one registry; ``name`` is the repository of the images (``HOST/PATH``)."""

    registry: Registry
    name: str
    _held: dict[str, Held] = field(default_factory=dict)
    _absent: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def repository(self) -> str:
        """Where steps are kept: beside the images, not among their tags."""
        return f"{self.name}{SUFFIX}"

    def ref(self, key: str) -> ImageRef:
        """Where one of them is."""
        return ImageRef.parse(f"{self.repository}:{key}")

    def find(self, key: str, platform: Platform, *, afresh: bool = False) -> Held | None:
        """The layer of a step, or None where the registry has none under its key.

        Shape: that there was none is remembered, and asked again where it is to be ``afresh``.
        Raises: RegistryError: it cannot be asked, or what it has is no such image.
        """
        with self._lock:
            found, is_absent = self._held.get(key), key in self._absent
        if found is not None or (is_absent and not afresh):
            return found
        ref = self.ref(key)
        digest = self.registry.resolve(ref)
        if digest is None:
            with self._lock:
                self._absent.add(key)
            return None
        manifest = self.registry.manifest(ref.with_digest(digest), platform)
        config = self.registry.config(ref, manifest)
        if len(manifest.layers) != 1 or len(config.diff_ids) != 1:
            return None
        return self._learn(key, Held(layer=manifest.layers[0], diff_id=config.diff_ids[0]))

    def note(self, image: Image, manifest: Manifest, config: ImageConfig) -> None:
        """Keep what an image was built of, for images to come; what is known stays as it was.

        Raises: RegistryError: the registry does not take them.
        """
        for key, held in _above(parts_of(image), manifest, config):
            if self.find(key, image.platform) is None:
                self._keep(key, held, image.platform)

    def _keep(self, key: str, held: Held, platform: Platform) -> None:
        if not self.registry.mount_blob(self.repository, held.layer.digest, source=self.name):
            return  # a registry that mounts nothing: images are built, none is put together
        raw = part_config(platform, held.diff_id)
        self.registry.put_blob(self.repository, raw)
        document = manifest_of(raw, [held.layer])
        self.registry.put_manifest(self.ref(key), document, OCI_MANIFEST)
        self._learn(key, held)

    def _learn(self, key: str, held: Held) -> Held:
        with self._lock:
            self._absent.discard(key)
            return self._held.setdefault(key, held)


def _above(
    keys_: Sequence[str], manifest: Manifest, config: ImageConfig
) -> Iterator[tuple[str, Held]]:
    """The layers above the base, each with the step that it is of."""
    count = len(keys_)
    if not len(manifest.layers) == len(config.diff_ids) > count:
        msg = f"{len(manifest.layers)} layers and {len(config.diff_ids)} names of what is in them"
        raise Unlike(msg)
    layers = zip(manifest.layers[-count:], config.diff_ids[-count:], strict=True)
    for key, (layer, diff_id) in zip(keys_, layers, strict=True):
        if layer.media_type not in LAYER_TYPES:
            yield key, Held(layer=layer, diff_id=diff_id)
