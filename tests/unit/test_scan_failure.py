"""Trivy's own words, as its versions said them, become one class each."""

import pytest

from gpulayers.engine.process import Finished
from gpulayers.scan.failure import classify

FATAL = "2026-12-01T03:14:00Z\tFATAL\tFatal error\trun error: "


def finished(stderr: str, code: int = 1, *, timed_out: bool = False) -> Finished:
    return Finished(
        argv=("trivy",), code=code, stdout="", stderr=stderr, seconds=3.0, timed_out=timed_out
    )


@pytest.mark.parametrize(
    ("stderr", "cls"),
    [
        (f"{FATAL}init error: DB error: failed to open db: invalid database", "database-broken"),
        ("panic: assertion failed: Page expected to be: 9, but self identifies", "database-broken"),
        (f"{FATAL}the version of DB schema doesn't match. Local DB: 3", "database-broken"),
        (f"{FATAL}--skip-db-update cannot be specified on the first run", "database-broken"),
        ("\t* remote error: GET http://r/v2/a: MANIFEST_UNKNOWN: unknown", "image-missing"),
        ("\t* remote error: no child with platform linux/arm64 in index r/a", "image-missing"),
        ("\t* remote error: GET https://r/v2/: UNAUTHORIZED: authentication", "registry-denied"),
        ("\t* remote error: dial tcp 127.0.0.1: connection refused", "registry-unreachable"),
        ("\t* remote error: lookup r.example: no such host", "registry-unreachable"),
        ("\t* remote error: server gave HTTP response to HTTPS client", "registry-unreachable"),
        (f"{FATAL}image scan error: context deadline exceeded", "timeout"),
        (f"{FATAL}something new", "failed"),
        ("", "failed"),
    ],
)  # fmt: skip
def test_each_failure_has_its_class(stderr: str, cls: str) -> None:
    assert classify(finished(stderr))[0] == f"scan-{cls}"


@pytest.mark.parametrize("code", [2, -9])
def test_a_crash_is_told_from_a_refusal(code: int) -> None:
    cls, text = classify(finished("panic: runtime error: nil map\n", code))
    assert cls == "scan-crashed"
    assert "nil map" in text


def test_our_own_kill_is_a_timeout_whatever_was_said() -> None:
    assert classify(finished("MANIFEST_UNKNOWN", -15, timed_out=True))[0] == "scan-timeout"


def test_the_line_that_says_why_is_given_without_its_time() -> None:
    _, text = classify(finished(f"noise\n{FATAL}failed to open db: invalid database\n"))
    assert text == "Trivy: Fatal error\trun error: failed to open db: invalid database"
