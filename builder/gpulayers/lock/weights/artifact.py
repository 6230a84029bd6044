"""Models that are OCI artifacts: each layer is one file, called by its title."""

import re
from dataclasses import dataclass
from pathlib import Path

from gpulayers.engine.registry import Descriptor, Index, Registry
from gpulayers.errors import ProjectError
from gpulayers.lock.model import LockedFile, LockedModel
from gpulayers.lock.wanted import source_of
from gpulayers.lock.weights.names import checked_name
from gpulayers.lock.weights.parts import Part
from gpulayers.lock.weights.pins import locked
from gpulayers.lock.weights.store import Store
from gpulayers.matrix.model import ArtifactModel
from gpulayers.refs import ImageRef

# What oras writes, and the CNCF model specification for files that are stored as they are.
# https://github.com/opencontainers/image-spec/blob/main/annotations.md,
# https://github.com/modelpack/model-spec/blob/main/docs/annotations.md (read 2026-12-01)
TITLES = ("org.opencontainers.image.title", "org.cncf.model.filepath")
# oras packs a folder into an archive of that name. Its client in Python (0.2.43) says that by the
# type alone, and gives plain files the type of a layer that is not compressed.
UNPACK = "io.deis.oras.content.unpack"
PACKED_TYPES = re.compile(
    r"application/vnd\.(oci\.image\.layer\.v1\.tar\+gzip|cncf\.model\..*\.tar(\+.*)?)"
)
PART_BYTES = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifacts:
    """Asks registries about artifacts, with Docker's own logins, and brings their files."""

    registry: Registry
    store: Store

    def pin(self, model: ArtifactModel) -> LockedModel:
        """The artifact by the digest of its manifest, and its files.

        Raises: RemoteError: the registry did not answer; ProjectError: it is no artifact of files.
        """
        document = self.registry.raw(model.ref)
        if isinstance(document, Index):
            msg = f"model {model.name}: wanted an artifact, found an index: {model.ref.format()}"
            raise ProjectError(msg, hint="name one of its manifests by digest")
        return locked(
            model.name,
            source=source_of(model),
            revision=document.digest,
            files=[_file(model, layer) for layer in document.layers],
        )

    def bring(self, model: LockedModel, file: LockedFile, part: Path) -> None:
        """Write what is missing of a file to the end of ``part``.

        Raises: RegistryError: the registry did not answer, or denied it.
        """
        ref = ImageRef.parse(f"{model.source.partition(':')[2]}@{model.revision}")
        blob = Descriptor(
            media_type="",
            digest=f"sha256:{file.sha256}",
            size_bytes=file.size_bytes,
            platform=None,
            annotations={},
        )
        with Part(part, self.store.stop) as opened:
            for piece in self.registry.stream(
                ref, blob, part_bytes=PART_BYTES, begin=opened.tell()
            ):
                opened.write(piece)


def _file(model: ArtifactModel, layer: Descriptor) -> LockedFile:
    where = f"model {model.name}: the layer {layer.digest} of {model.ref.format()}"
    name = next((layer.annotations[key] for key in TITLES if key in layer.annotations), "")
    if not name:
        msg = f"{where}: wanted a title ({TITLES[0]}), found none: it is an image, or no file"
        raise ProjectError(msg, hint="push the files with `oras push`")
    packed = layer.annotations.get(UNPACK, "").lower() == "true"
    if packed or PACKED_TYPES.fullmatch(layer.media_type):
        msg = f"{where}: wanted a file, found an archive of {name!r}"
        raise ProjectError(msg, hint="push the folder's files one by one, not the folder")
    try:
        return LockedFile(
            name=checked_name(name),
            sha256=layer.digest.removeprefix("sha256:"),
            size_bytes=layer.size_bytes,
        )
    except ValueError as error:
        msg = f"{where}: {error}"
        raise ProjectError(msg, hint="push it under another name") from error
