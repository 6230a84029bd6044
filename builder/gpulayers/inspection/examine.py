"""Putting together what config, labels, records and layers say of an image."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from gpulayers.engine import process
from gpulayers.engine.registry import Descriptor
from gpulayers.inspection import tree
from gpulayers.inspection.model import (
    KEY_LABEL,
    WHEEL_LABEL,
    Inspected,
    Layer,
    Library,
    Wheel,
)
from gpulayers.inspection.source import Subject
from gpulayers.inspection.tree import DRIVER, Tree, UnreadableError

MB = 10**6
HISTORY_NOISE = ("/bin/sh -c #(nop) ", "/bin/sh -c ")
OWNER_CHARACTERS = 100


def examine(
    subject: Subject,
    *,
    steps: Sequence[str] = (),
    sbom: Mapping[str, str] | None = None,
    cap_bytes: int | None,
    with_code: bool = False,
    on_layer: Callable[[Layer], None] = lambda _: None,
) -> Inspected:
    """Look at an image.

    Shape: ``steps`` name its layers from the lowest where they are known; ``sbom`` maps packages
    to versions; ``with_code`` looks for GPU code in the layers that are read; ``on_layer`` is told
    of each before it is.
    Units: layers of more than ``cap_bytes`` compressed are not read; None reads all, 0 none.
    Raises: RemoteError: a layer cannot be fetched.
    """
    layers: list[Layer] = []
    trees: list[tuple[str, Tree]] = []
    owners = _owners(subject, steps)
    for blob, owner in zip(subject.layers, owners, strict=True):
        layer = Layer(
            digest=blob.digest,
            size_bytes=blob.size_bytes,
            owner=owner,
            unread=_why(blob, cap_bytes),
        )
        if not layer.unread:
            on_layer(layer)
            layer = _read(subject, blob, layer, trees, with_code=with_code)
        layers.append(layer)
    whole, owner_of = tree.merged(trees)
    return _found(subject, tuple(layers), whole, owner_of, sbom or {})


def _why(blob: Descriptor, cap_bytes: int | None) -> str:
    if cap_bytes is None or blob.size_bytes <= cap_bytes:
        return ""
    return f"more than {cap_bytes // MB} MB" if cap_bytes else "not asked for"


def _read(
    subject: Subject,
    blob: Descriptor,
    layer: Layer,
    trees: list[tuple[str, Tree]],
    *,
    with_code: bool,
) -> Layer:
    try:
        trees.append((layer.owner, tree.read(subject.open(blob), with_code=with_code)))
    except UnreadableError as error:
        return replace(layer, unread=f"unreadable: {error}")
    return layer


def _owners(subject: Subject, steps: Sequence[str]) -> list[str]:
    count = len(subject.layers)
    if len(steps) == count:
        return list(steps)
    made_by = [_short(text) for text in subject.config.made_by]
    return made_by if len(made_by) == count else [""] * count


def _short(created_by: str) -> str:
    text = " ".join(created_by.removesuffix(" # buildkit").split())
    for noise in HISTORY_NOISE:
        text = text.removeprefix(noise)
    text = process.redact(text.strip())
    return text if len(text) <= OWNER_CHARACTERS else f"{text[:OWNER_CHARACTERS]}…"


def _found(
    subject: Subject,
    layers: tuple[Layer, ...],
    whole: Tree,
    owner_of: Mapping[str, str],
    sbom: Mapping[str, str],
) -> Inspected:
    config = subject.config
    return Inspected(
        name=subject.name,
        digest=subject.digest,
        platform=f"{config.os}/{config.architecture}",
        created=config.created,
        key=config.labels.get(KEY_LABEL, ""),
        user=config.user,
        working_dir=config.working_dir,
        entrypoint=config.entrypoint,
        command=config.cmd,
        env=_redacted(config.env),
        labels=_redacted(config.labels),
        layers=layers,
        wheels=_wheels(whole, owner_of, config.labels, sbom),
        libraries=tuple(
            Library(
                path=path,
                size_bytes=size,
                owner=owner_of[path],
                is_driver=DRIVER.search(path) is not None,
            )
            for path, size in sorted(whole.libraries.items())
        ),
        pythons=dict(sorted(whole.pythons.items())),
        glibc=_only(whole.libcs),
        system=_only(whole.systems),
        code=dict(sorted(whole.code.items())),
    )


def _only(found: Mapping[str, str]) -> str:
    """What all files say; "" where there is none, or they say several things."""
    values = set(found.values())
    return values.pop() if len(values) == 1 else ""


def _redacted(table: Mapping[str, str]) -> dict[str, str]:
    """Anyone's image may hold a secret; it is not printed a second time."""
    return {
        name: process.redact_word(f"{name}={value}").removeprefix(f"{name}=")
        for name, value in sorted(table.items())
    }


def _wheels(
    whole: Tree, owner_of: Mapping[str, str], labels: Mapping[str, str], sbom: Mapping[str, str]
) -> tuple[Wheel, ...]:
    """Packages by their files first; others are added by what labels and a scan say of them."""
    found = [
        Wheel(name=name, version=version, owner=owner_of[path], source="files")
        for path, (name, version) in whole.wheels.items()
        if name
    ]
    labelled = {
        name.removeprefix(WHEEL_LABEL): version
        for name, version in labels.items()
        if name.startswith(WHEEL_LABEL)
    }
    found += _others(labelled, "label", found)
    found += _others(sbom, "sbom", found)
    return tuple(sorted(found, key=lambda wheel: (_normal(wheel.name), wheel.version, wheel.owner)))


def _others(
    told: Mapping[str, str], source: Literal["label", "sbom"], found: Sequence[Wheel]
) -> list[Wheel]:
    known = {_normal(wheel.name) for wheel in found}
    return [
        Wheel(name=name, version=version, owner="", source=source)
        for name, version in told.items()
        if _normal(name) not in known
    ]


def _normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")
