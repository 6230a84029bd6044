"""A base that a registry does not have any more: the copy that was made with the lock stands in."""

import re
import secrets
from pathlib import Path

import fleet
import pytest
from fleet import Built, Project

from gpulayers.engine import buildx
from gpulayers.engine.registry import Registry
from gpulayers.refs import ImageRef, Platform

AMD64 = Platform("linux", "amd64")
pytestmark = pytest.mark.timeout(900)
SOURCE = re.compile(r'^sources = \["(\S+/base@sha256:\w+)"\]$', re.MULTILINE)


@pytest.mark.usefixtures("engine_env")
def test_a_base_that_vanished_is_taken_from_the_copy_that_the_lock_made(
    mini: tuple[Project, Built],
    client: Registry,
    registry: str,
    fresh_root: str,
    tmp_path: Path,
) -> None:
    assert mini[1].exit_codes == {0}, mini[1].said
    project = mini[0].copy(tmp_path / "project", root=fresh_root)
    text = (project.folder / "matrix.toml").read_text(encoding="utf-8")
    found = SOURCE.search(text)
    assert found is not None
    ours = ImageRef.parse(found[1])
    vendor = ImageRef.parse(f"{registry}/vendor-{secrets.token_hex(4)}/debian@{ours.digest}")
    copied = buildx.find().copy(ours.format(), f"{vendor.name}:12", timeout_s=300)
    assert copied.ok, copied.stderr
    project.change("matrix.toml", ours.format(), vendor.format())

    locked = project.gpulayers("lock")
    assert locked.ok, locked.stderr
    assert "no copy" not in locked.stderr
    entries = fleet.read_lock(project.folder)["base"]
    base = next(
        one
        for one in entries
        if one["repository"] == vendor.name and one["os"].startswith("debian")
    )
    kept = ImageRef.parse(f"{fresh_root}/base:{base['os']}-{ours.digest[7:19]}")
    assert client.resolve(kept) == ours.digest

    assert client.delete_manifest(vendor)
    build = project.build("--locked")
    assert build.exit_codes == {0}, build.said
    assert project.gpulayers("render", "--check").ok
    # The very images that the other source gave: nothing of them depends on who kept the base.
    labels = "org.opencontainers.image.base.name"
    for name, image in build.images.items():
        manifest = client.manifest(ImageRef.parse(image.ref), AMD64)
        before = client.manifest(ImageRef.parse(mini[1].images[name].ref), AMD64)
        assert [one.digest for one in manifest.layers] == [one.digest for one in before.layers]
        config = client.config(ImageRef.parse(image.ref), manifest)
        assert (config.labels[labels] == vendor.format()) == (base["os"] in name)
