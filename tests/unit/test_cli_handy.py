"""`run` and `shell` find the image that is meant and ask Docker for it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import catalog_samples
import pytest
import registry_fakes as fakes
import smoke_samples
from click.testing import CliRunner

from gpulayers.cli import main, named
from gpulayers.cli.loaded import Where
from gpulayers.cli.named import Named
from gpulayers.engine import process
from gpulayers.engine.docker import DockerEngine
from gpulayers.engine.process import Finished
from gpulayers.engine.registry import Response
from gpulayers.errors import NothingSelectedError, RemoteError
from gpulayers.record import Records

DIGEST = f"sha256:{'a' * 64}"
MATRIX = f"""\
schema = 1
[images]
name = "team/app"
registry = "{fakes.HOST}"
[axes]
os = ["debian12"]
python = ["3.11"]
cuda = ["12.6", "12.8"]
framework = ["cupy==13.6.0"]
[base.debian12]
sources = ["registry.example/debian@{DIGEST}"]
"""
CELL = {
    "os": "debian12",
    "python": "3.11",
    "cuda": "12.8",
    "framework": "cupy==13.6.0",
    "model": "none",
}
TAGS = f"HEAD {fakes.ROOT}/team/app/manifests"


@pytest.fixture
def project(tmp_path: Path) -> Where:
    (tmp_path / "matrix.toml").write_text(MATRIX, encoding="utf-8")
    return Where(project=tmp_path, matrix=None, only=(), registry="")


def engine(stdout: str = "", code: int = 1) -> DockerEngine:
    def answer(argv: Sequence[str], *, stdin: str | None, timeout_s: float | None) -> Finished:
        assert argv
        assert timeout_s or stdin
        return smoke_samples.finished(stdout, code=code)

    return DockerEngine(answer)


def find(text: str, where: Where, **table: Response) -> tuple[Named, list[str]]:
    answers = {f"{TAGS}/{tag.replace('_', '-')}": held for tag, held in table.items()}
    transport = fakes.FakeTransport({k.replace("--", "."): v for k, v in answers.items()})
    found = named.image_of(text, where, fakes.client(transport), engine())
    return found, transport.lines()


def held(digest: str = DIGEST) -> Response:
    return fakes.answer(200, docker_content_digest=digest)


@pytest.mark.parametrize("text", ["cupy13.6.0-cu128", "cuda=12.8", "cuda=12.8,framework=cupy*"])
def test_a_cell_is_the_image_that_was_built_last(text: str, project: Where) -> None:
    record = replace(catalog_samples.image("app"), cell=CELL)
    assert project.project is not None
    Records(project.project / ".gpulayers" / "records").write(record)
    found, asked = find(text, project)
    assert found.ref.format() == record.ref
    assert found.record == record
    assert asked == []


def test_a_cell_that_was_not_built_here_is_what_its_channels_hold(project: Where) -> None:
    found, asked = find("cuda=12.8", project, **{"cupy13--6--0_cu128": held()})
    assert found.ref.format() == f"{fakes.HOST}/team/app@{DIGEST}"
    assert asked == [f"{TAGS}/cupy13.6.0-cu128-edge", f"{TAGS}/cupy13.6.0-cu128"]


def test_a_cell_that_was_never_built_says_how_to_build_it(project: Where) -> None:
    with pytest.raises(RemoteError, match=r"cupy13\.6\.0-cu128: wanted an image") as caught:
        find("cuda=12.8", project)
    assert "gpulayers build" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "said"),
    [("os=debian12", "found 2: cupy13.6.0-cu126, cupy13.6.0-cu128"), ("cuda=9.9", "found none")],
)
def test_no_cell_or_several_are_refused(text: str, said: str, project: Where) -> None:
    with pytest.raises(NothingSelectedError, match=said):
        find(text, project)


def test_a_reference_is_resolved_to_its_digest(project: Where) -> None:
    found, _ = find(f"{fakes.HOST}/team/app:one", project, one=held())
    assert found == Named(ref=fakes.REF.with_digest(DIGEST))


def test_an_image_that_only_the_engine_has_is_taken_by_its_id(
    project: Where, capsys: pytest.CaptureFixture[str]
) -> None:
    registry = fakes.client(fakes.FakeTransport({}))
    local = engine(f"{DIGEST}\n", code=0)
    found = named.image_of(f"{fakes.HOST}/mine:one", project, registry, local)
    assert found.runnable == DIGEST
    assert "taking the engine's own image" in capsys.readouterr().err


def test_an_image_that_is_nowhere_is_named_with_both_places(project: Where) -> None:
    with pytest.raises(RemoteError, match="has no such image; the engine has none either"):
        find(f"{fakes.HOST}/mine:one", project)


@pytest.fixture
def docker(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine without GPUs."""

    def run(argv: Sequence[str], **_: object) -> Finished:
        assert tuple(argv[:2]) == ("docker", "info")
        return smoke_samples.finished('{"ServerVersion":"28.5.2","Runtimes":{"runc":{}}}')

    monkeypatch.setattr(process, "run", run)


@pytest.mark.usefixtures("docker")
def test_run_shows_the_command_without_values_and_says_that_there_is_no_gpu() -> None:
    words = ["run", "--dry-run", "-e", "TOKEN=hush", f"r.example/a@{DIGEST}", "--", "id", "-u"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    assert result.stdout.split()[-3:] == [f"r.example/a@{DIGEST}", "id", "-u"]
    assert "warning: no GPU: wanted a CDI device" in result.stderr
    assert "hush" not in result.output


@pytest.mark.usefixtures("docker")
def test_a_gpu_that_is_required_and_not_there_ends_with_15() -> None:
    words = ["shell", "--dry-run", "--gpu", "require", f"r.example/a@{DIGEST}"]
    result = CliRunner().invoke(main, words)
    assert (result.exit_code, result.stdout) == (15, "")
    assert "error: no GPU" in result.stderr


def test_a_reference_with_a_digest_asks_no_registry(project: Where) -> None:
    found, asked = find(f"{fakes.HOST}/team/app:one@{DIGEST}", project)
    assert (found.runnable, asked) == (f"{fakes.HOST}/team/app@{DIGEST}", [])


def test_deep_and_quick_exclude_each_other() -> None:
    result = CliRunner().invoke(main, ["inspect", "--deep", "--quick", f"r.example/a@{DIGEST}"])
    assert result.exit_code == 2
