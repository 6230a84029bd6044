"""The real Trivy against images in a real registry."""

import json
import random
import string
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest

from gpulayers.engine import process
from gpulayers.refs import ImageRef, Platform
from gpulayers.scan import policy
from gpulayers.scan.gate import Outcome, judged
from gpulayers.scan.scanner import Scanner
from gpulayers.scan.trivy import Trivy

Push: TypeAlias = Callable[..., str]
ROOT = Path(__file__).parents[2]
AMD64, ARM64 = Platform.parse("linux/amd64"), Platform.parse("linux/arm64")
SYSTEM = "etc/os-release"
STATUS = "var/lib/dpkg/status"
SITE = "opt/venv/lib/python3.11/site-packages"
PLANTED = f"{SITE}/PyYAML-5.3.dist-info/METADATA"
MENDED = f"{SITE}/PyYAML-6.0.2.dist-info/METADATA"
DEBIAN = {
    SYSTEM: 'NAME="Debian GNU/Linux"\nVERSION_ID="12"\nID=debian\n',
    "etc/debian_version": "12.15\n",
    STATUS: (
        "Package: openssl\nStatus: install ok installed\nArchitecture: amd64\n"
        "Version: 3.0.20-1~deb12u2\nMaintainer: Debian <d@debian.org>\nDescription: x\n\n"
    ),
}
DOCKERFILE = "FROM scratch\nCOPY etc /etc\nCOPY var /var\nCOPY opt /opt\n"


def metadata(name: str, version: str) -> str:
    return f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"


@dataclass
class Images:
    """Pushed images by name."""

    registry: str
    digests: dict[str, str]

    def ref(self, name: str) -> ImageRef:
        return ImageRef.parse(f"{self.registry}/tests/scan/{name}@{self.digests[name]}")


@pytest.fixture(scope="module")
def images(registry: str, push: Push) -> Images:
    planted = {**DEBIAN, PLANTED: metadata("PyYAML", "5.3")}
    mended = {**DEBIAN, MENDED: metadata("PyYAML", "6.0.2")}
    # Made here, so that no file of ours looks as if it held a token.
    letters = random.Random(1).choices(string.ascii_letters + string.digits, k=36)
    token = f"ENV GITHUB_TOKEN=ghp_{''.join(letters)}\n"
    wanted = {
        "planted": (DOCKERFILE, planted, "linux/amd64"),
        "mended": (DOCKERFILE, mended, "linux/amd64"),
        "token": (DOCKERFILE + token, mended, "linux/amd64"),
        "arm": (DOCKERFILE, mended, "linux/arm64"),
        "bare": ("FROM scratch\nCOPY hello /\n", {"hello": "x"}, "linux/amd64"),
    }
    digests = {
        name: push(f"tests/scan/{name}", dockerfile, files=files, platform=platform)
        for name, (dockerfile, files, platform) in wanted.items()
    }
    return Images(registry=registry, digests=digests)


@pytest.fixture(scope="module")
def trivy(engine_env: dict[str, str]) -> Trivy:
    assert engine_env
    return Trivy.find()


def build_database(folder: Path, *options: str) -> Path:
    made = process.run(
        [sys.executable, str(ROOT / "tools/trivy_db"), "build", str(folder), *options]
    )
    assert made.ok, made.stderr
    return folder


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_database(tmp_path_factory.mktemp("database"))


@pytest.fixture
def scanner(trivy: Trivy, database: Path, tmp_path: Path) -> Scanner:
    return opened(trivy, tmp_path, database)


def opened(trivy: Trivy, tmp_path: Path, database: Path | None) -> Scanner:
    environ = {"GPULAYERS_OFFLINE": "1"}
    environ |= {"GPULAYERS_TRIVY_DB": str(database)} if database else {}
    return Scanner.open(tmp_path / "state", trivy=trivy, environ=environ)


def verdict(outcome: Outcome, channel: str) -> Outcome:
    shipped, problems = policy.read(ROOT / "scans" / "policy.toml")
    assert shipped is not None, problems
    return judged(outcome, shipped, channel)


def test_a_planted_package_is_found_and_rejected(
    scanner: Scanner, images: Images, tmp_path: Path
) -> None:
    outcome = scanner.scan(images.ref("planted"), AMD64, reports=tmp_path / "scans")
    assert outcome.report is not None, outcome.text
    found = {finding.id: finding for finding in outcome.report.findings}
    assert found["CVE-2020-14343"].package == "PyYAML"
    assert found["CVE-2026-63072"].package == "openssl"
    assert "CVE-2026-34182" not in found  # fixed in the version that is installed
    assert outcome.report.os == "debian 12.15"
    assert outcome.status == "passed"
    assert verdict(outcome, "edge").cls == "scan-rejected"
    assert "PyYAML 5.3 (fixed in 5.4)" in verdict(outcome, "stable").text


def test_a_mended_package_passes(scanner: Scanner, images: Images, tmp_path: Path) -> None:
    outcome = scanner.scan(images.ref("mended"), AMD64, reports=tmp_path / "scans")
    assert (verdict(outcome, "edge").status, verdict(outcome, "stable").status) == ("passed",) * 2


def test_both_boms_name_every_package(scanner: Scanner, images: Images, tmp_path: Path) -> None:
    outcome = scanner.scan(images.ref("mended"), AMD64, reports=tmp_path)
    assert outcome.report_path is not None
    folder = outcome.report_path.parent
    assert folder.name == images.digests["mended"].removeprefix("sha256:")
    cyclonedx = json.loads((folder / "sbom.cdx.json").read_text(encoding="utf-8"))
    spdx = json.loads((folder / "sbom.spdx.json").read_text(encoding="utf-8"))
    assert {"PyYAML", "openssl"} <= {part["name"] for part in cyclonedx["components"]}
    assert {"PyYAML", "openssl"} <= {part["name"] for part in spdx["packages"]}
    assert images.digests["mended"] in json.dumps(cyclonedx["metadata"]["component"])


