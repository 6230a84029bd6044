"""Models of a Hugging Face repository: pinned, fetched once, resumed, and refused by their hash."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hub_server import COMMIT
from hub_server import Hub as Server

from gpulayers.engine.registry import Patience
from gpulayers.errors import ProjectError, RemoteError
from gpulayers.lock.model import LockedModel
from gpulayers.lock.weights.hub import Hub
from gpulayers.lock.weights.store import Carriers, Store, fetch
from gpulayers.matrix.model import HubModel

# The real client, talking to a server in the test.
pytest.importorskip("huggingface_hub")
pytestmark = pytest.mark.usefixtures("loopback")
WEIGHTS = bytes(range(256)) * 4000
FILES = {
    "model.safetensors": WEIGHTS,
    "config.json": b'{"hidden": 8}\n',
    "onnx/notes.md": b"notes\n",
    "empty.txt": b"",
    ".gitattributes": b"*.safetensors filter=lfs\n",
}
MODEL = HubModel(
    name="tiny",
    repository="acme/tiny",
    revision="v1.0",
    files=(),
    place="layer",
    check=None,
    smoke=None,
    requirements=(),
)


@dataclass
class Case:
    server: Server
    hub: Hub
    store: Store
    waits: list[float]
    said: list[str]

    def pin(self, **changes: object) -> LockedModel:
        return self.hub.pin(replace(MODEL, **changes))  # type: ignore[arg-type]

    def fetch(self, model: LockedModel) -> None:
        carriers = Carriers(by_kind={"huggingface": self.hub})
        fetch([model], self.store, carriers, self.said.append)

    def bytes_of(self, model: LockedModel) -> dict[str, bytes]:
        return {file.name: self.store.path(file).read_bytes() for file in model.files}


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Case]:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Server(files=dict(FILES))
    store = Store(folder=tmp_path / "models")
    waits: list[float] = []
    with server.open() as endpoint:
        patience = Patience(sleep=waits.append)
        hub = Hub(store=store, patience=patience, endpoint=endpoint)
        yield Case(server=server, hub=hub, store=store, waits=waits, said=[])


def test_a_tag_becomes_a_commit_and_files_their_hashes_and_sizes(case: Case) -> None:
    model = case.pin()
    assert (model.source, model.revision) == ("huggingface:acme/tiny", COMMIT)
    assert {file.name: (file.sha256, file.size_bytes) for file in model.files} == {
        name: (hashlib.sha256(data).hexdigest(), len(data))
        for name, data in FILES.items()
        if name != ".gitattributes"
    }
    assert model.size_bytes == sum(file.size_bytes for file in model.files)
    # Large files are pinned by what the Hub says of them, without their bytes.
    assert case.server.ranges("model.safetensors") == []


def test_globs_choose_files_and_none_that_fits_is_refused(case: Case) -> None:
    chosen = case.pin(files=("*.safetensors", "config.json"))
    assert [file.name for file in chosen.files] == ["config.json", "model.safetensors"]
    with pytest.raises(ProjectError, match=r"model tiny: wanted files, found none in huggingface:"):
        case.pin(files=("*.bin",))


def test_files_are_fetched_once_and_their_number_and_size_said_before(case: Case) -> None:
    model = case.pin()
    case.fetch(model)
    assert case.bytes_of(model) == {n: d for n, d in FILES.items() if n != ".gitattributes"}
    assert case.said == ["models: fetching 1 files, 1,024,000 bytes"]
    asked = len(case.server.server.asked)
    case.fetch(model)
    assert len(case.server.server.asked) == asked
    assert not list(case.store.folder.rglob("*.part"))


def test_a_lost_connection_goes_on_where_it_broke(case: Case) -> None:
    large = WEIGHTS * 12
    case.server.files["model.safetensors"] = large
    model = case.pin()
    case.server.cuts["model.safetensors"] = [11_000_000]
    case.fetch(model)
    # The client writes 10 MiB at once; what is less is asked for again.
    assert case.server.ranges("model.safetensors") == ["", "bytes=10485760-"]
    assert case.bytes_of(model)["model.safetensors"] == large


def test_a_new_process_goes_on_where_the_last_one_was_killed(case: Case) -> None:
    model = case.pin()
    weights = next(file for file in model.files if file.name == "model.safetensors")
    case.store.part(weights.sha256).write_bytes(WEIGHTS[:300_000])
    case.fetch(model)
    assert case.server.ranges("model.safetensors") == ["bytes=300000-"]
    assert case.bytes_of(model)["model.safetensors"] == WEIGHTS


def test_a_start_that_was_of_something_else_is_thrown_away(case: Case) -> None:
    model = case.pin()
    weights = next(file for file in model.files if file.name == "model.safetensors")
    case.store.part(weights.sha256).write_bytes(b"x" * 300_000)
    case.fetch(model)
    assert case.server.ranges("model.safetensors") == ["bytes=300000-", ""]
    assert case.bytes_of(model)["model.safetensors"] == WEIGHTS


def test_too_many_requests_are_asked_again_after_the_wait_that_is_asked_for(case: Case) -> None:
    case.server.busy = 1
    model = case.pin()
    case.server.busy = 1
    case.fetch(model)
    assert case.bytes_of(model)["model.safetensors"] == WEIGHTS


def test_a_file_that_changed_at_the_same_revision_is_refused_by_its_hash(case: Case) -> None:
    model = case.pin()
    case.server.served["model.safetensors"] = WEIGHTS[:-1] + b"x"
    with pytest.raises(
        RemoteError,
        match=r"model tiny: model.safetensors of huggingface:acme/tiny "
        rf"at {COMMIT}: wanted sha256 [0-9a-f]+, found",
    ):
        case.fetch(model)
    weights = next(file for file in model.files if file.name == "model.safetensors")
    assert not case.store.has(weights)
    assert not case.store.part(weights.sha256).exists()


def test_a_small_file_that_is_not_the_listed_git_object_is_refused(case: Case) -> None:
    case.server.served["config.json"] = b'{"hidden": 9}\n'
    with pytest.raises(RemoteError, match="wanted the git object"):
        case.pin()


def test_a_token_opens_what_is_closed_and_is_in_no_message(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    case.server.token = "hf_opensesame123"
    monkeypatch.setenv("HF_TOKEN", "hf_wrongsesame456")
    with pytest.raises(RemoteError) as caught:
        case.pin()
    assert "HTTP 401" in str(caught.value)
    assert "HF_TOKEN" in caught.value.hint
    assert "sesame" not in f"{caught.value} {caught.value.hint}"
    monkeypatch.setenv("HF_TOKEN", "hf_opensesame123")
    model = case.pin()
    case.fetch(model)
    assert "sesame" not in repr(model)


def test_a_revision_that_is_not_there_is_said_with_its_name(case: Case) -> None:
    with pytest.raises(RemoteError, match=r"look up acme/tiny at v9: HTTP 404"):
        case.pin(revision="v9")


def test_a_hub_that_does_not_answer_is_asked_again_then_told(case: Case) -> None:
    closed = replace(case.hub, endpoint="http://127.0.0.1:9")
    with pytest.raises(RemoteError, match="model tiny: cannot look up acme/tiny") as caught:
        closed.pin(MODEL)
    assert "HF_ENDPOINT" in caught.value.hint
    assert len(case.waits) == Patience().tries - 1
