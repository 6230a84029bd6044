"""What a patch of the fleet closes: vulnerabilities that the images had and have no more."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from gpulayers.promotion.rejudge import kept_report, report_path
from gpulayers.record import ImageRecord
from gpulayers.scan.finding import Finding, Report
from gpulayers.scan.report import WrongReportError

MADE = ("passed", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """One vulnerability that went away, in the package that had it, with the images."""

    finding: Finding
    tags: tuple[str, ...]

    def format(self) -> str:
        """``SEVERITY ID PACKAGE VERSION (fixed in …), in N images``."""
        count = f"{len(self.tags)} images" if len(self.tags) > 1 else self.tags[0]
        return f"{self.finding.format()}, in {count}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What two runs of scans say; ``unknown`` are the tags of images without two scans."""

    closed: tuple[Closed, ...]
    unknown: tuple[str, ...]


def compare(before: Sequence[ImageRecord], after: Sequence[ImageRecord], scans: Path) -> Compared:
    """What images had before and have no more, by the reports that were kept of their scans."""
    old = {image.tag: image for image in before}
    gone: dict[tuple[str, str], tuple[Finding, list[str]]] = {}
    unknown: list[str] = []
    for image in after:
        had = _found(old[image.tag], scans) if image.tag in old else None
        has = _found(image, scans)
        if had is None or has is None:
            unknown.append(image.tag)
            continue
        for key, finding in had.items():
            if key not in has:
                gone.setdefault(key, (finding, []))[1].append(image.tag)
    closed = tuple(Closed(finding=f, tags=tuple(tags)) for f, tags in gone.values())
    return Compared(closed=closed, unknown=tuple(unknown))


def _found(image: ImageRecord, scans: Path) -> dict[tuple[str, str], Finding] | None:
    """The vulnerabilities of an image by id and package; None where no scan was made of it."""
    findings = vulnerabilities(image, scans)
    return None if findings is None else {(f.id, f.package): f for f in findings}


def vulnerabilities(image: ImageRecord, scans: Path) -> tuple[Finding, ...] | None:
    """The vulnerabilities that the kept scan of an image found, or None where there is none."""
    scan = image.gates.get("scan")
    report = _report(image, scans) if scan is not None and scan.status in MADE else None
    if report is None:
        return None
    return tuple(finding for finding in report.findings if finding.kind == "vulnerability")


def scanned(image: ImageRecord, scans: Path) -> datetime | None:
    """When the kept scan of an image was made, UTC; None where there is none."""
    report = _report(image, scans)
    return report.created if report is not None else None


def _report(image: ImageRecord, scans: Path) -> Report | None:
    scan = image.gates.get("scan")
    path = report_path(image, scans)
    if scan is None or not image.digest or not path.is_file():
        return None
    try:
        return kept_report(image, path, scan)
    except WrongReportError:
        return None