def test_a_token_in_the_image_s_settings_is_found(
    scanner: Scanner, images: Images, tmp_path: Path
) -> None:
    outcome = scanner.scan(images.ref("token"), AMD64, reports=tmp_path)
    assert outcome.report is not None
    (found,) = [finding for finding in outcome.report.findings if finding.kind == "secret"]
    assert found.id == "github-pat"  # once, though history and settings both hold it
    assert verdict(outcome, "edge").status == "failed"


def test_without_a_database_nothing_passes_and_packages_are_listed(
    trivy: Trivy, images: Images, tmp_path: Path
) -> None:
    outcome = opened(trivy, tmp_path, None).scan(images.ref("planted"), AMD64, reports=tmp_path)
    assert (outcome.status, outcome.cls) == ("not-run", "scan-database-missing")
    assert outcome.report is not None
    assert outcome.report.packages == 2
    assert verdict(outcome, "edge").status == "not-run"
    assert outcome.report_path is not None
    assert outcome.report_path.with_name("sbom.cdx.json").is_file()


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: b"x" * len(raw),
        lambda raw: raw[:9000],
        lambda raw: raw[: 3 * 4096] + b"\xff" * (len(raw) - 3 * 4096),
    ],
    ids=["garbage", "cut", "damaged-inside"],
)
def test_a_broken_database_is_not_run(
    trivy: Trivy,
    images: Images,
    tmp_path: Path,
    damage: Callable[[bytes], bytes],
) -> None:
    folder = build_database(tmp_path / "broken")
    file = folder / "trivy.db"
    file.write_bytes(damage(file.read_bytes()))
    outcome = opened(trivy, tmp_path, folder).scan(images.ref("mended"), AMD64, reports=tmp_path)
    assert (outcome.status, outcome.cls) == ("not-run", "scan-database-broken")
    assert outcome.report is not None


def test_an_old_database_does_not_make_a_clean_scan(
    trivy: Trivy, images: Images, tmp_path: Path
) -> None:
    folder = build_database(tmp_path / "old", "--age-days", "30")
    outcome = opened(trivy, tmp_path, folder).scan(images.ref("mended"), AMD64, reports=tmp_path)
    assert outcome.status == "passed"
    assert verdict(outcome, "stable").cls == "scan-database-stale"


def test_a_digest_that_is_not_there_is_not_run(
    scanner: Scanner, images: Images, tmp_path: Path
) -> None:
    wrong = images.ref("mended").with_digest("sha256:" + "a" * 64)
    outcome = scanner.scan(wrong, AMD64, reports=tmp_path / "scans")
    assert (outcome.status, outcome.cls) == ("not-run", "scan-image-missing")
    assert outcome.report_path is None


def test_an_image_for_another_platform_is_not_run(
    scanner: Scanner, images: Images, tmp_path: Path
) -> None:
    outcome = scanner.scan(images.ref("arm"), AMD64, reports=tmp_path)
    assert (outcome.status, outcome.cls) == ("not-run", "scan-wrong-image")
    assert scanner.scan(images.ref("arm"), ARM64, reports=tmp_path).status == "passed"


def test_an_image_that_trivy_knows_nothing_about_is_not_run(
    scanner: Scanner, images: Images, tmp_path: Path
) -> None:
    outcome = scanner.scan(images.ref("bare"), AMD64, reports=tmp_path)
    assert (outcome.status, outcome.cls) == ("not-run", "scan-empty")


def test_a_registry_that_does_not_answer_is_not_run(
    scanner: Scanner, images: Images, tmp_path: Path
) -> None:
    closed = ImageRef.parse(f"127.0.0.1:1/tests/scan/mended@{images.digests['mended']}")
    outcome = scanner.scan(closed, AMD64, reports=tmp_path)
    assert (outcome.status, outcome.cls) == ("not-run", "scan-registry-unreachable")


def test_a_scan_that_takes_too_long_is_stopped_and_leaves_nothing(
    scanner: Scanner, images: Images, tmp_path: Path
) -> None:
    outcome = scanner.scan(images.ref("mended"), AMD64, reports=tmp_path / "s", timeout_s=0.02)
    assert (outcome.status, outcome.cls) == ("not-run", "scan-timeout")
    assert list((tmp_path / "state" / "work").iterdir()) == []


def test_scans_at_once_all_succeed(scanner: Scanner, images: Images, tmp_path: Path) -> None:
    names = ["planted", "mended", "token", "mended", "planted", "mended"]

    def scan(name: str) -> Outcome:
        return scanner.scan(images.ref(name), AMD64, reports=tmp_path / "scans")

    with ThreadPoolExecutor(len(names)) as pool:
        outcomes = list(pool.map(scan, names))
    assert [outcome.cls for outcome in outcomes] == [""] * len(names)


def test_a_caller_s_settings_hide_nothing(
    scanner: Scanner,
    images: Images,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".trivyignore").write_text("CVE-2020-14343\n", encoding="utf-8")
    (tmp_path / "trivy.yaml").write_text("severity: [LOW]\n", encoding="utf-8")
    monkeypatch.setenv("TRIVY_SEVERITY", "LOW")
    monkeypatch.setenv("TRIVY_IGNORE_UNFIXED", "true")
    outcome = scanner.scan(images.ref("planted"), AMD64, reports=tmp_path / "scans")
    assert outcome.report is not None, outcome.text
    assert "CVE-2020-14343" in {finding.id for finding in outcome.report.findings}
