"""Trivy's JSON, narrowed once: the report of the image that was asked for, or why it is not."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from gpulayers.refs import ImageRef, Platform
from gpulayers.scan.finding import DbState, Finding, Kind, Report, severity, worst_first

Table = Mapping[str, object]


class WrongReportError(Exception):
    """A document that cannot stand as the report of the image that was asked for."""

    def __init__(self, text: str, *, cls: str) -> None:
        super().__init__(text)
        self.cls = cls


def parse(text: str, *, ref: ImageRef, platform: Platform, trivy: str, database: DbState) -> Report:
    """Read what ``trivy image -f json --list-all-pkgs`` wrote.

    Shape: unknown keys are passed over and all others may be absent, which covers Trivy's
    documents from 0.59 to 0.76 (``SchemaVersion`` 2).
    Raises: WrongReportError: it is no such document (``scan-unreadable``), it tells of another
    digest or platform (``scan-wrong-image``), or it has no operating system or no package
    (``scan-empty``): Trivy ends with status 0 then, and nothing found would read as clean.
    """
    document = _document(text)
    metadata = _table(document.get("Metadata"))
    _check_image(document, metadata, ref=ref, platform=platform)
    results = _rows(document.get("Results"))
    # A token of an ENV stands in the settings and in the history: alike to us, and one finding.
    findings = dict.fromkeys(finding for result in results for finding in _findings(result))
    system = _table(metadata.get("OS"))
    packages = sum(len(_rows(result.get("Packages"))) for result in results)
    _check_contents(system, packages, ref)
    return Report(
        ref=ref,
        platform=platform,
        trivy=trivy,
        created=_time(document.get("CreatedAt")),
        database=database,
        os=f"{_text(system.get('Family'))} {_text(system.get('Name'))}".strip(),
        packages=packages,
        jars=sum(
            len(_rows(result.get("Packages"))) for result in results if result.get("Type") == "jar"
        ),
        findings=worst_first(findings),
    )


def _document(text: str) -> Table:
    try:
        document: object = json.loads(text)
    except ValueError as error:
        msg = f"what Trivy wrote is not JSON: {error}"
        raise WrongReportError(msg, cls="scan-unreadable") from error
    table = _table(document)
    if table.get("SchemaVersion") != 2:  # noqa: PLR2004 - the one Trivy has written since 2021
        msg = f"wanted Trivy's document of schema 2, found schema {table.get('SchemaVersion')!r}"
        raise WrongReportError(msg, cls="scan-unreadable")
    return table


def _check_image(document: Table, metadata: Table, *, ref: ImageRef, platform: Platform) -> None:
    named = [
        _text(document.get("ArtifactName")),
        *(_text(digest) for digest in _list(metadata.get("RepoDigests"))),
    ]
    # All of them: one that tells of another digest is a mixed-up document.
    if not metadata.get("RepoDigests") or not all(n.endswith(f"@{ref.digest}") for n in named):
        msg = f"the scan tells of {', '.join(named)}; asked for was {ref.format()}"
        raise WrongReportError(msg, cls="scan-wrong-image")
    # --platform only picks from an index: a manifest of another platform is scanned without a word.
    config = _table(metadata.get("ImageConfig"))
    found = f"{_text(config.get('os'))}/{_text(config.get('architecture'))}"
    if found != platform.format():
        msg = f"{ref.format()} is an image for {found}; asked for was {platform.format()}"
        raise WrongReportError(msg, cls="scan-wrong-image")


def _check_contents(system: Table, packages: int, ref: ImageRef) -> None:
    if not _text(system.get("Family")):
        msg = f"Trivy recognised no operating system in {ref.format()}, so nothing was looked up"
        raise WrongReportError(msg, cls="scan-empty")
    if not packages:
        msg = f"Trivy found no package at all in {ref.format()}, so nothing was looked up"
        raise WrongReportError(msg, cls="scan-empty")


def _findings(result: Table) -> Iterator[Finding]:
    target = _text(result.get("Target"))
    for row in _rows(result.get("Vulnerabilities")):
        yield _finding(row, "vulnerability", target=target, id_key="VulnerabilityID")
    for row in _rows(result.get("Secrets")):
        yield _finding(row, "secret", target=target, id_key="RuleID")
    for row in _rows(result.get("Misconfigurations")):
        if row.get("Status") == "FAIL":
            yield _finding(row, "misconfiguration", target=target, id_key="ID")
    for row in _rows(result.get("Licenses")):
        yield _finding(row, "license", target=target, id_key="Name")


def _finding(row: Table, kind: Kind, *, target: str, id_key: str) -> Finding:
    layer = _table(row.get("Layer"))
    return Finding(
        id=_text(row.get(id_key)),
        kind=kind,
        severity=severity(_text(row.get("Severity"))),
        package=_text(row.get("PkgName")),
        installed=_text(row.get("InstalledVersion")),
        fixed=_text(row.get("FixedVersion")),
        status=_text(row.get("Status")) if kind == "vulnerability" else "",
        target=_text(row.get("PkgPath")) or _text(row.get("FilePath")) or target,
        layer_digest=_text(layer.get("Digest")) or _text(layer.get("DiffID")),
        title=_text(row.get("Title")),
        url=_text(row.get("PrimaryURL")) or _text(row.get("Link")),
    )


def _time(value: object) -> datetime:
    try:
        found = datetime.fromisoformat(_text(value))
    except ValueError as error:
        msg = f"wanted the time of the scan in CreatedAt, found {value!r}"
        raise WrongReportError(msg, cls="scan-unreadable") from error
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _table(value: object) -> Table:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> tuple[object, ...]:
    return tuple(value) if isinstance(value, list) else ()


def _rows(value: object) -> tuple[Table, ...]:
    return tuple(row for row in _list(value) if isinstance(row, dict))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
