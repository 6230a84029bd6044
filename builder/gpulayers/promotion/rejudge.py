"""The scan of an image once more, by another channel's rule, from the report that was kept."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from gpulayers.record import Gate, ImageRecord, not_run
from gpulayers.refs import ImageRef, Platform
from gpulayers.scan.finding import DbState, Report
from gpulayers.scan.gate import Outcome, judged
from gpulayers.scan.policy import Policy
from gpulayers.scan.report import WrongReportError, parse

REPORT = "trivy.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """By what to judge: ``scans`` holds ``HEX/trivy.json``, as the scanner leaves it."""

    policy: Policy
    channel: str
    scans: Path
    now: datetime


def rejudged(image: ImageRecord, judge: Judge) -> ImageRecord:
    """The image with the scan's gate as the channel sees it.

    Shape: a scan that failed stays failed. One that passed has to be proven by its report: where
    that is gone, is another image's, or is older than the policy lets a database be, the scan
    counts as not run.
    Raises: ProjectError: the policy does not know the channel.
    """
    judge.policy.rule(judge.channel)
    scan = image.gates.get("scan")
    if scan is None or scan.status not in ("passed", "not-run") or not image.digest:
        return image
    return replace(image, gates={**image.gates, "scan": _gate(image, scan, judge)})


def _gate(image: ImageRecord, scan: Gate, judge: Judge) -> Gate:
    path = report_path(image, judge.scans)
    if not path.is_file():
        text = f"its report {path} is gone, so that {judge.channel} cannot be asked"
        return scan if scan.status != "passed" else not_run("scan-report-missing", text)
    try:
        report = kept_report(image, path, scan)
    except WrongReportError as error:
        return not_run(error.cls, f"{path}: {error}")
    return _judged(scan, _ready(report, scan), judge)


def report_path(image: ImageRecord, scans: Path) -> Path:
    """Where the scanner leaves the report of an image."""
    return scans / image.digest.removeprefix("sha256:") / REPORT


def kept_report(image: ImageRecord, path: Path, scan: Gate) -> Report:
    """The report that the scan of an image left.

    Raises: WrongReportError: it is another image's, or no report.
    """
    return parse(
        path.read_text(encoding="utf-8"),
        ref=ImageRef.parse(image.ref),
        platform=Platform.parse(image.platform),
        trivy="",
        database=_database(scan),
    )


def _judged(scan: Gate, report: Report, judge: Judge) -> Gate:
    outcome = Outcome(
        status="passed" if scan.status == "passed" else "not-run",
        cls=scan.cls,
        text=scan.text,
        seconds=scan.seconds,
        report_path=None,
        report=report,
    )
    found = judged(outcome, judge.policy, judge.channel)
    age = judge.now - report.created
    if found.status == "passed" and age > timedelta(days=judge.policy.max_age_days):
        days = f"{age.days} days old; the policy takes {judge.policy.max_age_days} at most"
        return not_run("scan-database-stale", f"the scan is {days}: scan again")
    return Gate(status=found.status, cls=found.cls, text=found.text, seconds=found.seconds)


def _database(scan: Gate) -> DbState:
    return DbState(status="missing", folder=None, java=None, updated=None, reason=scan.text)


def _ready(report: Report, scan: Gate) -> Report:
    """The report with the database that a passed scan must have had: ready, and not too old then.

    Trivy's document does not name its database; that the gate passed does.
    """
    if scan.status != "passed":
        return report
    return replace(
        report, database=replace(report.database, status="ready", updated=report.created)
    )
