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
class Part:
    """One layer of an image above its base: what it is called, and its key."""

    name: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A layer that the registry has; ``diff_id`` is the digest of what it unpacks to."""

    layer: Descriptor
    diff_id: str


def parts_of(image: Image) -> tuple[Part, ...]:
    """The layers of an image above its base, lowest first; each key stands for the same bytes."""
    found = [Part(name=step.name, key=step.key) for step in image.steps]
    if image.config.workdir:
        # A folder that is there already: nothing is in that layer, whatever lies below.
        found.append(Part(name=WORKDIR, key=_fixed(WORKDIR, image.config.workdir)))
    return (*found, Part(name=IDENTITY, key=_fixed(IDENTITY, "")))


def _fixed(name: str, value: str) -> str:
    return keys.of_value({"recipe": keys.RECIPE, "layer": name, "value": value})


@dataclass(slots=True)
class Parts:
    """The steps in one registry; ``name`` is the repository of the images (``HOST/PATH``)."""

    registry: Registry
    name: str
    _held: dict[str, Held] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def repository(self) -> str:
        """Where steps are kept: beside the images, not among their tags."""
        return f"{self.name}{SUFFIX}"

    def ref(self, part: Part) -> ImageRef:
        """Where one of them is."""
        return ImageRef.parse(f"{self.repository}:{part.key}")

    def find(self, part: Part, platform: Platform) -> Held | None:
        """The layer of a step, or None where the registry has none under its key.

        Raises: RegistryError: it cannot be asked, or what it has is no such image.
        """
        with self._lock:
            found = self._held.get(part.key)
        if found is not None:
            return found
        ref = self.ref(part)
        digest = self.registry.resolve(ref)
        if digest is None:
            return None
        manifest = self.registry.manifest(ref.with_digest(digest), platform)
        config = self.registry.config(ref, manifest)
        if len(manifest.layers) != 1 or len(config.diff_ids) != 1:
            return None
        return self._learn(part, Held(layer=manifest.layers[0], diff_id=config.diff_ids[0]))

    def note(self, image: Image, manifest: Manifest, config: ImageConfig) -> None:
        """Keep what an image was built of, for images to come; what is known stays as it was.

        Raises: RegistryError: the registry does not take them.
        """
        for part, held in _above(parts_of(image), manifest, config):
            if self.find(part, image.platform) is None:
                self._keep(part, held, image.platform)

    def _keep(self, part: Part, held: Held, platform: Platform) -> None:
        if not self.registry.mount_blob(self.repository, held.layer.digest, source=self.name):
            return  # a registry that mounts nothing: images are built, none is put together
        raw = part_config(platform, held.diff_id)
        self.registry.put_blob(self.repository, raw)
        document = manifest_of(raw, [held.layer])
        self.registry.put_manifest(self.ref(part), document, OCI_MANIFEST)
        self._learn(part, held)

    def _learn(self, part: Part, held: Held) -> Held:
        with self._lock:
            return self._held.setdefault(part.key, held)


def _above(
    parts: Sequence[Part], manifest: Manifest, config: ImageConfig
) -> Iterator[tuple[Part, Held]]:
    """The layers above the base, each with the step that it is of."""
    count = len(parts)
    if not len(manifest.layers) == len(config.diff_ids) > count:
        msg = f"{len(manifest.layers)} layers and {len(config.diff_ids)} names of what is in them"
        raise Unlike(msg)
    layers = zip(manifest.layers[-count:], config.diff_ids[-count:], strict=True)
    for part, (layer, diff_id) in zip(parts, layers, strict=True):
        if layer.media_type not in LAYER_TYPES:
            yield part, Held(layer=layer, diff_id=diff_id)
