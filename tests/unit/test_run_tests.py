"""How the sums of ``make test`` are made."""

from pathlib import Path

import pytest

import run_tests
from run_tests import Counts

REPORT = """\
<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" tests="{tests}" failures="{failures}" errors="{errors}"
skipped="{skipped}"></testsuite></testsuites>
"""


@pytest.fixture
def report(tmp_path: Path) -> Path:
    return tmp_path / "report.xml"


def write(
    report: Path, *, tests: int, failures: int = 0, errors: int = 0, skipped: int = 0
) -> None:
    text = REPORT.format(tests=tests, failures=failures, errors=errors, skipped=skipped)
    report.write_text(text, encoding="utf-8")


def test_what_neither_failed_nor_was_skipped_has_passed(report: Path) -> None:
    write(report, tests=9, failures=2, errors=1, skipped=3)
    assert run_tests.read_counts(report) == Counts(passed=3, failed=3, skipped=3)


def test_a_run_without_a_report_has_failed(report: Path) -> None:
    assert run_tests.read_counts(report) == Counts(failed=1)


def test_a_report_that_was_cut_off_has_failed(report: Path) -> None:
    report.write_text("<testsuites><testsuite tests=", encoding="utf-8")
    assert run_tests.read_counts(report) == Counts(failed=1)


def test_sums_are_one_plain_line() -> None:
    total = Counts(passed=5, skipped=1, seconds=1.04) + Counts(passed=2, failed=1, seconds=2.0)
    assert total.format() == "7 passed, 1 failed, 1 skipped in 3.0s"


def test_an_exit_code_without_a_failure_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash_at_the_end(argv: list[str]) -> int:
        option = next(word for word in argv if word.startswith("--junit-xml="))
        write(Path(option.partition("=")[2]), tests=4)
        return 3

    monkeypatch.setattr(run_tests, "call", crash_at_the_end)
    assert run_tests.suite(["tests/unit"]) == Counts(passed=4, failed=1)


def test_a_part_that_is_not_known_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run_tests.main(["untit"])
    assert "no part 'untit'; there are lint, unit, sweep, wheel, engine" in capsys.readouterr().err


def test_parts_run_in_their_order_and_one_failure_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run_tests, "lint", lambda: Counts(passed=1, failed=1))
    monkeypatch.setattr(run_tests, "suite", lambda _arguments: Counts(passed=3))
    assert run_tests.main(["wheel", "lint", "unit"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("== ")] == ["== lint", "== unit", "== wheel"]
    assert lines[-1].startswith("7 passed, 1 failed, 0 skipped in ")
