"""A state folder with a run in it: records as the build writes them, for the catalog's tests."""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gpulayers.engine.registry import digest_of
from gpulayers.record import (
    Gate,
    GateName,
    ImageRecord,
    Layer,
    Records,
    Report,
    format_report,
    not_run,
    write,
)

NAME = "127.0.0.1:5000/acme/gpu"
CHANNELS = ("edge", "stable")
MB = 10**6
# Before anything that a test writes by the clock: 2023-11-14.
LONG_AGO = 1_700_000_000.0
PASSED = Gate(status="passed", cls="", text="", seconds=0.4)
NO_GPU = Gate(
    status="not-run",
    cls="engine-no-gpu-support",
    text="cpu passed; gpu not-run (engine-no-gpu-support: wanted a CDI device nvidia.com/gpu)",
    seconds=12.3,
)


def gates(**changes: Gate | None) -> dict[GateName, Gate]:
    found: dict[GateName, Gate | None] = {
        "identity": PASSED,
        "secrets": PASSED,
        "duplicates": not_run("not-checked", "duplicate content is not looked for"),
        "size": PASSED,
        "scan": PASSED,
        "smoke": NO_GPU,
    }
    found |= {name: changes.get(name, gate) for name, gate in found.items()}
    return {name: gate for name, gate in found.items() if gate is not None}


def layer(step: str, size_bytes: int = MB) -> Layer:
    return Layer(digest=digest_of(step.encode()), size_bytes=size_bytes, step=step)


def image(tag: str = "app", **changes: object) -> ImageRecord:
    """A passed image called by its tag; its key, digest and own layer come from the tag too."""
    digest = digest_of(tag.encode())
    key = digest_of(f"key of {tag}".encode()).removeprefix("sha256:")
    plain = ImageRecord(
        cell={
            "os": "debian12",
            "python": "3.11",
            "cuda": "12.8",
            "framework": "torch==2.8.0",
            "model": "none",
        },
        platform="linux/amd64",
        key=key,
        tag=tag,
        ref=f"{NAME}@{digest}",
        digest=digest,
        tags=(f"{tag}-{key[:12]}", f"{tag}-edge"),
        status="built",
        layers=(layer("base", 30 * MB), layer(f"own of {tag}", 2 * MB)),
        gates=gates(),
        failure=None,
    )
    return replace(plain, **changes)  # type: ignore[arg-type] # the tests name real fields


def report(images: Sequence[ImageRecord]) -> Report:
    return Report(
        started="2026-12-01T10:00:00Z",
        seconds=61.2,
        engine={"docker": "28.5.2"},
        images=tuple(images),
        pushed_bytes=1,
    )


def write_state(state: Path, images: Sequence[ImageRecord], *, at: float = LONG_AGO) -> Path:
    """Write a run's report and records, as if at that time."""
    write(state / "report.json", format_report(report(images)))
    records = Records(state / "records")
    for each in images:
        if each.digest:
            records.write(each)
    touch(state, at)
    return state


def touch(state: Path, at: float) -> None:
    for path in state.rglob("*.json"):
        os.utime(path, (at, at))


def write_sbom(state: Path, digest: str, **wheels: str) -> None:
    components = [
        {"name": name, "version": version, "purl": f"pkg:pypi/{name}@{version}"}
        for name, version in wheels.items()
    ]
    components.append({"name": "apt", "version": "2.6", "purl": "pkg:deb/debian/apt@2.6"})
    folder = state / "scans" / digest.removeprefix("sha256:")
    folder.mkdir(parents=True)
    text = json.dumps({"components": components})
    (folder / "sbom.cdx.json").write_text(text, encoding="utf-8")
