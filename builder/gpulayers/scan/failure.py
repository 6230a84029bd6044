"""Why Trivy did not make a scan: its status and words, turned into a class and one line."""

import re

from gpulayers.engine.process import Finished

GO_PANIC = 2
_LOG_PREFIX = re.compile(r"\S+Z\s+[A-Z]+\s+|\* ")
# Matched as parts of lines, in this order: newer versions changed the words around them.
# Source: runs of Trivy 0.59.1, 0.67.2, 0.69.3 and 0.76.0 (2026-12-01); it has no codes of its own.
CLASSES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "scan-database-broken",
        (
            "invalid database",
            "assertion failed: Page expected to be",
            "failed to unmarshal advisory JSON",
            "DB schema",
            "cannot be specified on the first run",
            "vulnerability database may be in use by another process",
        ),
    ),
    (
        "scan-image-missing",
        ("MANIFEST_UNKNOWN", "NAME_UNKNOWN", "BLOB_UNKNOWN", "no child with platform"),
    ),
    ("scan-registry-denied", ("UNAUTHORIZED", "DENIED", "status code 401", "status code 403")),
    (
        "scan-registry-unreachable",
        (
            "connection refused",
            "no such host",
            "i/o timeout",
            "connection reset",
            "gave HTTP response to HTTPS client",
            "certificate signed by unknown authority",
            "TOOMANYREQUESTS",
            "status code 5",
        ),
    ),
    ("scan-timeout", ("context deadline exceeded",)),
)


def classify(finished: Finished) -> tuple[str, str]:
    """The class of a run that did not end well, and the line of Trivy's that says why."""
    if finished.timed_out:
        return "scan-timeout", f"Trivy was stopped after {finished.seconds:.1f} s"
    lines = [
        _LOG_PREFIX.sub("", line.strip(), count=1)
        for line in finished.stderr.splitlines()
        if line.strip()
    ]
    for cls, parts in CLASSES:
        for line in lines:
            if any(part in line for part in parts):
                return cls, f"Trivy: {line}"
    said = " / ".join(lines[-3:]) or "nothing"
    if finished.code < 0 or finished.code == GO_PANIC:
        return "scan-crashed", f"Trivy crashed (status {finished.code}); it said: {said}"
    return "scan-failed", f"Trivy ended with status {finished.code}; it said: {said}"
