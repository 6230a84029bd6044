"""What happened: one record an image, one report a run, and the exit code they add up to."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from gpulayers import documents
from gpulayers.classes import EXIT_CODES
from gpulayers.errors import ProjectError

__all__ = ["EXIT_CODES"]

Status = Literal["passed", "failed", "not-run", "simulated"]
ImageStatus = Literal["built", "cached", "failed", "not-tried"]
GateName = Literal["identity", "secrets", "duplicates", "size", "scan", "smoke"]
GATES: tuple[GateName, ...] = get_args(GateName)
# Of a size gate where matrix.toml has no limit.
NO_BUDGET = "no-budget"
SCHEMA = 1
REMEDY = "move it aside: `gpulayers build` writes a new one"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The outcome of one gate; ``cls`` is kebab-case and empty when it passed."""

    status: Status
    cls: str
    text: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A layer of an image: its blob and what made it (``base`` for those of the OS base).

    Units: ``size_bytes`` is compressed.
    """

    digest: str
    size_bytes: int
    step: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why an image was not made, or not given its tags.

    Shape: ``blocks`` is the word of ``EXIT_CODES`` that it counts as; ``exit`` is the failed
    program's status, 0 where none ended; ``repeat`` is a command that does the same again.
    """

    blocks: str
    cls: str
    step: str
    exit: int
    stderr_tail: tuple[str, ...]
    repeat: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRecord:
    """All that is known of one image after a run.

    Shape: ``ref`` is by digest, "" when there is no image; ``tags`` are those that point at it now;
    ``gates`` has every gate, in the order of the pipeline.
    """

    cell: Mapping[str, str]
    platform: str
    key: str
    tag: str
    ref: str
    digest: str
    tags: tuple[str, ...]
    status: ImageStatus
    layers: tuple[Layer, ...]
    gates: Mapping[GateName, Gate]
    failure: Failure | None

    @property
    def size_bytes(self) -> int:
        """Compressed bytes of all layers, each counted once."""
        return sum({layer.digest: layer.size_bytes for layer in self.layers}.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole run; ``pushed_bytes`` are those of layers that the registry did not have before."""

    started: str
    seconds: float
    engine: Mapping[str, str]
    images: tuple[ImageRecord, ...]
    pushed_bytes: int
    interrupted: bool = False

    @property
    def unique_bytes(self) -> int:
        """Compressed bytes of all different layers."""
        layers = {layer.digest: layer.size_bytes for i in self.images for layer in i.layers}
        return sum(layers.values())

    @property
    def sum_bytes(self) -> int:
        """Compressed bytes as if no image shared a layer with another."""
        return sum(image.size_bytes for image in self.images)

    @property
    def exit_code(self) -> int:
        """0, or the code of the first failure in the order of the pipeline.

        Shape: 1, which is a bug of ours, where an image failed for no reason that is known here.
        """
        if self.interrupted:
            return 130
        words = {image.failure.blocks for image in self.images if image.failure is not None}
        is_bad = bool(words) or any(image.status == "failed" for image in self.images)
        return next((code for word, code in EXIT_CODES.items() if word in words), int(is_bad))


def not_run(cls: str, text: str) -> Gate:
    """A gate that did not speak, and why."""
    return Gate(status="not-run", cls=cls, text=text, seconds=0.0)


def no_gates(cls: str, text: str) -> dict[GateName, Gate]:
    """All gates as not run, for the same reason."""
    return {name: not_run(cls, text) for name in GATES}


def format_image(image: ImageRecord) -> dict[str, object]:
    """An image as the report and the state folder spell it."""
    failure = image.failure
    return {
        "cell": dict(image.cell),
        "platform": image.platform,
        "key": image.key,
        "tag": image.tag,
        "ref": image.ref,
        "digest": image.digest,
        "tags": list(image.tags),
        "status": image.status,
        "bytes": image.size_bytes,
        "layers": [
            {"digest": layer.digest, "bytes": layer.size_bytes, "step": layer.step}
            for layer in image.layers
        ],
        "gates": {name: format_gate(image.gates[name]) for name in GATES},
        "failure": None
        if failure is None
        else {
            "class": failure.cls,
            "blocks": failure.blocks,
            "step": failure.step,
            "exit": failure.exit,
            "stderr_tail": list(failure.stderr_tail),
            "repeat": failure.repeat,
        },
    }


def format_gate(gate: Gate) -> dict[str, object]:
    """A gate as the report spells it."""
    return {
        "status": gate.status,
        "class": gate.cls,
        "text": gate.text,
        "seconds": round(gate.seconds, 2),
    }


def format_report(report: Report) -> dict[str, object]:
    """A report as JSON has it."""
    return {
        "schema": SCHEMA,
        "started": report.started,
        "seconds": round(report.seconds, 1),
        "exit_code": report.exit_code,
        "engine": dict(report.engine),
        "bytes": {
            "unique": report.unique_bytes,
            "sum": report.sum_bytes,
            "pushed": report.pushed_bytes,
        },
        "images": [format_image(image) for image in report.images],
    }


def write(path: Path, document: Mapping[str, object]) -> None:
    """Write JSON whole or not at all."""
    documents.write(path, json.dumps(document, indent=2, ensure_ascii=False) + "\n")


class Records:
    """The records of images by digest, in the project's state folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, image: ImageRecord) -> None:
        """Keep what is known of an image; one that was not made is known by no digest."""
        if image.digest:
            write(self._file(image.digest), {"schema": SCHEMA, **format_image(image)})

    def read_gates(self, digest: str) -> Mapping[GateName, Gate] | None:
        """What all gates said of that digest before, or None where one of them is not known.

        Raises: ProjectError: the record is of another schema.
        """
        document = self.read(digest)
        if document.get("failure") is not None:
            return None
        gates = document.get("gates")
        if not isinstance(gates, dict):
            return None
        found = {name: _parse_gate(gates.get(name)) for name in GATES}
        known = {name: gate for name, gate in found.items() if gate is not None}
        return known if len(known) == len(GATES) else None

    def read(self, digest: str) -> Mapping[str, object]:
        """The record of a digest as it was written; empty where there is none that can be read.

        Raises: ProjectError: the record is of another schema.
        """
        path = self._file(digest)
        try:
            document: object = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        if not isinstance(document, dict):
            return {}
        # Records had no schema before they had a second one in sight: those are of the first.
        schema = document.get("schema", SCHEMA)
        documents.demand_schema(schema, SCHEMA, path=path, remedy=REMEDY)
        return document

    def _file(self, digest: str) -> Path:
        return self._folder / f"{digest.removeprefix('sha256:')}.json"


def _parse_gate(value: object) -> Gate | None:
    table = value if isinstance(value, dict) else {}
    for status in get_args(Status):
        if table.get("status") == status:
            seconds = table.get("seconds")
            return Gate(
                status=status,
                cls=str(table.get("class", "")),
                text=str(table.get("text", "")),
                seconds=float(seconds) if isinstance(seconds, int | float) else 0.0,
            )
    return None


def read_images(path: Path) -> tuple[Mapping[str, object], ...]:
    """The images of a report file as JSON tables; empty when there is no such file.

    Raises: ProjectError: the file is no JSON, or of another schema.
    """
    if not path.is_file():
        return ()
    try:
        document: object = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        msg = f"{path.name}: wanted a report in JSON, found {error}"
        raise ProjectError(msg, hint="`gpulayers build` writes a new one") from error
    table = document if isinstance(document, dict) else {}
    documents.demand_schema(table.get("schema"), SCHEMA, path=path, remedy=REMEDY)
    return tuple(_tables(table.get("images")))


def _tables(value: object) -> Sequence[Mapping[str, object]]:
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, dict)]
