"""Where an image is read from: a registry, or what the engine saves of one of its own."""

import json
import re
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpulayers.engine.docker import DockerEngine
from gpulayers.engine.registry import Descriptor, ImageConfig, Index, Manifest, Registry
from gpulayers.engine.registry.documents import parse_config
from gpulayers.errors import RemoteError
from gpulayers.refs import ImageRef

PIECE = 1 << 20
HEX = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An image to look at; ``open`` gives a layer's bytes as they are stored."""

    name: str
    digest: str
    config: ImageConfig
    layers: tuple[Descriptor, ...]
    open: Callable[[Descriptor], Iterator[bytes]]


def of_registry(registry: Registry, ref: ImageRef, platform: str) -> Subject:
    """An image by its digest in a registry; of an index, the one for the platform.

    Raises: RemoteError: it is not there, or not for that platform.
    """
    document = registry.raw(ref)
    if isinstance(document, Index):
        ref = ref.with_digest(_chosen(document, ref, platform).digest)
        document = registry.raw(ref)
    if not isinstance(document, Manifest):
        msg = f"{ref.format()}: wanted an image, found an index in an index"
        raise RemoteError(msg, hint="name the image itself by its digest")
    return Subject(
        name=ref.name,
        digest=document.digest,
        config=registry.config(ref, document),
        layers=document.layers,
        open=lambda layer: registry.stream(ref, layer),
    )


def _chosen(index: Index, ref: ImageRef, platform: str) -> Descriptor:
    """The entry for the platform, or the only one that there is."""
    for each in index.images:
        if each.platform is not None and each.platform.format() == platform:
            return each
    if len(index.images) == 1:
        return index.images[0]
    found = ", ".join(each.platform.format() for each in index.images if each.platform is not None)
    msg = f"{ref.format()}: wanted an image for {platform}, found {found or 'none'}"
    raise RemoteError(msg, hint="name one with --platform")


@contextmanager
def of_engine(engine: DockerEngine, name: str) -> Iterator[Subject]:
    """An image that only the engine has; it is saved to a file for as long as this is open.

    Raises: RemoteError: the engine does not give it, or not as we know it.
    """
    with tempfile.TemporaryDirectory(prefix="gpulayers-") as folder:
        file = Path(folder) / "image.tar"
        engine.save(name, file)
        yield read_saved(file, name)


def read_saved(file: Path, name: str) -> Subject:
    """The image in a file that ``docker save`` wrote.

    Raises: RemoteError: its ``manifest.json`` names no config and layers.
    """
    with tarfile.open(file) as archive:
        sizes = {member.name: member.size for member in archive if member.isfile()}
        config, layers = _saved_manifest(_read(archive, "manifest.json"), sizes, name)
        raw = _read(archive, config)
    paths = {_digest_of(path): path for path in layers}
    return Subject(
        name=name,
        digest="",
        config=parse_config(raw, where=f"{name}: {config}"),
        layers=tuple(
            Descriptor(
                media_type="",
                digest=digest,
                size_bytes=sizes[path],
                platform=None,
                annotations={},
            )
            for path, digest in zip(layers, map(_digest_of, layers), strict=True)
        ),
        open=lambda layer: _pieces(file, paths[layer.digest]),
    )


def _saved_manifest(raw: bytes, sizes: dict[str, int], name: str) -> tuple[str, list[str]]:
    """Source: Docker's image specification 1.2, "Combined Image JSON" (read 2025-12-01)."""
    document: object = json.loads(raw or b"[]")
    first = document[0] if isinstance(document, list) and document else {}
    table = first if isinstance(first, dict) else {}
    config, layers = table.get("Config"), table.get("Layers")
    paths = [str(path) for path in layers] if isinstance(layers, list) else []
    if not isinstance(config, str) or not {config, *paths} <= set(sizes):
        msg = f"{name}: wanted config and layers in what the engine saved, found others"
        raise RemoteError(msg, hint="push it to a registry and name it there")
    return config, paths


def _digest_of(path: str) -> str:
    """The digest in ``blobs/sha256/HEX``; older engines have ``ID/layer.tar``."""
    found = HEX.search(path)
    return f"sha256:{found[0]}" if found is not None else path


def _read(archive: tarfile.TarFile, path: str) -> bytes:
    try:
        file = archive.extractfile(path)
    except KeyError:
        return b""
    return file.read() if file is not None else b""


def _pieces(file: Path, path: str) -> Iterator[bytes]:
    with tarfile.open(file) as archive:
        stored = archive.extractfile(path)
        while stored is not None and (piece := stored.read(PIECE)):
            yield piece
