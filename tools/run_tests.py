"""What ``make test`` runs: linters, unit tests, sweeps, wheel and engine tests; then their sums.

Run it through ``python3 tools/devenv run -- .venv/bin/python tools/run_tests.py [PART ...]``: the
engine tests need that environment, and fail where it is missing.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parents[1]
INTERRUPTED = 130
# Each counts as one test. Mypy runs once a test folder: both have a module named conftest.
LINTERS: tuple[tuple[str, ...], ...] = (
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("mypy",),
    ("mypy", "tests/unit"),
    ("mypy", "tests/wheel"),
    ("mypy", "tests/engine"),
    ("check_jsonschema", "--builtin-schema", "vendor.github-workflows", ".github/workflows/ci.yml"),
)
# The engine builds and scans on all cores by itself, so its tests run one after the other.
SUITES: dict[str, tuple[str, ...]] = {
    "unit": ("tests/unit", "-n", "auto", "-m", "not sweep"),
    "sweep": ("tests/unit", "-n", "auto", "-m", "sweep"),
    "wheel": ("tests/wheel",),
    "engine": ("tests/engine", "--engine", "--timeout", "1500", "-m", "not slow"),
}
PARTS = ("lint", *SUITES)
JUNIT = ("tests", "failures", "errors", "skipped")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How tests ended.

    Units: ``seconds`` is wall time.
    """

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0

    def __add__(self, other: "Counts") -> "Counts":
        """Both together."""
        return Counts(
            passed=self.passed + other.passed,
            failed=self.failed + other.failed,
            skipped=self.skipped + other.skipped,
            seconds=self.seconds + other.seconds,
        )

    def format(self) -> str:
        """One line, as pytest closes with."""
        numbers = f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"
        return f"{numbers} in {self.seconds:.1f}s"


def read_counts(report: Path) -> Counts:
    """The sums of a JUnit report; one failure where pytest wrote none."""
    try:
        suites = ET.parse(report).getroot().iter("testsuite")  # noqa: S314 - our own file
        found = [{name: int(suite.get(name, 0)) for name in JUNIT} for suite in suites]
    except (OSError, ET.ParseError):
        return Counts(failed=1)
    total = {name: sum(one[name] for one in found) for name in JUNIT}
    # A test that passed and whose teardown broke is in there twice, with one success.
    failed = total["failures"] + total["errors"]
    passed = total["tests"] - failed - total["skipped"]
    return Counts(passed=max(passed, 0), failed=failed, skipped=total["skipped"])


def call(argv: Sequence[str]) -> int:
    """Run a Python program of this environment in the checkout; its exit code."""
    sys.stdout.flush()
    words = [sys.executable, "-m", *argv]
    return subprocess.run(words, cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode


def lint() -> Counts:
    """Run the linters."""
    total = Counts()
    for argv in LINTERS:
        say(f"$ {' '.join(argv)}")
        is_clean = call(argv) == 0
        total += Counts(passed=int(is_clean), failed=int(not is_clean))
    return total


def suite(arguments: Sequence[str]) -> Counts:
    """Run one folder of tests; ``-qq`` leaves out pytest's own closing line."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        quiet = ("-qq", "-rfEs", "-p", "no:cacheprovider", f"--junit-xml={report}")
        code = call(["pytest", *arguments, *quiet])
        counts = read_counts(report)
    # Nothing collected, or a crash after the last test: no success either.
    return counts + Counts(failed=1) if code and not counts.failed else counts


def run_parts(names: Sequence[str]) -> Iterator[tuple[str, Counts]]:
    """Run the parts in order, whatever became of those before, and time them."""
    for name in names:
        say(f"== {name}")
        start = time.monotonic()
        counts = lint() if name == "lint" else suite(SUITES[name])
        yield name, counts + Counts(seconds=time.monotonic() - start)


def say(text: str) -> None:
    """Print one line at once, in order with what the programs print."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(words: Sequence[str]) -> int:
    """Run the parts named, or all; 0 when nothing failed."""
    parser = argparse.ArgumentParser(prog="tools/run_tests.py", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    wished = parser.parse_args(words).parts or PARTS
    if unknown := [name for name in wished if name not in PARTS]:
        parser.error(f"no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    done: dict[str, Counts] = {}
    try:
        done.update(run_parts([name for name in PARTS if name in wished]))
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    say("")
    for name, counts in done.items():
        say(f"{name:<8}{counts.format()}")
    total = sum(done.values(), Counts())
    say(total.format())
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
