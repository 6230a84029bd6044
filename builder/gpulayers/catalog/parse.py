"""An image's table, as ``record.format_image`` writes it, read back to the same record."""

from collections.abc import Mapping
from typing import get_args

from gpulayers.record import (
    GATES,
    Failure,
    Gate,
    GateName,
    ImageRecord,
    ImageStatus,
    Layer,
    Status,
)

Table = Mapping[str, object]


def parse_image(document: object) -> ImageRecord | None:
    """The record of one image, or None where the document is none.

    Shape: a gate that is not there, or has an unknown status, is not in ``gates``.
    """
    table = _table(document)
    status = _status(table.get("status"))
    tag, platform = _text(table.get("tag")), _text(table.get("platform"))
    if status is None or not tag or not platform:
        return None
    return ImageRecord(
        cell={str(axis): str(value) for axis, value in _table(table.get("cell")).items()},
        platform=platform,
        key=_text(table.get("key")),
        tag=tag,
        ref=_text(table.get("ref")),
        digest=_text(table.get("digest")),
        tags=tuple(_text(each) for each in _list(table.get("tags"))),
        status=status,
        layers=tuple(_layer(_table(each)) for each in _list(table.get("layers"))),
        gates=_gates(_table(table.get("gates"))),
        failure=_failure(table.get("failure")),
    )


def _status(value: object) -> ImageStatus | None:
    known: tuple[ImageStatus, ...] = get_args(ImageStatus)
    return next((each for each in known if each == value), None)


def _layer(table: Table) -> Layer:
    return Layer(
        digest=_text(table.get("digest")),
        size_bytes=_number(table.get("bytes")),
        step=_text(table.get("step")),
    )


def _gates(table: Table) -> dict[GateName, Gate]:
    found = {name: _gate(_table(table.get(name))) for name in GATES}
    return {name: gate for name, gate in found.items() if gate is not None}


def _gate(table: Table) -> Gate | None:
    known: tuple[Status, ...] = get_args(Status)
    for status in known:
        if table.get("status") == status:
            seconds = table.get("seconds")
            return Gate(
                status=status,
                cls=_text(table.get("class")),
                text=_text(table.get("text")),
                seconds=float(seconds) if isinstance(seconds, int | float) else 0.0,
            )
    return None


def _failure(value: object) -> Failure | None:
    if not isinstance(value, dict):
        return None
    return Failure(
        blocks=_text(value.get("blocks")),
        cls=_text(value.get("class")),
        step=_text(value.get("step")),
        exit=_number(value.get("exit")),
        stderr_tail=tuple(_text(line) for line in _list(value.get("stderr_tail"))),
        repeat=_text(value.get("repeat")),
    )


def _table(value: object) -> Table:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> tuple[object, ...]:
    return tuple(value) if isinstance(value, list) else ()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
