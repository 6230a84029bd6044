"""Making a lock: each layer's wheels on top of the ones below, everything asked once."""

import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from build_fakes import Call, FakeBuildx
from lock_samples import (
    AMD64,
    DEMO,
    cells_of,
    hash_of,
    packaged_library,
    read_matrix,
    wheels_for,
)
from registry_fakes import (
    CONFIG,
    HOST,
    MANIFEST,
    ROOT,
    FakeTransport,
    answer,
    client,
    descriptor,
    held,
    manifest_of,
)

from gpulayers.bases import Workshop
from gpulayers.engine.registry import digest_of
from gpulayers.engine.registry.model import OCI_INDEX, OCI_MANIFEST
from gpulayers.errors import ProjectError, RemoteError
from gpulayers.inputs import Inputs
from gpulayers.lock import make, wanted
from gpulayers.lock.file import format_lock
from gpulayers.lock.make import Sources
from gpulayers.lock.model import Lock, Wheel
from gpulayers.lock.wheels import Question
from gpulayers.matrix.model import FolderModel, Matrix
from gpulayers.refs import Platform

IMAGE = f"{HOST}/mirror/debian:12"


class World:
    """All that a lock is made with; keeps what it was asked."""

    def __init__(self) -> None:
        repository = f"{ROOT}/mirror/debian"
        self.transport = FakeTransport(
            {
                f"GET {repository}/manifests/12": held(MANIFEST),
                f"GET {repository}/blobs/{digest_of(CONFIG)}": answer(200, CONFIG),
            }
        )
        self.buildx = FakeBuildx(answer=self._packages)
        self.questions: list[Question] = []
        self.suites: list[Mapping[str, str]] = []

    def _packages(self, call: Call) -> Mapping[str, str]:
        words = call.dockerfile.replace(";", " ").split()
        names = [word for word in words if word.replace("-", "").replace(".", "").isalnum()]
        return {"packages": "".join(f"{name} 1.0 {hash_of(name)}\n" for name in names)}

    def resolve(
        self, question: Question, *, config: Path, indexes: Mapping[str, str]
    ) -> tuple[Wheel, ...]:
        assert (config, dict(indexes)) == (Path("/in/uv.toml"), {})
        self.questions.append(question)
        found = {one.file: one for one in wheels_for(question.requirements)}
        return tuple(sorted(found.values()))

    def _inputs(self, suites: Mapping[str, str]) -> Inputs:
        self.suites.append(suites)
        return Inputs(folder=Path("/in"), ca=Path("/ca.crt"))

    def make(self, matrix: Matrix) -> Lock:
        workshop = Workshop(
            registry=client(self.transport),
            buildx=self.buildx,
            root=f"{HOST}/acme",
            say=lambda _: None,
        )
        sources = Sources(
            workshop=workshop,
            inputs=self._inputs,
            resolve=self.resolve,
            standalone=lambda python, _platforms, _config: f"{python}.9",
        )
        ask = wanted.gather(matrix, packaged_library(), cells_of(matrix))
        return make.make(matrix, ask, sources)


def project() -> Matrix:
    """The repository's matrix with bases that the fake registry holds."""
    matrix = read_matrix(DEMO / "matrix.toml")
    bases = {
        name: replace(matrix.bases["debian12"], os=name, sources=(IMAGE,), suite="bookworm")
        for name in ("debian12", "debian13", "tools")
    }
    return replace(matrix, bases=bases)


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@pytest.fixture(scope="module")
def lock(world: World) -> Lock:
    return world.make(project())


def test_every_list_of_a_lock_is_sorted(lock: Lock) -> None:
    for name in ("bases", "packages", "pythons", "closures", "models"):
        values = list(getattr(lock, name))
        assert values == sorted(values), name


def test_a_lock_says_what_it_was_made_for(lock: Lock) -> None:
    matrix = project()
    ask = wanted.gather(matrix, packaged_library(), cells_of(matrix))
    assert lock.inputs == wanted.digest(ask)


def test_made_twice_a_lock_is_the_same(lock: Lock) -> None:
    assert format_lock(World().make(project())) == format_lock(lock)


def test_bases_of_the_same_sources_are_looked_up_once(world: World, lock: Lock) -> None:
    lines = world.transport.lines()
    assert lines.count(f"GET {ROOT}/mirror/debian/manifests/12") == 1
    assert [base.os for base in lock.bases] == ["debian12", "debian13", "tools"]
    assert {base.suite for base in lock.bases} == {"bookworm"}


def test_the_settings_are_made_for_the_suites_of_the_bases(world: World, lock: Lock) -> None:
    assert lock.closures
    assert world.suites[-1] == dict.fromkeys(["debian12", "debian13", "tools"], "bookworm")


def test_each_closure_holds_only_what_its_layer_adds(lock: Lock) -> None:
    for closure in lock.closures:
        below = [one for one in lock.closures if (*one.under, one.of) == closure.under]
        for one in below:
            assert not set(one.files) & set(closure.files)


