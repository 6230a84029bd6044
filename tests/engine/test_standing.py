"""A hundred images that did not change: decided by the registry alone, with no engine at all."""

import json
import statistics
from dataclasses import replace

import fleet
import pytest
from fleet import Built, Project
from tiny import GOOD, Maker, tiny_base, tiny_project

from gpulayers.cli import loaded
from gpulayers.cli.loaded import Where
from gpulayers.engine.registry import Registry
from gpulayers.engine.registry.model import OCI_MANIFEST
from gpulayers.lock import file as lock_file
from gpulayers.refs import ImageRef

__all__ = ["tiny_base", "tiny_project"]

pytestmark = pytest.mark.timeout(900)
COUNT = 100
LIMIT_S = 1.0


def fill(project: Project, client: Registry) -> None:
    """Give every other image what the one that was built has, under its own name.

    Shape: a manifest with an annotation, so that each has its own digest; and its record.
    """
    found = loaded.load(Where(project=project.folder, matrix=None, only=(), registry=project.root))
    lock = lock_file.read(found.lock_path)
    assert lock is not None
    (file,) = (project.folder / ".gpulayers/records").glob("*.json")
    record = json.loads(file.read_text(encoding="utf-8"))
    source = ImageRef.parse(record["ref"])
    manifest = json.loads(client.raw(source).raw)
    for image in found.plan(lock).images:
        if image.key == record["key"]:
            continue
        raw = json.dumps({**manifest, "annotations": {"tests.image": image.tag}}).encode()
        content = source.with_tag(f"{image.tag}-{image.key12}")
        digest = client.put_manifest(content, raw, OCI_MANIFEST)
        client.put_manifest(source.with_tag(f"{image.tag}-edge"), raw, OCI_MANIFEST)
        own = {**record, "key": image.key, "tag": image.tag, "digest": digest}
        own |= {"cell": image.cell.values(), "ref": source.with_digest(digest).format()}
        path = file.with_name(f"{digest.removeprefix('sha256:')}.json")
        path.write_text(json.dumps(own), encoding="utf-8")


def without_engine(project: Project) -> Project:
    nowhere = {**project.env, "DOCKER_HOST": "unix:///run/no-engine-is-here.sock"}
    return replace(project, env=nowhere)


@pytest.fixture
def hundred(tiny_project: Maker, client: Registry) -> Project:
    models = {f"m{number:03}": GOOD for number in range(COUNT)}
    project = tiny_project(**models)
    first = project.build("--only", "model=m000")
    assert first.exit_codes == {0}, first.said
    fill(project, client)
    return without_engine(project)


def test_a_hundred_images_are_decided_without_an_engine_within_a_second(
    hundred: Project, client: Registry
) -> None:
    runs: list[Built] = [hundred.build("--quiet") for _ in range(3)]
    for build in runs:
        assert build.exit_codes == {0}, build.said
        assert (len(build.images), build.statuses) == (COUNT, {"cached"})
    assert statistics.median(build.report["seconds"] for build in runs) < LIMIT_S
    assert statistics.median(build.finished.seconds for build in runs) < 3 * LIMIT_S
    lost = runs[0].images["tiny1.0-m042"]
    assert client.delete_manifest(ImageRef.parse(lost.ref))
    refused = hundred.gpulayers("build")
    assert refused.code == 5
    assert refused.stderr.startswith("error: this machine cannot build tiny1.0-m042:\n")
    assert fleet.REPORT.name not in refused.stdout
