"""Models that are fetched: their names, groups, the folder for a build, and what images say."""

import hashlib
import json
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from registry_fakes import HOST, FakeTransport, answer, client, held
from test_plan import GROUND, plan_of

from gpulayers.engine.registry import Manifest, digest_of
from gpulayers.engine.registry.model import OCI_MANIFEST
from gpulayers.errors import ProjectError, RemoteError
from gpulayers.lock import file as lock_file
from gpulayers.lock import wanted
from gpulayers.lock.make import refresh_models
from gpulayers.lock.model import LockedFile, LockedModel
from gpulayers.lock.weights import tree
from gpulayers.lock.weights.artifact import Artifacts
from gpulayers.lock.weights.names import check_together, checked_name
from gpulayers.lock.weights.parts import Part, StoppedError
from gpulayers.lock.weights.pins import locked
from gpulayers.lock.weights.store import Carriers, Store, fetch
from gpulayers.matrix.model import ArtifactModel, HubModel, Matrix, Place
from gpulayers.plan import weights
from gpulayers.plan.model import Ground, Image
from gpulayers.refs import ImageRef
from gpulayers.render import dockerfile

MB = 10**6
HUB = HubModel(
    name="magika",
    repository="acme/tiny",
    revision="v1.0",
    files=(),
    place="layer",
    check=None,
    smoke=None,
    requirements=(),
)


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def model(**sizes: int) -> LockedModel:
    """A model with these files, of made-up content."""
    files = [LockedFile(name=n, sha256=sha(n), size_bytes=size) for n, size in sizes.items()]
    return locked("magika", source="huggingface:acme/tiny", revision="5f91d94b", files=files)


SHARDS = {"a.safetensors": 900 * MB, "b.safetensors": 800 * MB, "config.json": 40, "t.json": 5}


@pytest.mark.parametrize("name", ["a", "onnx/model.onnx", "weights of 2025.bin", ".hidden"])
def test_names_below_the_folder_are_taken(name: str) -> None:
    assert checked_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "/etc/passwd", "../up", "a//b", "a/../b", "a\nb", "a\\b", "./a", "a/", "x" * 300]
)
def test_names_that_lead_elsewhere_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is no name of a file"):
        checked_name(name)


def test_files_that_cannot_lie_together_are_refused() -> None:
    with pytest.raises(ValueError, match="two files are called 'a'"):
        check_together(["a", "a"])
    with pytest.raises(ValueError, match="'a' is a file and a folder"):
        check_together(["a/b", "a"])
    with pytest.raises(ProjectError, match="model m: wanted files, found none"):
        locked("m", source="oci:x/y", revision="r", files=[])


def test_small_files_share_a_layer_and_large_ones_have_their_own() -> None:
    groups = tree.plan(model(**SHARDS), layer_mb=1000, most=20, check=None).groups
    names = [[file.name for file in group.files] for group in groups]
    assert names == [["config.json", "t.json"], ["a.safetensors"], ["b.safetensors"]]


def test_files_share_a_layer_up_to_its_size() -> None:
    sizes = {f"{n:03}.bin": 200 * MB for n in range(7)}
    groups = tree.plan(model(**sizes), layer_mb=500, most=20, check=None).groups
    assert [len(group.files) for group in groups] == [2, 2, 2, 1]


def test_many_shards_never_make_more_layers_than_there_is_room_for() -> None:
    sizes = {f"{n:03}.bin": 5000 * MB for n in range(200)}
    groups = tree.plan(model(**sizes), layer_mb=1000, most=20, check=None).groups
    assert 10 <= len(groups) <= 20
    assert sum(len(group.files) for group in groups) == 200


