"""The state folder, read: images of the last run and of those before, and who holds which tag."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from gpulayers import documents
from gpulayers.catalog.parse import parse_image
from gpulayers.errors import ProjectError
from gpulayers.history import FILE as HISTORY
from gpulayers.history import History, stamp
from gpulayers.record import REMEDY, SCHEMA, ImageRecord
from gpulayers.refs import ImageRef

REPORT = "report.json"
RECORDS = "records"
SCANS = "scans"
SBOM = "sbom.cdx.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What the state folder knows.

    Shape: ``last`` are the last run's images in its order, those that were not made included;
    ``older`` are the other ones, by tag and digest; ``holders`` maps a tag (``HOST/NAME:TAG``) to
    the digest it was last given; ``wheels`` maps a digest to its Python packages, where a bill of
    materials was kept; ``started`` is "" where there was no run; ``exit_code`` is the last run's.
    """

    last: tuple[ImageRecord, ...]
    older: tuple[ImageRecord, ...]
    holders: Mapping[str, str]
    wheels: Mapping[str, Mapping[str, str]]
    started: str
    exit_code: int

    @property
    def images(self) -> tuple[ImageRecord, ...]:
        """All images that were made, those of the last run first."""
        return tuple(image for image in (*self.last, *self.older) if image.digest)


@dataclass(frozen=True, slots=True)
class _Claim:
    time: str
    ref: str
    digest: str


def read(state: Path) -> State:
    """What is known of all images; nothing at all where no run was made yet.

    Shape: where report and record tell of the same digest, the younger file counts; a record that
    cannot be read is passed over.
    Raises: ProjectError: the report or the history of tags is no such file.
    """
    report_file = state / REPORT
    document = _report(report_file)
    last = tuple(image for each in _rows(document) if (image := parse_image(each)) is not None)
    records = dict(_records(state / RECORDS))
    # To the second: a record that its own run wrote is as young as the run's report.
    written = _time(report_file)[:19] if last else ""
    young = {
        image.digest: image
        for image, time in records.values()
        if time[:19] > written and image.digest
    }
    last = tuple(young.get(image.digest, image) for image in last)
    known = {image.digest for image in last}
    older = [image for image, _ in records.values() if image.digest not in known]
    started, code = document.get("started"), document.get("exit_code")
    images = (*last, *older)
    return State(
        last=last,
        older=tuple(sorted(older, key=lambda image: (image.tag, image.digest))),
        holders=_holders(state, last, records, _time(report_file) if last else ""),
        wheels={each.digest: _wheels(state / SCANS, each.digest) for each in images if each.digest},
        started=started if isinstance(started, str) else "",
        exit_code=code if isinstance(code, int) else 0,
    )


def _report(path: Path) -> Mapping[str, object]:
    if not path.is_file():
        return {}
    try:
        document: object = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        document = str(error)
    if isinstance(document, dict) and isinstance(document.get("images"), list):
        documents.demand_schema(document.get("schema"), SCHEMA, path=path, remedy=REMEDY)
        return document
    msg = f"{path}: wanted a report with a list of images, found something else"
    raise ProjectError(msg, hint="remove it and run `gpulayers build` again")


def _rows(document: Mapping[str, object]) -> tuple[object, ...]:
    images = document.get("images")
    return tuple(images) if isinstance(images, list) else ()


def _records(folder: Path) -> Iterator[tuple[str, tuple[ImageRecord, str]]]:
    for path in sorted(folder.glob("*.json")):
        try:
            image = parse_image(json.loads(path.read_text(encoding="utf-8")))
        except ValueError:
            continue
        if image is not None and image.digest == f"sha256:{path.stem}":
            yield image.digest, (image, _time(path))


def _time(path: Path) -> str:
    return stamp(datetime.fromtimestamp(path.stat().st_mtime, UTC))


def _holders(
    state: Path,
    last: tuple[ImageRecord, ...],
    records: Mapping[str, tuple[ImageRecord, str]],
    written: str,
) -> Mapping[str, str]:
    """Tag to digest by what was said last: by records, by the report, or by the history."""
    claims = [_Claim(time, *pair) for image, time in records.values() for pair in _tags(image)]
    claims += [_Claim(written, *pair) for image in last for pair in _tags(image)]
    moves = History(state / HISTORY).read()
    claims += [_Claim(move.time, move.ref, move.new) for move in moves]
    return {claim.ref: claim.digest for claim in sorted(claims, key=lambda claim: claim.time)}


def _tags(image: ImageRecord) -> Iterator[tuple[str, str]]:
    if image.ref:
        ref = ImageRef.parse(image.ref)
        yield from ((ref.with_tag(tag).format(), image.digest) for tag in image.tags)


def _wheels(scans: Path, digest: str) -> Mapping[str, str]:
    path = scans / digest.removeprefix("sha256:") / SBOM
    try:
        document: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    found = document.get("components") if isinstance(document, dict) else None
    rows = found if isinstance(found, list) else []
    wheels = {
        row["name"]: row["version"]
        for row in rows
        if isinstance(row, dict)
        and str(row.get("purl")).startswith("pkg:pypi/")
        and isinstance(row.get("name"), str)
        and isinstance(row.get("version"), str)
    }
    return dict(sorted(wheels.items(), key=lambda item: item[0].lower()))


def seen_by(state: State, tags: Mapping[str, str | None]) -> State:
    """The state with what the registry itself says of tags: a digest, or None for no such tag."""
    holders = {**state.holders, **{ref: digest or "" for ref, digest in tags.items()}}
    return replace(state, holders={ref: digest for ref, digest in holders.items() if digest})
