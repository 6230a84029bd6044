"""The outcome of a scan, and what a channel's policy makes of it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from gpulayers.scan.finding import Report, counts
from gpulayers.scan.policy import Policy, Verdict, judge

Status = Literal["passed", "failed", "not-run"]
NAMED_FINDINGS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a scan ended.

    Shape: before ``judged``, ``passed`` says only that the scan was made; ``failed`` is a policy's
    word (exit code 7), ``not-run`` a scan that could not be made (14), never one for the other.
    ``cls`` is empty when passed. ``report`` and ``report_path`` may be there on ``not-run`` too:
    without a database the packages were still listed.
    Units: ``seconds`` of wall time.
    """

    status: Status
    cls: str
    text: str
    seconds: float
    report_path: Path | None
    report: Report | None


def judged(outcome: Outcome, policy: Policy, channel: str) -> Outcome:
    """The same scan after the channel's policy has spoken.

    Shape: what was found and is rejected is ``failed``, even where part of the scan could not be
    made; a scan that could not be made, or asked a database that was too old, is ``not-run``.
    ``Policy.rule(channel).accepts_not_run`` says whether the channel lives with that.
    Raises: ProjectError: the policy does not know the channel.
    """
    if outcome.report is None:
        return outcome
    verdict = judge(outcome.report, policy, channel)
    if verdict.rejected:
        return replace(outcome, status="failed", cls="scan-rejected", text=_rejected_text(verdict))
    if outcome.status == "passed" and verdict.stale:
        return replace(
            outcome, status="not-run", cls="scan-database-stale", text=_stale_text(verdict, policy)
        )
    return outcome


def summary(report: Report) -> str:
    """One sentence: system, packages, findings by severity."""
    found = ", ".join(f"{count} {name}" for name, count in counts(report.findings).items() if count)
    looked = "" if report.database.status == "ready" else " listed, vulnerabilities not looked up"
    text = f"{report.os}, {report.packages} packages{looked}: {found or 'no findings'}"
    if report.jars and report.database.java is None:
        text += f"; {report.jars} Java packages were named without the Java index"
    return text


def _rejected_text(verdict: Verdict) -> str:
    named = "; ".join(finding.format() for finding in verdict.rejected[:NAMED_FINDINGS])
    count = len(verdict.rejected)
    more = count - NAMED_FINDINGS
    noun = "finding" if count == 1 else "findings"
    text = f"{count} {noun} that channel {verdict.channel} rejects: {named}"
    return text + (f"; and {more} more" if more > 0 else "")


def _stale_text(verdict: Verdict, policy: Policy) -> str:
    age = "of unknown age" if verdict.age_days is None else f"{verdict.age_days} days old"
    return f"the vulnerability database is {age}; the policy takes {policy.max_age_days} at most"