def test_a_file_that_changed_changes_its_own_group_only() -> None:
    before = tree.plan(model(**SHARDS), layer_mb=1000, most=20, check=None)
    changed = model(**SHARDS)
    files = [replace(f, sha256=sha("new")) if f.name[0] == "b" else f for f in changed.files]
    after = tree.plan(replace(changed, files=tuple(files)), layer_mb=1000, most=20, check=None)
    same = [a.key == b.key for a, b in zip(before.groups, after.groups, strict=True)]
    assert same == [True, True, False]
    assert before.name != after.name


@dataclass
class Carrier:
    """Brings what it was given, and keeps what it was asked."""

    data: dict[str, bytes]
    asked: list[tuple[str, int]] = field(default_factory=list)
    before: Callable[[], None] = lambda: None

    def bring(self, model: LockedModel, file: LockedFile, part: Path) -> None:
        assert model.source
        self.before()
        begin = part.stat().st_size
        self.asked.append((file.name, begin))
        with part.open("ab") as opened:
            opened.write(self.data[file.name][begin:])


def of_data(data: dict[str, bytes]) -> LockedModel:
    files = [
        LockedFile(name=n, sha256=hashlib.sha256(d).hexdigest(), size_bytes=len(d))
        for n, d in data.items()
    ]
    return locked("magika", source="fake:acme/tiny", revision="5f91d94b", files=files)


DATA = {"a/one.bin": b"one", "a/twin.bin": b"one", "two.bin": b"two!", "empty": b""}


def test_what_is_in_the_store_is_linked_into_a_tree_and_twins_are_copied(tmp_path: Path) -> None:
    store, carrier, found = Store(folder=tmp_path), Carrier(DATA), of_data(DATA)
    fetch([found, found], store, Carriers(by_kind={"fake": carrier}), lambda _: None)
    assert sorted(carrier.asked) == [("a/twin.bin", 0), ("two.bin", 0)], "a hash is fetched once"
    check = tmp_path / "look.py"
    check.write_text("print(1)\n")
    laid = tree.plan(found, layer_mb=1, most=9, check=check)
    tree.lay(laid, tmp_path / "trees", store)
    tree.lay(laid, tmp_path / "trees", store)
    place = tmp_path / "trees" / laid.name
    files = {str(p.relative_to(place)): p for p in place.rglob("*") if p.is_file()}
    key = laid.groups[0].key
    assert {n: p.read_bytes() for n, p in files.items()} == {
        **{f"{key}/{name}": data for name, data in DATA.items()},
        "check/look.py": b"print(1)\n",
    }
    inodes = {files[f"{key}/{name}"].stat().st_ino for name in ("a/one.bin", "a/twin.bin")}
    assert len(inodes) == 2
    assert files[f"{key}/two.bin"].stat().st_nlink == 2
    assert [path.name for path in (tmp_path / "trees").iterdir()] == [laid.name]


def test_a_stop_ends_writing_and_leaves_what_came(tmp_path: Path) -> None:
    path, stop = tmp_path / "x.part", threading.Event()
    path.write_bytes(b"ab")
    with Part(path, stop) as part:
        part.write(b"cd")
        stop.set()
        with pytest.raises(StoppedError):
            part.write(b"ef")
    assert path.read_bytes() == b"abcd"


def test_an_interrupt_waits_for_no_answer(tmp_path: Path) -> None:
    main, never = threading.main_thread(), threading.Event()

    def silence() -> None:
        signal.pthread_kill(main.ident or 0, signal.SIGINT)
        never.wait(30)

    carriers = Carriers(by_kind={"fake": Carrier({"a": b"a"}, before=silence)})
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        fetch([of_data({"a": b"a"})], Store(folder=tmp_path), carriers, lambda _: None)
    assert time.monotonic() - begin < 5
    never.set()


def test_the_first_that_fails_stops_the_others(tmp_path: Path) -> None:
    def refuse() -> None:
        msg = "no"
        raise RemoteError(msg)

    data = {f"{n}.bin": b"%d" % n for n in range(50)}
    carrier = Carrier(data, before=refuse)
    with pytest.raises(RemoteError, match="no"):
        fetch([of_data(data)], Store(folder=tmp_path), Carriers(by_kind={"fake": carrier}), print)
    assert len(list(tmp_path.rglob("*.part"))) <= 4


