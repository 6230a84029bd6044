"""Failures that are made for real: each its class and code, the other images finish."""

import secrets
import time
from collections.abc import Mapping
from typing import Any

import pytest
from fleet import Built, Project
from registry_proxy import Fault, Proxy
from tiny import GOOD, Maker, tiny_base, tiny_project, write_lock

from gpulayers.engine import process
from gpulayers.engine.registry import Registry

__all__ = ["tiny_base", "tiny_project"]
pytestmark = pytest.mark.timeout(1500)
MISLEADING = "\n".join(
    f"echo '{words}' >&2"
    for words in (
        "failed to push: connection refused",
        "ERROR: failed to receive status: rpc error: code = Unavailable",
        "manifest unknown: not found",
        "401 Unauthorized",
        "413 Request Entity Too Large",
        "toomanyrequests",
        "signal: killed, exit code: 137",
        "no space left on device",
    )
)


def failure_of(build: Built, model: str) -> Mapping[str, Any]:
    (image,) = [image for image in build.images.values() if image.cell["model"] == model]
    assert image.status == "failed", build.said
    assert (image.ref, image.tags) == ("", [])
    failure: Mapping[str, Any] = image.failure
    assert any(line.strip() for line in failure["stderr_tail"])
    assert len(failure["stderr_tail"]) <= 40
    assert failure["step"]
    return failure


def statuses(build: Built) -> dict[str, str]:
    return {image.cell["model"]: image.status for image in build.images.values()}


def test_steps_fail_for_themselves_and_the_other_images_finish(
    tiny_project: Maker, client: Registry
) -> None:
    long = "for i in $(seq 100); do echo line $i; done; exit 7\n"
    project = tiny_project(
        good=GOOD,
        failing=long,
        killed="sh -c 'kill -9 $$'\n",
        misleading=f"{MISLEADING}\nexit 1\n",
        silent="exit 9\n",
        crowded="mount -t tmpfs -o size=64k none /mnt 2>/dev/null || exit 28\n",
    )
    build = project.build()
    assert build.exit_codes == {6}, build.said
    assert statuses(build)["good"] == "built", build.said
    found = {
        name: (failure["class"], failure["exit"], failure["step"])
        for name in ("failing", "killed", "misleading", "silent", "crowded")
        if (failure := failure_of(build, name))
    }
    assert found == {
        "failing": ("build-step-failed", 7, "model-failing"),
        "killed": ("build-step-killed", 137, "model-killed"),
        "misleading": ("build-step-failed", 1, "model-misleading"),
        "silent": ("build-step-failed", 9, "model-silent"),
        "crowded": ("build-step-failed", 28, "model-crowded"),
    }
    tail = failure_of(build, "failing")["stderr_tail"]
    assert [line for line in tail if line.startswith("line ")][-1] == "line 100"
    assert len(tail) == 40
    tags = client.tags(f"{project.root}/gpu")
    assert {tag for tag in tags if not tag.startswith("staging-")} == {
        tag for image in build.images.values() for tag in image.tags
    }
    # The command that it prints does the same again.
    again = process.run(
        ["sh", "-c", failure_of(build, "failing")["repeat"]], env=project.env, timeout_s=300
    )
    assert not again.ok
    assert "line 100" in again.stderr
    assert "exit code: 7" in again.stderr


def test_fail_fast_stops_the_other_images(tiny_project: Maker) -> None:
    project = tiny_project(slow="sleep 120\n", failing="sleep 3; exit 1\n")
    begin = time.monotonic()
    build = project.build("--fail-fast")
    assert time.monotonic() - begin < 60
    assert build.exit_codes == {6}, build.said
    assert statuses(build) == {"slow": "not-tried", "failing": "failed"}


def proxied(tiny_project: Maker, proxy: Proxy) -> Project:
    return tiny_project(root=f"{proxy.host}/t-{secrets.token_hex(4)}", good=GOOD)


