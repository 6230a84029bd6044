"""The catalog as JSON."""

from collections.abc import Mapping
from dataclasses import replace

from gpulayers.catalog.model import Catalog, Entry, SharedLayer
from gpulayers.record import GATES, ImageRecord, format_gate, format_image, not_run

SCHEMA = 1
MISSING = not_run("gate-missing", "the record of this image does not have this gate")


def format_json(catalog: Catalog) -> dict[str, object]:
    """The catalog as ``catalog.json`` has it; units are compressed bytes.

    Shape: of a layer, ``images`` counts the current images that have it.
    """
    return {
        "schema": SCHEMA,
        "name": catalog.name,
        "channels": list(catalog.channels),
        "tags_checked": catalog.checked,
        "last_run": {"started": catalog.started, "exit_code": catalog.exit_code},
        "bytes": {"unique": catalog.unique_bytes, "sum": catalog.sum_bytes},
        "images": [_entry(entry) for entry in catalog.entries],
        "not_made": [format_image(_whole(image)) for image in catalog.broken],
        "layers": [_layer(layer) for layer in catalog.layers],
    }


def _entry(entry: Entry) -> dict[str, object]:
    image = entry.image
    gates = {name: image.gates.get(name, MISSING) for name in GATES}
    return {
        "cell": dict(image.cell),
        "contents": contents(entry),
        "platform": image.platform,
        "key": image.key,
        "ref": image.ref,
        "digest": image.digest,
        "tags": list(entry.tags),
        "channels": list(entry.channels),
        "current": entry.current,
        "status": image.status,
        "pull": entry.pull,
        "bytes": image.size_bytes,
        "own_bytes": entry.own_bytes,
        "layers": [_layer(layer) for layer in entry.layers],
        "gates": {name: format_gate(gate) for name, gate in gates.items()},
    }


def contents(entry: Entry) -> dict[str, object]:
    """What is inside: the axes of the cell, and the Python packages that are known."""
    cell: Mapping[str, str] = entry.image.cell
    axes = ("framework", "cuda", "python", "os", "model")
    return {**{axis: cell.get(axis, "") for axis in axes}, "wheels": dict(entry.wheels)}


def _layer(layer: SharedLayer) -> dict[str, object]:
    return {
        "digest": layer.digest,
        "step": layer.step,
        "bytes": layer.size_bytes,
        "images": layer.images,
    }


def _whole(image: ImageRecord) -> ImageRecord:
    return replace(image, gates={name: image.gates.get(name, MISSING) for name in GATES})
