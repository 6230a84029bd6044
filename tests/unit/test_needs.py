"""What a build needs: refused before anything starts, with what was found and wanted, exit 5."""

from pathlib import Path
from typing import NamedTuple

import pytest

from gpulayers import doctor, needs
from gpulayers.errors import ToolError
from gpulayers.needs import Space
from gpulayers.scan.scanner import Scanner

pytestmark = pytest.mark.usefixtures("own_processes")
GB = 10**9
DOCKER = """\
#!/bin/sh
case "$*" in
  info*) echo '{{"ServerVersion": "{engine}", "DockerRootDir": "/nowhere"}}' ;;
  "buildx version") {buildx} ;;
esac
"""
BUILDX = "echo github.com/docker/buildx v0.29.1 abc"
NO_BUILDX = "echo \"docker: 'buildx' is not a docker command.\" >&2; exit 1"


class Usage(NamedTuple):
    total: int
    used: int
    free: int


class Registry:
    def ping(self, registry: str) -> bool:
        return bool(registry)

    def can_push(self, name: str) -> bool:
        return bool(name)


@pytest.fixture
def machine(tmp_path: Path) -> doctor.Machine:
    return doctor.Machine(
        registry=Registry(), root="r", name="gpu", disk=tmp_path, trivy_state=tmp_path
    )


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def put(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text, encoding="utf-8")
    (folder / name).chmod(0o755)


def refusal(machine: doctor.Machine) -> str:
    with pytest.raises(ToolError) as caught:
        needs.demand_tools(machine)
    assert caught.value.exit_code == 5
    assert caught.value.hint
    return str(caught.value)


def test_a_machine_that_has_all_is_fit(machine: doctor.Machine, path: Path) -> None:
    put(path, "docker", DOCKER.format(engine="28.5.2", buildx=BUILDX))
    needs.demand_tools(machine)


def test_an_engine_that_is_too_old_is_named_with_what_is_wanted(
    machine: doctor.Machine, path: Path
) -> None:
    put(path, "docker", DOCKER.format(engine="20.10.24", buildx=BUILDX))
    (line,) = refusal(machine).splitlines()[1:]
    assert line == "  engine: wanted a Docker engine 25.0 or newer, found 20.10.24"


def test_a_client_without_buildx_is_named_with_what_it_said(
    machine: doctor.Machine, path: Path
) -> None:
    put(path, "docker", DOCKER.format(engine="28.5.2", buildx=NO_BUILDX))
    (line,) = refusal(machine).splitlines()[1:]
    assert line.startswith("  buildx: wanted buildx 0.13 or newer, found ")
    assert "not a docker command" in line


def test_a_buildx_that_is_too_old_is_named(machine: doctor.Machine, path: Path) -> None:
    old = "echo github.com/docker/buildx v0.9.1 abc"
    put(path, "docker", DOCKER.format(engine="28.5.2", buildx=old))
    (line,) = refusal(machine).splitlines()[1:]
    assert line == "  buildx: wanted buildx 0.13 or newer, found 0.9.1"


def test_without_docker_one_message_has_both(machine: doctor.Machine, path: Path) -> None:
    assert path.is_dir()
    lines = refusal(machine).splitlines()
    assert [line.split(":")[0].strip() for line in lines[1:]] == ["engine", "buildx"]
    assert "cannot start docker" in lines[1]


def test_without_trivy_it_is_named_with_what_is_wanted(path: Path, tmp_path: Path) -> None:
    assert path.is_dir()
    with pytest.raises(ToolError) as caught:
        Scanner.open(tmp_path / "trivy")
    said = str(caught.value)
    assert caught.value.exit_code == 5
    assert "trivy" in said.lower()
    assert "wanted" in said
    assert "found" in said
    assert caught.value.hint


@pytest.mark.parametrize(
    ("free_gb", "words"), [(1, None), (8, "8 GB are free"), (100, "")], ids=["no", "tight", "yes"]
)
def test_too_little_disk_is_refused_and_a_tight_one_told(
    free_gb: int, words: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = Usage(total=200 * GB, used=0, free=free_gb * GB)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    need = Space(download_bytes=2 * GB, peak_bytes=20 * GB)
    if words is not None:
        assert words in needs.demand_space(need, tmp_path)
        return
    with pytest.raises(ToolError) as caught:
        needs.demand_space(need, tmp_path)
    assert caught.value.exit_code == 5
    assert "wanted about 20 GB at the peak, found 1 GB free in" in str(caught.value)
    assert str(tmp_path) in str(caught.value)
