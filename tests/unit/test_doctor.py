"""Each part of a machine is told with what was found, what is wanted and what to do."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from test_scan_database import put

from gpulayers import doctor
from gpulayers.doctor import Machine, Part
from gpulayers.engine.process import Finished
from gpulayers.engine.registry import RegistryError, Trouble
from gpulayers.errors import ToolError

INFO: dict[str, object] = {
    "ServerVersion": "28.5.2+dfsg4",
    "Driver": "overlayfs",
    "DriverStatus": [["driver-type", "io.containerd.snapshotter.v1"]],
    "DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=all"}],
    "Runtimes": {"runc": {}},
}
CARD = "NVIDIA L4, 535.183.01, 8.9\n"
NAMES = (
    *("engine", "image-store", "buildx", "network", "disk", "registry"),
    *("trivy", "trivy-database", "gpu", "gpu-in-containers"),
)


def finished(stdout: str = "", *, code: int = 0, stderr: str = "") -> Finished:
    return Finished(argv=(), code=code, stdout=stdout, stderr=stderr, seconds=0.1, timed_out=False)


class FakeRun:
    """Answers by the first words of a command; keeps what it was asked; knows no other program."""

    def __init__(self, **answers: Finished | None) -> None:
        self.answers: dict[str, Finished | None] = {
            "docker info": finished(json.dumps(INFO)),
            "docker buildx": finished("github.com/docker/buildx v0.29.1 abc\n"),
            "docker network": finished("bridge\n"),
            "nvidia-smi": finished(CARD),
            "trivy": finished('{"Version": "0.76.0"}'),
        }
        self.answers |= {name.replace("_", " "): answer for name, answer in answers.items()}
        self.asked: list[str] = []
        self.around: list[tuple[Mapping[str, str] | None, Path | None]] = []

    def __call__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout_s: float | None = None,
    ) -> Finished:
        assert timeout_s
        self.around.append((env, cwd))
        # Trivy is started through env -i, by its path.
        line = "trivy" if any(word.endswith("/trivy") for word in argv) else " ".join(argv)
        self.asked.append(line)
        answer = next((a for name, a in self.answers.items() if line.startswith(name)), None)
        if answer is None:
            msg = f"cannot start {argv[0]}: No such file or directory"
            raise ToolError(msg)
        return answer


class FakeRegistry:
    """Lets in and lets write, or not; keeps what it was asked."""

    def __init__(self, *, lets_in: bool = True, lets_write: bool = True, up: bool = True) -> None:
        self.lets_in, self.lets_write, self.up = lets_in, lets_write, up
        self.asked: list[str] = []

    def ping(self, registry: str) -> bool:
        self.asked.append(registry)
        if not self.up:
            msg = f"cannot reach the registry {registry}"
            raise RegistryError(msg, trouble=Trouble.UNREACHABLE, hint="see that it is up")
        return self.lets_in

    def can_push(self, name: str) -> bool:
        self.asked.append(name)
        return self.lets_write


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine that has everything."""
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "nvidia0").touch()
    program = tmp_path / "trivy"
    program.touch(mode=0o755)
    put(tmp_path / "state" / "db")
    return Machine(
        registry=FakeRegistry(),
        root="127.0.0.1:5000/acme",
        name="gpu",
        disk=tmp_path,
        trivy_state=tmp_path / "state",
        run=FakeRun(),
        trivy=str(program),
        devices=tmp_path / "dev",
        environ={},
        free_bytes=lambda _: 50 * 10**9,
        now=datetime(2026, 12, 5, tzinfo=UTC),
    )


def part(machine: Machine, name: str) -> Part:
    return next(each for each in doctor.examine(machine) if each.name == name)


def with_info(machine: Machine, **changes: object) -> Machine:
    return replace(machine, run=FakeRun(docker_info=finished(json.dumps(INFO | changes))))


def test_a_machine_that_has_everything_passes_in_all(machine: Machine) -> None:
    parts = doctor.examine(machine)
    assert tuple(each.name for each in parts) == NAMES
    assert {each.status for each in parts} == {"passed"}
    assert {each.fix for each in parts} == {""}
    assert doctor.is_fit(parts)


