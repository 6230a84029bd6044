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
    "CgroupDriver": "systemd",
    "SystemTime": "2026-12-05T00:00:07.123456789+00:00",
}
SPEC = """\
cdiVersion: 0.6.0
kind: nvidia.com/gpu
devices:
- name: all
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
containerEdits:
  hooks:
  - args: [nvidia-cdi-hook, create-symlinks]
    hookName: createContainer
    path: /usr/bin/nvidia-cdi-hook
  mounts:
  - containerPath: /usr/lib/libcuda.so.535.183.01
    hostPath: /usr/lib/libcuda.so.535.183.01
"""
BUILDER = """\
Name:   default
Driver: docker

Nodes:
Name:             default
Endpoint:         default
Status:           running
BuildKit version: v0.25.2
Platforms:        linux/amd64, linux/amd64/v2
Labels:
 org.mobyproject.buildkit.worker.executor:    containerd
 org.mobyproject.buildkit.worker.network:     host
 org.mobyproject.buildkit.worker.snapshotter: overlayfs
"""
CARD = "NVIDIA L4, 535.183.01, 8.9\n"
NAMES = (
    *("engine", "image-store", "buildx", "buildkit", "network", "disk", "registry"),
    *("trivy", "trivy-database", "gpu", "gpu-in-containers"),
    *("container-toolkit", "cdi-spec", "cgroup-driver", "shared-memory", "clock"),
)


def finished(stdout: str = "", *, code: int = 0, stderr: str = "") -> Finished:
    return Finished(argv=(), code=code, stdout=stdout, stderr=stderr, seconds=0.1, timed_out=False)


