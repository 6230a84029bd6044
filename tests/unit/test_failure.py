"""The class of a failure: recorded from a real builder that was made to fail, and made up."""

import json
from pathlib import Path

import pytest

from gpulayers.classes import KINDS
from gpulayers.engine.progress import SILENT, TAIL_LINES, TIMED_OUT, Progress, StepFailure
from gpulayers.failure import classify, is_login_refused

RECORDED = Path(__file__).parents[1] / "fixtures" / "failures"
CLASSES = {
    "step": "build-step-failed",
    "crashed": "build-step-failed",
    "misleading-words": "build-step-failed",
    "step-out-of-space": "build-step-failed",
    "disk-full-step": "build-step-failed",
    "killed": "build-step-killed",
    "disk-full-export": "disk-full",
    "engine-lost": "engine-lost",
    "engine-gone": "engine-lost",
    "base-gone": "base-gone",
    "base-closed-port": "registry-unreachable",
    "push-closed-port": "registry-unreachable",
    "push-no-host": "registry-unreachable",
    "push-500": "registry-unreachable",
    "push-dies": "push-failed",
    "push-dies-at-manifest": "push-failed",
    "push-503": "push-failed",
    "push-404": "push-failed",
    "push-quota": "push-failed",
    "push-413": "layer-too-big",
    "push-429": "rate-limit",
    "push-401": "auth-denied",
    "push-401-at-blob": "auth-denied",
    "push-403": "auth-denied",
    "push-401-at-manifest": "auth-expired",
}
STEP = "[cuda-1a2b3c4d 1/1] RUN <<'STEP' (set -eu...)"
EXPORT = "exporting to image"
PULL = "[context base] load metadata for registry.example/base@sha256:0"
REGISTRY_WORDS = (
    "failed to push registry.example/x: 413 Request Entity Too Large",
    "toomanyrequests: slow down",
    "401 Unauthorized",
    "manifest unknown: not found",
    "dial tcp: connect: connection refused",
    "no space left on device",
    "rpc error: code = Unavailable",
    "signal: killed",
    "exit code: 137",
)


def recorded(name: str) -> StepFailure:
    progress = Progress()
    for line in (RECORDED / f"{name}.rawjson").read_text(encoding="utf-8").splitlines():
        progress.take(line)
    return progress.failure()


def said(step: str, error: str, *lines: str, uploaded: bool = False) -> StepFailure:
    return StepFailure(step=step, exit=1, lines=(*lines, error), error=error, uploaded=uploaded)


def program(script: str, cause: str) -> str:
    return f'process "/bin/sh -c {script}" did not complete successfully: {cause}'


def test_every_recording_is_judged_here() -> None:
    assert {path.stem for path in RECORDED.glob("*.rawjson")} == set(CLASSES)


@pytest.mark.parametrize("name", CLASSES)
def test_a_recorded_failure_has_its_class(name: str) -> None:
    assert classify(recorded(name)) == CLASSES[name]


@pytest.mark.parametrize("name", CLASSES)
def test_a_recorded_failure_is_never_silent(name: str) -> None:
    lines = recorded(name).lines
    assert any(line.strip() for line in lines)
    assert len(lines) <= TAIL_LINES == 40


def test_a_step_that_ran_out_of_space_on_a_full_disk_is_told_by_measuring() -> None:
    assert classify(recorded("disk-full-step"), disk_is_full=True) == "disk-full"
    assert classify(recorded("step"), disk_is_full=True) == "build-step-failed"
    assert classify(recorded("killed"), disk_is_full=True) == "build-step-killed"


@pytest.mark.parametrize("words", REGISTRY_WORDS)
def test_a_step_says_what_it_likes(words: str) -> None:
    assert classify(said(STEP, program(f"echo {words}", "exit code: 1"), words)) == (
        "build-step-failed"
    )
    assert classify(said(STEP, program(words, f"exit code: 1\n{words}"), words)) in KINDS
    assert KINDS[classify(said(STEP, words, words))].word in {"build", "machine"}


@pytest.mark.parametrize(
    ("cause", "cls"),
    [
        ("exit code: 1", "build-step-failed"),
        ("exit code: 13", "build-step-failed"),
        ("exit code: 139", "build-step-failed"),
        ("exit code: 137", "build-step-killed"),
        ("exit code: 143", "build-step-killed"),
        ("signal: killed", "build-step-killed"),
        ("exit code: 137: cannot allocate memory: unknown", "build-step-killed"),
    ],
)
def test_a_program_is_judged_by_the_end_of_the_sentence(cause: str, cls: str) -> None:
    script = "echo did not complete successfully: exit code: 137; false"
    assert classify(said(STEP, program(script, cause))) == cls


@pytest.mark.parametrize(
    ("step", "error", "cls"),
    [
        (PULL, "pull access denied, repository does not exist", "auth-denied"),
        (PULL, "failed to authorize: unexpected status from GET request to https://x/: 401 U", ""),
        (PULL, "no match for platform in manifest: not found", "base-gone"),
        (PULL, "unexpected status from HEAD request to https://r/: 429 Too Many Requests", ""),
        ("[t internal] load metadata for r.example/b:1", "r.example/b:1: not found", "base-gone"),
        ("[context models] load from client", "lstat /x: not found", "build-step-failed"),
        (EXPORT, "failed to push r/413:401: failed to do request: Put: EOF", "push-failed"),
        (EXPORT, "write /var/lib/docker/x: no space left on device", "disk-full"),
        (
            EXPORT,
            "unexpected status from PUT request to http://r/: 500 E: no space left on device",
            "push-failed",
        ),
        (f"[image] {EXPORT}", "denied: requested access", "auth-denied"),
        (EXPORT, "rpc error: code = Unavailable", "push-failed"),
    ],
)
def test_a_registry_is_judged_by_its_answer(step: str, error: str, cls: str) -> None:
    found = classify(said(step, error))
    wanted = cls or ("rate-limit" if "429" in error else "auth-denied")
    assert found == wanted


def test_a_login_that_was_good_for_the_layers_has_expired() -> None:
    assert classify(said(EXPORT, "unauthorized", uploaded=True)) == "auth-expired"
    assert classify(said(EXPORT, "unauthorized")) == "auth-denied"
    assert classify(said(EXPORT, "denied", uploaded=True)) == "auth-denied"


def test_an_end_by_time_is_a_class_of_its_own() -> None:
    assert classify(said(TIMED_OUT, "RUN sleep: connection refused")) == "build-timeout"


def test_a_client_without_a_word_is_given_one() -> None:
    failure = Progress().failure()
    assert failure.lines == (SILENT,)
    assert classify(failure) == "build-step-failed"


def test_the_clients_copy_of_a_dockerfile_says_nothing_about_the_engine() -> None:
    progress = Progress()
    for line in ("   2 | >>> RUN echo failed to receive status", "ERROR: unknown flag --x"):
        progress.take(line)
    assert classify(progress.failure()) == "build-step-failed"


def test_how_far_a_push_came_is_known_by_its_statuses() -> None:
    vertex = {"vertexes": [{"digest": "d", "name": EXPORT, "error": "unauthorized"}]}
    status = {"statuses": [{"vertex": "d", "id": "pushing manifest for r/x", "current": 0}]}
    for events, uploaded in (([vertex], False), ([status, vertex], True)):
        progress = Progress()
        for event in events:
            progress.take(json.dumps(event))
        assert progress.failure().uploaded is uploaded


@pytest.mark.parametrize("name", CLASSES)
def test_a_login_is_refused_with_401_alone(name: str) -> None:
    assert is_login_refused(recorded(name)) is ("push-401" in name)
