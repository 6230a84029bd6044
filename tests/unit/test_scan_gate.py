"""What a policy makes of an outcome: rejected, too old, or left as it was."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gpulayers.refs import ImageRef, Platform
from gpulayers.scan.finding import DbState, Finding, Report
from gpulayers.scan.gate import Outcome, judged, summary
from gpulayers.scan.policy import Policy, Rule

SCANNED = datetime(2026, 12, 1, tzinfo=UTC)
POLICY = Policy(
    rules={
        "edge": Rule(
            channel="edge",
            reject=frozenset({"CRITICAL"}),
            ignore_unfixed=True,
            accepts_not_run=True,
        )
    },
    max_age_days=7,
)
READY = DbState(status="ready", folder=Path("/db"), java=None, updated=SCANNED, reason="")
FOUND = Finding(
    id="CVE-1",
    kind="vulnerability",
    severity="CRITICAL",
    package="openssl",
    installed="3.0.20",
    fixed="3.0.22",
    status="fixed",
    target="debian",
    layer_digest="",
    title="",
    url="",
)
REPORT = Report(
    ref=ImageRef.parse("r.local/a@sha256:" + "0" * 64),
    platform=Platform.parse("linux/amd64"),
    trivy="0.76.0",
    created=SCANNED,
    database=READY,
    os="debian 12.15",
    packages=3,
    jars=0,
    findings=(),
)
MADE = Outcome(
    status="passed", cls="", text="made", seconds=1.0, report_path=Path("/r"), report=REPORT
)
MISSING = READY.refused("gone")


def with_report(outcome: Outcome, *findings: Finding, database: DbState = READY) -> Outcome:
    return replace(outcome, report=replace(REPORT, findings=findings, database=database))


def test_an_accepted_scan_stays_passed() -> None:
    assert judged(MADE, POLICY, "edge") == MADE


def test_a_rejected_finding_fails_and_says_what_mends_it() -> None:
    outcome = judged(with_report(MADE, FOUND), POLICY, "edge")
    assert (outcome.status, outcome.cls) == ("failed", "scan-rejected")
    assert "1 finding that" in outcome.text
    assert "CRITICAL CVE-1 openssl 3.0.20 (fixed in 3.0.22)" in outcome.text


def test_many_rejected_findings_are_cut_and_counted() -> None:
    outcome = judged(with_report(MADE, *([FOUND] * 8)), POLICY, "edge")
    assert "8 findings" in outcome.text
    assert outcome.text.endswith("and 3 more")


def test_an_old_database_makes_a_clean_scan_not_run() -> None:
    old = replace(READY, updated=SCANNED - timedelta(days=30))
    outcome = judged(with_report(MADE, database=old), POLICY, "edge")
    assert (outcome.status, outcome.cls) == ("not-run", "scan-database-stale")
    assert "30 days old" in outcome.text


def test_an_old_database_does_not_save_what_it_finds() -> None:
    old = replace(READY, updated=SCANNED - timedelta(days=30))
    assert judged(with_report(MADE, FOUND, database=old), POLICY, "edge").status == "failed"


def test_a_scan_that_was_not_made_stays_so() -> None:
    lost = replace(MADE, status="not-run", cls="scan-timeout", report=None, report_path=None)
    assert judged(lost, POLICY, "edge") == lost


def test_a_missing_database_stays_not_run_but_a_secret_fails() -> None:
    half = replace(MADE, status="not-run", cls="scan-database-missing")
    assert judged(with_report(half, database=MISSING), POLICY, "edge").cls == half.cls
    secret = replace(FOUND, kind="secret", fixed="")
    assert judged(with_report(half, secret, database=MISSING), POLICY, "edge").status == "failed"


def test_the_summary_never_reads_as_clean_without_a_database() -> None:
    assert "not looked up" in summary(replace(REPORT, database=MISSING))
    assert "not looked up" not in summary(REPORT)


def test_the_summary_says_when_jars_had_no_index() -> None:
    assert "without the Java index" in summary(replace(REPORT, jars=2))
    indexed = replace(READY, java=Path("/java"))
    assert "Java" not in summary(replace(REPORT, jars=2, database=indexed))
