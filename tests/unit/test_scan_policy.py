"""policy.toml is read strictly, and its verdict on a report is a pure function."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulayers.errors import ProjectError
from gpulayers.refs import ImageRef, Platform
from gpulayers.scan.finding import DbState, Finding, Kind, Report, Severity
from gpulayers.scan.policy import Policy, judge, read

SHIPPED = Path(__file__).parents[2] / "scans" / "policy.toml"
SCANNED = datetime(2026, 12, 1, 12, tzinfo=UTC)
GOOD = """schema = 1
[severity]
edge = { reject = ["CRITICAL"], ignore-unfixed = true }
[not-run]
edge = "accept"
[database]
max-age-days = 7
"""


def finding(severity: Severity, *, fixed: str = "2", kind: Kind = "vulnerability") -> Finding:
    return Finding(
        id=f"X-{severity}-{fixed}",
        kind=kind,
        severity=severity,
        package="p",
        installed="1",
        fixed=fixed,
        status="",
        target="t",
        layer_digest="",
        title="",
        url="",
    )


def report(*findings: Finding, age: timedelta = timedelta(hours=1)) -> Report:
    return Report(
        ref=ImageRef.parse("r.local/a@sha256:" + "0" * 64),
        platform=Platform.parse("linux/amd64"),
        trivy="0.76.0",
        created=SCANNED,
        database=DbState(
            status="ready", folder=Path("/db"), java=None, updated=SCANNED - age, reason=""
        ),
        os="debian 12",
        packages=1,
        jars=0,
        findings=findings,
    )


def shipped() -> Policy:
    policy, problems = read(SHIPPED)
    assert problems == ()
    assert policy is not None
    return policy


def problems_of(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "policy.toml"
    path.write_text(text, encoding="utf-8")
    policy, problems = read(path)
    assert (policy is None) == bool(problems)
    return [problem.format().removeprefix(f"{path}") for problem in problems]


def test_the_shipped_policy_is_stricter_in_the_higher_channel() -> None:
    policy = shipped()
    assert policy.rule("edge").reject < policy.rule("stable").reject
    assert policy.rule("edge").accepts_not_run
    assert not policy.rule("stable").accepts_not_run


def test_a_good_policy_has_no_problem(tmp_path: Path) -> None:
    assert problems_of(tmp_path, GOOD) == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[database]", "[databse]", ["databse", "did you mean 'database'"]),
        ("max-age-days = 7", "max-age = 7", ["database.max-age", "'max-age-days'"]),
        ("max-age-days = 7", "max-age-days = 0", ["above 0", "found 0"]),
        ("max-age-days = 7", "max-age-days = true", ["above 0", "found True"]),
        ('["CRITICAL"]', '["CRITCAL"]', ["severity.edge.reject", "did you mean 'CRITICAL'"]),
        ('["CRITICAL"]', '["critical"]', ["severity.edge.reject", "did you mean 'CRITICAL'"]),
        ('["CRITICAL"]', '"CRITICAL"', ["a list of severities"]),
        ("ignore-unfixed = true", "ignore-unfixd = true", ["did you mean 'ignore-unfixed'"]),
        ("ignore-unfixed = true", 'ignore-unfixed = "yes"', ["true or false", "'yes'"]),
        ('edge = "accept"', 'edge = "maybe"', ["not-run.edge", "accept or reject", "'maybe'"]),
        ('edge = "accept"', 'egde = "accept"', ["not-run.egde", "did you mean 'edge'"]),
        ('edge = "accept"', "", ["not-run.edge", "found nothing"]),
        ("schema = 1", "schema = 2", ["schema = 1", "found 2"]),
        ("[severity]", "severity = 3\n[x]", ["severity", "a table", "found 3"]),
    ],
)
def test_a_wrong_entry_is_named(tmp_path: Path, old: str, new: str, words: list[str]) -> None:
    text = "\n".join(problems_of(tmp_path, GOOD.replace(old, new)))
    assert [word for word in words if word not in text] == []


def test_problems_come_all_at_once_with_their_lines(tmp_path: Path) -> None:
    text = GOOD.replace("schema = 1", "schema = 9").replace("accept", "no").replace("7", "-1")
    assert [line.split(":")[1] for line in problems_of(tmp_path, text)] == ["1", "5", "7"]


def test_a_file_that_is_no_toml_is_one_problem_with_its_line(tmp_path: Path) -> None:
    (line,) = problems_of(tmp_path, GOOD + "oops\n")
    assert line.startswith((":8:", ":9:"))


def test_a_missing_file_is_a_problem(tmp_path: Path) -> None:
    policy, problems = read(tmp_path / "none.toml")
    assert policy is None
    assert "No such file" in problems[0].found


def test_an_unknown_channel_names_the_nearest_one() -> None:
    with pytest.raises(ProjectError) as caught:
        shipped().rule("stabel")
    assert "stable" in caught.value.hint


def test_a_fixable_finding_of_a_rejected_severity_is_rejected() -> None:
    verdict = judge(report(finding("HIGH"), finding("CRITICAL")), shipped(), "stable")
    assert [f.severity for f in verdict.rejected] == ["CRITICAL", "HIGH"]


def test_an_unfixed_vulnerability_is_accepted_and_counted() -> None:
    verdict = judge(report(finding("CRITICAL", fixed="")), shipped(), "edge")
    assert verdict.rejected == ()
    assert verdict.accepted["CRITICAL"] == 1


def test_a_secret_needs_no_fix_to_be_rejected() -> None:
    found = finding("CRITICAL", fixed="", kind="secret")
    assert judge(report(found), shipped(), "edge").rejected == (found,)


def test_licences_and_misconfigurations_are_counted_only() -> None:
    found = [finding("CRITICAL", kind="license"), finding("CRITICAL", kind="misconfiguration")]
    verdict = judge(report(*found), shipped(), "stable")
    assert (verdict.rejected, verdict.accepted["CRITICAL"]) == ((), 2)


@pytest.mark.parametrize(
    ("age", "stale"),
    [(timedelta(days=7), False), (timedelta(days=7, seconds=1), True)],
)
def test_a_database_over_its_age_is_stale(age: timedelta, *, stale: bool) -> None:
    assert judge(report(age=age), shipped(), "edge").stale is stale


def test_a_database_of_unknown_age_is_stale() -> None:
    given = report()
    given = replace(given, database=replace(given.database, updated=None))
    verdict = judge(given, shipped(), "edge")
    assert (verdict.stale, verdict.age_days) == (True, None)


@given(
    st.lists(
        st.builds(
            finding,
            st.sampled_from(get_args(Severity)),
            fixed=st.sampled_from(["", "2"]),
            kind=st.sampled_from(get_args(Kind)),
        )
    ),
    st.sampled_from(["edge", "stable"]),
)
def test_every_finding_is_either_rejected_or_accepted(findings: list[Finding], to: str) -> None:
    verdict = judge(report(*findings), shipped(), to)
    assert len(verdict.rejected) + sum(verdict.accepted.values()) == len(findings)


@given(st.lists(st.builds(finding, st.sampled_from(get_args(Severity)))))
def test_what_the_higher_channel_accepts_the_lower_accepts(findings: list[Finding]) -> None:
    rejected = {c: set(judge(report(*findings), shipped(), c).rejected) for c in ("edge", "stable")}
    assert rejected["edge"] <= rejected["stable"]