def artifact_answers(
    layers: dict[str, bytes], *, title: str, kind: str = "application/octet-stream"
) -> FakeTransport:
    descriptors = [
        {
            "mediaType": kind,
            "digest": digest_of(data),
            "size": len(data),
            "annotations": {title: name},
        }
        for name, data in layers.items()
    ]
    config = {"mediaType": "application/vnd.oci.empty.v1+json", "digest": digest_of(b"{}")}
    document = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": {**config, "size": 2},
        "layers": descriptors,
    }
    raw = json.dumps(document).encode()
    blobs = {
        f"GET http://{HOST}/v2/models/tiny/blobs/{digest_of(data)}": answer(200, data)
        for data in layers.values()
    }
    return FakeTransport({f"GET http://{HOST}/v2/models/tiny/manifests/1": held(raw), **blobs})


BOXED = ArtifactModel(
    name="boxed",
    ref=ImageRef.parse(f"{HOST}/models/tiny:1"),
    place="layer",
    check=None,
    smoke=None,
    requirements=(),
)


@pytest.mark.parametrize("title", ["org.opencontainers.image.title", "org.cncf.model.filepath"])
def test_an_artifact_is_pinned_by_its_manifest_and_its_layers_are_files(
    tmp_path: Path, title: str
) -> None:
    layers = {"model.onnx": b"weights", "labels.txt": b"cat\n"}
    registry = client(artifact_answers(layers, title=title))
    artifacts = Artifacts(registry=registry, store=Store(folder=tmp_path))
    found = artifacts.pin(BOXED)
    assert found.source == f"oci:{HOST}/models/tiny"
    document = registry.raw(BOXED.ref)
    assert isinstance(document, Manifest)
    assert found.revision == document.digest
    assert {file.name: file.size_bytes for file in found.files} == {
        "labels.txt": 4,
        "model.onnx": 7,
    }
    carriers = Carriers(by_kind={"oci": artifacts})
    fetch([found], artifacts.store, carriers, lambda _: None)
    assert [artifacts.store.path(file).read_bytes() for file in found.files] == [
        b"cat\n",
        b"weights",
    ]


def test_an_image_is_no_artifact_of_files(tmp_path: Path) -> None:
    registry = client(artifact_answers({"model.onnx": b"x"}, title="some.other.annotation"))
    artifacts = Artifacts(registry=registry, store=Store(folder=tmp_path))
    with pytest.raises(ProjectError, match=r"model boxed: the layer .* wanted a title"):
        artifacts.pin(BOXED)


@pytest.mark.parametrize(
    "kind",
    ["application/vnd.oci.image.layer.v1.tar+gzip", "application/vnd.cncf.model.weight.v1.tar"],
)
def test_a_folder_that_was_pushed_as_an_archive_is_refused(tmp_path: Path, kind: str) -> None:
    title = "org.opencontainers.image.title"
    registry = client(artifact_answers({"weights": b"x"}, title=title, kind=kind))
    artifacts = Artifacts(registry=registry, store=Store(folder=tmp_path))
    with pytest.raises(ProjectError, match="wanted a file, found an archive of 'weights'"):
        artifacts.pin(BOXED)


def with_fetched(place: Place = "layer", check: Path | None = None) -> Ground:
    """The repository's own project, its model of a package being fetched instead."""
    hub = replace(HUB, place=place, check=check)
    matrix: Matrix = replace(GROUND.matrix, models={**GROUND.matrix.models, "magika": hub})
    models = tuple(sorted((*GROUND.lock.models, model(**SHARDS))))
    return replace(
        GROUND, matrix=matrix, lock=replace(GROUND.lock, models=models), models=Path("/p/models")
    )


def image_of(ground: Ground) -> Image:
    return next(image for image in plan_of(ground).images if image.cell.model == "magika")


