"""Images put together out of steps that are there: the very images that the builder makes."""

import json
from pathlib import Path

import fleet
import pytest
from fleet import Built, Project

from gpulayers.engine import process
from gpulayers.inside import PASSED

pytestmark = pytest.mark.timeout(900)
MODELS = 10
RENDERED = Path(".gpulayers", "render")
APP = """
[app.web]
match = { model = "m0" }
source = "web"
ports = ["8080", "9000/udp"]
command = ["python", "-c", "print('<a & b>')"]

[app.web.health-check]
command = ["python", "-c", "print(1)"]
timeout-s = 90
"""


def many(project: Project) -> None:
    """Two images of each of many small models."""
    text = (project.folder / "matrix.toml").read_text(encoding="utf-8")
    names = [f"m{n}" for n in range(MODELS)]
    quoted = ", ".join(f'"{name}"' for name in ("none", "alpha", "beta", *names))
    text = text.replace('["none", "alpha", "beta"]', f"[{quoted}]")
    text += "".join(f'\n[model.{name}]\npath = "models/{name}"\n' for name in names)
    project.write("matrix.toml", text + APP)
    project.write("web/web.py", "print('web')\n")
    for name in names:
        project.write(f"models/{name}/words.txt", f"{name} & <more>\n")


def composed(build: Built) -> set[str]:
    """The tags of the images that no builder made."""
    return {t for t, image in build.images.items() if image.gates["identity"]["text"] == PASSED}


@pytest.mark.usefixtures("engine_env")
def test_the_builder_makes_the_very_images_that_were_put_together(
    mini: tuple[Project, Built], fresh_root: str, tmp_path: Path
) -> None:
    assert mini[1].exit_codes == {0}, mini[1].said
    project = mini[0].copy(tmp_path / "project", root=fresh_root)
    many(project)
    first = project.build("--only", "model=none")
    assert first.exit_codes == {0}, first.said
    assert composed(first) == set()
    build = project.build()
    assert build.exit_codes == {0}, build.said
    # But for the first app: that a folder to work in changes nothing was not known before.
    made = composed(build)
    left = build.images.keys() - made - first.images.keys()
    assert len(made) > 20
    assert [tag.rpartition("-")[2] for tag in left] == ["m0"], build.said
    by_hand = bake(project, tmp_path / "metadata.json")
    assert by_hand == {name: image.digest for name, image in targets(project, build).items()}


def targets(project: Project, build: Built) -> dict[str, fleet.Image]:
    """Images by their names in the bake file."""
    document = json.loads((project.folder / RENDERED / "docker-bake.json").read_text())
    found = {}
    for image in build.images.values():
        staging = f"staging-{image.key[:12]}"
        (name,) = (n for n, t in document["target"].items() if staging in t["output"][0])
        found[name] = image
    return found


def bake(project: Project, metadata: Path) -> dict[str, str]:
    """What a person does with the rendered files: target to digest."""
    argv = ["docker", "buildx", "bake", "--provenance=false", "--sbom=false", "--allow=fs.read=*"]
    argv += ["--allow=network.host", f"--metadata-file={metadata}", "--file=docker-bake.json"]
    env = {
        **project.env,
        "REGISTRY": project.root,
        "INPUTS": str(project.folder / ".gpulayers" / "inputs"),
        "PROJECT": str(project.folder),
        "NETWORK": "host",
    }
    done = process.run(argv, cwd=project.folder / RENDERED, env=env, timeout_s=600)
    assert done.ok, done.stderr
    document = json.loads(metadata.read_text(encoding="utf-8"))
    return {
        name: entry["containerimage.digest"]
        for name, entry in document.items()
        if isinstance(entry, dict) and "containerimage.digest" in entry
    }