class FakeRun:
    """Answers by the first words of a command; keeps what it was asked; knows no other program."""

    def __init__(self, **answers: Finished | None) -> None:
        self.answers: dict[str, Finished | None] = {
            "docker info": finished(json.dumps(INFO)),
            "docker buildx version": finished("github.com/docker/buildx v0.29.1 abc\n"),
            "docker buildx inspect": finished(BUILDER),
            "docker network": finished("bridge\n"),
            "nvidia-smi": finished(CARD),
            "nvidia-ctk": finished("NVIDIA Container Toolkit CLI version 1.18.0\ncommit: abc\n"),
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
    for name in ("etc/cdi/nvidia.yaml", "usr/bin/nvidia-cdi-hook", "usr/lib/libcuda.so.535.183.01"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(SPEC if name.endswith("yaml") else "")
    return Machine(
        registry=FakeRegistry(),
        root="127.0.0.1:5000/acme",
        name="gpu",
        disk=tmp_path,
        trivy_state=tmp_path / "state",
        run=FakeRun(),
        trivy=str(program),
        devices=tmp_path / "dev",
        total_bytes=lambda _: 64 * 10**9,
        host=tmp_path,
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
    nothing = FakeRun(docker_info=None, docker_buildx_version=None, docker_network=None, trivy=None)
    nothing.answers |= {"nvidia-smi": None, "nvidia-ctk": None}
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
    told = part(replace(machine, run=FakeRun(docker_buildx_version=finished(answer))), "buildx")
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


def test_a_spec_that_names_files_of_another_driver_is_stale(
    machine: Machine, tmp_path: Path
) -> None:
    (tmp_path / "usr/lib/libcuda.so.535.183.01").unlink()
    found = part(machine, "cdi-spec")
    assert found.status == "failed"
    assert found.found == (
        "/etc/cdi/nvidia.yaml is stale: /usr/lib/libcuda.so.535.183.01 is not there"
    )
    assert "nvidia-ctk cdi generate" in found.fix


def test_a_spec_whose_hook_is_gone_is_broken(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "usr/bin/nvidia-cdi-hook").unlink()
    found = part(machine, "cdi-spec")
    assert found.status == "failed"
    assert found.found == (
        "/etc/cdi/nvidia.yaml is broken: its hook /usr/bin/nvidia-cdi-hook is not there"
    )


def test_a_spec_in_json_is_read_as_well_and_those_of_others_are_not(
    machine: Machine, tmp_path: Path
) -> None:
    (tmp_path / "etc/cdi/nvidia.yaml").unlink()
    (tmp_path / "etc/cdi/other.json").write_text('{"kind": "acme.com/net", "path": "/gone"}')
    assert part(machine, "cdi-spec").status == "not-run"
    spec = {
        "kind": "nvidia.com/gpu",
        "containerEdits": {
            "mounts": [{"hostPath": "/usr/lib/gone.so", "containerPath": "/x"}],
            "hooks": [{"hookName": "createContainer", "path": "/opt/hook", "args": ["hook"]}],
        },
    }
    (tmp_path / "etc/cdi/nvidia.json").write_text(json.dumps(spec, indent=1))
    found = part(machine, "cdi-spec").found
    assert "is broken: its hook /opt/hook is not there" in found
    assert "is stale: /usr/lib/gone.so is not there" in found


def test_specs_are_looked_for_where_the_engine_does(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "srv").mkdir()
    (tmp_path / "srv" / "own.yaml").write_text(SPEC)
    own = with_info(machine, CDISpecDirs=["/srv"])
    assert part(own, "cdi-spec").found == "/srv/own.yaml"


def test_with_systemd_and_the_hook_a_reload_takes_the_gpu(machine: Machine) -> None:
    hook = with_info(machine, Runtimes={"nvidia": {}}, DiscoveredDevices=[])
    found = part(hook, "cgroup-driver")
    assert (found.status, found.found) == ("failed", "systemd")
    by_cgroupfs = {"CgroupDriver": "cgroupfs", "Runtimes": {"nvidia": {}}, "DiscoveredDevices": []}
    assert part(with_info(machine, **by_cgroupfs), "cgroup-driver").status == "passed"


@pytest.mark.parametrize(
    ("time", "status", "found"),
    [
        ("2026-12-05T00:00:59Z", "passed", "59 s apart"),
        ("2026-12-04T23:58:00.5+00:00", "failed", "120 s apart"),
        ("2026-12-05T02:00:00+02:00", "passed", "0 s apart"),
        ("", "not-run", "the engine does not say its time"),
    ],
)
def test_the_engines_clock_is_compared(
    machine: Machine, time: str, status: str, found: str
) -> None:
    each = part(with_info(machine, SystemTime=time), "clock")
    assert (each.status, each.found) == (status, found)


def test_a_gpu_without_the_toolkit_is_told(machine: Machine) -> None:
    bare = FakeRun()
    bare.answers["nvidia-ctk"] = None
    assert part(replace(machine, run=bare), "container-toolkit").status == "failed"


def test_a_missing_toolkit_is_told_once(machine: Machine) -> None:
    bare = FakeRun(docker_info=finished(json.dumps({**INFO, "DiscoveredDevices": []})))
    bare.answers["nvidia-ctk"] = None
    found = {p.name: p for p in doctor.examine(replace(machine, run=bare))}
    assert [p.name for p in found.values() if p.status == "failed"] == ["container-toolkit"]
    assert found["gpu-in-containers"].found == "neither: see container-toolkit"


@pytest.mark.parametrize("text", ["kind: nvidia.com/gpu\n\t- x", "- nvidia.com/gpu"])
def test_a_spec_that_is_none_is_broken(machine: Machine, tmp_path: Path, text: str) -> None:
    (tmp_path / "etc/cdi/nvidia.yaml").write_text(text)
    found = part(machine, "cdi-spec")
    assert found.status == "failed"
    assert found.found.startswith("/etc/cdi/nvidia.yaml is broken: ")


def test_files_of_a_spec_are_those_of_its_devices_too_in_any_layout(
    machine: Machine, tmp_path: Path
) -> None:
    spec = {
        "kind": "nvidia.com/gpu",
        "devices": [
            {
                "name": "0",
                "containerEdits": {
                    "deviceNodes": [{"path": "/dev/nvidia0", "hostPath": "/dev/nvidia9"}],
                    # Far apart, and as one line.
                    "hooks": [{"hookName": "x", "args": ["y" * 200], "path": "/opt/far"}],
                },
            }
        ],
    }
    (tmp_path / "etc/cdi/nvidia.yaml").write_text(json.dumps(spec))
    found = part(machine, "cdi-spec").found
    assert "its hook /opt/far is not there" in found
    assert "stale: /dev/nvidia9 is not there" in found


@pytest.mark.parametrize(
    ("version", "status", "found"),
    [
        ("v0.25.2", "passed", "0.25.2, snapshotter overlayfs, steps' network host"),
        ("v0.10.6", "failed", "0.10.6, snapshotter overlayfs, steps' network host"),
        (
            "v0.0.0+unknown",
            "passed",
            "of a version that it does not say, snapshotter overlayfs, steps' network host",
        ),
    ],
)
def test_the_builder_must_know_what_we_ask_of_it(
    machine: Machine, version: str, status: str, found: str
) -> None:
    said = finished(BUILDER.replace("v0.25.2", version))
    each = part(replace(machine, run=FakeRun(docker_buildx_inspect=said)), "buildkit")
    assert (each.status, each.found) == (status, found)


def test_a_builder_that_does_not_answer_is_told(machine: Machine) -> None:
    said = finished(code=1, stderr='ERROR: no builder "gone" found')
    each = part(replace(machine, run=FakeRun(docker_buildx_inspect=said)), "buildkit")
    assert (each.status, each.found) == ("failed", 'ERROR: no builder "gone" found')


@pytest.mark.parametrize(("size", "status"), [(64 * 2**20, "failed"), (2 * 10**9, "passed")])
def test_with_a_gpu_shared_memory_is_looked_at(machine: Machine, size: int, status: str) -> None:
    small = replace(machine, total_bytes=lambda _: size)
    assert part(small, "shared-memory").status == status
