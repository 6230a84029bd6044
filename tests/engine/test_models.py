"""Models that are fetched, really built: from a small Hugging Face, and from a registry's artifact.

The clients are the real ones; the Hugging Face is a server in this test that speaks its protocol.
"""

import contextlib
import hashlib
import json
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fleet
import pytest
from conftest import Docker
from fleet import Built, Image, Project
from hub_server import COMMIT, Hub

from gpulayers.engine.registry import Registry
from gpulayers.refs import ImageRef, Platform

# The first test that asks for it builds the images.
pytestmark = pytest.mark.timeout(1500)
pytest.importorskip("huggingface_hub")
TOKEN = f"hf_{secrets.token_hex(12)}"
# More than the client writes at once, and less than twice that.
WEIGHTS = bytes(range(256)) * 48_000
HUB_FILES = {
    "model.safetensors": WEIGHTS,
    "config.json": b'{"hidden": 8}\n',
    "onnx/a name with blanks.txt": b"blanks\n",
    "big.safetensors": b"outside" * 1000,
    ".gitattributes": b"*.safetensors filter=lfs\n",
}
BOXED_FILES = {"model.onnx": bytes(reversed(range(256))) * 8000, "labels.txt": b"cat\ndog\n"}
MATRIX = """\
schema = 1

[images]
name = "gpu"
registry = "{root}"

[axes]
os = ["debian12"]
python = ["3.11"]
cuda = ["12.6"]
framework = ["cupy==13.6.0"]
model = ["hub", "boxed", "named"]

{bases}
[python."3.11"]
sources = ["debian:bookworm"]

[framework.cupy]
cuda-components = ["cudart", "nvrtc"]

[model.hub]
huggingface = "acme/tiny"
revision = "v1.0"
files = ["model.safetensors", "config.json", "onnx/*"]
check = "checks/hub.py"

[model.boxed]
oci = "{artifact}"
smoke = "checks/cpu_boxed.py"

[model.named]
huggingface = "acme/tiny"
revision = "v1.0"
files = ["big.safetensors"]
place = "reference"

[recipe]
model-layer-mb = 2
"""
CHECK = """\
import pathlib
files = sorted(str(path) for path in pathlib.Path(".").rglob("*") if path.is_file())
assert files == ["config.json", "model.safetensors", "onnx/a name with blanks.txt"], files
assert pathlib.Path("model.safetensors").stat().st_size == 12_288_000
"""
SMOKE = """\
import json, os, pathlib
text = pathlib.Path(os.environ["GPULAYERS_MODEL"], "labels.txt").read_text()
print(json.dumps({"check": "boxed", "ok": text.startswith("cat"), "value": text}))
"""
LOOK = """\
import hashlib, json, os, pathlib, sys
folder = pathlib.Path("/opt/models")
print(json.dumps({
    str(path.relative_to(folder)): [
        hashlib.sha256(path.read_bytes()).hexdigest(),
        oct(path.stat().st_mode & 0o777), path.stat().st_uid, int(path.stat().st_mtime),
    ]
    for path in folder.rglob("*") if path.is_file()
}))
"""


@dataclass
class Fetched:
    project: Project
    build: Built
    hub: Hub
    artifact: str
    ranges: list[str]


