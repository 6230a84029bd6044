"""The JSON of a registry, narrowed once to our types."""

import json
from collections.abc import Mapping
from typing import Never

from gpulayers.engine.registry.model import (
    INDEX_TYPES,
    MANIFEST_TYPES,
    Descriptor,
    ImageConfig,
    Index,
    Manifest,
    digest_of,
)
from gpulayers.engine.registry.refusal import RegistryError, Trouble
from gpulayers.refs import Platform, is_digest


def parse_document(raw: bytes, media_type: str, *, where: str) -> Manifest | Index:
    """Read a manifest or an index.

    Shape: ``media_type`` is what the registry called it; the document's own ``mediaType`` wins.
    Raises: RegistryError: it is another kind of document, or breaks its own format.
    """
    top = _object(_json(raw, where), where)
    kind = _text(top, "mediaType", where) or media_type.partition(";")[0].strip()
    if kind in INDEX_TYPES:
        return Index(
            raw=raw,
            media_type=kind,
            digest=digest_of(raw),
            manifests=_descriptors(top, "manifests", where),
        )
    if kind in MANIFEST_TYPES:
        return Manifest(
            raw=raw,
            media_type=kind,
            digest=digest_of(raw),
            config=_descriptor(top.get("config"), f"{where}: config"),
            layers=_descriptors(top, "layers", where),
            annotations=_texts(top, "annotations", where),
        )
    return _refuse(where, "an OCI or Docker v2 image manifest or index", kind or "no media type")


def parse_config(raw: bytes, *, where: str) -> ImageConfig:
    """Read an image's config blob.

    Raises: RegistryError: it is not JSON, or a field is of another type than the OCI image
        specification says.
    """
    top = _object(_json(raw, where), where)
    run = _object(top.get("config") or {}, f"{where}: config")
    rootfs = _object(top.get("rootfs") or {}, f"{where}: rootfs")
    pairs = (entry.partition("=") for entry in _list_of_text(run, "Env", where))
    history = [_object(entry, f"{where}: history") for entry in _list(top, "history", where)]
    return ImageConfig(
        raw=raw,
        architecture=_text(top, "architecture", where),
        os=_text(top, "os", where),
        created=_text(top, "created", where),
        env={name: value for name, _, value in pairs},
        labels=_texts(run, "Labels", where),
        user=_text(run, "User", where),
        working_dir=_text(run, "WorkingDir", where),
        entrypoint=_list_of_text(run, "Entrypoint", where),
        cmd=_list_of_text(run, "Cmd", where),
        diff_ids=_list_of_text(rootfs, "diff_ids", where),
        history=tuple(_text(entry, "created_by", where) for entry in history),
        made_by=tuple(
            _text(entry, "created_by", where) for entry in history if not entry.get("empty_layer")
        ),
    )


def parse_tags(raw: bytes, *, where: str) -> tuple[str, ...]:
    """Read one page of a tag list; a registry may say ``null`` for none.

    Raises: RegistryError: it is not a tag list.
    """
    return _list_of_text(_object(_json(raw, where), where), "tags", where)


def parse_errors(raw: bytes) -> str:
    """The codes and messages of an error answer, or its first words where it is not JSON.

    Source: https://github.com/opencontainers/distribution-spec/blob/main/spec.md#error-codes
    (read 2025-12-01).
    """
    try:
        top = json.loads(raw)
    except ValueError:
        return " ".join(raw[:400].decode("utf-8", "replace").split())
    errors = top.get("errors") if isinstance(top, dict) else None
    found = (
        [error for error in errors if isinstance(error, dict)] if isinstance(errors, list) else []
    )
    texts = (f"{error.get('code', '')}: {error.get('message', '')}".strip(": ") for error in found)
    return "; ".join(texts) or " ".join(raw[:400].decode("utf-8", "replace").split())


def _refuse(where: str, wanted: str, found: str) -> Never:
    msg = f"{where}: wanted {wanted}, found {found}"
    raise RegistryError(msg, trouble=Trouble.UNREADABLE, hint="rebuild the image and push it again")


def _json(raw: bytes, where: str) -> object:
    try:
        document: object = json.loads(raw)
    except ValueError as error:
        msg = f"{where}: wanted JSON, found {len(raw)} bytes that are not ({error})"
        raise RegistryError(
            msg, trouble=Trouble.UNREADABLE, hint="see whether a proxy answers for the registry"
        ) from error
    return document


def _object(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        _refuse(where, "a JSON object", type(value).__name__)
    return value


def _text(table: Mapping[str, object], key: str, where: str) -> str:
    value = table.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        _refuse(f"{where}: {key}", "a text", type(value).__name__)
    return value


def _list(table: Mapping[str, object], key: str, where: str) -> list[object]:
    value = table.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        _refuse(f"{where}: {key}", "a list", type(value).__name__)
    return value


def _list_of_text(table: Mapping[str, object], key: str, where: str) -> tuple[str, ...]:
    values = _list(table, key, where)
    texts = tuple(value for value in values if isinstance(value, str))
    if len(texts) != len(values):
        _refuse(f"{where}: {key}", "a list of texts", "something else in it")
    return texts


def _texts(table: Mapping[str, object], key: str, where: str) -> Mapping[str, str]:
    values = _object(table.get(key) or {}, f"{where}: {key}")
    texts = {name: value for name, value in values.items() if isinstance(value, str)}
    if len(texts) != len(values):
        _refuse(f"{where}: {key}", "texts", "something else in it")
    return texts


def _descriptors(table: Mapping[str, object], key: str, where: str) -> tuple[Descriptor, ...]:
    return tuple(_descriptor(each, f"{where}: {key}") for each in _list(table, key, where))


def _descriptor(value: object, where: str) -> Descriptor:
    table = _object(value, where)
    digest, size = _text(table, "digest", where), table.get("size")
    if not is_digest(digest):
        _refuse(f"{where}: digest", "sha256 and 64 hex digits", repr(digest))
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        _refuse(f"{where}: size", "a count of bytes", repr(size))
    return Descriptor(
        media_type=_text(table, "mediaType", where),
        digest=digest,
        size_bytes=size,
        platform=_platform(table.get("platform"), where),
        annotations=_texts(table, "annotations", where),
    )


def _platform(value: object, where: str) -> Platform | None:
    if value is None:
        return None
    table = _object(value, f"{where}: platform")
    return Platform(_text(table, "os", where), _text(table, "architecture", where))
