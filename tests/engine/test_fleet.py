"""The demo: twelve images that can be pulled and run, nothing the second time, one made again."""

import json
from collections import defaultdict
from pathlib import Path

import fleet
import pytest
from conftest import Docker
from fleet import Built, Image, Project

from gpulayers.engine.docker import DockerEngine
from gpulayers.engine.registry import Registry
from gpulayers.refs import ImageRef, Platform

# The first test that asks for it runs the demo: cold, in a fresh clone.
pytestmark = pytest.mark.timeout(1500)
VERSION = "import {0}; print({0}.__version__)"


def test_the_demo_ends_well_and_says_what_there_is(demo: Built, demo_project: Project) -> None:
    assert demo.exit_codes == {0}, demo.said
    assert len(demo.images) == 12
    said = demo.finished.stdout
    for image in demo.images.values():
        assert len(image.tags) == 2
        assert [tag for tag in image.tags if f"{demo_project.root}/gpu:{tag}" not in said] == []
    sizes = [demo.report["bytes"][name] for name in ("sum", "unique")]
    assert sizes[0] > sizes[1] > 10**9
    assert [f"{size / 10**6:,.1f} MB" in said for size in sizes] == [True, True]
    for gate in ("identity", "secrets", "size"):
        assert f"  {gate:10} passed    12 of 12" in said
    for gate in ("scan", "smoke"):
        assert f"  {gate:10} " in said
    assert f"docker pull {demo_project.root}/gpu:" in said


def test_the_scanner_of_the_demo_finds_what_was_planted(demo: Built) -> None:
    said = demo.finished.stdout
    assert "small hand-made database, not the real one" in said
    assert "planted PyYAML 5.3: failed" in said


@pytest.mark.parametrize(("name", "module"), [("cupy", "cupy"), ("onnxruntime-gpu", "onnxruntime")])
def test_an_image_runs_by_its_tag_and_has_its_framework(
    demo: Built, docker: Docker, name: str, module: str
) -> None:
    image = next(
        image for image in demo.images.values() if image.cell["framework"].startswith(name)
    )
    tag = f"{image.repository}:{image.tags[-1]}"
    try:
        said = docker("run", "--rm", tag, "python", "-c", VERSION.format(module))
        assert said.stdout.strip() == image.cell["framework"].rpartition("=")[2]
    finally:
        docker("image", "rm", "--force", tag)


def test_a_second_demo_builds_nothing_and_says_so(demo: Built, demo_project: Project) -> None:
    again = fleet.run_demo(demo_project)
    assert again.exit_codes == {0}, again.said
    assert again.statuses == {"cached"}
    assert "Nothing to build: the registry has every image already." in again.finished.stdout
    assert {tag: image.digest for tag, image in again.images.items()} == {
        tag: image.digest for tag, image in demo.images.items()
    }


def test_an_image_that_was_deleted_is_made_again_and_no_other(
    demo: Built, demo_project: Project, client: Registry
) -> None:
    lost = demo.images["cupy13.6.0-cu126-debian13"]
    assert client.delete_manifest(ImageRef.parse(lost.ref))
    assert client.resolve(ImageRef.parse(lost.ref)) is None
    again = demo_project.build("--matrix")
    assert again.exit_codes == {0}, again.said
    made = [tag for tag, image in again.images.items() if image.status == "built"]
    assert made == [lost.tag]
    assert again.statuses == {"built", "cached"}
    found = again.images[lost.tag]
    assert found.digest == lost.digest
    assert found.digests() == lost.digests()
    for tag in found.tags:
        assert client.resolve(ImageRef.parse(f"{lost.repository}:{tag}")) == lost.digest
    # No byte was pushed that the registry had.
    assert again.report["bytes"]["pushed"] < 10**6


def test_a_step_has_one_digest_in_every_image_and_on_both_bases(
    demo: Built, demo_project: Project
) -> None:
    planned = json.loads(demo_project.gpulayers("plan", "--json").stdout)
    names = {step["stage"]: step["name"] for step in planned["steps"]}
    digests: dict[str, set[str]] = defaultdict(set)
    oses: dict[str, set[str]] = defaultdict(set)
    marks: set[str] = set()
    for entry in planned["images"]:
        image = demo.images[entry["tag"]]
        own = image.digests()[-len(entry["steps"]) - 1 :]
        assert [step for step, _ in own] == [names[stage] for stage in entry["steps"]] + [
            "identity"
        ]
        marks.add(own[-1][1])
        for stage, (_, digest) in zip(entry["steps"], own, strict=False):
            digests[stage].add(digest)
            oses[stage].add(image.cell["os"])
    several = [names[stage] for stage, found in digests.items() if len(found) != 1]
    assert several == []
    assert len(marks) == 1, "the mark of the identity check is one layer as well"
    for stage, found in oses.items():
        expected = 1 if names[stage].startswith("packages-") else 2
        assert len(found) == expected, names[stage]
    # Other steps have other bytes.
    assert len({next(iter(found)) for found in digests.values()}) == len(digests)


def has_gpu_support() -> bool:
    info = DockerEngine().info()
    return "nvidia" in info.runtimes or bool(info.cdi_devices)


def test_without_a_gpu_nobody_says_that_one_was_tried(
    demo: Built, demo_project: Project, docker: Docker
) -> None:
    if has_gpu_support():
        pytest.skip("this engine can give a GPU to containers")
    for image in demo.images.values():
        gate = image.gates["smoke"]
        assert gate["status"] == "not-run"
        assert gate["class"] == "engine-no-gpu-support"
        assert gate["text"].startswith("cpu passed; gpu not-run")
    image = demo.images["cupy13.6.0-cu126-debian12"]
    tag = f"{image.repository}:{image.tags[-1]}"
    try:
        done = demo_project.gpulayers("test", "--require-gpu", tag)
        assert done.code == 15, done.stderr
        assert done.stdout.startswith("not-run ")
        assert "wanted a kernel computed by a real GPU, found: cpu passed" in done.stderr
        assert demo_project.gpulayers("test", tag).code == 0
    finally:
        docker("image", "rm", "--force", image.ref)


def test_what_the_registry_holds_is_what_the_report_says(demo: Built, client: Registry) -> None:
    for image in demo.images.values():
        assert_same(image, client)


def assert_same(image: Image, client: Registry) -> None:
    manifest = client.manifest(ImageRef.parse(image.ref), Platform("linux", "amd64"))
    found = [(layer.digest, layer.size_bytes) for layer in manifest.layers]
    assert found == [(layer["digest"], layer["bytes"]) for layer in image.layers]
    assert {layer.media_type for layer in manifest.layers} == {
        "application/vnd.oci.image.layer.v1.tar+zstd"
    }


def test_the_catalog_of_the_demo_has_every_image(demo: Built, demo_project: Project) -> None:
    folder = demo_project.folder / ".gpulayers" / "catalog"
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert [tag for tag in demo.images if tag not in page] == []
    assert Path(folder / "catalog.json").is_file()