@pytest.fixture(scope="module")
def artifact(registry: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An artifact that the real oras pushed; its reference."""
    from oras.client import OrasClient  # type: ignore[import-untyped]  # noqa: PLC0415 - slow

    folder = tmp_path_factory.mktemp("artifact")
    for name, data in BOXED_FILES.items():
        (folder / name).write_bytes(data)
    target = f"{registry}/models-{secrets.token_hex(4)}/boxed:1"
    with contextlib.chdir(folder):
        OrasClient(insecure=True).push(target=target, files=sorted(BOXED_FILES))
    return target


@pytest.fixture(scope="module")
def fetched(
    engine_env: dict[str, str],
    registry: str,
    base_tables: str,
    artifact: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Fetched]:
    """The project with three models, locked and built once, while the Hub is busy and drops one."""
    hub = Hub(files=dict(HUB_FILES), token=TOKEN)
    with hub.open() as endpoint:
        env = {**engine_env, "HF_ENDPOINT": endpoint, "HF_TOKEN": TOKEN, "NO_PROXY": "127.0.0.1"}
        folder = tmp_path_factory.mktemp("models") / "project"
        root = f"{registry}/t-{secrets.token_hex(4)}"
        project = Project(folder=folder, root=root, env=env)
        text = MATRIX.format(root=root, bases=base_tables_of(base_tables), artifact=artifact)
        project.write("matrix.toml", text)
        project.write("checks/hub.py", CHECK)
        project.write("checks/cpu_boxed.py", SMOKE)
        hub.busy = 1
        hub.cuts["model.safetensors"] = [11_000_000]
        build = project.build()
        yield Fetched(project, build, hub, artifact, hub.ranges("model.safetensors"))


def base_tables_of(tables: str) -> str:
    """Those of Debian 12 and of the tools: a table that nothing uses is refused."""
    parts = tables.split("[base.")[1:]
    return "".join(f"[base.{part}" for part in parts if not part.startswith("debian13"))


def image_of(build: Built, model: str) -> Image:
    return next(image for image in build.images.values() if image.cell["model"] == model)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def inside(image: Image, docker: Docker) -> dict[str, Any]:
    """What lies under /opt/models, as the image's own user reads it."""
    said = docker("run", "--rm", "--network=none", image.ref, "python", "-c", LOOK)
    found: dict[str, Any] = json.loads(said.stdout.splitlines()[-1])
    return found


def test_models_are_built_in_and_are_what_their_sources_had(
    fetched: Fetched, docker: Docker
) -> None:
    assert fetched.build.exit_codes == {0}, fetched.build.said
    assert fetched.build.statuses == {"built"}
    wanted = {
        "hub": {
            f"hub/{name}": data
            for name, data in HUB_FILES.items()
            if name not in {"big.safetensors", ".gitattributes"}
        },
        "boxed": {f"boxed/{name}": data for name, data in BOXED_FILES.items()},
    }
    for model, files in wanted.items():
        found = inside(image_of(fetched.build, model), docker)
        assert found == {
            name: [sha256(data), "0o644", 0, fleet.EPOCH] for name, data in files.items()
        }


def test_the_lock_pins_commit_manifest_files_and_sizes(fetched: Fetched, client: Registry) -> None:
    models = {m["name"]: m for m in fleet.read_lock(fetched.project.folder)["model"]}
    hub, boxed = models["hub"], models["boxed"]
    assert (hub["source"], hub["revision"]) == ("huggingface:acme/tiny", COMMIT)
    assert f"{sha256(WEIGHTS)} {len(WEIGHTS)} model.safetensors" in hub["files"]
    assert hub["size"] == sum(int(line.split(" ")[1]) for line in hub["files"])
    ref = ImageRef.parse(fetched.artifact)
    assert (boxed["source"], boxed["revision"]) == (f"oci:{ref.name}", client.resolve(ref))
    assert sorted(line.split(" ", 2)[2] for line in boxed["files"]) == sorted(BOXED_FILES)


def test_what_was_lost_was_asked_for_by_range_and_said_before(fetched: Fetched) -> None:
    assert fetched.ranges == ["", "bytes=10485760-"]
    assert "models: fetching 1 files, 12 MB" in fetched.build.finished.stderr


def test_large_files_are_layers_of_their_own_and_small_ones_share_one(fetched: Fetched) -> None:
    steps = [step for step, _ in image_of(fetched.build, "hub").digests() if "model-" in step]
    assert steps == ["model-hub-1", "model-hub"]


def test_a_model_by_reference_is_told_of_and_never_fetched(
    fetched: Fetched, docker: Docker, client: Registry
) -> None:
    image = image_of(fetched.build, "named")
    assert set(inside(image, docker)) == {"named.reference.json"}
    words = ("cat", "/opt/models/named.reference.json")
    told = json.loads(docker("run", "--rm", "--network=none", image.ref, *words).stdout)
    data = HUB_FILES["big.safetensors"]
    entry = {"name": "big.safetensors", "sha256": sha256(data), "size": len(data)}
    assert (told["source"], told["revision"]) == ("huggingface:acme/tiny", COMMIT)
    assert told["files"] == [entry]
    at = ImageRef.parse(image.ref)
    config = client.config(at, client.manifest(at, Platform("linux", "amd64")))
    assert json.loads(config.labels["io.gpulayers.model.files"]) == [entry]
    assert config.labels["io.gpulayers.model.place"] == "reference"
    assert config.env["GPULAYERS_MODEL"] == "/opt/models/named"
    assert fetched.hub.ranges("big.safetensors") == []


def test_a_second_build_asks_no_source_for_anything(fetched: Fetched) -> None:
    before = len(fetched.hub.server.asked)
    again = fetched.project.build()
    assert (again.exit_codes, again.statuses) == ({0}, {"cached"}), again.said
    assert len(fetched.hub.server.asked) == before


def test_images_are_made_anew_from_what_was_fetched_once(
    fetched: Fetched, fresh_root: str, tmp_path: Path
) -> None:
    before = len(fetched.hub.server.asked)
    project = fetched.project.copy(tmp_path / "project", fresh_root)
    build = project.build("--only", "model=hub,boxed")
    assert (build.exit_codes, build.statuses) == ({0}, {"built"}), build.said
    assert len(fetched.hub.server.asked) == before
    for model in ("hub", "boxed"):
        assert image_of(build, model).digest == image_of(fetched.build, model).digest


def test_a_file_that_changed_at_the_same_revision_fails_its_own_image_only(
    fetched: Fetched, fresh_root: str, tmp_path: Path
) -> None:
    project = fetched.project.copy(tmp_path / "project", fresh_root)
    shutil.rmtree(project.folder / ".gpulayers" / "models")
    fetched.hub.served["model.safetensors"] = WEIGHTS[:-1] + b"x"
    try:
        build = project.build()
    finally:
        del fetched.hub.served["model.safetensors"]
    assert build.exit_codes == {9}, build.said
    failure = image_of(build, "hub").failure
    assert failure["class"] == "model-not-fetched"
    said = "\n".join(failure["stderr_tail"])
    assert "model.safetensors of huggingface:acme/tiny" in said
    assert f"wanted sha256 {sha256(WEIGHTS)}, found" in said
    for model in ("boxed", "named"):
        assert image_of(build, model).status == "built"


def test_a_token_is_nowhere_in_images_and_files(fetched: Fetched, client: Registry) -> None:
    assert TOKEN not in fetched.build.said
    for image in fetched.build.images.values():
        at = ImageRef.parse(image.ref)
        manifest = client.manifest(at, Platform("linux", "amd64"))
        assert TOKEN.encode() not in client.config(at, manifest).raw + manifest.raw
    for path in fetched.project.folder.rglob("*"):
        if path.is_file() and path.stat().st_size < len(WEIGHTS):
            assert TOKEN.encode() not in path.read_bytes(), path
