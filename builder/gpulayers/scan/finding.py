"""What a scan says, as types: the database it asked, its findings, the report of one image."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, get_args

from gpulayers.refs import ImageRef, Platform

Severity = Literal["UNKNOWN", "LOW", "MEDIUM", "HIGH", "CRITICAL"]
Kind = Literal["vulnerability", "secret", "misconfiguration", "license"]

# Rising. Source: Trivy's severity words, https://trivy.dev/docs/latest/scanner/vulnerability/
SEVERITIES: tuple[Severity, ...] = get_args(Severity)


def severity(text: str) -> Severity:
    """The severity of that name; what Trivy does not name is ``UNKNOWN``, as Trivy says it too."""
    for known in SEVERITIES:
        if text == known:
            return known
    return "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class DbState:
    """A vulnerability database, or why there is none.

    Shape: ``folder`` holds ``trivy.db`` and ``metadata.json`` when ``status`` is ``ready``, else it
    is None; ``java`` is the folder of the Java index, None where only an empty one can be used;
    ``reason`` is empty when ready.
    Units: ``updated`` is when its makers put it together, UTC.
    """

    status: Literal["ready", "missing", "broken"]
    folder: Path | None
    java: Path | None
    updated: datetime | None
    reason: str

    @property
    def cls(self) -> str:
        """The class of an outcome without vulnerabilities; empty when ready."""
        return "" if self.status == "ready" else f"scan-database-{self.status}"

    def refused(self, reason: str) -> "DbState":
        """The same place, found to be broken when it was used."""
        return DbState(status="broken", folder=None, java=self.java, updated=None, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing a scan found.

    Shape: ``fixed`` is the version that mends it, empty where there is none; ``status`` is Trivy's
    word (``fixed``, ``affected``, ``will_not_fix``, …) or empty; ``package`` and ``installed`` are
    empty for secrets and misconfigurations; ``layer_digest`` is the compressed blob's digest, the
    diff id where the blob has none, empty where the finding belongs to no layer.
    """

    id: str
    kind: Kind
    severity: Severity
    package: str
    installed: str
    fixed: str
    status: str
    target: str
    layer_digest: str
    title: str
    url: str

    def format(self) -> str:
        """One line: severity, id, what it is in, what mends it."""
        where = f"{self.package} {self.installed}" if self.package else self.target
        mend = f"fixed in {self.fixed}" if self.fixed else "no fix"
        return f"{self.severity} {self.id} {where}" + (
            f" ({mend})" if self.kind == "vulnerability" else f" ({self.kind})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one scan of one image said.

    Shape: ``ref`` has the digest that was asked for; ``os`` is family and release
    (``debian 12.15``); ``packages`` counts all that were looked at, ``jars`` those of them that are
    Java archives; ``findings`` are sorted worst first. Without a ready database there are no
    vulnerabilities among them, whatever the image holds.
    """

    ref: ImageRef
    platform: Platform
    trivy: str
    created: datetime
    database: DbState
    os: str
    packages: int
    jars: int
    findings: tuple[Finding, ...]


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings by falling severity, then by id, package and target."""
    return tuple(
        sorted(findings, key=lambda f: (-SEVERITIES.index(f.severity), f.id, f.package, f.target))
    )


def counts(findings: Iterable[Finding]) -> Mapping[Severity, int]:
    """How many there are of each severity; every severity is there, worst first."""
    found = [finding.severity for finding in findings]
    return {name: found.count(name) for name in reversed(SEVERITIES)}
