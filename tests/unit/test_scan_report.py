"""Trivy's documents, real ones of 0.76.0, become our report or are refused."""

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gpulayers.refs import ImageRef, Platform
from gpulayers.scan.finding import DbState, Report
from gpulayers.scan.report import WrongReportError, parse

FIXTURES = Path(__file__).parents[1] / "fixtures" / "trivy"
AMD64 = Platform.parse("linux/amd64")
READY = DbState(
    status="ready",
    folder=Path("/db"),
    java=None,
    updated=datetime(2026, 12, 1, tzinfo=UTC),
    reason="",
)


def text_of(name: str) -> str:
    return (FIXTURES / f"{name}.json").read_text(encoding="utf-8")


def ref_of(name: str) -> ImageRef:
    return ImageRef.parse(json.loads(text_of(name))["ArtifactName"])


def report_of(name: str, text: str | None = None) -> Report:
    return parse(
        text or text_of(name),
        ref=ref_of(name),
        platform=AMD64,
        trivy="0.76.0",
        database=READY,
    )


def test_a_report_tells_system_and_packages() -> None:
    report = report_of("planted")
    assert (report.os, report.packages, report.jars) == ("debian 12.15", 3, 0)
    assert report.ref.digest == ref_of("planted").digest


def test_a_vulnerability_tells_package_fix_place_and_layer() -> None:
    (found,) = [f for f in report_of("planted").findings if f.id == "CVE-2019-10906"]
    assert (found.kind, found.severity, found.status) == ("vulnerability", "HIGH", "fixed")
    assert (found.package, found.installed, found.fixed) == ("Jinja2", "2.10", "2.10.1")
    assert found.target.endswith("Jinja2-2.10.dist-info/METADATA")
    assert found.layer_digest.startswith("sha256:")
    assert found.url == "https://avd.aquasec.com/nvd/cve-2019-10906"


def test_an_unfixed_vulnerability_has_an_empty_fix() -> None:
    (found,) = [f for f in report_of("planted").findings if f.id == "CVE-2023-45853"]
    assert (found.severity, found.fixed, found.status) == ("CRITICAL", "", "will_not_fix")


def test_all_four_kinds_are_read() -> None:
    kinds = Counter(finding.kind for finding in report_of("all-kinds").findings)
    assert kinds == {"vulnerability": 8, "misconfiguration": 3, "secret": 2, "license": 2}


def test_findings_are_sorted_worst_first() -> None:
    order = ["CRITICAL", "HIGH", "MEDIUM", "LOW", "UNKNOWN"]
    severities = [finding.severity for finding in report_of("all-kinds").findings]
    assert severities == sorted(severities, key=order.index)


def test_a_secret_s_value_is_nowhere_in_the_report() -> None:
    text = text_of("all-kinds").replace('"Match": "', '"Match": "the-value ')
    assert "the-value" not in repr(report_of("all-kinds", text))


def test_a_report_without_a_database_lists_the_packages() -> None:
    report = report_of("no-database")
    assert (report.packages, report.findings) == (3, ())


@pytest.mark.parametrize(
    ("name", "cls", "words"),
    [
        ("other-platform", "scan-wrong-image", "linux/arm64"),
        ("no-system", "scan-empty", "no operating system"),
    ],
)
def test_what_would_read_as_clean_is_refused(name: str, cls: str, words: str) -> None:
    with pytest.raises(WrongReportError, match=words) as caught:
        report_of(name)
    assert caught.value.cls == cls


def test_a_report_of_another_digest_is_refused() -> None:
    other = ref_of("planted").with_digest("sha256:" + "a" * 64)
    with pytest.raises(WrongReportError, match=other.digest) as caught:
        parse(text_of("planted"), ref=other, platform=AMD64, trivy="0.76.0", database=READY)
    assert caught.value.cls == "scan-wrong-image"


def test_a_report_that_names_the_digest_in_one_place_only_is_refused() -> None:
    document = json.loads(text_of("planted"))
    document["Metadata"]["RepoDigests"] = ["127.0.0.1:5000/acme/plain@sha256:" + "b" * 64]
    with pytest.raises(WrongReportError, match="b" * 64):
        report_of("planted", json.dumps(document))


def test_a_report_without_repository_digests_is_refused() -> None:
    document = json.loads(text_of("planted"))
    del document["Metadata"]["RepoDigests"]
    with pytest.raises(WrongReportError, match="asked for was"):
        report_of("planted", json.dumps(document))


def test_a_system_without_any_package_is_refused() -> None:
    document = json.loads(text_of("planted"))
    for result in document["Results"]:
        del result["Packages"]
    with pytest.raises(WrongReportError, match="no package at all") as caught:
        report_of("planted", json.dumps(document))
    assert caught.value.cls == "scan-empty"


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '"text"', "null", '{"SchemaVersion": 1}', "Usage: trivy image"],
)
def test_what_is_no_document_of_trivy_is_unreadable(text: str) -> None:
    with pytest.raises(WrongReportError) as caught:
        report_of("planted", text or " ")
    assert caught.value.cls == "scan-unreadable"


def test_a_document_with_odd_types_inside_does_not_crash() -> None:
    document = json.loads(text_of("planted"))
    document["Results"] += [7, {"Vulnerabilities": "x", "Packages": {}}, {"Vulnerabilities": [3]}]
    assert len(report_of("planted", json.dumps(document)).findings) == 8
