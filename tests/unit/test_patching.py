"""What a patch closes, by the scans from before and after; what is not known is said so."""

import json
from pathlib import Path

from catalog_samples import PASSED, gates, image

from gpulayers.patching import compare, scanned
from gpulayers.record import Gate, ImageRecord, not_run

FIXTURE = Path(__file__).parents[1] / "fixtures" / "trivy" / "planted.json"
REJECTED = Gate(status="failed", cls="scan-rejected", text="", seconds=0.0)


def kept(scans: Path, scan: Gate, *, is_mended: bool) -> ImageRecord:
    """An image with a real report of Trivy, as it stands or without its vulnerabilities."""
    document = json.loads(FIXTURE.read_text(encoding="utf-8"))
    name, _, digest = document["ArtifactName"].partition("@")
    text = FIXTURE.read_text(encoding="utf-8")
    if is_mended:
        for result in document["Results"]:
            result.pop("Vulnerabilities", None)
        other = "sha256:" + "b" * 64
        text, digest = json.dumps(document).replace(digest, other), other
    folder = scans / digest.removeprefix("sha256:")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "trivy.json").write_text(text, encoding="utf-8")
    return image(ref=f"{name}@{digest}", digest=digest, gates=gates(scan=scan))


def test_what_the_scan_before_found_and_that_after_does_not_is_closed(tmp_path: Path) -> None:
    before = kept(tmp_path, REJECTED, is_mended=False)
    after = kept(tmp_path, PASSED, is_mended=True)
    found = compare([before], [after], tmp_path)
    assert found.unknown == ()
    said = {one.finding.id: one.format() for one in found.closed}
    assert said["CVE-2019-10906"].startswith("HIGH CVE-2019-10906 Jinja2 ")
    assert said["CVE-2019-10906"].endswith("), in app")
    assert all(one.tags == ("app",) for one in found.closed)
    assert compare([after], [before], tmp_path).closed == ()


def test_an_image_without_two_scans_is_not_known(tmp_path: Path) -> None:
    before = kept(tmp_path, REJECTED, is_mended=False)
    unmade = kept(tmp_path, not_run("scan-database-missing", ""), is_mended=True)
    assert compare([before], [unmade], tmp_path).unknown == ("app",)
    assert compare([], [before], tmp_path).unknown == ("app",)
    (tmp_path / before.digest.removeprefix("sha256:") / "trivy.json").write_text("half")
    assert compare([before], [before], tmp_path).unknown == ("app",)
    assert scanned(before, tmp_path) is None
