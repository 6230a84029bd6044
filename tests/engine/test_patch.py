"""A patch of the fleet: the OS's own layers move, all others stay where they are."""

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import fleet
import pytest
from fleet import Built, Project
from registry_proxy import Proxy

from gpulayers.engine import buildx
from gpulayers.inside import PASSED

pytestmark = pytest.mark.timeout(1500)
OSES = ("debian12", "debian13")
MODELS = ("none", "alpha", "beta", "gamma", "delta", "epsilon")
BLOB = re.compile(r"/blobs/(?P<digest>sha256:[0-9a-f]{64})$")
UPLOADED = re.compile(r"^PUT \S+/blobs/uploads/\S+digest=(?P<digest>sha256(?::|%3A)[0-9a-f]{64})")
# What `docker pull` of a gate says of itself; whoever builds says something else.
PULLS = "docker/"


def vendor(project: Project, registry: str) -> Mapping[str, str]:
    """Let the bases be tags of a vendor, which move; OS to tag."""
    text = (project.folder / "matrix.toml").read_text(encoding="utf-8")
    sources = re.findall(r'^sources = \["(\S+/base@sha256:\w+)"\]$', text, re.MULTILINE)
    path = f"vendor-{secrets.token_hex(4)}"
    tags = {os: f"{registry}/{path}/{os}:now" for os in OSES}
    for os, source in zip(OSES, sources, strict=False):
        copied = buildx.find().copy(source, tags[os], timeout_s=300)
        assert copied.ok, copied.stderr
        text = text.replace(
            f'[base.{os}]\nsources = ["{source}"]', f'[base.{os}]\nsources = ["{tags[os]}"]'
        )
        assert tags[os] in text
    quoted = ", ".join(f'"{name}"' for name in MODELS)
    text = text.replace('["none", "alpha", "beta"]', f"[{quoted}]")
    for name in MODELS[3:]:
        text += f'\n[model.{name}]\npath = "models/{name}"\n'
        project.write(f"models/{name}/words.txt", f"{name}\n")
    project.write("matrix.toml", text)
    return tags


def patched(tags: Mapping[str, str], registry: str, push: Callable[..., str]) -> None:
    """The vendor mends his bases: one more layer, and an older setting."""
    for tag in tags.values():
        name = tag.removeprefix(f"{registry}/")
        push(name, f"FROM {tag}\nCOPY mended /etc/mended\nENV MENDED=1\n", files={"mended": "now"})


@pytest.mark.usefixtures("engine_env")
def test_a_patch_of_twelve_images_moves_no_layer_but_the_systems(
    mini: tuple[Project, Built],
    registry: str,
    push: Callable[..., str],
    empty_engine: str,
    tmp_path: Path,
) -> None:
    assert mini[1].exit_codes == {0}, mini[1].said
    with Proxy(registry) as proxy:
        root = f"{proxy.host}/t-{secrets.token_hex(4)}"
        project = mini[0].copy(tmp_path / "project", root=root)
        tags = vendor(project, registry)
        locked = project.gpulayers("lock")
        assert locked.ok, locked.stderr
        before = project.build("--locked")
        assert before.exit_codes == {0}, before.said
        assert len(before.images) == len(OSES) * len(MODELS)
        patched(tags, registry, push)
        dry = project.gpulayers("patch", "--dry-run")
        assert dry.ok, dry.stderr
        assert dry.stdout.count("base debian1") == len(OSES), dry.stdout
        status = project.gpulayers("status", "--exit-code")
        assert status.code == 13
        assert "base debian12: " in status.stdout, status.stdout

        elsewhere = replace(project, env={**project.env, "DOCKER_HOST": empty_engine})
        begin = len(proxy.asked)
        (project.folder / fleet.REPORT).unlink()
        after = fleet.built(elsewhere.gpulayers("patch"), project.folder / fleet.REPORT)
        asked, askers = proxy.asked[begin:], proxy.askers[begin:]
    assert after.exit_codes == {0}, after.said
    assert "base debian12: " in after.finished.stdout
    assert "what it closes is not known of 12 of 12 images" in after.finished.stdout
    assert {image.gates["identity"]["text"] for image in after.images.values()} == {PASSED}
    assert {image.gates["smoke"]["class"] for image in after.images.values()} == {
        image.gates["smoke"]["class"] for image in before.images.values()
    }
    stays = set()
    for tag, image in after.images.items():
        assert image.status == "built"
        assert image.digest != before.images[tag].digest
        now, then = above(image), above(before.images[tag])
        assert [pair for pair in now if pair not in then] == [], after.said
        stays |= {digest for step, digest in now if not step.startswith("packages-")}
    assert uploads(asked) & stays == set()
    built_by = {
        (asker, digest)
        for line, asker in zip(asked, askers, strict=True)
        if line.startswith("GET") and (found := BLOB.search(line))
        for digest in [found["digest"]]
        if digest in stays and not asker.startswith(PULLS)
    }
    assert built_by == set()
    again = project.gpulayers("patch")
    assert again.code != 0 or "nothing to patch" in again.stdout


def above(image: fleet.Image) -> Sequence[tuple[str, str]]:
    """The layers above the base, with their steps."""
    return [pair for pair in image.digests() if pair[0] != "base"]


def uploads(asked: Sequence[str]) -> set[str]:
    """The blobs whose bytes were sent."""
    found = (UPLOADED.match(line) for line in asked)
    return {match["digest"].replace("%3A", ":") for match in found if match}