def test_a_machine_that_has_nothing_is_told_all_of_it(machine: Machine, tmp_path: Path) -> None:
    nothing = FakeRun(docker_info=None, docker_buildx=None, docker_network=None, trivy=None)
    nothing.answers["nvidia-smi"] = None
    bare = replace(
        machine,
        run=nothing,
        registry=FakeRegistry(up=False),
        trivy=str(tmp_path / "none"),
        trivy_state=tmp_path / "none",
        devices=tmp_path / "none",
        free_bytes=lambda _: 10**9,
    )
    statuses = {each.name: each.status for each in doctor.examine(bare)}
    assert tuple(statuses) == NAMES
    assert [name for name, status in statuses.items() if status == "failed"] == [
        *("engine", "buildx", "disk", "registry", "trivy")
    ]
    assert "passed" not in statuses.values()
    failed = [each for each in doctor.examine(bare) if each.status == "failed"]
    assert all(each.fix and each.found and each.wanted for each in failed)


@pytest.mark.parametrize(
    ("version", "status"),
    [("25.0.0", "passed"), ("28.5.2+dfsg4", "passed"), ("24.0.9", "failed"), ("dev", "failed")],
)
def test_an_engine_is_judged_by_its_version(machine: Machine, version: str, status: str) -> None:
    found = part(with_info(machine, ServerVersion=version), "engine")
    assert (found.status, found.found) == (status, version)
    assert "25.0" in found.wanted


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (finished("", code=1, stderr="permission denied on docker.sock"), "permission denied"),
        (finished('{"ServerErrors": ["Cannot connect to the daemon"]}', code=1), "Cannot connect"),
        (finished("not JSON", code=0), "not JSON"),
        (finished("[]"), "[]"),
    ],
)
def test_an_engine_that_does_not_answer_gives_its_own_words(
    machine: Machine, answer: Finished, words: str
) -> None:
    silent = replace(machine, run=FakeRun(docker_info=answer))
    found = part(silent, "engine")
    assert found.status == "failed"
    assert words in found.found
    assert "DOCKER_HOST" in found.fix
    assert part(silent, "image-store").status == "not-run"


def test_another_image_store_is_told_how_to_change(machine: Machine) -> None:
    found = part(with_info(machine, Driver="overlay2", DriverStatus=[]), "image-store")
    assert (found.status, found.found) == ("failed", "overlay2")
    assert "containerd-snapshotter" in found.fix


@pytest.mark.parametrize(
    ("answer", "status", "found"),
    [
        ("github.com/docker/buildx v0.13.0 abc", "passed", "0.13.0"),
        ("github.com/docker/buildx v0.29.1-desktop.1 abc", "passed", "0.29.1-desktop.1"),
        ("github.com/docker/buildx v0.12.1 abc", "failed", "0.12.1"),
    ],
)
def test_buildx_is_judged_by_its_version(
    machine: Machine, answer: str, status: str, found: str
) -> None:
    told = part(replace(machine, run=FakeRun(docker_buildx=finished(answer))), "buildx")
    assert (told.status, told.found) == (status, found)


def test_no_bridge_is_told_and_fine(machine: Machine) -> None:
    found = part(replace(machine, run=FakeRun(docker_network=finished("\n"))), "network")
    assert (found.status, found.found) == ("passed", "no bridge: build steps use the host's")


