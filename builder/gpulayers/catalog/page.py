"""The catalog as one page that needs nothing else: no request, no script to be readable."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpulayers import documents, record
from gpulayers.catalog.document import MISSING, format_json
from gpulayers.catalog.model import Catalog, Entry
from gpulayers.record import GATES, Gate, GateName, ImageRecord
from gpulayers.render import page

TEMPLATE = "catalog.html.j2"
PAGE = "index.html"
DOCUMENT = "catalog.json"
# Status to its sign and word; each is told by word and shape too, never by colour alone.
SIGNS = {"passed": "✓", "failed": "✕", "not-run": "○", "simulated": "≈"}
WORDS = {"passed": "passed", "failed": "failed", "not-run": "not run", "simulated": "simulated"}
LEVEL = re.compile(r"(?:^|; )(?P<level>cpu|gpu) (?P<status>passed|failed|not-run|simulated)\b")
Row = dict[str, object]


def html(catalog: Catalog) -> str:
    """The page: the same catalog, the same bytes."""
    current = [_card(entry) for entry in catalog.current]
    older = [_card(entry) for entry in catalog.entries if not entry.current]
    saved = catalog.sum_bytes - catalog.unique_bytes
    values = {
        "name": catalog.name,
        "channels": catalog.channels,
        "checked": catalog.checked,
        "started": catalog.started.replace("T", " ").replace("Z", " UTC"),
        "exit_code": catalog.exit_code,
        "unique_bytes": catalog.unique_bytes,
        "sum_bytes": catalog.sum_bytes,
        "saved_percent": round(100 * saved / catalog.sum_bytes) if catalog.sum_bytes else 0,
        "widest": max((entry.image.size_bytes for entry in catalog.current), default=0) or 1,
        "tallies": _tallies(catalog.current),
        "current": current,
        "older": older,
        "broken": [_broken(image) for image in catalog.broken],
        "layers": [
            _layer(layer.digest, layer.step, layer.size_bytes, layer.images)
            for layer in catalog.layers
        ],
    }
    return page.html(TEMPLATE, values)


def write(folder: Path, catalog: Catalog) -> tuple[Path, Path]:
    """Write ``index.html`` and ``catalog.json`` whole, and return where they are."""
    record.write(folder / DOCUMENT, format_json(catalog))
    documents.write(folder / PAGE, html(catalog))
    return folder / PAGE, folder / DOCUMENT


def _card(entry: Entry) -> Row:
    image, chips = entry.image, _chips(entry.image)
    return {
        "tag": image.tag,
        "cell": image.cell,
        "digest": image.digest,
        "short": _short(image.digest),
        "ref": image.ref,
        "pull": entry.pull,
        "tags": entry.tags,
        "channels": entry.channels,
        "platform": image.platform,
        "status": image.status,
        "bytes": image.size_bytes,
        "own_bytes": entry.own_bytes,
        "chips": chips,
        "gates": [_gate(name, image.gates.get(name, MISSING)) for name in GATES],
        "wheels": entry.wheels,
        "layers": [
            _layer(layer.digest, layer.step, layer.size_bytes, layer.images)
            for layer in entry.layers
        ],
        "statuses": " ".join(sorted({str(chip["status"]) for chip in chips})),
        "words": " ".join(
            [image.tag, *image.cell.values(), image.digest, image.platform, *entry.channels]
        ).lower(),
    }


def _chips(image: ImageRecord) -> list[Row]:
    """The gates at a glance; the smoke gate as its levels, since one of them may not have run."""
    found: list[Row] = []
    for name in GATES:
        gate = image.gates.get(name, MISSING)
        levels = LEVEL.findall(gate.text) if name == "smoke" else []
        if levels:
            found += [_chip(f"{level} smoke", status, gate) for level, status in levels]
        else:
            found.append(_chip(name, gate.status, gate))
    return found


def _chip(name: str, status: str, gate: Gate) -> Row:
    return {
        "name": name,
        "status": status,
        "sign": SIGNS[status],
        "word": WORDS[status],
        "why": ": ".join(part for part in (gate.cls, gate.text) if part) or WORDS[status],
    }


def _gate(name: GateName, gate: Gate) -> Row:
    return {
        **_chip(name, gate.status, gate),
        "cls": gate.cls,
        "text": gate.text,
        "seconds": gate.seconds,
    }


def _layer(digest: str, step: str, size_bytes: int, images: int) -> Row:
    return {
        "digest": digest,
        "short": _short(digest),
        "step": step,
        "bytes": size_bytes,
        "images": images,
    }


def _broken(image: ImageRecord) -> Row:
    failure = image.failure
    reasons = [gate.text for gate in image.gates.values() if gate.text]
    return {
        "tag": image.tag,
        "cell": image.cell,
        "status": image.status,
        "cls": failure.cls if failure is not None else "",
        "step": failure.step if failure is not None else "",
        "reason": reasons[0] if reasons else "",
        "tail": failure.stderr_tail if failure is not None else (),
        "repeat": failure.repeat if failure is not None else "",
    }


def _tallies(entries: Sequence[Entry]) -> list[Row]:
    """For each gate at a glance, how many images have each outcome."""
    counts: dict[str, dict[str, int]] = {}
    for entry in entries:
        for chip in _chips(entry.image):
            row = counts.setdefault(str(chip["name"]), dict.fromkeys(SIGNS, 0))
            row[str(chip["status"])] += 1
    return [{"name": name, "counts": _told(row)} for name, row in counts.items()]


def _told(counts: Mapping[str, int]) -> list[Row]:
    return [
        {"status": status, "sign": SIGNS[status], "word": WORDS[status], "count": count}
        for status, count in counts.items()
        if count
    ]


def _short(digest: str) -> str:
    return digest.removeprefix("sha256:")[:12]
