"""`gpulayers prune`: what can be made again goes, what cannot stays."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import smoke_samples
from catalog_samples import NAME, image, write_state
from click.testing import CliRunner, Result

from gpulayers import disk
from gpulayers.cli import main
from gpulayers.engine import process
from gpulayers.engine.docker import DockerEngine
from gpulayers.engine.process import Finished

KNOWN, OLD = image("app").digest, f"sha256:{'d' * 64}"
USED = f"sha256:{'e' * 64}"
SAID = {
    "info": '{"ServerVersion":"28.5.2"}',
    "images": f"{KNOWN}\n{USED}\n",
    "image inspect": "2400000\n",
    "buildx du": "Reclaimable:\t1GB\nTotal:\t\t1.5GB\n",
    "buildx prune": "ID x\nTotal:\t1.2GB\n",
}


class Docker:
    """Answers by the words of a call, and keeps them."""

    def __init__(self, *, own_builder: bool) -> None:
        self.own_builder = own_builder
        self.calls: list[tuple[str, ...]] = []

    def __call__(self, argv: Sequence[str], **_: object) -> Finished:
        self.calls.append(tuple(argv[1:]))
        words = " ".join(argv[1:])
        if words.startswith("image rm") and words.endswith(USED):
            return smoke_samples.finished("", code=1, stderr="conflict: a container uses it")
        code = 1 if words.startswith("buildx inspect") and not self.own_builder else 0
        said = next((text for start, text in SAID.items() if words.startswith(start)), "")
        return smoke_samples.finished(said, code=code)

    def changes(self) -> list[tuple[str, ...]]:
        return [call for call in self.calls if {"rm", "prune"} & set(call)]


@pytest.fixture
def docker(monkeypatch: pytest.MonkeyPatch) -> Docker:
    found = Docker(own_builder=False)
    monkeypatch.setattr(process, "run", found)
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with records, a scan of theirs and one of nobody's, and caches."""
    (tmp_path / "matrix.toml").write_text("schema = 1\n", encoding="utf-8")
    state = tmp_path / ".gpulayers"
    write_state(state, [image("app")])
    for name in (
        *("render/a/Dockerfile", "logs/app.log", "inputs/uv.toml", "traceback.log"),
        *("trivy/fanal/fanal.db", "trivy/db/trivy.db", "channels.json"),
        *(f"scans/{KNOWN[7:]}/trivy.json", f"scans/{OLD[7:]}/trivy.json"),
    ):
        path = state / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text('{"schema": 1, "moves": []}', encoding="utf-8")
    return tmp_path


def prune(project: Path, *words: str) -> Result:
    result = CliRunner().invoke(main, ["prune", "--project", str(project), *words])
    assert result.exit_code == 0, result.output
    return result


def left(project: Path) -> set[str]:
    state = project / ".gpulayers"
    names = {str(p.relative_to(state)) for p in state.rglob("*") if p.is_file()}
    return {name for name in names if name not in {"lock", "trivy/lock"}}


def test_caches_go_and_what_tells_of_images_stays(project: Path, docker: Docker) -> None:
    before = left(project)
    shown = prune(project).stdout
    assert before - left(project) == {
        *("render/a/Dockerfile", "logs/app.log", "inputs/uv.toml", "traceback.log"),
        *("trivy/fanal/fanal.db", f"scans/{OLD[7:]}/trivy.json"),
    }
    assert "records" in str(left(project))
    assert " before, " in shown
    removed = [line.split()[-1] for line in shown.splitlines() if line.startswith("removed")]
    assert f"{NAME}@{KNOWN}" in removed
    assert f"{NAME}@{USED}  (conflict: a container uses it)" in shown
    assert not any("prune" in call for call in docker.calls), "the build cache is not ours alone"
    assert "--build-cache removes it" in shown


def test_a_dry_run_removes_nothing_and_says_the_same_pieces(project: Path, docker: Docker) -> None:
    before = left(project)
    shown = prune(project, "--dry-run", "--all", "--build-cache").stdout
    assert left(project) == before
    assert docker.changes() == []
    assert "would go" in shown
    assert ".gpulayers/records" in shown


def test_all_empties_the_state_folder(project: Path, docker: Docker) -> None:
    prune(project, "--all")
    assert left(project) == set()
    assert docker.changes()


def test_the_cache_of_our_own_builder_goes(project: Path, docker: Docker) -> None:
    docker.own_builder = True
    shown = prune(project).stdout
    assert ("buildx", "prune", "--force", "--builder=gpulayers") in docker.calls
    assert "1,200.0 MB  build cache of the builder gpulayers" in shown


def test_without_an_engine_the_folder_is_pruned_all_the_same(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "run", lambda *_, **__: smoke_samples.finished("", code=1))
    result = prune(project)
    assert "the engine was not asked" in result.stderr
    assert "logs/app.log" not in left(project)


def test_a_link_is_removed_and_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_text("mine", encoding="utf-8")
    state = tmp_path / "state"
    state.mkdir()
    (state / "logs").symlink_to(outside)
    (piece,) = disk.of_state(state, set(), everything=False)
    assert piece.size_bytes == 0
    assert disk.remove(piece, DockerEngine()) == ""
    assert not (state / "logs").is_symlink()
    assert (outside / "mine").exists()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("Total:\t\t15.89GB\n", 15_890_000_000), ("Total:\t0B\n", 0), ("nothing", None)],
)
def test_totals_are_read_as_bytes(text: str, wanted: int | None) -> None:
    assert disk.parse_total(text) == wanted