def test_the_disk_is_that_of_the_engine_where_it_is_ours(machine: Machine, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    found = part(with_info(machine, DockerRootDir=str(data)), "disk")
    assert (found.status, found.found) == ("passed", f"50 GB free in {data}")
    elsewhere = part(with_info(machine, DockerRootDir="/not/here"), "disk")
    assert elsewhere.found == f"50 GB free in {tmp_path}"
    assert part(replace(machine, free_bytes=lambda _: 9 * 10**9), "disk").status == "failed"


@pytest.mark.parametrize(
    ("registry", "words"),
    [
        (FakeRegistry(lets_in=False), "refuses this login"),
        (FakeRegistry(lets_write=False), "does not let this login write to gpu"),
        (FakeRegistry(up=False), "cannot reach the registry 127.0.0.1:5000"),
    ],
)
def test_a_registry_that_is_of_no_use_says_why(
    machine: Machine, registry: FakeRegistry, words: str
) -> None:
    found = part(replace(machine, registry=registry), "registry")
    assert found.status == "failed"
    assert words in found.found
    assert found.fix


def test_the_registry_is_asked_by_host_and_by_repository(machine: Machine) -> None:
    registry = FakeRegistry()
    part(replace(machine, registry=registry), "registry")
    assert registry.asked == ["127.0.0.1:5000", "127.0.0.1:5000/acme/gpu"]


def test_without_a_project_no_registry_is_asked(machine: Machine) -> None:
    registry = FakeRegistry()
    found = part(replace(machine, registry=registry, root="", name=""), "registry")
    assert (found.status, registry.asked) == ("not-run", [])


def test_an_old_trivy_is_refused(machine: Machine) -> None:
    old = replace(machine, run=FakeRun(trivy=finished('{"Version": "0.59.1"}')))
    assert part(old, "trivy").status == "failed"


def test_a_database_is_told_with_its_age(machine: Machine) -> None:
    found = part(machine, "trivy-database")
    assert found.status == "passed"
    assert found.found.endswith(" days old")


def test_a_database_that_is_not_there_yet_is_no_failure(machine: Machine, tmp_path: Path) -> None:
    found = part(replace(machine, trivy_state=tmp_path / "none"), "trivy-database")
    assert found.status == "not-run"
    assert "GPULAYERS_TRIVY_DB" in found.fix


def test_a_database_that_was_named_and_is_not_there_is_one(machine: Machine) -> None:
    named = replace(machine, environ={"GPULAYERS_TRIVY_DB": "/not/here"})
    found = part(named, "trivy-database")
    assert (found.status, found.fix) == ("failed", "correct GPULAYERS_TRIVY_DB")


def test_a_gpu_is_told_with_its_driver(machine: Machine) -> None:
    assert part(machine, "gpu").found == "NVIDIA L4, 535.183.01, 8.9"


def test_a_driver_that_answers_without_a_device_proves_no_gpu(
    machine: Machine, tmp_path: Path
) -> None:
    found = part(replace(machine, devices=tmp_path / "none"), "gpu")
    assert found.status == "not-run"
    assert found.found.endswith("and there is no GPU device")


def test_a_gpu_whose_driver_does_not_answer_fails(machine: Machine) -> None:
    run = FakeRun()
    run.answers["nvidia-smi"] = finished(code=9, stderr="couldn't communicate with the driver")
    found = part(replace(machine, run=run), "gpu")
    assert found.status == "failed"
    assert "nvidia0; nvidia-smi: couldn't communicate" in found.found


def test_no_gpu_is_a_failure_only_where_one_is_required(machine: Machine, tmp_path: Path) -> None:
    run = FakeRun(docker_info=finished(json.dumps(INFO | {"DiscoveredDevices": None})))
    run.answers["nvidia-smi"] = None
    without = replace(machine, devices=tmp_path / "none", run=run)
    names = ("gpu", "gpu-in-containers")
    assert [part(without, name).status for name in names] == ["not-run", "not-run"]
    required = replace(without, require_gpu=True)
    assert [part(required, name).status for name in names] == ["failed", "failed"]


def test_a_gpu_that_containers_cannot_have_fails(machine: Machine) -> None:
    found = part(with_info(machine, DiscoveredDevices=[]), "gpu-in-containers")
    assert found.status == "failed"
    assert "nvidia-ctk" in found.fix
    runtime = with_info(machine, DiscoveredDevices=[], Runtimes={"nvidia": {}})
    assert part(runtime, "gpu-in-containers").found == "the runtime nvidia"


def test_the_document_has_every_part(machine: Machine) -> None:
    document = json.loads(json.dumps(doctor.format_json(doctor.examine(machine))))
    assert (document["schema"], document["ok"]) == (1, True)
    assert document["checks"][0] == {
        "name": "engine",
        "status": "passed",
        "found": "28.5.2+dfsg4",
        "wanted": "a Docker engine 25.0 or newer",
        "fix": "",
    }
