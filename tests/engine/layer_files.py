"""What is in the layers of an image, file by file, and where two layers differ."""

import hashlib
import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, fields

import zstandard
from fleet import Image

from gpulayers.engine.registry import Registry
from gpulayers.refs import ImageRef

LAYER_BYTES_MAX = 1 << 30
READ_BYTES_MAX = 1 << 20
# Not compared: what the hash stands for, and the step, which has its own line.
TOLD_APART = ("step", "path", "data")


@dataclass(frozen=True)
class Entry:
    """A member of a layer's tar; ``data`` of large ones is not kept, ``sha256`` is of all."""

    step: str
    path: str
    kind: str
    mode: int
    mtime: float
    owner: tuple[int, int, str, str]
    link: str
    size: int
    sha256: str
    data: bytes


def walk(image: Image, client: Registry) -> Iterator[Entry]:
    """Every file of every layer, lowest first, also those that a higher layer hides."""
    for step, digest in image.digests():
        yield from read(image, step, digest, client)


def read(image: Image, step: str, digest: str, client: Registry) -> Iterator[Entry]:
    """Every file of one layer, in the order of its tar."""
    ref = ImageRef.parse(image.ref)
    packed = io.BytesIO(client.blob(ref, digest, limit_bytes=LAYER_BYTES_MAX))
    with (
        zstandard.ZstdDecompressor().stream_reader(packed) as stream,
        tarfile.open(fileobj=stream, mode="r|") as layer,
    ):
        for member in layer:
            yield _entry(layer, member, step)


def _entry(layer: tarfile.TarFile, member: tarfile.TarInfo, step: str) -> Entry:
    file = layer.extractfile(member) if member.isfile() else None
    total, kept = hashlib.sha256(), b""
    while file is not None and (part := file.read(READ_BYTES_MAX)):
        total.update(part)
        kept = part if member.size <= READ_BYTES_MAX else b""
    return Entry(
        step=step,
        path=member.name.removeprefix("./"),
        kind=member.type.decode(),
        mode=member.mode,
        mtime=member.mtime,
        owner=(member.uid, member.gid, member.uname, member.gname),
        link=member.linkname,
        size=member.size,
        sha256=total.hexdigest(),
        data=kept,
    )


def differences(one: Image, other: Image, client: Registry) -> list[str]:
    """Each file that differs between two images of the same steps, and in what; empty if none."""
    lines = []
    for (step, first), (name, second) in zip(one.digests(), other.digests(), strict=True):
        assert step == name
        if first == second:
            continue
        old = list(read(one, step, first, client))
        new = list(read(other, step, second, client))
        found = list(_told(old, new))
        order = "the same files in another order, or packed otherwise"
        lines += [f"{step}: {line}" for line in found or [order]]
    return lines


def _told(old: list[Entry], new: list[Entry]) -> Iterator[str]:
    left, right = ({entry.path: entry for entry in side} for side in (old, new))
    yield from (f"{path} is in one only" for path in sorted(left.keys() ^ right.keys()))
    names = [each.name for each in fields(Entry) if each.name not in TOLD_APART]
    for path in sorted(left.keys() & right.keys()):
        pairs = [(name, getattr(left[path], name), getattr(right[path], name)) for name in names]
        apart = [f"{name} {one} and {other}" for name, one, other in pairs if one != other]
        if apart:
            yield f"{path}: {'; '.join(apart)}"
