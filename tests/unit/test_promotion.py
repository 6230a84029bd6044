"""A gate that failed or never spoke keeps an image back; each channel judges a scan by its rule."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from catalog_samples import PASSED, gates, image

from gpulayers.errors import GpulayersError, ProjectError, RemoteError
from gpulayers.promotion import (
    Judge,
    Terms,
    decide,
    rejudged,
)
from gpulayers.record import Failure, Gate, ImageRecord, no_gates, not_run
from gpulayers.scan.policy import Policy, Rule

FIXTURES = Path(__file__).parents[1] / "fixtures" / "trivy"
LENIENT = Terms(scan_not_run=True, gpu_not_run=True)
STRICT = Terms(scan_not_run=False, gpu_not_run=False)
NO_SCAN = not_run("scan-database-missing", "there is no trivy.db")
SIMULATED = Gate(
    status="simulated",
    cls="stand-in-driver",
    text="cpu passed; gpu simulated (stand-in-driver: no GPU proven)",
    seconds=1.0,
)
NEVER_STARTED = not_run("never-started", "cpu not-run (never-started: x; cpu passed)")
GPU_PASSED = replace(PASSED, text="cpu passed; gpu passed")
NOW = datetime(2026, 12, 2, tzinfo=UTC)


def failed(cls: str = "x", text: str = "why") -> Gate:
    return Gate(status="failed", cls=cls, text=text, seconds=0.0)


def reasons(each: ImageRecord, terms: Terms) -> list[tuple[str, str, str]]:
    decision = decide([each], "stable", terms)
    assert bool(decision.allowed) is not bool(decision.refused)
    return [(refusal.gate, refusal.status, refusal.cls) for refusal in decision.refused]


def error_of(images: Sequence[ImageRecord], terms: Terms = STRICT) -> GpulayersError:
    error = decide(images, "stable", terms).error()
    assert error is not None
    return error


@pytest.mark.parametrize(
    ("each", "terms"),
    [
        (gates(smoke=GPU_PASSED), STRICT),
        (gates(), replace(STRICT, gpu_not_run=True)),
        (gates(smoke=SIMULATED), LENIENT),
        (
            gates(scan=NO_SCAN, secrets=NO_SCAN, smoke=GPU_PASSED),
            replace(STRICT, scan_not_run=True),
        ),
        (gates(size=not_run("no-budget", ""), smoke=GPU_PASSED), STRICT),
        (gates(duplicates=None, secrets=None, smoke=GPU_PASSED), STRICT),
    ],
    ids=["all passed", "no GPU", "stand-in", "no scan", "no budget", "not required"],
)
def test_an_image_may_move_where_its_gates_passed_or_the_channel_takes_that(
    each: Mapping[str, Gate], terms: Terms
) -> None:
    assert reasons(image(gates=each), terms) == []


@pytest.mark.parametrize("name", ["identity", "secrets", "duplicates", "size", "scan", "smoke"])
def test_a_gate_that_failed_keeps_an_image_back_whatever_the_terms(name: str) -> None:
    assert reasons(image(gates=gates(**{name: failed()})), LENIENT) == [(name, "failed", "x")]


@pytest.mark.parametrize("name", ["identity", "size", "scan", "smoke"])
def test_a_gate_that_is_missing_keeps_an_image_back_whatever_the_terms(name: str) -> None:
    found = reasons(image(gates=gates(**{name: None})), LENIENT)
    assert found == [(name, "not-run", "gate-missing")]


@pytest.mark.parametrize(
    ("gate", "name", "terms"),
    [
        (not_run("not-reached", ""), "identity", LENIENT),
        (not_run("not-reached", ""), "size", LENIENT),
        (NO_SCAN, "scan", replace(LENIENT, scan_not_run=False)),
        (SIMULATED, "smoke", replace(LENIENT, gpu_not_run=False)),
        (NEVER_STARTED, "smoke", LENIENT),
        (not_run("engine-failed", ""), "smoke", LENIENT),
    ],
)
def test_a_gate_that_did_not_run_is_no_pass(gate: Gate, name: str, terms: Terms) -> None:
    found = reasons(image(gates=gates(**{name: gate})), terms)
    assert found == [(name, gate.status, gate.cls)]


def test_an_image_that_was_not_built_is_told_with_its_step() -> None:
    failure = Failure(
        blocks="build", cls="build-step-failed", step="cuda", exit=1, stderr_tail=(), repeat=""
    )
    lost = image(digest="", ref="", gates=no_gates("not-built", ""), failure=failure)
    error = error_of([lost], LENIENT)
    assert error.exit_code == 6
    assert "build failed (build-step-failed): there is no image: step cuda" in str(error)


def test_the_others_are_allowed() -> None:
    decision = decide([image("a", gates=gates(scan=failed())), image("b")], "stable", LENIENT)
    assert [each.tag for each in decision.allowed] == ["b"]
    assert [each.tag for each in decision.refused] == ["a"]
    assert decide([image()], "stable", LENIENT).error() is None


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"scan": NO_SCAN}, 9),
        ({"scan": None}, 9),
        ({"smoke": None, "scan": failed()}, 7),
        ({"smoke": failed(), "scan": failed()}, 7),
        ({"size": failed(), "scan": failed()}, 16),
        ({"identity": failed(), "size": failed()}, 8),
        ({"smoke": failed()}, 8),
        ({"secrets": failed()}, 8),
    ],
)
def test_the_first_failed_gate_gives_the_code_and_a_missing_one_gives_nine(
    changes: dict[str, Gate | None], code: int
) -> None:
    error = error_of([image(gates=gates(**changes))])
    assert error.exit_code == code
    assert error.hint


def test_a_missing_gate_is_called_by_its_name() -> None:
    error = error_of([image(gates=gates(smoke=GPU_PASSED, scan=NO_SCAN))])
    assert isinstance(error, RemoteError)
    assert "1 not let into stable by scan:\n  app: scan not-run (scan-database-missing)" in str(
        error
    )
    assert "gpulayers scan" in error.hint


def test_of_many_refusals_the_rest_is_counted() -> None:
    images = [image(str(n), gates=gates(smoke=None)) for n in range(8)]
    assert str(error_of(images, LENIENT)).endswith("\n  and 3 more")


# The scan by another channel's rule.


def rule(channel: str, *reject: str) -> Rule:
    words = frozenset(word for word in ("HIGH", "CRITICAL") if word in reject)
    return Rule(
        channel=channel, reject=frozenset(words), ignore_unfixed=True, accepts_not_run=False
    )


POLICY = Policy(
    rules={"edge": rule("edge"), "stable": rule("stable", "HIGH", "CRITICAL")}, max_age_days=7
)


def judge(scans: Path, *, channel: str = "stable", now: datetime = NOW) -> Judge:
    return Judge(policy=POLICY, channel=channel, scans=scans, now=now)


def scanned(scans: Path, scan: Gate, fixture: str = "planted") -> ImageRecord:
    """An image whose kept report is a real one of Trivy."""
    text = (FIXTURES / f"{fixture}.json").read_text(encoding="utf-8")
    ref = json.loads(text)["ArtifactName"]
    digest = ref.partition("@")[2]
    folder = scans / digest.removeprefix("sha256:")
    folder.mkdir(parents=True)
    (folder / "trivy.json").write_text(text, encoding="utf-8")
    return image(ref=ref, digest=digest, gates=gates(scan=scan))


def test_a_scan_that_one_channel_takes_another_may_reject(tmp_path: Path) -> None:
    each = scanned(tmp_path, PASSED)
    assert rejudged(each, judge(tmp_path, channel="edge")) == each
    found = rejudged(each, judge(tmp_path)).gates["scan"]
    assert (found.status, found.cls) == ("failed", "scan-rejected")
    assert "that channel stable rejects: " in found.text
    assert rejudged(each, judge(tmp_path)).gates["smoke"] == each.gates["smoke"]


def test_a_scan_that_is_too_old_by_now_counts_as_not_run(tmp_path: Path) -> None:
    each = scanned(tmp_path, PASSED)
    later = judge(tmp_path, channel="edge", now=NOW + timedelta(days=30))
    found = rejudged(each, later).gates["scan"]
    assert (found.status, found.cls) == ("not-run", "scan-database-stale")
    assert "the scan is 30 days old; the policy takes 7 at most" in found.text


def test_a_pass_without_its_report_counts_as_not_run(tmp_path: Path) -> None:
    found = rejudged(image(), judge(tmp_path)).gates["scan"]
    assert (found.status, found.cls) == ("not-run", "scan-report-missing")


def test_a_report_of_another_image_counts_as_not_run(tmp_path: Path) -> None:
    each = scanned(tmp_path, PASSED)
    moved = replace(each, digest=image().digest, ref=image().ref)
    (tmp_path / each.digest.removeprefix("sha256:")).rename(
        tmp_path / moved.digest.removeprefix("sha256:")
    )
    assert rejudged(moved, judge(tmp_path)).gates["scan"].cls == "scan-wrong-image"


def test_a_scan_that_was_not_made_stays_so(tmp_path: Path) -> None:
    assert rejudged(image(gates=gates(scan=NO_SCAN)), judge(tmp_path)).gates["scan"] == NO_SCAN
    each = scanned(tmp_path, NO_SCAN)
    assert rejudged(each, judge(tmp_path, channel="edge")).gates["scan"] == NO_SCAN


def test_a_scan_that_failed_is_not_asked_again(tmp_path: Path) -> None:
    each = scanned(tmp_path, failed())
    assert rejudged(each, judge(tmp_path, channel="edge")) == each


def test_a_channel_that_the_policy_does_not_know_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="no channel 'beta'"):
        rejudged(image(), judge(tmp_path, channel="beta"))
