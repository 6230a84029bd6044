"""The bill of materials of a scanned image, in both formats, from the scan's own report."""

from dataclasses import dataclass
from pathlib import Path

from gpulayers.scan.trivy import Trivy


@dataclass(frozen=True, slots=True, kw_only=True)
class Sboms:
    """The files of one image."""

    cyclonedx: Path
    spdx: Path


def make(trivy: Trivy, report: Path, *, state: Path) -> Sboms:
    """Write ``sbom.cdx.json`` and ``sbom.spdx.json`` beside a report that lists all packages.

    Raises: ScanNotMadeError: Trivy could not.
    """
    made = Sboms(
        cyclonedx=report.with_name("sbom.cdx.json"), spdx=report.with_name("sbom.spdx.json")
    )
    trivy.convert(report, made.cyclonedx, form="cyclonedx", state=state)
    trivy.convert(report, made.spdx, form="spdx-json", state=state)
    return made