def test_a_model_in_layers_has_a_step_a_group_the_same_under_each_python() -> None:
    ground = with_fetched()
    image = image_of(ground)
    steps = [step for step in image.steps if step.name.startswith("model-magika")]
    assert [step.name for step in steps] == ["model-magika-1", "model-magika-2", "model-magika"]
    assert [step.size_bytes for step in steps] == [45, 900 * MB, 800 * MB]
    assert {step.needs for step in steps} == {("tools",)}
    assert len({step.context for step in steps}) == 1
    assert image.config.env["GPULAYERS_MODEL"] == "/opt/models/magika"
    assert image.config.labels["io.gpulayers.model.revision"] == "5f91d94b"
    assert "io.gpulayers.model.files" not in image.config.labels
    text = dockerfile.text(image, dockerfile.environment(ground.library))
    assert text.count("from=model-magika,source=/") == 3


def test_a_check_sees_the_whole_and_changes_the_last_step_only(tmp_path: Path) -> None:
    check = tmp_path / "look here.py"
    check.write_text("1\n")
    first = image_of(with_fetched(check=check))
    plain = image_of(with_fetched())
    check.write_text("2\n")
    second = image_of(with_fetched(check=check))
    keys = [[s.key for s in image.steps] for image in (plain, first, second)]
    assert keys[0][:-1] == keys[1][:-1] == keys[2][:-1]
    assert len({key[-1] for key in keys}) == 3
    assert first.steps[-1].needs != ("tools",)
    text = dockerfile.text(first, dockerfile.environment(GROUND.library))
    assert "python3 -B /run/whole/'check/look here.py' ." in text


def test_a_model_by_reference_is_named_with_its_files_and_not_held() -> None:
    ground = with_fetched("reference")
    image = image_of(ground)
    (step,) = [step for step in image.steps if step.name.startswith("model-magika")]
    assert (step.context, step.size_bytes) == (None, 0)
    told = json.loads(str(step.values["reference"]))
    assert told["source"] == "huggingface:acme/tiny"
    assert {one["name"]: one["size"] for one in told["files"]} == SHARDS
    assert json.loads(image.config.labels["io.gpulayers.model.files"]) == told["files"]
    assert image.config.env["GPULAYERS_MODEL"] == "/opt/models/magika"
    text = dockerfile.text(image, dockerfile.environment(ground.library))
    assert "/out/opt/models/magika.reference.json" in text
    assert weights.count(ground, "magika") == 1


def test_other_models_have_neither_label_nor_variable() -> None:
    image = next(image for image in plan_of(GROUND).images if image.cell.model == "digits")
    assert "GPULAYERS_MODEL" not in image.config.env
    assert not [name for name in image.config.labels if name.startswith("io.gpulayers.model.")]


def test_a_lock_with_fetched_models_is_read_back_as_it_was() -> None:
    lock = with_fetched().lock
    assert lock_file.parse(lock_file.format_lock(lock)) == lock
    broken = lock_file.format_lock(lock).replace("config.json", "../config.json")
    with pytest.raises(ValueError, match="is no name of a file"):
        lock_file.parse(broken)


def test_folders_are_looked_at_again_and_fetched_models_stay_as_locked() -> None:
    ground = with_fetched()
    assert refresh_models(ground.matrix, ground.lock) == ground.lock


def test_a_lock_is_for_a_source_a_revision_and_files() -> None:
    ground = with_fetched()
    cells = [image.cell for image in plan_of(GROUND).images]
    asked = []
    for change in ({}, {"revision": "v2"}, {"files": ("*.bin",)}, {"place": "reference"}):
        hub = replace(HUB, **change)
        matrix = replace(ground.matrix, models={**ground.matrix.models, "magika": hub})
        asked.append(wanted.digest(wanted.gather(matrix, ground.library, cells)))
    assert len(set(asked)) == 3
    assert asked[0] == asked[3], "where the files go is no question to their source"