JSON = {"Content-Type": "application/json"}
BASIC = {**JSON, "WWW-Authenticate": 'Basic realm="x"'}
UNAUTHORIZED = b'{"errors": [{"code": "UNAUTHORIZED", "message": "authentication required"}]}'
SLOW_DOWN = b'{"errors": [{"code": "TOOMANYREQUESTS", "message": "slow down"}]}'
DENIED = b'{"errors": [{"code": "DENIED", "message": "no"}]}'
WRONG = {
    "dies": (Fault(method="PUT", status=-1), "/blobs/", "push-failed", 2),
    "too-big": (Fault(method="PUT", status=413), "/blobs/", "layer-too-big", 1),
    "rate": (Fault(method="PUT", status=429, body=SLOW_DOWN, headers=JSON), "/", "rate-limit", 2),
    "denied": (
        Fault(method="PUT", status=403, body=DENIED, headers=JSON),
        "/blobs/",
        "auth-denied",
        1,
    ),
    "expired": (
        Fault(method="PUT", status=401, body=UNAUTHORIZED, headers=BASIC),
        "/blobs/",
        "auth-expired",
        2,
    ),
    "expired-late": (
        Fault(method="PUT", status=401, body=UNAUTHORIZED, headers=BASIC),
        "/manifests/",
        "auth-expired",
        2,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_push_that_goes_wrong_has_its_class(
    name: str, tiny_project: Maker, registry: str
) -> None:
    fault, path, cls, calls = WRONG[name]

    def rule(method: str, asked: str) -> Fault | None:
        is_cache = "/gpu-cache/" in asked
        return fault if method == fault.method and path in asked and not is_cache else None

    with Proxy(registry, rule=rule) as proxy:
        build = proxied(tiny_project, proxy).build()
    assert build.exit_codes == {9}, build.said
    failure = failure_of(build, "good")
    assert (failure["class"], failure["step"]) == (cls, "push")
    assert build.said.count(f"after {cls}") == calls - 1


def test_what_passes_by_itself_is_tried_again(tiny_project: Maker, registry: str) -> None:
    left = [1]

    def rule(method: str, asked: str) -> Fault | None:
        if method != "PUT" or "/gpu/manifests/" not in asked or not left[0]:
            return None
        left[0] -= 1
        return Fault(method="PUT", status=401, body=UNAUTHORIZED, headers=BASIC)

    with Proxy(registry, rule=rule) as proxy:
        build = proxied(tiny_project, proxy).build()
    assert build.exit_codes == {0}, build.said
    assert "after auth-expired" in build.said


def test_a_registry_that_does_not_answer_ends_a_run_before_it_begins(tiny_project: Maker) -> None:
    project = tiny_project(root="127.0.0.1:9/x", good=GOOD)
    build = project.build()
    assert build.finished.code == 9, build.said
    assert "127.0.0.1:9" in build.finished.stderr
    assert not build.images


def with_second_os(project: Project, base: str) -> Project:
    """The project with another OS, whose base is said to be there."""
    project.change("matrix.toml", 'os = ["debian12"]', 'os = ["debian12", "debian13"]')
    text = (project.folder / "matrix.toml").read_text()
    project.write("matrix.toml", f'{text}\n[base.debian13]\nsources = ["{base}"]\n')
    return project


@pytest.mark.parametrize(
    ("base", "cls"),
    [
        ("{registry}/tiny-base@sha256:" + "0" * 64, "base-gone"),
        ("127.0.0.1:9/tiny-base@sha256:" + "0" * 64, "registry-unreachable"),
    ],
    ids=["gone", "closed"],
)
def test_a_base_that_cannot_be_had_stops_its_own_images(
    base: str, cls: str, tiny_project: Maker, registry: str
) -> None:
    project = with_second_os(tiny_project(good=GOOD), base.format(registry=registry))
    write_lock(project)
    build = project.build()
    assert build.exit_codes == {9}, build.said
    found = {image.cell["os"]: image for image in build.images.values()}
    assert found["debian12"].status == "built", build.said
    assert found["debian13"].status == "failed"
    assert found["debian13"].failure["class"] == cls
    assert any(line.strip() for line in found["debian13"].failure["stderr_tail"])