def test_what_lies_below_is_fixed_for_the_layers_above(world: World, lock: Lock) -> None:
    assert lock.closures
    asked = [q for q in world.questions if q.requirements != ("uv",)]
    for question in asked:
        first = question.requirements[0]
        assert first.startswith("cuda-toolkit[")
        names = {one.name for one in question.fixed}
        is_lowest = len(question.requirements) == 1
        assert ("cuda-toolkit" in names) != is_lowest


def test_all_wheels_that_a_closure_names_are_there(lock: Lock) -> None:
    assert {file for one in lock.closures for file in one.files} == set(lock.wheels)


def test_packages_of_layers_are_asked_in_the_base_of_the_tools(world: World, lock: Lock) -> None:
    assert [(one.layer, one.os) for one in lock.packages] == [
        ("base", "debian12"),
        ("base", "debian13"),
        ("init", ""),
        ("python", ""),
        ("tools", ""),
    ]
    sources = {
        secret.source.name
        for call in world.buildx.calls
        for secret in call.secrets
        if secret.id == "apt"
    }
    assert sources == {f"apt-{name}.sources" for name in ("debian12", "debian13", "tools")}
    assert all(len(call.secrets) == 3 for call in world.buildx.calls)


def test_a_changed_model_changes_the_lock_without_asking_anyone(tmp_path: Path, lock: Lock) -> None:
    matrix = project()
    (tmp_path / "w.bin").write_text("new")
    digits = FolderModel(name="digits", path=tmp_path, check=None, smoke=None, requirements=())
    changed = make.refresh_models(replace(matrix, models={"digits": digits}), lock)
    assert changed.models != lock.models
    assert replace(changed, models=lock.models) == lock


def test_a_folder_model_that_became_a_package_asks_for_a_new_lock(lock: Lock) -> None:
    matrix = project()
    models = {"digits": replace(matrix.models["magika"], name="digits")}
    with pytest.raises(ProjectError, match="model digits is no folder any more") as caught:
        make.refresh_models(replace(matrix, models=models), lock)
    assert caught.value.hint == "run: gpulayers lock"


@pytest.mark.parametrize(
    ("sources", "found"),
    [
        (("debian:bookworm",), "debian"),
        (("debian:bookworm", "standalone"), "debian"),
        (("debian:trixie", "standalone"), "standalone"),
        (("standalone", "debian:bookworm"), "standalone"),
    ],
)
def test_the_first_source_that_has_that_python_gives_it(
    sources: tuple[str, ...], found: str
) -> None:
    lock = World().make(replace(project(), pythons={"3.11": sources}))
    assert [one.source for one in lock.pythons] == [found]
    assert lock.pythons[0].version == {"debian": "3.11", "standalone": "3.11.9"}[found]


def test_bases_that_cannot_be_had_are_told_together() -> None:
    bases = {
        name: replace(project().bases["debian12"], os=name, sources=(f"{HOST}/mirror/{name}:1",))
        for name in ("debian12", "debian13", "tools")
    }
    with pytest.raises(RemoteError) as caught:
        World().make(replace(project(), bases=bases))
    for name in bases:
        assert f"no source gave a base for {name}:" in str(caught.value)


def test_what_is_not_asked_yet_is_left_when_something_failed() -> None:
    asked: list[int] = []
    free = threading.Event()

    def wait(number: int) -> None:
        asked.append(number)
        free.wait(5)

    def fail() -> None:
        with make._pool() as pool:
            for number in range(50):
                pool.submit(wait, number)
            threading.Timer(0.1, free.set).start()
            msg = "no base"
            raise RemoteError(msg)

    with pytest.raises(RemoteError, match="no base"):
        fail()
    assert len(asked) <= make.WORKERS


def test_each_platform_has_a_uv_of_its_own() -> None:
    matrix = project()
    arm = Platform("linux", "arm64")
    both = replace(matrix, images=replace(matrix.images, platforms=(AMD64, arm)))
    config = json.dumps({"architecture": "arm64", "os": "linux"}).encode()
    other = manifest_of(config, b"base")
    entries = [
        descriptor(raw, OCI_MANIFEST, platform={"os": "linux", "architecture": name})
        for raw, name in ((MANIFEST, "amd64"), (other, "arm64"))
    ]
    index = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": entries}
    repository = f"{ROOT}/mirror/debian"
    world = World()
    world.transport.table |= {
        f"GET {repository}/manifests/12": [held(json.dumps(index).encode(), OCI_INDEX)],
        f"GET {repository}/manifests/{digest_of(MANIFEST)}": [held(MANIFEST)],
        f"GET {repository}/manifests/{digest_of(other)}": [held(other)],
        f"GET {repository}/blobs/{digest_of(config)}": [answer(200, config)],
    }
    lock = world.make(both)
    assert {one.digest for one in lock.bases if one.platform == arm} == {digest_of(other)}
    assert [one.platform for one in lock.closures if one.of == "uv"] == [arm]
    assert lock.uv_for(arm).name == lock.uv_for(AMD64).name == "uv"


def test_a_python_that_no_source_has_is_told_with_what_would() -> None:
    matrix = replace(project(), pythons={"3.11": ("debian:trixie",)})
    with pytest.raises(ProjectError, match=r"no source gave Python 3\.11: debian:trixie") as caught:
        World().make(matrix)
    assert 'put "standalone" into [python."3.11"]' in caught.value.hint
